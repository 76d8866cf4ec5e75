"""Puts one running controller together: locks, journal, tokens, cell, agent mailboxes and server."""

import asyncio
import fcntl
import os
import re
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct
from prometheus_client import CollectorRegistry

from hostler.app.audit_sealing import sealing
from hostler.app.backtest_process import BacktestProcess
from hostler.app.first_start import TOKEN, TOKENS, refuse_a_second_beginning
from hostler.app.retired_agents import revoking
from hostler.controller.inputs import Input
from hostler.controller.step_output import Reply
from hostler.core.policy.documents import parse
from hostler.core.state.fleet import Fleet
from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.core.state.intent import Intent
from hostler.core.state.join_offer import JoinOffer
from hostler.core.state.live_state import Release
from hostler.core.state.model import Node
from hostler.core.state.provider import ProviderLook
from hostler.core.state.scopes import FLEET
from hostler.core.state.verbs.activation import Activate
from hostler.core.state.verbs.approvals import ApproveRequest
from hostler.core.state.verbs.facts import Verb
from hostler.drivers.tickets.ticket_target import TicketTarget
from hostler.journal.audit_log import FILE as AUDIT
from hostler.journal.audit_log import open_audit_log
from hostler.journal.backtest_files import BacktestFiles
from hostler.journal.bundle_files import BundleFiles
from hostler.journal.certificate_files import CertificateFiles
from hostler.journal.evidence_files import EvidenceFiles
from hostler.journal.opening import on_server, open_journal
from hostler.journal.outbox import open_outbox
from hostler.polling.link_rounds import BoundCables
from hostler.polling.pair_results import PairResults
from hostler.ports import Journal, NotificationDriver, OperationDriver, TicketLinks, TicketSystem, UnreachableError
from hostler.runtime.cell_controllers import ControllerIdentity
from hostler.runtime.input_queues import BusyError
from hostler.runtime.lease_validity import LeaseTerms
from hostler.runtime.notifier import Notifier
from hostler.runtime.performers import Wiring, complete, performers
from hostler.runtime.provider_rounds import NoticeSource, ProviderRounds
from hostler.runtime.runner import Cell, keep_out_of_collections
from hostler.runtime.ticket_returns import TicketReturns
from hostler.server.agent_mailbox import AgentMailboxes
from hostler.server.app import create_app
from hostler.server.app_state import Outside
from hostler.server.audit_trail import AuditTrail
from hostler.server.backtests import Backtests
from hostler.server.bmc_system_choice import Machines, nobody
from hostler.server.boot_presence import BootPresence
from hostler.server.notification_log import NotificationLog
from hostler.server.oidc_provider import SignIn
from hostler.server.server_settings import Settings, is_loopback
from hostler.server.tokens import TokenStore
from hostler.server.trend_archive import TrendArchive
from hostler.server.uvicorn_server import serving

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
OUTBOX = "outbox.db"
LEASE_S = (1.0, 60.0)
"""The shortest and the longest lease that may be asked for."""


def now() -> datetime:
    """The moment, aware."""
    return datetime.now(UTC)


READINGS = "readings"
EVIDENCE, BUNDLES, CERTIFICATES, BACKTESTS = "evidence", "bundles", "certificates", "backtests"
"""Folders in that of the archive: readings, people's photos and files, evidence, certificates, answers of backtests."""


class Standing(Struct, frozen=True):
    """How a controller stands in its cell: what it is called, where the others reach it, how long its lease lasts.

    `traces` is the address of a collector of traces, "" for none.

    `journal` is a path or a postgresql:// URL, "" for a file in the data directory; `name` and `advertise` "" are
    made of host and port. `archive` is the folder of what has had its time, beside which readings are kept; "": in the
    data directory.
    """

    data: Path
    journal: str = ""
    name: str = ""
    advertise: str = ""
    lease_s: float = LeaseTerms().lease_s
    archive: str = ""
    traces: str = ""


class ControllerProcess(Struct):
    """A running controller: the cell, its tokens, its address, who tells people, and its readings."""

    cell: Cell
    tokens: TokenStore
    address: str
    data: Path
    notifier: Notifier
    returns: TicketReturns
    trends: TrendArchive


