"""A fleet that the installed command serves: its journal, tokens and documents laid out, its nodes adopted."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

import aiohttp
from msgspec import Struct

from hostler.core.intents.registration import MAX_NODES
from hostler.journal.opening import open_journal
from hostler.server.tokens import Grant, Role, TokenStore
from tests.end_to_end.processes import HOSTLER, answers, free_port, process

POLICY = Path(__file__).parents[2] / "src/hostler/core/policy/default_policy.yaml"
READY_S = 600.0


class Layout(Struct, frozen=True):
    """Describes a served fleet: texts of policy and pools, nodes of a SKU in one pool, and further words for `serve`.

    `program` is the command; `connections` is how many the clients' session may have, 0 for any number. Racks hold
    `per_rack` nodes each; with 0 no node says its rack.
    """

    pools: str
    nodes: Sequence[str]
    sku: str = "this"
    pool: str = "train"
    policy: str = POLICY.read_text()
    given: Sequence[str] = ()
    program: str = HOSTLER
    connections: int = 0
    per_rack: int = 0

    def adoptions(self) -> Iterator[list[dict[str, str]]]:
        """Nodes as they are adopted, as many at a time as one request takes."""
        rows = [
            {"id": name, "sku": self.sku, "pool": self.pool, **self._place(number)}
            for number, name in enumerate(self.nodes)
        ]
        return (rows[first : first + MAX_NODES] for first in range(0, len(rows), MAX_NODES))

    def _place(self, number: int) -> dict[str, str]:
        return {"rack": f"r{number // self.per_rack:05d}"} if self.per_rack else {}


class ServedFleet(Struct, frozen=True):
    """The served process, where it is asked, by whom: the operator's token, and each node's agent's."""

    pid: int
    session: aiohttp.ClientSession
    server: str
    operator: str
    tokens: dict[str, str]

    @property
    def as_operator(self) -> dict[str, str]:
        """The operator's headers."""
        return {"Authorization": f"Bearer {self.operator}"}


@asynccontextmanager
async def a_served_fleet(folder: Path, layout: Layout) -> AsyncIterator[ServedFleet]:
    """The fleet, served from files in the folder until the end."""
    operator, tokens = _laid_out(folder, layout)
    server = f"127.0.0.1:{free_port()}"
    documents = [f"--config={folder / name}" for name in ("policy.yaml", "pools.yaml")]
    serve = [layout.program, "serve", f"--data={folder / 'data'}", f"--listen={server}", *documents, *layout.given]
    connector = aiohttp.TCPConnector(limit=layout.connections)
    timeout = aiohttp.ClientTimeout(total=READY_S)
    async with (
        aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
        process(*serve, log=folder / "log") as child,
    ):
        fleet = ServedFleet(child.pid, session, f"http://{server}", operator, tokens)
        await answers(session, f"{fleet.server}/readyz", READY_S, child)
        for adopted in layout.adoptions():
            body = {"nodes": adopted, "reason": "they serve already"}
            async with session.post(f"{fleet.server}/v1/adopt", json=body, headers=fleet.as_operator) as answer:
                assert answer.status == 200, await answer.text()
        yield fleet


def _laid_out(folder: Path, layout: Layout) -> tuple[str, dict[str, str]]:
    """The operator's token and the agents', by node."""
    data = folder / "data"
    data.mkdir(mode=0o700)
    (folder / "policy.yaml").write_text(layout.policy)
    (folder / "pools.yaml").write_text(layout.pools)
    open_journal(data / "journal.db").close()  # tokens without a journal are a cell that has lost it
    with closing(TokenStore(data / "tokens.db")) as store:
        operator = store.create(Grant("ann", Role.operator))
        made = store.create_all([Grant(f"agent-{name}", Role.agent, node=name) for name in layout.nodes])
    return operator, dict(zip(layout.nodes, made, strict=True))
