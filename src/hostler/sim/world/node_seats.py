"""A node as the simulated scheduler has it, whose work is there, and whom a fault has doomed."""

from collections.abc import Iterable

from msgspec import Struct

from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.sim.world.fault_kinds import Fault

OURS = "hostler"
CLUSTER = "k1"
"""The cluster that every pool of a drawn cell is in."""
ENDING = "it is told to go, and nobody on its node answers"
CONSENTING = (WorkClass.interruptible, WorkClass.graceful, WorkClass.infrastructure)


class SchedulerNode(Struct):
    """A node as the scheduler has it. `cordons` are owners, in order; `works` the running workloads by id.

    `lifted` is who has lifted our cordon, until we take that mark back. `lost` are those that a fault has ended though
    they stay listed: they hang; `doomed` those of them of which anybody can know it; `invited` those that came because
    somebody had lifted our cordon. `forsaken`: nobody there takes away what is told to go, and it stays listed. `check`
    is the idle check there. `token` is the epoch under which one was issued that lets its kubelet in, 0 for none;
    `kubelet`: it has been let in since. `version` counts what anybody wrote of the node.
    """

    joined: bool = False
    cordons: tuple[str, ...] = ()
    lifted: str = ""
    works: dict[str, Workload] = {}
    lost: dict[str, None] = {}
    doomed: dict[str, None] = {}
    invited: dict[str, None] = {}
    forsaken: bool = False
    check: str = ""
    token: int = 0
    kubelet: bool = False
    version: int = 0


def customers(works: Iterable[Workload]) -> list[str]:
    """The work among this that is somebody's."""
    return [work.id for work in works if work.work_class is not WorkClass.infrastructure]


def takes(fault: Fault, work: Workload) -> bool:
    """Whether the fault has in truth taken what the workload runs on; what nobody maps to parts runs on all of them."""
    return (fault.kind.ends == "part" and work.parts is None) or dooms(fault, work)


def dooms(fault: Fault, work: Workload) -> bool:
    """Whether the fault gives a right to end the workload: it has taken what that is known to run on."""
    if fault.kind.ends == "node":
        return True
    return fault.kind.ends == "part" and work.parts is not None and fault.slot in work.parts