class Gate:
    """The cell's fence, its time, its agents' hand and its eye, for drivers that are made before the cell is.

    `offered` gives what lets a node's kubelet in now, `read_node` what the schedulers show of one node, `machines`
    what is behind a BMC, `targets` the drivers of notifications for the cell of that name and its tickets' links,
    `systems` those of ticket systems, `trends` where readings go, `bundles` where evidence is kept, `certificates`
    those of sanitising, `wirings` how the last look at each network bound its ports, `boot` how the boot listeners are.
    """

    def __init__(self) -> None:
        self.cell: Cell | None = None
        self.targets: Callable[[str, TicketLinks], Mapping[str, NotificationDriver]] = lambda _cell, _links: {}
        self.systems: Callable[[str], Mapping[str, TicketSystem]] = lambda _cell: {}
        self.sign_in: SignIn | None = None
        self.trends: TrendArchive | None = None
        self.agents: OperationDriver | None = None
        self.offered: Callable[[str], JoinOffer | None] = lambda _node: None
        self.machines: Machines = nobody
        self.pairs = PairResults()
        self.wirings: Mapping[str, BoundCables] = {}
        self.bundles: BundleFiles | None = None
        self.certificates: CertificateFiles | None = None
        self.providers: Mapping[str, ProviderLook] = {}
        self.boot: BootPresence | None = None
        self.read_schedulers: Callable[[], Iterable[Input]] = tuple
        self.read_node: Callable[[Node, str], Iterable[Input]] = lambda _node, _cluster: ()

    def hears(self, node: str) -> bool:
        """Whether the node's agent is heard now."""
        return self.cell is not None and self.cell.live.of(node).heard

    def provider_rounds(self, source: NoticeSource) -> ProviderRounds:
        """Looks at the providers of the source, whose outcome people can read."""
        assert self.cell is not None, "the cell has started"
        rounds = ProviderRounds(self.cell, source)
        self.providers = rounds.looks
        return rounds

    def opens(self) -> bool:
        """Whether anything may be sent now."""
        return self.cell is not None and self.cell.may_send()

    def now(self) -> datetime:
        """Controller time: what deadlines are measured by, whatever the wall clock does."""
        return self.cell.now() if self.cell is not None else now()

    def fleet(self) -> Fleet:
        """Fleet as committed. Raises UnreachableError before the controller has started."""
        if self.cell is None:
            raise UnreachableError("the controller has not started; ask again in a minute")
        return self.cell.view

    def show(self) -> None:
        """Put what the schedulers show now before the controller."""
        self._tell(self.read_schedulers())

    def show_node(self, node: Node, cluster: str) -> None:
        """The same for one node, of one cluster's."""
        self._tell(self.read_node(node, cluster))

    def _tell(self, seen: Iterable[Input]) -> None:
        if self.cell is not None:
            for one in seen:
                self.cell.tell(one)

    def __call__(self) -> None:
        """Raises UnreachableError where nothing may be sent."""
        if self.cell is None:
            raise UnreachableError("the controller has not started; nothing was sent; it is asked again")
        self.cell.fence()


