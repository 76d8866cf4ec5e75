"""The names by which users of a cluster see Hostler and speak to it: a stable API, in one table.

What stands here keeps its meaning from version to version; a test holds the table to what the driver writes and reads.
"""

from msgspec import Struct

from hostler.core.tables.phases import PHASES
from hostler.drivers.kubernetes import cordon, gpu_operator, jobs, workloads
from hostler.drivers.kubernetes.annotation_requests import MEANINGS
from hostler.drivers.kubernetes.node_status_writer import TOLD
from hostler.drivers.kubernetes.wire import ANSWER, OURS, REASON_GIVEN, REQUEST


class Name(Struct, frozen=True):
    """A name, what it says, and which values it may have ("" where that is said, or free)."""

    name: str
    text: str
    values: str = ""


LABELS = (
    Name(f"{OURS}node", "Hostler's own id of the node; it stays when the Node is named or made anew"),
    Name(f"{OURS}phase", "where it stands in its life", ", ".join(phase.value for phase in PHASES)),
    Name(f"{OURS}pool", "the pool that it serves; without the label it serves none"),
    Name(f"{OURS}rack", "its rack"),
    Name(f"{OURS}nvlink-domain", "its NVLink domain, where it is in one"),
    Name(f"{OURS}rail", "its rail, where it is on one"),
)
"""On Nodes that are members of pools served in the cluster. What a label may not hold is written `-`."""

CONDITIONS = (
    Name(
        "HostlerHealthy",
        "whether anything ails it; the message is the evidence",
        "True `NothingAils`; False with the gravest condition (`GpuFallenOffBus` is `gpu.fallen_off_bus`); Unknown "
        "`NotInService` (it is treated, or kept as it is), `NobodyCanSay` (who saw the fault is silent)",
    ),
    Name(
        "HostlerActive",
        "whether a customer's work runs there",
        "True `CustomerWork`; False `Idle`; Unknown `WorkUnknown`",
    ),
    Name(
        "MaintenancePlanned",
        "a disruption is recorded and has not begun to disturb; the message says which, and what it waits for",
        "True `RemedyRecorded`; False `None`",
    ),
    Name(
        "DrainInProgress",
        "running work is waited for or evicted; the message names it, and the budget that holds it",
        "True `Draining`, `WaitsForWork`; False `None`",
    ),
    Name("Drained", "no customer's work is left, and none comes", "True `NoWorkLeft`; False `None`"),
    Name(
        "MaintenanceInProgress",
        "it is being reset, rebooted, power-cycled or checked",
        "True with the plan's name (`PowerCycle`); False `None`",
    ),
)
"""Conditions of Nodes, written when they change; the last four are KEP-5683's. A Hostler that is down leaves them."""

TAINTS = (Name(cordon.CORDON, "no new work: Hostler's own cordon, which goes with its plan", "NoSchedule"),)

ANNOTATIONS = (
    Name(cordon.REASON, "why it is cordoned, by which plan, since when"),
    Name(cordon.SHUT_BY, "`spec.unschedulable` was set by Hostler; without it it is somebody else's and stays"),
    Name(gpu_operator.PAUSED_FOR, "what holds its GPUs has gone for this reset, and comes back when that is over"),
    Name(ANSWER, "what became of the last request: granted or refused, why, when"),
)
"""On Nodes, written by Hostler."""

REQUESTS = (
    Name(REQUEST, "asks for an act on this node; whoever may annotate Nodes may ask", ", ".join(MEANINGS)),
    Name(REASON_GIVEN, "why, in your words; it is recorded and shown"),
)
"""On Nodes, written by people and programs; both are taken away when they are answered."""

PODS = (
    Name(workloads.INTERRUPTIBLE, "it may be evicted at once", "true"),
    Name(workloads.GRACEFUL, "it may be evicted, and its grace period is waited for", "true"),
    Name(workloads.INFRASTRUCTURE, "it belongs to the node's platform and goes last", "true"),
    Name(workloads.GPUS, "which GPUs it uses: a fault of another one does not concern it", "gpu0,gpu3"),
)
"""Annotations of pods, written by their owners. What says nothing is waited for."""

OWN = (
    Name(jobs.OPERATION, "the operation that the check is"),
    Name(jobs.NODE, "the node that is checked"),
    Name(jobs.OWNER, "whose check it is"),
)
"""Labels of Hostler's own Jobs and pods."""

EVENTS = tuple(Name(kind, f"the condition has become {status}") for kind, status in TOLD.items())
"""Events of Nodes, in the namespace default; the reason is the condition's name and reason in one word."""
