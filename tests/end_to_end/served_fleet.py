"""A fleet that the installed command serves: its journal, tokens and documents laid out, its nodes adopted."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

import aiohttp
from msgspec import Struct

from hostler.journal.opening import open_journal
from hostler.server.tokens import Grant, Role, TokenStore
from tests.end_to_end.processes import HOSTLER, answers, free_port, process

POLICY = Path(__file__).parents[2] / "src/hostler/core/policy/default_policy.yaml"
READY_S = 600.0


def an_empty_journal(place: str) -> None:
    """Make the journal: tokens without one are a cell that has lost it."""
    open_journal(place).close()


class Layout(Struct, frozen=True):
    """Describes a served fleet: texts of policy and pools, nodes of a SKU in one pool, and further words for `serve`.

    `program` is the command; `connections` is how many the clients' session may have, 0 for any. `fill` makes the
    journal at a path: an empty one, or one that holds a fleet already, of which `agents` have tokens.
    """

    pools: str
    nodes: Sequence[str]
    sku: str = "this"
    pool: str = "train"
    policy: str = POLICY.read_text()
    given: Sequence[str] = ()
    program: str = HOSTLER
    connections: int = 0
    fill: Callable[[str], object] = an_empty_journal
    agents: Sequence[str] = ()


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
        if layout.nodes:
            await _adopt(fleet, layout)
        yield fleet


async def _adopt(fleet: ServedFleet, layout: Layout) -> None:
    """Take over the nodes as a fleet that serves already."""
    adopted = [{"id": name, "sku": layout.sku, "pool": layout.pool} for name in layout.nodes]
    body = {"nodes": adopted, "reason": "they serve already"}
    async with fleet.session.post(f"{fleet.server}/v1/adopt", json=body, headers=fleet.as_operator) as answer:
        assert answer.status == 200, await answer.text()


def _laid_out(folder: Path, layout: Layout) -> tuple[str, dict[str, str]]:
    """The operator's token and the agents', by node."""
    data = folder / "data"
    data.mkdir(mode=0o700)
    (folder / "policy.yaml").write_text(layout.policy)
    (folder / "pools.yaml").write_text(layout.pools)
    layout.fill(str(data / "journal.db"))
    with closing(TokenStore(data / "tokens.db")) as store:
        operator = store.create(Grant("ann", Role.operator))
        agents = [*layout.nodes, *layout.agents]
        made = store.create_all([Grant(f"agent-{name}", Role.agent, node=name) for name in agents])
    return operator, dict(zip(agents, made, strict=True))
