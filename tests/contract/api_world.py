"""A small real cell behind a real server: an obliging hand does what it is asked, clients speak for each role."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from litestar import Litestar

from hostler.app.backtest_process import BacktestProcess
from hostler.controller.inputs import FellowsSeen, WorkSeen
from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.core.state.join_offer import JoinOffer
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Node, Operation, Outcome, Part
from hostler.core.state.trends import DriftScores, TrendReport
from hostler.core.tables.operations import OPERATIONS
from hostler.journal.audit_log import open_audit_log
from hostler.journal.backtest_files import BacktestFiles
from hostler.journal.evidence_files import EvidenceFiles
from hostler.journal.memory import MemoryJournal
from hostler.journal.outbox import open_outbox
from hostler.journal.trend_files import keep
from hostler.polling.pair_results import PairResults
from hostler.ports import Journal, Outbox, WorkloadView
from hostler.runtime.cell_controllers import ControllerIdentity
from hostler.runtime.lease_validity import LeaseTerms
from hostler.runtime.notifier import Notifier
from hostler.runtime.performers import Wiring, performers
from hostler.runtime.runner import Cell
from hostler.server.agent_mailbox import KINDS, AgentMailboxes
from hostler.server.app import build_routes, serve_cell
from hostler.server.app_state import AppState, Outside
from hostler.server.audit_trail import AuditTrail
from hostler.server.backtests import Backtests
from hostler.server.bmc_system_choice import Machines, nobody
from hostler.server.notification_log import NotificationLog
from hostler.server.server_settings import Settings
from hostler.server.tokens import Grant, Role, TokenStore
from hostler.server.trend_archive import TrendArchive
from hostler.server.uvicorn_server import serving
from tests.kit import seen_all

POLICY = (Path(__file__).parents[2] / "src/hostler/core/policy/default_policy.yaml").read_text()
FLEET = """
skus:
  h100: {gpus: 2}
pools:
  alpha: {sku: h100, target: 3, tenant: acme, cluster: k-acme, modes: {"*": act}, budget: {count: 3, percent: 100}}
  beta: {sku: h100, target: 3, tenant: globex, cluster: k-globex, modes: {"*": act}, budget: {count: 3, percent: 100}}
"""
DOCUMENTS = {"policy.yaml": POLICY, "fleet.yaml": FLEET}
HISTORY = "history.db"
"""A journal in the folder of a house, which its backtests replay; there is none until a test writes one."""
_IDLE: list[Litestar] = []
"""Routes that serve no cell now."""
PATIENCE_S = 60.0
"""How long a test waits for what has to come, on a machine that does much else."""
PATIENT = ControllerIdentity(terms=LeaseTerms(lease_s=PATIENCE_S))
"""A controller whose lease outlasts a machine that stands still for some seconds."""

XID79 = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus."


def wide_fleet(nodes: int) -> str:
    """Returns FLEET with so many nodes in alpha, all of which may be away at once."""
    wide = FLEET.replace("target: 3, tenant: acme", f"target: {nodes}, tenant: acme", 1)
    return wide.replace("count: 3,", f"count: {nodes},", 1)


def gpus_of(node: str) -> tuple[Part, ...]:
    """Returns the parts of every node, as its agent and its BMC tell them."""
    return tuple(Part(f"GPU-{node}-{slot}", "gpu", "H100", f"gpu{slot}") for slot in range(2))


def bmc_of(node: str) -> str:
    """Returns the address of a node's BMC; without one on record nothing switches a node but its own agent."""
    return f"https://{node}.bmc.example"


class ObligingHand:
    """Does everything at once, except kinds and profiles in `stuck`, which it never answers. What powers on, boots.

    `verdict` is what checks come to.
    """

    def __init__(self, kinds: frozenset[str]) -> None:
        self.kinds = kinds
        self.stuck: set[str] = set()
        self.verdict = "passed"
        self.boots = 0
        self.cell: Cell | None = None
        self.tells_parts: Callable[[str, str], Awaitable[None]] | None = None
        self._starting: set[asyncio.Task[None]] = set()

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        if self.stuck & {operation.kind, getattr(operation.act, "profile", operation.kind)}:
            await asyncio.Event().wait()
        checks = operation.kind == "run_checks"
        facts: dict[str, Any] = {"verdict": self.verdict, **seen_all(operation)} if checks else {}
        if operation.kind in ("power_on", "reboot"):
            self.boots += 1
            await self.starts(node.id, f"boot-{self.boots}")
        if operation.kind == "join_cluster":
            asyncio.get_running_loop().call_soon(self.works, node.id, ())
        parts = gpus_of(node.id) if operation.kind == "collect_inventory" else ()
        return Outcome(operation.id, node.id, "done", facts=facts, parts=parts, attempt=operation.attempt)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        return Outcome(operation.id, node.id, "unknown", attempt=operation.attempt)

    async def revoke(self, operation: Operation, node: Node) -> None:
        pass

    async def starts(self, node_id: str, boot_id: str) -> None:
        """A node's agent is heard in its new boot and tells what the node consists of, as a real one does."""

        async def begin() -> None:
            self.heard(node_id, boot_id)
            if self.tells_parts is not None:
                await self.tells_parts(node_id, boot_id)

        task = asyncio.create_task(begin())
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    def heard(self, node_id: str, boot_id: str) -> None:
        assert self.cell is not None
        self.cell.heartbeat(node_id, boot_id)

    def works(self, node_id: str, work: tuple[Workload, ...]) -> None:
        assert self.cell is not None
        assigned = self.cell.view.nodes[node_id].assignment
        cluster = assigned.cluster if assigned else ""
        self.cell.tell(WorkSeen((WorkloadView(node_id, work),), whole=True, cluster=cluster))


