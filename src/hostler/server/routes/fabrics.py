"""Networks: their designs, the last validation, open findings, and how each designed cable was found."""

from collections.abc import Iterator
from datetime import datetime

import msgspec
from litestar import Router, get
from litestar.params import FromPath, FromQuery
from msgspec import Struct

from hostler.core.planning.cabling import fabrics_of
from hostler.core.policy.link_cases import links_of as links_of_network
from hostler.core.policy.link_cases import shared_faults
from hostler.core.report.fabric_sentences import looked, subnet_told, window
from hostler.core.state.fabrics import (
    DesignedLink,
    DesignVersion,
    DiscoverySource,
    Fabric,
    FabricCase,
    FabricLook,
    LinkCondition,
    Recabling,
    RecablingStage,
)
from hostler.core.state.links import LinkCase, LinkRound
from hostler.core.state.manual_tests import ManualTest
from hostler.core.state.model import Node
from hostler.core.state.scopes import SWITCH, Scope
from hostler.core.state.subnets import SubnetDesign, SubnetFacts, SubnetNotice
from hostler.server.app_state import AppState
from hostler.server.auth import SEE, SEE_CELL
from hostler.server.dependencies import TheAppState, Wanted, Who
from hostler.server.node_reach import ids_for, reached
from hostler.server.paging import Name, Page, listed, paged
from hostler.server.problems import unknown
from hostler.server.rows import row_of
from hostler.server.tenant_redaction_rules import OTHERS
from hostler.server.token_scope import sees
from hostler.server.tokens import Identity

LARGEST = 32 * 1024 * 1024
"""Bytes of a registration: 98,304 cables with racks, units and models are 5 MB."""


class SubnetView(Struct, frozen=True):
    """A network's subnet: its managers, the master first, with what is known of partitions and routing.

    `says` tells it in words. `read` is when the last look began, None where this controller has made none; `why` is
    what that look could not read, of which the facts are older. `design` is what the design states. `notices`: the last
    traps or events heard, the latest first.
    """

    says: str
    facts: SubnetFacts
    design: SubnetDesign
    read: datetime | None = None
    why: tuple[str, ...] = ()
    notices: tuple[SubnetNotice, ...] = ()


def subnet_view(app_state: AppState, fabric: Fabric) -> SubnetView:
    """The network's subnet as the API shows it."""
    live = app_state.cell.live.subnets.get(fabric.name)
    says = subnet_told(fabric.subnet)
    if live is None:
        return SubnetView(says, fabric.subnet, fabric.subnet_design)
    last = live.last
    return SubnetView(says, fabric.subnet, fabric.subnet_design, last.began, last.why, last.notices)


class RecablingView(Struct, frozen=True):
    """A planned re-cabling: its design by digest, its window, who planned it and why, and what stage it is in."""

    design: str
    starts: datetime
    ends: datetime
    person: str
    reason: str
    stage: RecablingStage
    says: str


def recabling_view(app_state: AppState, work: Recabling) -> RecablingView:
    """The re-cabling as the API shows it."""
    stage, version, when = work.stage(app_state.now()), work.version, window(work.starts, work.ends)
    says = {
        RecablingStage.planned: f"planned {when}",
        RecablingStage.under_way: f"under way {when}: differences between both designs are expected",
        RecablingStage.over: f"its window was {when}, the new design holds, and it is late where that does not lie yet",
    }
    return RecablingView(version.digest, work.starts, work.ends, version.person, version.reason, stage, says[stage])


class FabricView(Struct, frozen=True):
    """A network: its design in counts, and its validations.

    `looked` is when the last validation began and `says` what came of it; `good` when the last one began that concluded
    something. Both are None where this controller has seen none since it began to decide. `undecided`: what results
    between nodes say without deciding which part is slow.
    """

    name: str
    design: str
    cables: int
    hosts: int
    switches: int
    period_s: float
    source: DiscoverySource
    versions: tuple[DesignVersion, ...]
    findings: int
    tickets: int
    looked: datetime | None
    good: datetime | None
    verdict: str
    says: str
    asked: datetime | None
    asked_why: str
    subnet: SubnetView
    manual_test: ManualTest | None = None
    manual_test_due: datetime | None = None
    manual_test_overdue: bool = False
    undecided: tuple[str, ...] = ()
    recabling: RecablingView | None = None


def fabric_view(app_state: AppState, fabric: Fabric) -> FabricView:
    """The network as the API shows it."""
    live = app_state.cell.live.fabrics.get(fabric.name)
    last: FabricLook | None = live.last if live is not None else fabric.look
    cases = findings_of(app_state, fabric)
    test = app_state.fleet.manual_tests.get(fabric.name)
    read = app_state.cell.live.links.get(fabric.name)
    return row_of(
        FabricView,
        fabric,
        design=fabric.digest,
        hosts=len(fabric.hosts),
        findings=len(cases),
        tickets=sum(1 for case in cases if case.ticket),
        looked=live.last.began if live is not None else None,
        good=live.good.began if live is not None and live.good is not None else None,
        verdict=last.verdict.value if last is not None else "",
        says=looked(last) if last is not None else "has not been validated yet",
        subnet=subnet_view(app_state, fabric),
        manual_test=test,
        manual_test_due=test.due if test is not None else None,
        manual_test_overdue=test is not None and test.due < app_state.now(),
        undecided=read.undecided if read is not None else (),
        recabling=recabling_view(app_state, fabric.recabling) if fabric.recabling is not None else None,
    )