@asynccontextmanager
async def running(
    settings: Settings,
    standing: Standing,
    wiring: Wiring,
    gate: Gate,
    documents: dict[str, str] | None = None,
) -> AsyncIterator[ControllerProcess]:
    """A running controller. Raises InvalidInputError, UnsafeListenError, JournalError, OSError; nothing stays then.

    The documents are activated where nobody holds the lease when this controller starts; who stands by, and later takes
    over, reads what is in force from the journal alone.
    """
    settings.check()
    configuration = parse(documents) if documents else None
    await asyncio.to_thread(standing.data.mkdir, 0o700, parents=True, exist_ok=True)
    with ExitStack() as stack:
        alone = _locked(standing, stack)
        seat = _seat(settings, standing, alone=alone)
        if not on_server(standing.journal):
            await asyncio.to_thread(refuse_a_second_beginning, _file_of(standing))
        journal: Journal = await asyncio.to_thread(open_journal, journal_of(standing))
        stack.callback(journal.close)
        tokens = TokenStore(_beside(standing, TOKENS))
        stack.callback(tokens.close)
        await asyncio.to_thread(tokens.bootstrap, standing.data / TOKEN)
        outbox = await asyncio.to_thread(open_outbox, _beside(standing, OUTBOX))
        stack.callback(outbox.close)
        audit = await asyncio.to_thread(open_audit_log, _beside(standing, AUDIT))
        stack.callback(audit.close)
        mailboxes = gate.agents = AgentMailboxes(lambda: cell.epoch, gate.now, gate.opens, gate.offered)
        drivers = complete(performers(Wiring((*wiring.drivers, mailboxes), wiring.around)))
        cell = gate.cell = Cell(journal, drivers, seat=seat, loaded=keep_out_of_collections)
        systems = gate.systems(seat.cell)
        bundles = gate.bundles = BundleFiles(Path(standing.archive or standing.data) / BUNDLES)
        mirrors = {kind: TicketTarget(seat.cell, system, outbox.links, bundles) for kind, system in systems.items()}
        notifier = Notifier(cell, outbox, {**gate.targets(seat.cell, outbox.links), **mirrors})
        returns = TicketReturns(cell, outbox.links, systems)
        trends = gate.trends = TrendArchive(Path(standing.archive or standing.data) / READINGS)
        trail = AuditTrail(audit, seat.controller, settings.clock)
        trials = _backtests(standing, settings)
        files = (*_kept(standing, gate, bundles), _sent(stack, standing, seat), trials)
        told = NotificationLog(outbox, notifier.sent, notifier.failed)
        looks = (lambda: gate.providers, lambda: gate.boot)
        outside = Outside(gate.machines, told, trends, gate.sign_in, trail, gate.pairs, *files, *looks)
        try:
            await cell.start()
            for work in (
                lambda: _attended(mailboxes),
                lambda: sealing(cell, audit),
                lambda: revoking(lambda: cell.view, tokens),
            ):
                stack.callback(asyncio.create_task(cell.while_active(work)).cancel)
            if configuration is not None and cell.role == "active":
                await ask(cell, Activate(), FLEET, configuration=configuration, documents=documents)
            async with serving(create_app(cell, tokens, mailboxes, settings, outside), settings) as address:
                try:
                    yield ControllerProcess(cell, tokens, address, standing.data, notifier, returns, trends)
                finally:
                    await trials.close()
                    await cell.stop()  # before the server: another takes over while this one says goodbye
        finally:
            await cell.stop()


def _kept(
    standing: Standing, gate: Gate, bundles: BundleFiles
) -> tuple[EvidenceFiles, BundleFiles, CertificateFiles, Path | None]:
    """Files of people, evidence and certificates, and the folder of records that left the journal."""
    folder = Path(standing.archive or standing.data)
    gate.certificates = CertificateFiles(folder / CERTIFICATES)
    archive = Path(standing.archive) if standing.archive else None
    return EvidenceFiles(folder / EVIDENCE), bundles, gate.certificates, archive


def _backtests(standing: Standing, settings: Settings) -> Backtests:
    """Backtests over this controller's own journal; their answers lie beside its readings."""
    files = BacktestFiles(Path(standing.archive or standing.data) / BACKTESTS)
    return Backtests(files, BacktestProcess(str(journal_of(standing)), standing.archive), settings.clock)


def _sent(stack: ExitStack, standing: Standing, seat: ControllerIdentity) -> CollectorRegistry | None:
    """Counters of the spans that are sent until the stack ends, None where none are."""
    return stack.enter_context(_traced(standing, seat)) if standing.traces else None


def _traced(standing: Standing, seat: ControllerIdentity) -> AbstractContextManager[CollectorRegistry]:
    """Spans on their way to the collector. Raises InvalidInputError, also where the extra `tracing` is not there."""
    from hostler.app.trace_export import sending  # noqa: PLC0415 - what it needs is installed where traces are wanted

    return sending(standing.traces, seat.release.version, seat.controller)


async def _attended(mailboxes: AgentMailboxes) -> None:
    """For as long as this controller decides, agents wait for its orders; then they are sent to whoever does."""
    try:
        await asyncio.Event().wait()
    finally:
        mailboxes.send_away()