class Client:
    """One token's conversation with the server."""

    def __init__(self, url: str, session: aiohttp.ClientSession, token: str) -> None:
        self.url = url
        self.session = session
        self.token = token

    async def call(self, method: str, path: str, **more: Any) -> tuple[int, Any]:
        """Status and decoded body."""
        headers = {"Authorization": f"Bearer {self.token}", **more.pop("headers", {})}
        async with self.session.request(method, self.url + path, headers=headers, **more) as answer:
            raw = await answer.read()
            is_json = "json" in answer.headers.get("Content-Type", "")
            return answer.status, msgspec.json.decode(raw) if raw and is_json else raw.decode(errors="replace")

    async def get(self, path: str, **more: Any) -> Any:
        """The body of a question that must succeed."""
        status, body = await self.call("GET", path, **more)
        assert status == 200, (path, status, body)
        return body

    async def post(self, path: str, body: Any, **more: Any) -> tuple[int, Any]:
        return await self.call("POST", path, json=body, **more)


class House:
    """The cell, its server, and a client per role."""

    def __init__(
        self, cell: Cell, tokens: TokenStore, mailboxes: AgentMailboxes, driver: ObligingHand, url: str
    ) -> None:
        self.cell = cell
        self.tokens = tokens
        self.mailboxes = mailboxes
        self.driver = driver
        self.url = url
        self.agents_url = url
        self.session = aiohttp.ClientSession()
        self.operator = self.client(Grant("ada", Role.operator))
        self.app_state: Any = None
        self.offers: dict[str, JoinOffer] = {}
        self.outbox: Outbox | None = None
        self.trends: TrendArchive | None = None
        self._sequences: dict[str, int] = {}
        driver.tells_parts = self.inventory

    def client(self, grant: Grant) -> Client:
        return Client(self.url, self.session, self.tokens.create(grant))

    def agent(self, node: str) -> Client:
        return Client(self.agents_url, self.session, self.tokens.create(Grant(f"agent-{node}", Role.agent, node=node)))

    async def configure(self) -> None:
        status, body = await self.operator.post(
            "/v1/config", {"documents": DOCUMENTS, "reason": "a first configuration"}
        )
        assert status == 200, body

    async def make_room(self, nodes: int) -> None:
        """Have alpha be a pool of so many nodes, all of which may be away at once."""
        body = {"documents": {**DOCUMENTS, "fleet.yaml": wide_fleet(nodes)}, "reason": "more room"}
        status, answer = await self.operator.post("/v1/config", body)
        assert status == 200, answer

    async def adopt(self, count: int, pool: str = "alpha", start: int = 0) -> list[str]:
        """Nodes that serve the pool already, in production: n0, n1 … in racks of four, each with its BMC."""
        names = [f"n{number}" for number in range(start, start + count)]
        nodes = [
            {"id": n, "sku": "h100", "hostname": f"host-{n}", "serial": f"SN-{n}", "bmc": bmc_of(n)}
            | {"rack": f"r{i // 4}", "pool": pool}
            for i, n in enumerate(names)
        ]
        status, body = await self.operator.post("/v1/adopt", {"nodes": nodes, "reason": "they serve already"})
        assert status == 200, body
        for name in names:
            self.driver.heard(name, f"first-{name}")
            await self.inventory(name, f"first-{name}")
            self.driver.works(name, ())
        await self.until(lambda: all(self.cell.view.nodes[n].phase == "production" for n in names))
        return names

    async def inventory(self, node: str, boot: str = "") -> None:
        await self.report(node, kind="inventory", parts=msgspec.to_builtins(gpus_of(node)), boot_id=boot)

    async def report(self, node: str, **seen: Any) -> int:
        """One observation from the node's agent."""
        sequence = self._sequences[node] = self._sequences.get(node, 0) + 1
        observation = {"node": node, "source": "agent", "spool": "s1", "sequence": sequence, **seen}
        body = {"node": node, "spool": "s1", "boot_id": "", "observations": [observation]}
        status, answer = await self.agent(node).post("/v1/agent/observations", body)
        assert status == 200, answer
        return int(answer["acknowledged"])

    def work(self, node: str, tenant: str) -> None:
        """A customer's uninterruptible work on the node."""
        self.driver.works(node, (Workload(f"{tenant}/train-0", tenant, WorkClass.uninterruptible),))

    def scored(self, metric: str, **hundredths: int) -> None:
        """The last judgement of readings found these drift scores, of this metric."""
        assert self.trends is not None
        folder, now = self.trends.store.folder, self.app_state.now()
        folder.mkdir(parents=True, exist_ok=True)
        scores = DriftScores(now, tuple(hundredths), tuple(hundredths.values()), (0,) * len(hundredths), (metric,))
        keep(folder, TrendReport(now, 60), scores)

    async def reads_all(self) -> None:
        """Every controller of the cell is known to read the newest format, and the cell writes it."""
        self.cell.tell(FellowsSeen((Fellow("this", Release().reads),)))
        await self.until(lambda: self.cell.view.cell.format == Release().reads)

    async def until(self, holds: Any) -> None:
        """Wait until the committed view says so."""
        async with asyncio.timeout(PATIENCE_S):
            while not holds():  # noqa: ASYNC110 - the view has no event to wait for
                await asyncio.sleep(0.005)


