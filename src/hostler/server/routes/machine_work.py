"""Work that an Ironic was asked to do on machines: who asked, how far it is, and what Ironic said."""

from collections.abc import Iterator
from datetime import datetime

from litestar import Router, get
from msgspec import Struct

from hostler.core.state.machine_work import MachineWork
from hostler.core.state.model import Node
from hostler.server.app_state import AppState
from hostler.server.auth import SEE_CELL
from hostler.server.dependencies import TheAppState, Wanted
from hostler.server.paging import Page, listed


class MachineWorkRow(Struct, frozen=True):
    """The last work of an Ironic on one node. `state` is asked, begun, done, failed, refused or timed_out.

    `says` is what Ironic said of it, else what it waits for; `told` is what an inspection found.
    """

    node: str
    kind: str
    state: str
    by: str
    why: str
    asked_at: datetime
    ended_at: datetime | None = None
    says: str = ""
    told: dict[str, str] = {}


@get("/machine-work", guards=SEE_CELL)
async def list_machine_work(app_state: TheAppState, wanted: Wanted) -> Page[MachineWorkRow]:
    """The last work of each node that an Ironic has."""
    return listed(_rows(app_state), wanted)


def _rows(app_state: AppState) -> Iterator[tuple[str, MachineWorkRow]]:
    for node in app_state.fleet.nodes.values():
        if node.machine_work is not None:
            yield node.id, _row(node, node.machine_work)


def _row(node: Node, work: MachineWork) -> MachineWorkRow:
    kind = work.act.kind
    waits = node.waiting.blockers[0].text if node.waiting and node.waiting.what == kind else ""
    told = (work.asked_at, work.ended_at, work.detail or waits, work.told)
    return MachineWorkRow(node.id, kind, work.state, work.by, work.why, *told)


router = Router("/", route_handlers=[list_machine_work], tags=["Nodes"])