async def ask(cell: Cell, act: Verb, target: str, *, person: str = "command-line", **more: object) -> Reply:
    """Put an intent of the composition root itself; `second` says yes where it takes a second person.

    Raises InvalidInputError where it is refused.
    """
    second = str(more.pop("second", ""))
    intent = Intent(secrets.token_hex(8), act, target, person, "given at the start", now())
    while True:
        try:
            reply = await cell.ask(intent, **more)  # type: ignore[arg-type]
        except BusyError as busy:
            await asyncio.sleep(busy.retry_after_s)
            continue
        if second and (approval := reply.detail.get("approval")):
            return await ask(cell, ApproveRequest(), approval, person=second)
        if not reply.granted:
            raise InvalidInputError((Problem(intent.verb, 0, reply.text, "correct that and start again"),))
        return reply


def journal_of(standing: Standing) -> Path | str:
    """A file, or a postgresql:// URL."""
    return standing.journal if on_server(standing.journal) else _file_of(standing)


def _file_of(standing: Standing) -> Path:
    return Path(standing.journal) if standing.journal else standing.data / "journal.db"


def _beside(standing: Standing, name: str) -> Path | str:
    """The journal's own database, or a file beside it: every controller of the cell knows the same."""
    return standing.journal if on_server(standing.journal) else _file_of(standing).parent / name


def _locked(standing: Standing, stack: ExitStack) -> bool:
    """Lock what this process has for itself; whether no other can have the journal. Raises InvalidInputError.

    A file is one controller's: one that is stopped while it writes would hold SQLite's lock, and with it a takeover,
    for as long as it stands still.
    """
    stack.callback(os.close, _lock(standing.data, _ANOTHER_DIRECTORY))
    if on_server(standing.journal):
        return False
    directory = _file_of(standing).parent
    if directory.resolve() != standing.data.resolve():
        directory.mkdir(0o700, parents=True, exist_ok=True)
        stack.callback(os.close, _lock(directory, _POSTGRESQL))
    return True


_POSTGRESQL = "two controllers of one cell need PostgreSQL: give both --journal postgresql://…"
_ANOTHER_DIRECTORY = f"stop that one, or give another directory with --data; {_POSTGRESQL}"


def _lock(directory: Path, instead: str) -> int:
    """A lock on the directory, held until its descriptor is closed or the process ends."""
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as held:
        os.close(lock)
        raise _unusable(str(directory), "another Hostler serves this directory", instead) from held
    return lock


def _seat(settings: Settings, standing: Standing, *, alone: bool) -> ControllerIdentity:
    """Raises InvalidInputError for a name, address or lease that nobody could use."""
    name = standing.name or f"{socket.gethostname()}-{settings.port}"
    if not NAME.fullmatch(name):
        raise _unusable("--name", f"'{name[:70]}' is not a name", "use up to 63 letters, digits and . _ -")
    if not LEASE_S[0] <= standing.lease_s <= LEASE_S[1]:
        raise _unusable("--lease", f"{standing.lease_s:g} s", f"take {LEASE_S[0]:g} to {LEASE_S[1]:g} seconds")
    address = standing.advertise or _own_address(settings, alone=alone)
    _check_address(address, settings)
    mark = f"{name}/{secrets.token_hex(4)}"
    return ControllerIdentity(
        release=Release(version("hostler")),
        controller=name,
        mark=mark,
        address=address,
        alone=alone,
        terms=LeaseTerms(standing.lease_s),
    )


def _own_address(settings: Settings, *, alone: bool) -> str:
    """Host and port as listened to; where others must reach it, they have to mean something to them."""
    if not alone and (settings.port == 0 or settings.host in ("0.0.0.0", "::")):  # noqa: S104 - recognised, not bound
        what = f"{settings.host}:{settings.port} tells no other controller where this one is reached"
        raise _unusable("--listen", what, "give --advertise URL")
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{'https' if settings.tls_certificate else 'http'}://{host}:{settings.port}"


def _check_address(address: str, settings: Settings) -> None:
    try:
        parts = urlsplit(address)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.username
        _ = parts.port
    except ValueError:
        whole, parts = False, urlsplit("")
    if not whole:
        raise _unusable("--advertise", f"'{address[:200]}' is not an address", "write https://host:port")
    if parts.scheme == "http" and not (settings.insecure_plain_http or is_loopback(parts.hostname or "")):
        what = "plain HTTP: other controllers would show tokens to the network on their way here"
        raise _unusable("--advertise", what, "write https://…, or say --insecure-plain-http")


def _unusable(where: str, what: str, instead: str) -> InvalidInputError:
    return InvalidInputError((Problem(where, 0, what, instead),))
