"""A restored journal: how reality differs from it, and who has not been heard, until a person releases it."""

from datetime import datetime

from litestar import Router, get
from msgspec import Struct

from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Difference
from hostler.server.auth import SEE_CELL
from hostler.server.dependencies import TheAppState, Wanted
from hostler.server.paging import Page, listed


class RestoreView(Struct, frozen=True):
    """`restored`: since when the cell stands still, None where it does not. The counts are of all nodes.

    `copied` is the last record that came from the copy. `unheard` nodes have shown no sign of themselves since.
    """

    restored: datetime | None
    copied: int
    nodes: int
    compared: int
    differing: int
    unheard: int


class RestoreRow(Struct, frozen=True):
    """A node that differs from the restored journal, or has not been heard since."""

    id: str
    heard: bool
    differences: tuple[Difference, ...]
    text: str


def restore_view(fleet: Fleet) -> RestoreView:
    """Progress of the comparison with reality."""
    cell, compared = fleet.cell, fleet.index.count("compared")
    standing = cell.restored is not None
    return RestoreView(
        restored=cell.restored,
        copied=cell.copied,
        nodes=len(fleet.nodes),
        compared=compared,
        differing=fleet.index.count("differing"),
        unheard=len(fleet.nodes) - compared if standing else 0,
    )


def _rows(fleet: Fleet) -> list[tuple[str, RestoreRow]]:
    """Nodes that differ, then nodes that were not heard; each once."""
    if fleet.cell.restored is None:
        return []
    heard = frozenset(fleet.index.members("compared"))
    differing = fleet.index.members("differing")
    unheard = [node_id for node_id in fleet.nodes if node_id not in heard]
    return [(i, _row(fleet, i, i in heard)) for i in sorted({*differing, *unheard})]


def _row(fleet: Fleet, node_id: str, heard: bool) -> RestoreRow:
    found = fleet.nodes[node_id].differences
    said = [f"{d.what}: journal {d.journal}, now {d.reality}" for d in found]
    if not heard:
        said.append("not heard since the restore")
    return RestoreRow(node_id, heard, found, "; ".join(said))


@get("/restore", guards=SEE_CELL)
async def get_restore(app_state: TheAppState) -> RestoreView:
    """Tell whether the cell is frozen because its journal is a copy, and how far it is compared with reality."""
    return restore_view(app_state.fleet)


@get("/restore/nodes", guards=SEE_CELL)
async def list_restore(app_state: TheAppState, wanted: Wanted) -> Page[RestoreRow]:
    """The nodes that differ from the restored journal, and those that have not been heard."""
    return listed(_rows(app_state.fleet), wanted)


router = Router(path="/", route_handlers=[get_restore, list_restore], tags=["restore"])
