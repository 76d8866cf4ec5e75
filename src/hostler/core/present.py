"""What is so right now and not recorded: workloads, power, readiness, who is heard. Each source synced or unknown.

Unknown never means "nothing there": a node whose scheduler is not synced has unknown workloads and may not be
disturbed. Only the engine writes here, from inputs; `fold` never reads it.
"""

from datetime import datetime

from msgspec import Struct

from hostler.core.model import Workload

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


class Present:
    """The volatile side of the fleet."""

    def __init__(self) -> None:
        self.nodes: dict[str, PresentNode] = {}
        self.scheduler_synced = False
        self.started: datetime | None = None

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