def findings_of(app_state: AppState, fabric: Fabric) -> list[FabricCase]:
    """Open findings of a network: of its cabling, and of what many links share in service."""
    return [*app_state.fleet.cases_of(fabric.name), *shared_faults(app_state.fleet, fabric.name)]


class FabricFindingRow(Struct, frozen=True):
    """An open finding. `ticket` "": nobody is asked, and `waits` says why. `clean`: validations that missed it."""

    fabric: str
    key: str
    kind: str
    grade: str
    what: str
    steps: tuple[str, ...]
    ports: tuple[str, ...]
    devices: tuple[str, ...]
    since: datetime
    ticket: str
    waits: str
    clean: int
    incident: str


def finding_row(app_state: AppState, case: FabricCase) -> FabricFindingRow:
    """The finding as the API shows it, with the incident of its switch."""
    scopes = {Scope(SWITCH, name) for name in case.finding.switches}
    incident = next((i.id for i in app_state.fleet.incidents.values() if i.scope in scopes), "")
    finding = case.finding
    return row_of(
        FabricFindingRow,
        case,
        key=finding.key,
        kind=finding.kind,
        grade=finding.grade,
        what=finding.headline,
        steps=finding.steps,
        ports=finding.ports,
        devices=finding.devices,
        incident=incident,
    )


class LinkRow(Struct, frozen=True):
    """A designed cable from `a` to `z` as the last whole validation found it.

    `a_found` and `z_found` are the ports that the two ends lead to, "" for none. `node` is the node that `a` is of, ""
    where it is no node's. `fault` is the check that the link fails in service, with its grade.
    """

    fabric: str
    node: str
    a: str
    z: str
    rate: str
    condition: str
    a_found: str
    z_found: str
    found_rate: str
    seen: datetime
    fault: str = ""


def link_row(app_state: AppState, fabric: str, link: DesignedLink, seen: datetime, fault: str = "") -> LinkRow:
    """The cable as the API shows it, with the node that its `a` is of."""
    node = app_state.fleet.resolve(link.a.rpartition(":")[0])
    found, own = link.condition.value, node.id if node else ""
    return row_of(LinkRow, link, fabric=fabric, node=own, condition=found, seen=seen, fault=fault)


class LinkFaultRow(Struct, frozen=True):
    """A link that fails a check: the first that does. `parts` are its cable and modules, each with a history."""

    fabric: str
    a: str
    z: str
    check: str
    grade: str
    what: str
    parts: tuple[str, ...]
    nodes: tuple[str, ...]
    since: datetime
    ticket: str
    waits: str
    clean: int


class PortRow(Struct, frozen=True):
    """The last reading of a port. None: nobody tells it."""

    fabric: str
    port: str
    state: str
    link_downed: int | None
    symbol_errors: int | None
    temperature_c: float | None
    lane_ber: tuple[float, ...]
    rx_dbm: tuple[float, ...]
    module: str
    cable: str
    read: datetime


def link_fault_row(case: LinkCase) -> LinkFaultRow:
    """The fault as the API shows it."""
    fault = case.fault
    told = {"a": fault.a, "z": fault.z, "check": fault.check, "grade": fault.grade, "what": fault.text}
    return row_of(LinkFaultRow, case, **told, parts=fault.parts)


def fabric_named(app_state: AppState, name: str) -> Fabric:
    """The network of this name. Raises the API's answer where there is none."""
    fabric = app_state.fleet.fabrics.get(name)
    if fabric is None:
        raise unknown("network", name)
    return fabric


@get("/fabrics", guards=SEE_CELL)
async def list_fabrics(app_state: TheAppState, wanted: Wanted) -> Page[FabricView]:
    """Networks that are validated against their designs."""
    return listed(((f.name, fabric_view(app_state, f)) for f in app_state.fleet.fabrics.values()), wanted)


@get("/fabrics/{name:str}", guards=SEE_CELL)
async def get_fabric(app_state: TheAppState, name: FromPath[str]) -> FabricView:
    """One network."""
    return fabric_view(app_state, fabric_named(app_state, name))


@get("/fabrics/{name:str}/findings", guards=SEE_CELL)
async def list_fabric_findings(app_state: TheAppState, wanted: Wanted, name: FromPath[str]) -> Page[FabricFindingRow]:
    """Places where a network differs from its design, and switches with a fault in service, each with its ticket."""
    cases = findings_of(app_state, fabric_named(app_state, name))
    return listed(((case.finding.key, finding_row(app_state, case)) for case in cases), wanted)


