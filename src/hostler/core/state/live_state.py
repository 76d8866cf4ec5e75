"""Live state, not recorded: workloads, power, readiness, who is heard. Each source synced or unknown.

Unknown never means "nothing there": a node whose own cluster is not synced has unknown workloads and may not be
disturbed. Only the engine writes here, from inputs; `fold` never reads it.
"""

from datetime import datetime
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from hostler.core.state.configuration import Sku
from hostler.core.state.customer_workloads import Workload
from hostler.core.state.events import INTRODUCED
from hostler.core.state.fabrics import FabricLinks, FabricLook
from hostler.core.state.links import LinkRound
from hostler.core.state.model import OWNER, Node
from hostler.core.state.packed_strings import Pairs
from hostler.core.state.recorded_bodies import BodyShapes, ReadAs, recorded
from hostler.core.state.sensor_watch import SensorWatch
from hostler.core.state.source_budgets import SourceBudgets
from hostler.core.state.subnets import SubnetReading
from hostler.core.state.upcast import DOWNCASTERS, Body, downcast

ON = "on"
OFF = "off"
UNKNOWN = "unknown"


class KnownInventory(Struct, frozen=True):
    """An agent's inventory that was judged: its digest (the agent's word), and against what it was judged."""

    digest: str
    boot_id: str
    sku: Sku | None
    at: datetime | None
    slots: Pairs
    addresses: Pairs


class CompanyCall(Struct, frozen=True):
    """A call to meet a node that is under check, and when it came."""

    by: str
    at: datetime


class AgentVerbs(Struct, frozen=True):
    """Kinds of operation that an agent says it knows, and those of them that it was started without permission for."""

    known: tuple[str, ...] = ()
    barred: tuple[str, ...] = ()


class AgentAbilities(Struct, frozen=True):
    """Checks and operations that an agent says it can do. None: it says nothing of them now."""

    profiles: tuple[str, ...] | None = None
    verbs: AgentVerbs | None = None


NOTHING_SAID = AgentAbilities()


class LiveNode(Struct):
    """The volatile side of one node. `workloads` by the cluster that told of them; one that is missing has not told.

    `devices`: which work has which GPUs, as its agent says, by the work's `uid`.
    `listed` are the clusters that list it, `open` those of them that show it without our cordon, `lifted` those where
    somebody has lifted that cordon by the cluster's own means. `ready` is the scheduler's own opinion (None: none), an
    independent witness beside the agent. `power_at` is when the BMC said `power`. `idle_since`: since when no
    customer's work is shown, None while there is some or it is unknown.
    `scheduler_boot`: the boot id that its cluster shows ("": none), the last that its daemon told of. It differs from
    the agent's, both being heard, `boots_differ_since`. `profiles` are the check profiles that its agent says it has,
    None: it has not said; `verbs` are the operations that it says it performs, None: it has not said.
    `inventory` is what its agent told last of its parts, None: nothing since the controller began.
    `bmc_login_refused`: its BMC has turned away the password that is kept.
    `sensor_watch`: its sensors while it is at its hardware step, None where nobody watches them.
    `called_others`: when others were last called to meet it; `call`: the last call that it was given itself.
    `boot_said` is the boot id that its agent said last, recorded or not.
    """

    power: str = UNKNOWN
    power_at: datetime | None = None
    ready: bool | None = None
    workloads: dict[str, tuple[Workload, ...]] = {}
    open: dict[str, None] = {}
    lifted: dict[str, None] = {}
    listed: dict[str, None] = {}
    devices: dict[str, tuple[str, ...]] = {}
    cordoned_by_other: str = ""
    idle_since: datetime | None = None
    heard: bool = False
    bmc_unreachable: bool = False
    bmc_refused: bool = False
    bmc_login_refused: bool = False
    scheduler_boot: str = ""
    boots_differ_since: datetime | None = None
    profiles: tuple[str, ...] | None = None
    verbs: AgentVerbs | None = None
    inventory: KnownInventory | None = None
    sensor_watch: SensorWatch | None = None
    called_others: datetime | None = None
    call: CompanyCall | None = None
    boot_said: str = ""


