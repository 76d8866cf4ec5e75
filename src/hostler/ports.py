"""The questions asked of the outside, and what its exceptions advise the caller to do.

Drivers, their simulated twins and the journals answer these Protocols; one contract suite per port runs against
all of them. Nothing here acts by itself.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from msgspec import Struct

from hostler.core.fabric.discovery import Discovery, FoundPort
from hostler.core.notify.messages import Message
from hostler.core.state.customer_workloads import Workload
from hostler.core.state.events import Record
from hostler.core.state.fabrics import Fabric
from hostler.core.state.links import PortReading
from hostler.core.state.live_state import Release
from hostler.core.state.model import Node, Observation, Operation, Outcome
from hostler.core.state.notify_routes import Route
from hostler.core.state.operations import Evict
from hostler.core.state.subnets import SubnetNotice, SubnetReading


class PortError(Exception):
    """A component outside did not do as asked. The subclass is advice to the caller."""


class UnreachableError(PortError):
    """No answer. It may have worked: observe, then decide."""


class BusyTargetError(UnreachableError):
    """The outside takes no more now. `again_s`: after how long it may be asked again, 0 where it does not say."""

    def __init__(self, why: str, again_s: float = 0.0) -> None:
        super().__init__(why)
        self.again_s = again_s


class ExcessError(UnreachableError):
    """An answer with more than is read of one device: asking again soon does not help."""


class RefusedError(PortError):
    """The outside said no and will say so again; retrying does not help."""


class LoginRefusedError(RefusedError):
    """The outside turned the login away, or would: what was refused is not shown to it again."""


class CertificateChangedError(RefusedError):
    """Another certificate than the one that is pinned was shown; nothing was sent."""


class ConflictError(PortError):
    """The outside changed under us: load again, decide again."""


class Secret(Struct, frozen=True):
    """The fields of a secret. `lease_s`: for how many seconds its place says that it is good, 0 where it says nothing.

    Its representation shows none of it: what is logged by mistake tells nobody.
    """

    fields: Mapping[str, str]
    lease_s: float = 0.0

    def __repr__(self) -> str:
        return f"Secret({', '.join(sorted(self.fields))})"


class Secrets(Protocol):
    """A place where secrets are kept."""

    async def read(self, name: str, *, anew: bool = False) -> Secret:
        """The secret of that name; `anew` where what was read before was not taken.

        Raises RefusedError (there is none, or it is not ours to read) and UnreachableError. No error tells any of it.
        """
        ...


class StoredSecret(Struct, frozen=True):
    """A secret and the version of it that was read; no fields where nothing is kept under its name.

    Its representation shows none of it.
    """

    fields: Mapping[str, str]
    version: str = ""

    def __repr__(self) -> str:
        return f"StoredSecret({', '.join(sorted(self.fields))}, version={self.version!r})"


@runtime_checkable
class SecretStore(Secrets, Protocol):
    """A place where secrets are kept that Hostler itself may write to, one that each machine has of its own."""

    async def fetch(self, name: str) -> StoredSecret:
        """Read what is kept under the name now, past every cache.

        Raises RefusedError (not ours to read) and UnreachableError. No error tells any of it.
        """
        ...

    async def store(self, name: str, fields: Mapping[str, str], version: str) -> None:
        """Keep these fields in the place of that version; durable on return, wholly or not at all.

        Raises ConflictError where another version is there by now, RefusedError, and UnreachableError: then it may be
        kept all the same.
        """
        ...

    async def erase(self, name: str, version: str) -> None:
        """Keep nothing under the name any more, no earlier version either, where that version is there now.

        Raises ConflictError where another is there by now, RefusedError, and UnreachableError: it may be gone then.
        """
        ...


class IssuedCertificate(Struct, frozen=True):
    """A certificate that an authority issued: PEM, its SHA-256 in hex, when it expires, and its issuer."""

    pem: str
    fingerprint: str
    expires_at: datetime
    issuer: str


class CertificateAuthority(Protocol):
    """Authority that issues certificates to a site's BMCs."""

    async def issue(self, name: str, request: bytes, host: str, valid_s: float) -> IssuedCertificate:
        """Issue a certificate for the key of a request (PEM) and this host, by the authority of that name.

        Raises RefusedError where the request is not the host's, its key is weak or the authority cannot sign, and
        UnreachableError. No error tells a key.
        """
        ...


