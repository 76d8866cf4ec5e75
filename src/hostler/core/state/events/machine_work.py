"""Events of work that a provisioner or provider does on a machine: asked for, and what became of the machine."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.events.row import EventRow, EventRows, node_of, of_node
from hostler.core.state.fleet import Fleet
from hostler.core.state.machine_work import MachineWork
from hostler.core.state.operations import CleanMachine, DeployImage, InspectMachine, ReplaceMachine


class MachineWorkAsked(Struct, frozen=True, tag="machine_work_asked"):
    """The provisioner is to do this on the machine: `by` whom, and why."""

    node: str
    by: str
    why: str
    act: InspectMachine | DeployImage | CleanMachine | ReplaceMachine


class InstanceReplaced(Struct, frozen=True, tag="instance_replaced"):
    """The provider took back the instance of `node`; `by` is the node that stands for the new one."""

    node: str
    by: str
    provider: str
    before: str
    after: str


def _ask(fleet: Fleet, event: MachineWorkAsked, at: datetime) -> None:
    work = MachineWork(event.act, event.by, event.why, at)
    fleet.put_node(event.node, replace(node_of(fleet, event.node), machine_work=work))


ROWS: EventRows = (
    EventRow(MachineWorkAsked, of_node, _ask),
    EventRow(InstanceReplaced, lambda e: (e.node, e.by), lambda _fleet, _event, _at: None),
)