@contextmanager
def application(app_state: AppState) -> Iterator[Litestar]:
    """The application over a cell. Its routes serve one test's cell after another: to make them takes half a second."""
    routes = _IDLE.pop() if _IDLE else build_routes()
    serve_cell(routes, app_state)
    try:
        yield routes
    finally:
        routes.state.clear()
        _IDLE.append(routes)


@asynccontextmanager
async def house(
    folder: Path,
    *,
    agents: bool = False,
    machines: Machines = nobody,
    agents_at: tuple[str, int] | None = None,
    journal: Journal | None = None,
    **settings: Any,
) -> AsyncIterator[House]:
    """A running cell and server, on a journal in memory where none is given.

    With `agents`, the agents' operations go to their mailboxes, not to the driver.
    """
    kinds = frozenset(kind for kind, row in OPERATIONS.items() if row.port != "present")
    driver = ObligingHand(kinds - KINDS if agents else kinds)
    tokens = TokenStore(folder / "tokens.sqlite")
    offers: dict[str, JoinOffer] = {}
    mailboxes = AgentMailboxes(lambda: cell.epoch, offered=offers.get)
    hands = performers(Wiring((driver, mailboxes) if agents else (driver,)))
    cell = Cell(MemoryJournal() if journal is None else journal, hands, seat=PATIENT)
    driver.cell = cell
    await cell.start()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(cell.stop)
        stack.callback(tokens.close)
        outbox = open_outbox(folder / "outbox.sqlite")
        stack.callback(outbox.close)
        notifier = Notifier(cell, outbox, {})
        trends = TrendArchive(folder / "readings")
        chosen = Settings(port=0, stop_s=1.0, agents=agents_at, **settings)
        audit = open_audit_log(folder / "audit.sqlite")
        stack.callback(audit.close)
        trail = AuditTrail(audit, "test", chosen.clock)
        told = NotificationLog(outbox, notifier.sent, notifier.failed)
        pairs, files = PairResults(), EvidenceFiles(folder / "evidence")
        replay = BacktestProcess(str(folder / HISTORY))
        backtests = Backtests(BacktestFiles(folder / "backtests"), replay, chosen.clock)
        stack.push_async_callback(backtests.close)
        outside = Outside(machines, told, trends, audit=trail, pairs=pairs, evidence=files, backtests=backtests)
        app_state = AppState(cell, tokens, mailboxes, chosen)
        app_state.outside = outside
        app = stack.enter_context(application(app_state))
        url = await stack.enter_async_context(serving(app, chosen))
        inside = House(cell, tokens, mailboxes, driver, url)
        inside.app_state = app_state
        inside.offers = offers
        inside.outbox = outbox
        inside.trends = trends
        inside.agents_url = f"http://{agents_at[0]}:{agents_at[1]}" if agents_at else url
        stack.push_async_callback(inside.session.close)
        await inside.configure()
        yield inside