class JournalError(Exception):
    """The journal cannot be read or written: nothing of the batch is durable, or nobody knows; the writer must resign.

    After an unknown outcome `acquire` waits until it is decided, so who loads again sees what became of it.
    """


class FencedError(JournalError):
    """Another controller holds a newer epoch; this one may neither append nor act."""


class CorruptJournalError(JournalError):
    """A stored record does not match its digest; `seq` is the first that does not."""

    def __init__(self, seq: int, why: str) -> None:
        super().__init__(
            f"journal record {seq} is corrupt: {why}; run `hostler journal check` to see which records are valid"
        )
        self.seq = seq


class ArchivedError(JournalError):
    """The records asked for are no longer in the journal but in the files that `archived` names."""

    def __init__(self, archived: "Archived") -> None:
        super().__init__(f"{archived.text}: ask for what came later")
        self.archived = archived


class OperationDriver(Protocol):
    """A driver that performs operations of the kinds it names.

    Both calls raise only PortError. `perform` sends once, never repeats by itself, and checks the node's bindings
    first. `observe` tells whether the operation's effect is there: done, not_done or unknown; it changes nothing.
    """

    kinds: frozenset[str]

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Send the operation once. Raises PortError; UnreachableError where it may have worked."""

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Look whether the operation has happened, and change nothing. Raises PortError."""

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Call the operation off where that still helps; doing nothing is allowed, its settle time covers it."""
        ...


class FabricSource(Protocol):
    """A way to discover a network: its devices, and the links between their ports, as they are now.

    Never raises, changes nothing, and ends within the network's `source.timeout_s`: what went wrong, or may be missing,
    stands in the discovery's `partial`.
    """

    async def discover(self, fabric: Fabric) -> Discovery:
        """One look at the network."""
        ...


class LinkReadings(Struct, frozen=True):
    """Readings of a network's ports: by GUID and number as the network tells them, by the design's names as agents do.

    `whole`: of the ports that the network did not tell of it was asked, and they have counted nothing. `why`: what
    kept the reading from being all.
    """

    found: Mapping[FoundPort, PortReading] = {}
    named: Mapping[str, PortReading] = {}
    whole: bool = False
    why: str = ""


class LinkSource(Protocol):
    """A way to read the counters of a network's ports. Never raises, and changes nothing."""

    async def read(self, fabric: Fabric) -> LinkReadings:
        """Readings that can be read now."""
        ...


class HeardNotices(Struct, frozen=True):
    """Notices that have come since the look before, oldest first; `why`: what kept them from being read."""

    notices: tuple[SubnetNotice, ...] = ()
    why: str = ""


class SubnetSource(Protocol):
    """A way to ask a network's subnet of its managers, partitions and routing. Never raises, and changes nothing."""

    async def notices(self, fabric: Fabric) -> HeardNotices:
        """Traps or events that have come since the last time; of the first time none, as nobody knows since when."""
        ...

    async def subnet(self, fabric: Fabric, began: datetime, *, partitions: bool) -> SubnetReading:
        """One look. `partitions`: those of every port too, which is a long answer."""
        ...


class WorkloadView(Struct, frozen=True):
    """View of a node by its scheduler; `cordoned_by_other` names who else keeps new work away.

    `cordoned`: whether Hostler's own cordon stands on its member; None where the scheduler does not say. `listed`: the
    scheduler knows the node. `overridden`: who lifted our cordon by the scheduler's own means, "" where nobody did.
    """

    node: str
    workloads: tuple[Workload, ...]
    cordoned_by_other: str = ""
    cordoned: bool | None = None
    listed: bool = True
    overridden: str = ""


class ClusterView(Struct, frozen=True):
    """View of a cluster as its scheduler shows it now, by the names that nodes have there.

    `lost` says why it may be so no more ("not listed yet", "silent for 70 s"); "" where it is synced: a whole list has
    been read and followed since. `ready` is the scheduler's own opinion of a node, `boots` the boot id that its own
    agent there told of last. A view that has not changed is the same object as before.
    """

    nodes: Mapping[str, WorkloadView]
    ready: Mapping[str, bool]
    lost: str = ""
    boots: Mapping[str, str] = {}