class LiveFabric(Struct, frozen=True):
    """Sight of a network: the last validation, the last that concluded something, and how it found each cable."""

    last: FabricLook
    good: FabricLook | None = None
    links: FabricLinks = FabricLinks()


class LiveSubnet(Struct, frozen=True):
    """Sight of a network's subnet: the last look, and since which look each kind differs, at all that could say so."""

    last: SubnetReading
    differs: dict[str, datetime] = {}


class Release(Struct, frozen=True, dict=True):
    """The version that runs here: its name, and the formats in which events and shapes of their bodies came.

    Each record asks these questions several times, so that the answers are kept; they stand in no field.
    """

    version: str = "0.1.0"
    introduced: dict[tuple[str, int], int] = field(default_factory=INTRODUCED.copy)
    bodies: BodyShapes = field(default_factory=recorded)

    @cached_property
    def reads(self) -> int:
        """The highest format that this version reads."""
        return max(self.bodies.newest, *self.introduced.values(), 1)

    @cached_property
    def _newest(self) -> dict[str, int]:
        newest: dict[str, int] = {}
        for name, version in self.introduced:
            newest[name] = max(version, newest.get(name, version))
        return newest

    @cached_property
    def _versions(self) -> dict[tuple[str, int], int]:
        return {}

    def newest(self, name: str) -> int:
        """The newest version of the body of the event of this stored name."""
        return self._newest.get(name, 1)

    def format_of(self, name: str) -> int:
        """The format that a cell must have for the event to be written, in an older version's words if need be."""
        version = self.newest(name)
        while version > 1 and (name, version) in DOWNCASTERS:
            version -= 1
        return self.introduced.get((name, version), 1)

    def version_for(self, name: str, cell: int) -> int:
        """The newest version of the event's body that every controller of a cell of this format reads."""
        if (known := self._versions.get((name, cell))) is None:
            fitting = (v for (one, v), came in self.introduced.items() if one == name and came <= cell)
            known = self._versions[name, cell] = max(fitting, default=1)
        return known

    def may_differ(self, name: str, cell: int) -> bool:
        """Whether bodies of the event may hold what a cell of this format does not have."""
        return self.bodies.may_differ(name, cell)

    def read_as(self, name: str, body: Body, cell: int) -> ReadAs:
        """Today's body of the event as a cell of this format has it."""
        return self.bodies.read(name, downcast(body, self.newest(name), self.shaped(name, cell)), cell)

    def stored(self, name: str, read: ReadAs, cell: int) -> Body:
        """The body that was read so, in the words of the version in which a cell of this format writes it."""
        return downcast(read.body, self.shaped(name, cell), self.version_for(name, cell))

    def shaped(self, name: str, cell: int) -> int:
        """The version of the event's body whose shape is recorded for a cell of this format."""
        return self.bodies.version(name, cell) or self.newest(name)

    def needed(self, name: str, body: Body, cell: int) -> tuple[int, str]:
        """The format that today's body of the event needs and what a cell of this format lacks; 0 where nothing."""
        if (came := self.format_of(name)) > cell:
            return came, f"event {name}"
        if not self.may_differ(name, cell) or not (lacks := self.read_as(name, body, cell).said):
            return 0, ""
        above = (one for one in self.bodies.formats if one > cell)
        return next((one for one in above if not self.read_as(name, body, one).said), self.reads), lacks


class Fellow(Struct, frozen=True):
    """A controller of the cell that is alive, this one among them, and the highest format that it reads."""

    name: str
    reads: int


