"""Answers that the console's pages of a network draw: the matrix, a finding before and after, one link whole."""

import asyncio
from collections import Counter
from datetime import datetime

from litestar import Router, get
from litestar.params import FromPath
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.fabric.drawing import Drawing, drawing
from hostler.core.fabric.matrix import CONDITIONS, GRADES, MatrixBlock, blocks
from hostler.core.planning.cabling import fabrics_of
from hostler.core.policy.link_cases import links_of as cases_of
from hostler.core.state.events import fabric_subject
from hostler.core.state.fabrics import DesignedLink, Fabric, FabricLinks
from hostler.server.api_resources import HistoryRow
from hostler.server.app_state import AppState
from hostler.server.auth import SEE, SEE_CELL
from hostler.server.dependencies import TheAppState, Who
from hostler.server.node_histories import Before
from hostler.server.paging import Limit, Name, Page
from hostler.server.problems import unknown
from hostler.server.routes.fabrics import (
    FabricFindingRow,
    LinkFaultRow,
    LinkRow,
    PortRow,
    fabric_named,
    finding_row,
    findings_of,
    link_fault_row,
    link_row,
    port_row,
    within_reach,
)
from hostler.server.subject_histories import subject_history
from hostler.server.tokens import Identity


class FabricMatrix(Struct, frozen=True):
    """Links between hosts and leaves as the last whole validation found them, with faults in service.

    Codes of cells are places in `conditions` and `grades`. `counts` are all designed cables, also between switches, by
    how they were found. `seen` is None where this controller has seen no whole validation since it began to decide;
    then there are no blocks.
    """

    fabric: str
    seen: datetime | None
    conditions: tuple[str, ...]
    grades: tuple[str, ...]
    counts: dict[str, int]
    blocks: tuple[MatrixBlock, ...]


class FindingPage(Struct, frozen=True):
    """A finding with the drawing of its cables as they lie and as the design has them."""

    finding: FabricFindingRow
    drawing: Drawing


class LinkPage(Struct, frozen=True):
    """A designed cable whole: how it was found, the readings of its ends, its fault, its findings, its history.

    The history is of the link, of its cable and of its modules, wherever those were before. Who does not see the whole
    cell is shown the cable and the reading of the own end. `cursor` goes on with the history (`before`), "" where it is
    whole; `archived` says where what came before is.
    """

    link: LinkRow
    a: PortRow | None
    z: PortRow | None
    fault: LinkFaultRow | None
    findings: tuple[FabricFindingRow, ...]
    history: tuple[HistoryRow, ...]
    cursor: str = ""
    archived: str = ""


@get("/fabrics/{name:str}/matrix", guards=SEE_CELL)
async def fabric_matrix(app_state: TheAppState, name: FromPath[str]) -> FabricMatrix:
    """Leaves by the ports of their hosts: how the last whole validation found each link, and which fail in service."""
    fabric = fabric_named(app_state, name)
    live = app_state.cell.live.fabrics.get(fabric.name)
    grades = {frozenset((c.fault.a, c.fault.z)): c.fault.grade for c in cases_of(app_state.fleet, fabric.name)}
    good = live.good if live is not None else None
    seen, links = (good.began, live.links) if live is not None and good is not None else (None, FabricLinks())
    found = await asyncio.to_thread(blocks, links, fabric.hosts, grades)
    counts = Counter(link.condition.value for link in links.rows)
    return FabricMatrix(fabric.name, seen, tuple(CONDITIONS), tuple(GRADES), dict(counts), found)


@get("/fabrics/{name:str}/finding", guards=SEE_CELL)
async def get_fabric_finding(app_state: TheAppState, name: FromPath[str], key: Name) -> FindingPage:
    """One open finding, drawn: the cables that take part as they lie, and as the design has them."""
    fabric = fabric_named(app_state, name)
    case = next((one for one in findings_of(app_state, fabric) if one.finding.key == key), None)
    if case is None:
        raise unknown("finding", key)
    live = app_state.cell.live.fabrics.get(fabric.name)
    links = live.links if live is not None and live.good is not None else None
    drawn = await asyncio.to_thread(drawing, fabric, case.finding, links)
    return FindingPage(finding_row(app_state, case), drawn)