class Scheduler(OperationDriver, Protocol):
    """One scheduler of one cluster: the driver of `SCHEDULED`, and the reader of who works where.

    `kind` (kubernetes, slurm …) is the kind of the binding that says how a node is called there (`name_there`).
    `watch` keeps in touch until it is cancelled, and raises nothing that passes; `views` shows what is known by now,
    at once. When a cordon is done, `views` shows everybody who came to the node before it; what cannot be shown yet is
    `unknown`. A cluster may have several, the one that places jobs before the one whose pods carry it.

    One that can check idle nodes has `idle_check` among its kinds: it begins the check where the node is idle, ends it
    for the sake of any customer's work, shows it as infrastructure (`Workload.check`), and answers `observe` with done
    and the fact "verdict", with inconclusive where it was pre-empted; `revoke` ends it. One that can turn nodes away
    has `operations.ASIDE` among its kinds: it acts on a node that has left the cluster (argument `cluster`).
    """

    kind: str
    cluster: str

    def views(self) -> ClusterView:
        """All nodes and workloads of the cluster as they are known now."""

    async def watch(self) -> None:
        """Keep the view up to date until cancelled."""


SCHEDULED = frozenset({"cordon", "uncordon", "evict", "join_cluster", "leave_cluster"})
"""The kinds of operations that every scheduler performs."""


def workloads_of(operation: Operation) -> tuple[str, ...]:
    """The workloads that an eviction names, () of any other operation."""
    return operation.act.workloads if isinstance(operation.act, Evict) else ()


def name_there(node: Node, scheduler: Scheduler) -> str:
    """How the node is called in the scheduler's cluster: by its binding ("NAME", "CLUSTER/NAME"), else by its id."""
    bound = node.binding(scheduler.kind)
    return bound.removeprefix(f"{scheduler.cluster}/") or node.id


class Batch(Struct, frozen=True):
    """Data that become durable together: events, raw observations, and how far each sender's spool has been read.

    `cursors` maps node → (spool, sequence). `format` is the cell's: in whose words the events are written.
    """

    records: tuple[Record, ...] = ()
    observations: tuple[Observation, ...] = ()
    cursors: dict[str, tuple[str, int]] = {}
    format: int = Release().reads

    def __bool__(self) -> bool:
        return bool(self.records or self.observations or self.cursors)


class Snapshot(Struct, frozen=True):
    """The fold of all records up to `seq`, as bytes that `fold.load` reads; `digest` is the chain's there."""

    seq: int
    digest: str
    body: bytes


class Lease(Struct, frozen=True):
    """Right to append, and the address of its holder.

    `renewal` grows with every renewal; `holder` is "" once resigned.

    No moment is stored: whoever watches measures on its own monotonic clock for how long nothing has changed, so that
    clocks need not agree.
    """

    epoch: int = 0
    holder: str = ""
    address: str = ""
    renewal: int = 0


class ControllerMember(Struct, frozen=True):
    """A controller of the cell, active or standing by: where it is reached, and the event format it reads.

    `beats` grows while it lives.
    """

    name: str
    address: str
    reads: int
    beats: int = 0


class Restored(Struct, frozen=True):
    """Restoration of a journal from a copy: when, from what (a path or "-"), and up to which record.

    What happened behind `seq` is in no journal: the world may differ from the fleet.
    """

    at: datetime
    source: str
    seq: int


class Archived(Struct, frozen=True):
    """Records 1 to `seq` are no longer in the journal but in files of these names, oldest first."""

    seq: int
    files: tuple[str, ...]

    @property
    def text(self) -> str:
        """The same as a sentence, with the newest file."""
        return f"records 1 to {self.seq} are archived, the last of them in {self.files[-1]}"


class RecordWindow(Struct, frozen=True):
    """Records after `after` and before `before` (None: to the end), of one subject and of names that begin so.

    "" is every subject, and every name. `names`: of these names alone, none for all. They come newest first, or oldest
    first.
    """

    after: int = 0
    before: int | None = None
    subject: str = ""
    name: str = ""
    oldest_first: bool = False
    names: tuple[str, ...] = ()


