"""A served cell beside a real Kubernetes: whose work waits is named, budgets too, and a person's uncordon is a hold."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from hostler.server.tokens import Grant, Role, TokenStore
from tests.contract.kubernetes_world import Admin, an_admin, as_hostler, let_go
from tests.controlplane.plane import ControlPlane
from tests.end_to_end.processes import HOSTLER, free_port, process, run

pytestmark = pytest.mark.xdist_group("kubernetes")
POLICY = Path(__file__).parents[2] / "src/hostler/core/policy/default_policy.yaml"
POOLS = """
skus:
  this: {gpus: 0}
pools:
  train: {sku: this, target: 1, tenant: research, cluster: k1, budget: {count: 1, percent: 100}}
"""
NODE, BOX = "n1", "box-1"


class Served:
    """The cell: told by the commands that an operator uses, read by its API; and the cluster, as its admin has it."""

    def __init__(self, server: str, token: Path, session: aiohttp.ClientSession, admin: Admin) -> None:
        self.admin = admin
        self._server = server
        self._words = ("--server", server, "--token-file", str(token))
        self._headers = {"Authorization": f"Bearer {token.read_text()}"}
        self._session = session

    async def say(self, *words: str) -> None:
        code, said = await run(HOSTLER, *words, *self._words)
        assert code == 0, said

    async def read(self, path: str) -> str:
        async with self._session.get(f"{self._server}{path}", headers=self._headers) as answer:
            return await answer.text()

    async def until(self, words: str, path: str = f"/v1/nodes/{NODE}") -> None:
        """Until the page says this."""
        try:
            async with asyncio.timeout(45):
                while words not in await self.read(path):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise AssertionError(f"never said: {words}\n{await self.read(path)}") from None

    async def unschedulable(self) -> bool:
        node = await self.admin.get(f"/api/v1/nodes/{BOX}")
        return bool(node["spec"].get("unschedulable", False))


@pytest.fixture
async def served(control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Served]:
    data, log = tmp_path / "data", tmp_path / "log"
    data.mkdir(mode=0o700)
    (tmp_path / "pools.yaml").write_text(POOLS)
    (tmp_path / "fleet.json").write_text(json.dumps([{"id": NODE, "sku": "this", "kubernetes": BOX, "pool": "train"}]))
    store = TokenStore(data / "tokens.db")
    operator, token = tmp_path / "operator", tmp_path / "agent.token"
    for path, grant in ((operator, Grant("ann", Role.operator)), (token, Grant("a", Role.agent, node=NODE))):
        path.write_text(store.create(grant))
        path.chmod(0o600)
    store.close()
    server = f"http://127.0.0.1:{(port := free_port())}"
    documents = ["--config", str(POLICY), "--config", str(tmp_path / "pools.yaml")]
    agent = ["agent", "--server", server, "--node", NODE, "--token-file", str(token), "--kmsg", ""]
    async with an_admin(control_plane) as admin, aiohttp.ClientSession() as session:
        await admin.space("acme")
        await admin.node(BOX)
        cluster = ["--cluster", f"k1={await as_hostler(control_plane, admin)}@x"]
        serve = ["serve", "--data", str(data), "--listen", f"127.0.0.1:{port}", *cluster, *documents]
        async with process(HOSTLER, *serve, log=log):
            world = Served(server, operator, session, admin)
            await _answers(session, f"{server}/readyz")
            await world.say("adopt", str(tmp_path / "fleet.json"), "--reason", "test")
            async with process(HOSTLER, *agent, "--state-dir", str(tmp_path / "agent"), log=log):
                await world.until('"phase":"production"')
                yield world
        await admin.clear("acme")
    let_go()


async def test_a_drain_names_who_it_waits_for_and_a_persons_uncordon_holds_it_off(
    served: Served, control_plane: ControlPlane
) -> None:
    admin = served.admin
    await admin.budget("acme", "guard", 1, app="db")
    await admin.pod("acme", "db", BOX, labels={"app": "db"}, annotations={"hostler.dev/interruptible": "true"})
    await admin.pod("acme", "train", BOX, gpus=8)
    await served.until("acme/train:")
    await served.say("node", "drain", NODE, "--reason", "new kernel")
    await served.until("of acme runs here and may not be interrupted")
    await served.until("PodDisruptionBudget acme/guard allows no disruption")
    assert await served.unschedulable()

    control_plane.stop_api()  # unknown work may not be disturbed, and is not forgotten
    await served.until("what runs on the node is unknown: cluster k1 has not been heard")
    control_plane.start_api()
    await served.until("PodDisruptionBudget acme/guard allows no disruption")

    await admin.patch(f"/api/v1/nodes/{BOX}", {"spec": {"unschedulable": None}})
    await served.until("lifted our cordon in cluster k1")
    await served.until('"plan":null')
    assert not await served.unschedulable()  # not fought
    assert "hostler.dev/cordon" not in json.dumps((await admin.get(f"/api/v1/nodes/{BOX}"))["spec"])

    (hold,) = [one["id"] for one in json.loads(await served.read("/v1/holds"))["items"] if one["kind"] == "override"]
    await served.say("hold", "release", hold, "--reason", "go on")
    await served.until("of acme runs here and may not be interrupted")
    assert await served.unschedulable()

    await admin.delete("/apis/policy/v1/namespaces/acme/poddisruptionbudgets/guard")
    await admin.ask("DELETE", "/api/v1/namespaces/acme/pods/train", {"gracePeriodSeconds": 0})
    await served.until('"plan":null')
    left = [pod["metadata"]["name"] for pod in (await admin.get("/api/v1/namespaces/acme/pods"))["items"]]
    assert left == []
    node = await admin.get(f"/api/v1/nodes/{BOX}")
    assert node["metadata"]["labels"]["hostler.dev/pool"] == "train"

    await admin.patch(f"/api/v1/nodes/{BOX}", {"metadata": {"annotations": {"hostler.dev/request": "reboot"}}})
    await served.until("asked for on the Node in cluster k1")


async def _answers(session: aiohttp.ClientSession, url: str) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)
