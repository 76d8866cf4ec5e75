"""A served cell beside a real Slurm: who works is named, a drain waits for it, and a person's resume is a hold."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from hostler.server.tokens import Grant, Role, TokenStore
from tests.end_to_end.processes import HOSTLER, free_port, process, run
from tests.slurm import RealSlurm

POLICY = Path(__file__).parents[2] / "src/hostler/core/policy/default_policy.yaml"
POOLS = """
skus:
  this: {gpus: 0}
pools:
  train: {sku: this, target: 1, tenant: research, cluster: ci, budget: {count: 1, percent: 100}}
"""
NODE = "n1"


class Served:
    """The cell: told by the commands that an operator uses, read by its API."""

    def __init__(self, server: str, token: Path, session: aiohttp.ClientSession) -> None:
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
        async with asyncio.timeout(90):
            while words not in await self.read(path):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.1)

    async def overrides(self) -> list[str]:
        held = json.loads(await self.read("/v1/holds"))["items"]
        return [hold["id"] for hold in held if hold["kind"] == "override"]


@pytest.fixture
async def served(slurm: RealSlurm, tmp_path: Path) -> AsyncIterator[Served]:
    data, log = tmp_path / "data", tmp_path / "log"
    data.mkdir(mode=0o700)
    (tmp_path / "pools.yaml").write_text(POOLS)
    (tmp_path / "ci.yaml").write_text(f"commands: {{slurm_conf: {slurm.conf}}}\nperiod_s: 0.5\n")
    (tmp_path / "fleet.json").write_text(json.dumps([{"id": NODE, "sku": "this", "slurm": "gpu001", "pool": "train"}]))
    store = TokenStore(data / "tokens.db")
    operator, token = tmp_path / "operator", tmp_path / "agent.token"
    for path, grant in ((operator, Grant("ann", Role.operator)), (token, Grant("a", Role.agent, node=NODE))):
        path.write_text(store.create(grant))
        path.chmod(0o600)
    store.close()
    port = free_port()
    serve = ["serve", "--data", str(data), "--listen", f"127.0.0.1:{port}", "--slurm", f"ci={tmp_path / 'ci.yaml'}"]
    documents = ["--config", str(POLICY), "--config", str(tmp_path / "pools.yaml")]
    server = f"http://127.0.0.1:{port}"
    agent = ["agent", "--server", server, "--node", NODE, "--token-file", str(token), "--kmsg", ""]
    async with aiohttp.ClientSession() as session, process(HOSTLER, *serve, *documents, log=log):
        world = Served(server, operator, session)
        await _answers(session, f"{server}/readyz")
        await world.say("adopt", str(tmp_path / "fleet.json"), "--reason", "test")
        async with process(HOSTLER, *agent, "--state-dir", str(tmp_path / "agent"), log=log):
            await world.until('"phase":"production"')
            yield world


async def test_a_drain_waits_for_a_job_by_name_and_a_persons_resume_holds_it_off(
    slurm: RealSlurm, served: Served
) -> None:
    number = await slurm.submit("gpu001")
    await served.say("node", "drain", NODE, "--reason", "new kernel")
    await served.until(f"job {number} of root runs here and may not be interrupted")
    state = await slurm.state("gpu001")
    assert (state.base, sorted(state.flags), state.reason[:14]) == ("MIXED", ["DRAIN"], "hostler: drain")

    await slurm.admin("gpu001", "RESUME")
    await served.until("somebody, by scontrol holds n1: lifted our cordon in cluster ci")
    assert "DRAIN" not in (await slurm.state("gpu001")).flags  # not fought

    (hold,) = await served.overrides()
    await served.say("hold", "release", hold, "--reason", "go on")
    await served.until(f"job {number} of root runs here and may not be interrupted")
    assert "DRAIN" in (await slurm.state("gpu001")).flags
    assert await served.overrides() == []

    slurm.run("scancel", str(number))
    await served.until('"plan":null')
    await served.say("node", "uncordon", NODE, "--reason", "kernel is new")
    await slurm.until(lambda: slurm.run("sinfo", "-h", "-n", "gpu001", "-p", "main", "-o", "%T").strip() == "idle")


async def _answers(session: aiohttp.ClientSession, url: str) -> None:
    async with asyncio.timeout(90):
        while True:
            try:
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)