class Journal(Protocol):
    """The append-only log of one cell. One writer; `epoch` is checked inside every append.

    `append` returns only when the batch is durable; it raises JournalError when nothing of it is, FencedError when
    another controller took over. Opening verifies the digests behind the last snapshot (CorruptJournalError).
    """

    def lease(self) -> Lease:
        """The lease as it stands."""

    def acquire(self, holder: str, address: str = "", seen: Lease | None = None) -> int:
        """Take the lease and return the new epoch; every earlier epoch is fenced from then on.

        With `seen`, only if the lease still is exactly that: of two that stand by, one succeeds and the other gets
        FencedError.
        """
        ...

    def renew(self, epoch: int) -> None:
        """Show that the holder lives. Raises FencedError where another holds the lease."""
        ...

    def resign(self, epoch: int) -> None:
        """Give the lease up, so that nobody need wait for its end; nothing where it is another's by now."""
        ...

    def announce(self, member: ControllerMember) -> None:
        """Write down, or renew, what this controller is; `beats` is counted by the journal."""
        ...

    def members(self) -> tuple[ControllerMember, ...]:
        """All controllers announced and not dismissed, by name; the caller judges by `beats` who lives."""
        ...

    def dismiss(self, name: str) -> None:
        """Forget a controller that has gone."""
        ...

    def wait(self, after: int, seen: Lease, timeout_s: float) -> None:
        """Return when a record after `after` is there or the lease is in other hands than in `seen`.

        At the latest after `timeout_s`. A renewal wakes nobody.
        """
        ...

    def append(self, batch: Batch, epoch: int) -> None:
        """Append all of the batch or nothing.

        Raises FencedError where `epoch` is not the lease's, else JournalError.
        """

    def snapshot(self) -> Snapshot | None:
        """The newest snapshot, None where there is none."""

    def snapshot_seq(self) -> int:
        """The record at which the newest snapshot was taken, 0 where there is none."""
        ...

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep it as the newest. Raises JournalError where its digest is not the chain's there."""

    def records(self, after: int = 0) -> Iterator[Record]:
        """All records after `after`, verified in order. Raises CorruptJournalError at the first that is damaged."""

    def cursors(self) -> dict[str, tuple[str, int]]:
        """How far each sender's spool has been read: sender → (spool, sequence)."""

    def history(self, subject: str, before: int | None = None, limit: int = 200) -> list[Record]:
        """Records about one node (or other subject), newest first."""
        ...

    def named_since(self, names: Sequence[str], at: datetime, limit: int, beyond: Record | None = None) -> list[Record]:
        """At most `limit` records of these event names, of that moment and later, the latest first.

        Where `beyond` is given, of those that come after it in this order.
        """
        ...

    def window(self, wanted: RecordWindow, limit: int) -> list[Record]:
        """At most `limit` records of the window, in its order."""
        ...

    def first_since(self, at: datetime) -> int:
        """The first record, by moment, of that moment or later; 0 where there is none."""
        ...

    def observation(self, identity: str) -> Observation | None:
        """The raw observation of this id, None where it is not kept."""

    def archived(self) -> Archived | None:
        """Records that `history` and `records` can no longer answer, None where nothing was archived."""
        ...

    def restored(self) -> Restored | None:
        """When this journal was last filled from a copy, None for one that never was."""
        ...

    def latest_seq(self) -> int:
        """The last record's number, 0 for an empty journal."""
        ...

    def digest(self) -> str:
        """The chained digest of all records, hex; equal digests mean equal journals."""
        ...

    def close(self) -> None:
        """Close what is open and end every wait; closing twice is allowed."""


class NotificationDriver(Protocol):
    """Driver of one kind of target. `deliver` sends once; the same message sent twice is one message there.

    Raises RefusedError (it will not be taken, whatever is done), BusyTargetError and UnreachableError (it may have been
    taken, and is sent again). No error tells a secret.
    """

    async def deliver(self, message: Message, route: Route) -> None:
        """Send the message to the route's target, once."""
        ...


class Delivery(Struct, frozen=True):
    """A message on its way to its route. `state`: queued, delivered or dead; `why` is the last failure.

    `due`: when it is tried next; `ended`: when it was delivered or given up.
    """

    message: Message
    state: str
    queued: datetime
    due: datetime
    attempts: int = 0
    why: str = ""
    ended: datetime | None = None
    number: int = 0


class RouteCounts(Struct, frozen=True):
    """How many messages of a route stand in each state, and since when the oldest of the queue waits."""

    queued: int = 0
    delivered: int = 0
    dead: int = 0
    oldest: datetime | None = None
    last: datetime | None = None


class OutsideTicket(Struct, frozen=True):
    """A ticket in another system that carries a label of ours: its key and address as people know it, and its own id.

    `done`: closed or resolved there, with `why` in its words. `final`: it cannot be opened again there.
    """

    label: str
    key: str
    url: str
    ident: str
    done: bool = False
    final: bool = False
    why: str = ""


