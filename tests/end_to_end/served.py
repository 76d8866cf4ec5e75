"""A cell that is served by the installed command, with one node and its agent, beside a cluster that a test brings."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from hostler.journal.opening import open_journal
from hostler.server.tokens import Grant, Role, TokenStore
from tests.end_to_end.processes import HOSTLER, answers, free_port, process, run

POLICY = Path(__file__).parents[2] / "src/hostler/core/policy/default_policy.yaml"
POOLS = """
skus:
  this: {gpus: 0}
pools:
  train: {sku: this, target: 1, tenant: research, cluster: CLUSTER, budget: {count: 1, percent: 100}}
"""
NODE = "n1"


class Served:
    """The cell: told by the commands that an operator uses, read by its API."""

    def __init__(self, server: str, token: Path, session: aiohttp.ClientSession, patience_s: float) -> None:
        self._server = server
        self._words = ("--server", server, "--token-file", str(token))
        self._headers = {"Authorization": f"Bearer {token.read_text()}"}
        self._session = session
        self._patience_s = patience_s

    async def say(self, *words: str) -> None:
        code, said = await self.tell(*words)
        assert code == 0, said

    async def tell(self, *words: str) -> tuple[int, str]:
        """The command's exit status, and all that it said."""
        return await run(HOSTLER, *words, *self._words)

    async def read(self, path: str) -> str:
        async with self._session.get(f"{self._server}{path}", headers=self._headers) as answer:
            return await answer.text()

    async def until(self, words: str, path: str = f"/v1/nodes/{NODE}") -> None:
        """Until the page says this."""
        try:
            async with asyncio.timeout(self._patience_s):
                while words not in await self.read(path):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise AssertionError(f"never said: {words}\n{await self.read(path)}") from None

    async def overrides(self) -> list[str]:
        """The holds by which persons have overridden Hostler."""
        held = json.loads(await self.read("/v1/holds"))["items"]
        return [hold["id"] for hold in held if hold["kind"] == "override"]


@asynccontextmanager
async def served_beside(
    folder: Path, cluster: str, bound: dict[str, str], how: Sequence[str], patience_s: float, policy: Path = POLICY
) -> AsyncIterator[Served]:
    """The node, `bound` to its name in the cluster, in production; `how` tells `serve` where the cluster is."""
    async with (
        served_without_agent(folder, cluster, bound, how, patience_s, policy) as (world, agent),
        process(HOSTLER, *agent, "--kernel-log", "", log=folder / "log"),
    ):
        await world.until('"phase":"production"')
        yield world


@asynccontextmanager
async def served_without_agent(
    folder: Path, cluster: str, bound: dict[str, str], how: Sequence[str], patience_s: float, policy: Path = POLICY
) -> AsyncIterator[tuple[Served, list[str]]]:
    """The same, adopted and never heard of; and the words after `hostler` that start its agent."""
    data, log = folder / "data", folder / "log"
    data.mkdir(mode=0o700)
    (folder / "pools.yaml").write_text(POOLS.replace("CLUSTER", cluster))
    (folder / "fleet.json").write_text(json.dumps([{"id": NODE, "sku": "this", "pool": "train", **bound}]))
    open_journal(data / "journal.db").close()  # tokens without a journal are a cell that has lost it
    store = TokenStore(data / "tokens.db")
    operator, token = folder / "operator", folder / "agent.token"
    for path, grant in ((operator, Grant("ann", Role.operator)), (token, Grant("a", Role.agent, node=NODE))):
        path.write_text(store.create(grant))
        path.chmod(0o600)
    store.close()
    server = f"http://127.0.0.1:{(port := free_port())}"
    documents = ["--config", str(policy), "--config", str(folder / "pools.yaml")]
    serve = ["serve", "--data", str(data), "--listen", f"127.0.0.1:{port}", *how, *documents]
    agent = ["agent", "--server", server, "--node", NODE, "--token-file", str(token)]
    async with aiohttp.ClientSession() as session, process(HOSTLER, *serve, log=log) as serving:
        world = Served(server, operator, session, patience_s)
        try:
            await answers(session, f"{server}/readyz", patience_s, serving)
        except (AssertionError, TimeoutError) as why:
            raise AssertionError(f"{why}\n{log.read_text()[-2_000:]}") from None
        await world.say("adopt", str(folder / "fleet.json"), "--reason", "test")
        yield world, [*agent, "--state-dir", str(folder / "agent")]