class LiveState:
    """The volatile side of the fleet, and of the controllers. `fellows` None: it is not known yet who there is.

    `clusters`: "" where the cluster's schedulers have told all they know and are heard, else why they are not.
    `whole_since`: since when a cluster's schedulers have told all they know without a break.
    `fabrics`: what was seen of each network since the controller began; `links`: the last round of its ports;
    `subnets`: the last looks at its managers.
    `budgets`: what each source has said of what it may say (a controller's own, so `forget` leaves it).
    `unobserved`: operations that were under way when nobody attended, and until when they may wait to be observed.
    """

    def __init__(self, release: Release = Release()) -> None:  # noqa: B008 - frozen
        self.release = release
        self.fellows: tuple[Fellow, ...] | None = None
        self.nodes: dict[str, LiveNode] = {}
        self.clusters: dict[str, str] = {}
        self.whole_since: dict[str, datetime] = {}
        self.fabrics: dict[str, LiveFabric] = {}
        self.links: dict[str, LinkRound] = {}
        self.subnets: dict[str, LiveSubnet] = {}
        self.started: datetime | None = None
        self.unobserved: dict[str, datetime] = {}
        self.budgets = SourceBudgets()

    def forget(self, now: datetime) -> None:
        """Forget all, for nobody looked for a while: unknown again, as after a start."""
        self.fellows = None
        self.nodes.clear()
        self.clusters.clear()
        self.whole_since.clear()
        self.fabrics.clear()
        self.links.clear()
        self.subnets.clear()
        self.started = now
        self.unobserved.clear()

    def observed(self, operation: str) -> bool:
        """Note that what came of it is known; whether it was to be observed first."""
        return self.unobserved.pop(operation, None) is not None

    def of(self, node_id: str) -> LiveNode:
        """The node's live state, all unknown where nothing is known. For reading: see `entry`."""
        found = self.nodes.get(node_id)
        return LiveNode() if found is None else found

    def entry(self, node_id: str) -> LiveNode:
        """The node's live state, to be written to."""
        found = self.nodes.get(node_id)
        if found is None:
            found = self.nodes[node_id] = LiveNode()
        return found

    def synced(self, cluster: str) -> bool:
        """Whether what the cluster's schedulers told is whole and still so."""
        return self.clusters.get(cluster) == ""

    def lags(self, node: Node) -> bool:
        """Whether the node is cordoned by us and its cluster shows it without."""
        return bool(node.assignment and node.assignment.cluster in self.of(node.id).open and OWNER in node.cordons)

    def has_left(self, node: Node) -> bool:
        """Whether its own cluster is heard, has listed it, and lists it no more: nothing new can come to it there."""
        cluster = node.assignment.cluster if node.assignment is not None else ""
        here = self.of(node.id)
        return self.synced(cluster) and cluster in here.workloads and cluster not in here.listed

    def workloads(self, node: Node) -> tuple[Workload, ...] | None:
        """Work on the node by its own cluster, None where unknown; of a node in no pool, by any that tells.

        A cluster that does not show our cordon yet tells of the time before it: somebody may have come since.
        """
        told = self.of(node.id).workloads
        if node.assignment is not None:
            known = self.synced(node.assignment.cluster) and not self.lags(node)
            works = told.get(node.assignment.cluster) if known else None
        else:
            said = [works for cluster, works in told.items() if self.synced(cluster)]
            works = tuple(work for works in said for work in works) if said else None
        return works and self._placed(node, works)

    def _placed(self, node: Node, works: tuple[Workload, ...]) -> tuple[Workload, ...]:
        """The work with the GPUs that the node's agent says it has, where nobody else says."""
        devices = self.of(node.id).devices
        if not devices:
            return works
        serials = {name.removeprefix("uuid:"): serial for name, serial in node.addresses if name.startswith("uuid:")}
        slots = {serial: slot for slot, serial in node.slots}
        return tuple(
            work
            if work.parts is not None or work.uid not in devices
            else replace(work, parts=tuple(slots.get(serials.get(one, ""), one) for one in devices[work.uid]))
            for work in works
        )