class TicketLink(Struct, frozen=True):
    """A ticket of ours and what it is outside, as it was last seen. `done`: closed there when it was last seen.

    `tried`: when it was asked to be made there and no answer came; it may exist all the same.
    """

    route: str
    ticket: str
    key: str = ""
    url: str = ""
    done: bool = False
    tried: datetime | None = None


class TicketLinks(Protocol):
    """Links between our tickets and those outside. Whatever goes wrong is a JournalError. All of it blocks."""

    def link(self, route: str, ticket: str) -> TicketLink | None:
        """The link of a ticket on a route."""
        ...

    def put(self, link: TicketLink) -> None:
        """Keep a link in the place of the one before."""
        ...

    def links(self) -> list[TicketLink]:
        """Every link that is kept."""
        ...


class TicketFile(Struct, frozen=True):
    """A file for a ticket: its name, which no other bytes have, and its bytes."""

    name: str
    data: bytes
    media_type: str = "application/zip"


class KeptFiles(Protocol):
    """Files that are kept under the SHA-256 of their bytes. It blocks, and raises JournalError where one is damaged."""

    def get(self, digest: str) -> bytes | None:
        """The bytes, None where they are not here, or not any more."""
        ...


class TicketSystem(Protocol):
    """Driver of one kind of ticket system. Each call is one act there; `find` changes nothing.

    Raises RefusedError (it will not be taken, whatever is done), BusyTargetError (not now) and UnreachableError (it may
    have been taken). No error tells a secret.
    """

    async def find(self, labels: Sequence[str], route: Route) -> list[OutsideTicket]:
        """Tickets with any of these labels, the oldest first; TICKETS_AT_ONCE labels at most."""
        ...

    async def create(self, label: str, message: Message, route: Route) -> OutsideTicket:
        """Make a ticket with the label."""
        ...

    async def comment(self, ticket: OutsideTicket, text: str, route: Route) -> None:
        """Say something in the ticket."""
        ...

    async def attach(self, ticket: OutsideTicket, file: TicketFile, route: Route) -> None:
        """Attach a file, once: a file of this name that is there already is left. Raises RefusedError with why not."""
        ...

    async def close(self, ticket: OutsideTicket, why: str, route: Route) -> None:
        """Have the ticket done."""
        ...

    async def reopen(self, ticket: OutsideTicket, why: str, route: Route) -> None:
        """Have a ticket that is done be work again."""
        ...


TICKETS_AT_ONCE = 50
"""Labels that are asked for together."""


class Outbox(Protocol):
    """Messages to be delivered, and the record up to which the journal was looked at; every controller sees the same.

    Whatever goes wrong is a JournalError. All of it blocks. `links` are kept beside the messages.
    """

    @property
    def links(self) -> TicketLinks:
        """Links between our tickets and those outside."""
        ...

    def position(self) -> tuple[int, bytes] | None:
        """The last record that was looked at and what stood open then; None before the first."""
        ...

    def advance(self, before: int, after: int, told: bytes, messages: Sequence[Message], now: datetime) -> bool:
        """Queue the messages and move on, together or not at all; False where somebody else has moved on."""
        ...

    def put(self, message: Message, now: datetime) -> None:
        """Queue one message beside the journal (a test)."""
        ...

    def due(self, now: datetime, limit: int, but: Collection[str] = ()) -> list[Delivery]:
        """Messages to be tried now, pages first; none before an earlier one of its key on the route has ended.

        Routes in `but` are left out, so that one that is busy takes no other's place.
        """
        ...

    def ended(self, delivery: Delivery, state: str, at: datetime, why: str = "") -> None:
        """The delivery is over: delivered or dead."""
        ...

    def postponed(self, delivery: Delivery, due: datetime, why: str) -> None:
        """Note a failure; the message is tried again at `due`."""
        ...

    def retry(self, number: int, now: datetime) -> bool:
        """Queue a dead letter again; False where there is none of that number."""
        ...

    def listed(self, route: str, state: str, before: int | None, limit: int) -> list[Delivery]:
        """Deliveries of a route and state ("" for all), newest first, those below number `before`."""
        ...

    def counts(self) -> dict[str, RouteCounts]:
        """Numbers of messages by route."""
        ...

    def close(self) -> None:
        """Close the database."""
        ...