@get("/fabrics/{name:str}/link", guards=SEE_CELL)
async def get_fabric_link(  # noqa: PLR0913 - one argument per parameter of the URL
    app_state: TheAppState, who: Who, name: FromPath[str], port: Name, before: Before = None, limit: Limit = 100
) -> LinkPage:
    """The designed cable at a port ("leaf-001-1:9") whole, with its readings, fault and history."""
    fabric = fabric_named(app_state, name)
    device = port.rpartition(":")[0]
    page = _page(app_state, fabric, _link_at(app_state, fabric, device, port))
    return await _with_history(app_state, who, page, before, limit)


@get("/nodes/{node_id:str}/link", guards=SEE)
async def get_node_link(  # noqa: PLR0913 - one argument per parameter of the URL
    app_state: TheAppState, who: Who, node_id: FromPath[str], port: Name, before: Before = None, limit: Limit = 100
) -> LinkPage:
    """The designed cable at a node's port ("mlx5_0") whole."""
    node = app_state.node(who, node_id)
    for fabric, device in fabrics_of(app_state.fleet, node):
        live = app_state.cell.live.fabrics.get(fabric.name)
        here = f"{device}:{port}"
        if live is not None and any(link.a == here for link in live.links.of(device)):
            page = _page(app_state, fabric, _link_at(app_state, fabric, device, here))
            if who.whole:
                return await _with_history(app_state, who, page, before, limit)
            return LinkPage(within_reach(app_state, who, page.link), page.a, None, None, (), ())
    raise unknown("link", port)


def _link_at(app_state: AppState, fabric: Fabric, device: str, port: str) -> DesignedLink:
    live = app_state.cell.live.fabrics.get(fabric.name)
    found = next((link for link in live.links.of(device) if link.a == port), None) if live is not None else None
    if found is None:
        raise unknown("link", port)
    return found


def _page(app_state: AppState, fabric: Fabric, link: DesignedLink) -> LinkPage:
    live = app_state.cell.live
    both = frozenset((link.a, link.z))
    case = next((c for c in cases_of(app_state.fleet, fabric.name) if both == {c.fault.a, c.fault.z}), None)
    read = live.links.get(fabric.name)
    findings = (one for one in app_state.fleet.cases_of(fabric.name) if both.intersection(one.finding.ports))
    looked = live.fabrics[fabric.name].good
    assert looked is not None, "there are no links before a whole validation"
    fault = f"{case.fault.check} ({case.fault.grade})" if case is not None else ""
    return LinkPage(
        link=link_row(app_state, fabric.name, link, looked.began, fault),
        a=port_row(fabric.name, read, link.a),
        z=port_row(fabric.name, read, link.z),
        fault=link_fault_row(case) if case is not None else None,
        findings=tuple(finding_row(app_state, one) for one in findings),
        history=(),
    )


async def _with_history(app_state: AppState, who: Identity, page: LinkPage, before: int | None, limit: int) -> LinkPage:
    a, z = page.link.a, page.link.z
    subjects = {f"link:{a}|{z}", f"link:{z}|{a}"}
    for end in (page.a, page.z):
        subjects |= {f"cable:{end.cable}"} if end is not None and end.cable else set()
        subjects |= {f"module:{end.module}"} if end is not None and end.module else set()
    if page.fault is not None:
        subjects |= set(page.fault.parts)
    told = await subject_history(app_state, who, subjects, before, limit)
    return replace(page, history=told.rows, cursor=told.cursor, archived=told.archived)


@get("/fabrics/{name:str}/history", guards=SEE_CELL)
async def get_fabric_history(
    app_state: TheAppState, who: Who, name: FromPath[str], cursor: Before = None, limit: Limit = 100
) -> Page[HistoryRow]:
    """Records about a network, newest first: its design, validations, findings, and its subnet's managers."""
    fabric, stands = fabric_named(app_state, name), app_state.fleet.cell.seq
    told = await subject_history(app_state, who, [fabric_subject(fabric.name)], cursor, limit)
    return Page(told.rows, told.cursor, told.archived, stands)


router = Router(
    path="/",
    route_handlers=[fabric_matrix, get_fabric_finding, get_fabric_link, get_fabric_history, get_node_link],
    tags=["networks"],
)
