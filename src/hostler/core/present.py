"""What is so right now and not recorded: workloads, power, readiness, who is heard. Each source synced or unknown.

Unknown never means "nothing there": a node whose scheduler is not synced has unknown workloads and may not be
disturbed. Only the engine writes here, from inputs; `fold` never reads it.
"""

from datetime import datetime

from msgspec import Struct

from hostler.core.events import INTRODUCED
from hostler.core.model import Workload
from hostler.core.upcast import DOWNCASTERS

ON = "on"
OFF = "off"
UNKNOWN = "unknown"


class PresentNode(Struct):
    """The volatile side of one node. `workloads` None: its scheduler has not told yet.

    `ready` is the scheduler's own opinion (None: none), an independent witness beside the agent. `power_at` is
    when the BMC said `power`.
    """

    power: str = UNKNOWN
    power_at: datetime | None = None
    ready: bool | None = None
    workloads: tuple[Workload, ...] | None = None
    cordoned_by_other: str = ""
    heard: bool = False
    bmc_unreachable: bool = False
    bmc_refused: bool = False


class Release(Struct, frozen=True):
    """What the version that runs here knows: its name, and the formats in which events came (`events.INTRODUCED`)."""

    version: str = "0.1.0"
    introduced: dict[tuple[str, int], int] = INTRODUCED

    @property
    def reads(self) -> int:
        """The highest format that this version reads."""
        return max(self.introduced.values(), default=1)

    def newest(self, name: str) -> int:
        """The newest version of the body of the event of this stored name."""
        return max((version for known, version in self.introduced if known == name), default=1)

    def format_of(self, name: str) -> int:
        """The format that a cell must have for the event to be written, in an older version's words if need be."""
        version = self.newest(name)
        while version > 1 and (name, version) in DOWNCASTERS:
            version -= 1
        return self.introduced.get((name, version), 1)

    def version_for(self, name: str, cell: int) -> int:
        """The newest version of the event's body that every controller of a cell of this format reads."""
        fitting = (v for (known, v), came in self.introduced.items() if known == name and came <= cell)
        return max(fitting, default=1)


class Fellow(Struct, frozen=True):
    """A controller of the cell that is alive, this one among them, and the highest format that it reads."""

    name: str
    reads: int


class Present:
    """The volatile side of the fleet, and of the controllers. `fellows` None: it is not known yet who there is.

    `unobserved`: operations that were under way when nobody attended, and until when they may wait to be observed.
    """

    def __init__(self, release: Release = Release()) -> None:  # noqa: B008 - frozen
        self.release = release
        self.fellows: tuple[Fellow, ...] | None = None
        self.nodes: dict[str, PresentNode] = {}
        self.scheduler_synced = False
        self.started: datetime | None = None
        self.unobserved: dict[str, datetime] = {}

    def forget(self, now: datetime) -> None:
        """Nobody looked for a while: all is unknown again, as after a start."""
        self.fellows = None
        self.nodes.clear()
        self.scheduler_synced = False
        self.started = now
        self.unobserved.clear()

    def of(self, node_id: str) -> PresentNode:
        """The node's present, all unknown where nothing is known."""
        found = self.nodes.get(node_id)
        if found is None:
            found = self.nodes[node_id] = PresentNode()
        return found

    def workloads(self, node_id: str) -> tuple[Workload, ...] | None:
        """The node's workloads, None where unknown."""
        if not self.scheduler_synced:
            return None
        return self.of(node_id).workloads
