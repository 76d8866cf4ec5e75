"""State that every handler uses: the cell, the agents' mailboxes, and the small caches that keep pages fast."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from prometheus_client import CollectorRegistry

from hostler.client.answers import AgentView, ExcludedRemedies, NodeAbilities
from hostler.core.fabric.path_blame import PairResult
from hostler.core.policy.abilities import excluded_by
from hostler.core.state.assets import Asset
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.events import Record
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node
from hostler.core.state.provider import ProviderLook
from hostler.journal.bundle_files import BundleFiles
from hostler.journal.certificate_files import CertificateFiles
from hostler.journal.evidence_files import EvidenceFiles
from hostler.journal.named_records import each_record, record_names
from hostler.polling.meeting_hall import MeetingHall
from hostler.polling.pair_results import PairResults
from hostler.ports import RecordWindow
from hostler.server.agent_mailbox import AgentMailboxes
from hostler.server.api_resources import AgentSeen
from hostler.server.audit_trail import AuditTrail
from hostler.server.backtests import Backtests
from hostler.server.bmc_system_choice import Machines, nobody
from hostler.server.boot_presence import BootPresence
from hostler.server.burn_in_times import BurnInTimes
from hostler.server.cell_view import CellView
from hostler.server.connection_limits import ConnectionTable
from hostler.server.document_parser import DocumentParser
from hostler.server.event_stream import Streams
from hostler.server.listener_watch import OpenFiles
from hostler.server.load_shedding import Admission
from hostler.server.notification_log import NotificationLog
from hostler.server.oidc_provider import SignIn
from hostler.server.paging import Nodes, Roster
from hostler.server.problems import unknown
from hostler.server.recent_changes import Recent
from hostler.server.record_counters import RecordCounters
from hostler.server.refused_agents import Refusals
from hostler.server.request_counters import RequestCounters
from hostler.server.server_settings import Settings, is_loopback
from hostler.server.standby_proxy import Forwarder
from hostler.server.token_scope import sees, shown
from hostler.server.tokens import Identity, Role, TokenStore
from hostler.server.trend_archive import TrendArchive

T = TypeVar("T")


class Outside(Struct, frozen=True):
    """Questions of the server beside the cell: BMCs, notifications, readings, sign-in, audit, files, traces, backtests.

    `archive`: the folder of records that left the journal, None where none is named.
    """

    machines: Machines = nobody
    notifications: NotificationLog | None = None
    trends: TrendArchive | None = None
    sign_in: SignIn | None = None
    audit: AuditTrail | None = None
    pairs: PairResults | None = None
    evidence: EvidenceFiles | None = None
    bundles: BundleFiles | None = None
    certificates: CertificateFiles | None = None
    archive: Path | None = None
    traces: CollectorRegistry | None = None
    backtests: Backtests | None = None
    providers: Callable[[], Mapping[str, ProviderLook]] = dict
    boot: Callable[[], BootPresence | None] = lambda: None


class AppState:
    """One server's working set."""

    def __init__(self, cell: CellView, tokens: TokenStore, mailboxes: AgentMailboxes, settings: Settings) -> None:
        self.cell = cell
        self.tokens = tokens
        self.mailboxes = mailboxes
        self.settings = settings
        self.names = settings.names() if is_loopback(settings.host) or settings.hosts else None
        self.streams = Streams(cell, settings.streams_max)
        self.nodes = Nodes()
        self.assets: Roster[Asset] = Roster()
        self.agents: dict[str, AgentSeen] = {}
        self.recent = Recent(cell)
        self.connections: list[ConnectionTable] = []
        self.open_files = OpenFiles()
        self.refusals = Refusals()
        self.admission = Admission()
        self.documents = DocumentParser()
        self.outside = Outside()
        self.meetings = MeetingHall(self._take_pairs, self.now)
        self.counted = RecordCounters(cell)
        self.burn_ins = BurnInTimes(cell)
        self.requests = RequestCounters()
        self.forwarder = Forwarder(settings, cell.health().controller)

    @property
    def fleet(self) -> Fleet:
        """The committed fleet."""
        return self.cell.view

    def now(self) -> datetime:
        """Controller time."""
        return self.settings.clock()

    def _take_pairs(self, results: Sequence[PairResult]) -> None:
        if self.outside.pairs is not None:
            self.outside.pairs.add(results)

    def context(self) -> DecisionContext:
        """The context that a decision would read now."""
        return DecisionContext(self.cell.view, self.cell.live, self.now())

    def node(self, who: Identity, name: str) -> Node:
        """The node by id, serial or host name. Raises ProblemError (404) where there is none in the caller's reach."""
        found = self.cell.view.resolve(name)
        if found is None or not sees(who, found):
            raise unknown("node", name)
        return found

    async def named(self, subject: str, *events: type[Struct]) -> list[Record]:
        """All records of these events about one subject, newest first. Raises JournalError."""
        wanted = RecordWindow(subject=subject, names=record_names(*events))
        return await asyncio.to_thread(lambda: list(each_record(self.cell.journal, wanted)))

    def shown(self, who: Identity, value: T, also: frozenset[str] = frozenset()) -> T:
        """The value as the caller is shown it (`token_scope.shown`)."""
        return shown(who, self.cell.view, value, also)

    def abilities_of(self, who: Identity, node: Node) -> NodeAbilities:
        """Remedies that cannot be carried out on the node, one row for each reason; a tenant is told nothing of it."""
        excluded = () if who.role is Role.tenant else excluded_by(self.context(), node)
        rows = tuple(ExcludedRemedies(one.kind, one.why, one.mend, remedies) for one, remedies in excluded)
        return NodeAbilities(node.id, node.pool, node.phase, rows)

    def agent_view(self, node: Node) -> AgentView:
        """The node's agent: whether it is heard, when last, its version and memory in KiB."""
        seen = self.agents.get(node.id, AgentSeen())
        heard = self.cell.live.nodes.get(node.id)
        last = self.cell.heartbeats.last(node.id)
        return AgentView(node.id, heard.heard if heard else False, last, seen.version, seen.rss_kib, seen.profiles)