@get("/fabrics/{name:str}/links", guards=SEE_CELL)
async def list_fabric_links(
    app_state: TheAppState,
    wanted: Wanted,
    name: FromPath[str],
    device: Name = "",
    found: FromQuery[LinkCondition | None] = None,
) -> Page[LinkRow]:
    """Designed cables as the last whole validation found them; of one `device`, or all that were `found` so."""
    fabric = fabric_named(app_state, name)
    live = app_state.cell.live.fabrics.get(fabric.name)
    if live is None or live.good is None:
        return Page((), seq=wanted.seq)
    faults = _faults(app_state, fabric.name)
    began, rows = live.good.began, live.links.of(device) if device else live.links.rows
    keys = [f"{number:08d}" for number, link in enumerate(rows) if found in (None, link.condition)]

    def one(key: str) -> tuple[LinkRow]:
        link = rows[int(key)]
        return (link_row(app_state, fabric.name, link, began, faults.get(frozenset((link.a, link.z)), "")),)

    return paged(keys, wanted, one)


@get("/fabrics/{name:str}/faults", guards=SEE_CELL)
async def list_link_faults(app_state: TheAppState, wanted: Wanted, name: FromPath[str]) -> Page[LinkFaultRow]:
    """Links of a network that fail a check in service, each with the first that does."""
    fabric = fabric_named(app_state, name)
    return listed(((c.fault.key, link_fault_row(c)) for c in links_of_network(app_state.fleet, fabric.name)), wanted)


@get("/fabrics/{name:str}/counters", guards=SEE_CELL)
async def list_counters(
    app_state: TheAppState, wanted: Wanted, name: FromPath[str], device: Name = ""
) -> Page[PortRow]:
    """Counters and modules of a network's ports as the last round read them; of one `device`, or of all."""
    fabric = fabric_named(app_state, name)
    live = app_state.cell.live.links.get(fabric.name)
    if live is None:
        return Page((), seq=wanted.seq)
    ports = sorted(port for port in live.readings if device in ("", port.rpartition(":")[0]))
    return paged(ports, wanted, lambda port: filter(None, (port_row(fabric.name, live, port),)))


def port_row(fabric: str, seen: LinkRound | None, port: str) -> PortRow | None:
    """The port as the round read it, None where it did not."""
    if seen is None or port not in seen.readings:
        return None
    shown = {name: getattr(seen.readings[port], name) for name in _READ}
    return PortRow(fabric=fabric, port=port, read=seen.began, **shown)


_READ = ("state", "link_downed", "symbol_errors", "temperature_c", "lane_ber", "rx_dbm", "module", "cable")


@get("/links", guards=SEE)
async def list_links(
    app_state: TheAppState, who: Who, wanted: Wanted, node: Name = "", found: FromQuery[LinkCondition | None] = None
) -> Page[LinkRow]:
    """Designed cables of nodes, by node, as the last whole validation of their network found them."""
    only = app_state.node(who, node).id if node else ""

    def rows(node_id: str) -> list[LinkRow]:
        nodes = reached(app_state, who, wanted, node_id) if only in ("", node_id) else ()
        return [row for one in nodes for row in links_of(app_state, who, one) if found in (None, row.condition)]

    return paged([only] if only else ids_for(app_state, who, wanted), wanted, rows)


def links_of(app_state: AppState, who: Identity, node: Node) -> Iterator[LinkRow]:
    """The node's designed cables; ports of nodes that the caller does not see are not named."""
    for fabric, device in fabrics_of(app_state.fleet, node):
        live = app_state.cell.live.fabrics.get(fabric.name)
        if live is not None and live.good is not None:
            faults = _faults(app_state, fabric.name)
            for link in live.links.of(device):
                fault = faults.get(frozenset((link.a, link.z)), "")
                yield within_reach(app_state, who, link_row(app_state, fabric.name, link, live.good.began, fault))


def _faults(app_state: AppState, fabric: str) -> dict[frozenset[str], str]:
    """Both ends of a link → what fails there, in two words."""
    cases = links_of_network(app_state.fleet, fabric)
    return {frozenset((c.fault.a, c.fault.z)): f"{c.fault.check} ({c.fault.grade})" for c in cases}


def within_reach(app_state: AppState, who: Identity, row: LinkRow) -> LinkRow:
    """The cable without the names of nodes that the caller does not see."""
    if who.whole:
        return row
    return msgspec.structs.replace(
        row,
        z=_named(app_state, who, row.fabric, row.z),
        a_found=_named(app_state, who, row.fabric, row.a_found),
        z_found=_named(app_state, who, row.fabric, row.z_found),
    )


def _named(app_state: AppState, who: Identity, fabric: str, port: str) -> str:
    """The port where it is a switch's, or of a node that the caller sees."""
    device = port.rpartition(":")[0]
    node = app_state.fleet.resolve(device)
    if not device or (node is not None and sees(who, node)):
        return port
    is_host = node is not None or device in app_state.fleet.fabrics[fabric].hosts or device.startswith("guid-")
    return OTHERS if is_host else port


router = Router(
    path="/",
    route_handlers=[
        list_fabrics,
        get_fabric,
        list_fabric_findings,
        list_fabric_links,
        list_link_faults,
        list_counters,
        list_links,
    ],
    tags=["networks"],
)
