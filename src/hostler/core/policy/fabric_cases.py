"""Findings of a network from validation to validation: opened, going on, repaired; each with a ticket of its own.

A validation that concludes nothing changes no finding. What stands in maintenance is expected: it is open and shown,
and nobody is asked to repair it before the maintenance is over. Several findings of one switch are one incident.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from hostler.core.fabric.subnet import KINDS
from hostler.core.policy import finding_walks, switch_incidents
from hostler.core.policy.link_conditions import explained_by, set_on_nodes
from hostler.core.policy.switch_incidents import DARK, HOSTLER, nodes_of
from hostler.core.state import events as e
from hostler.core.state.cases import DUE_DAY, Ticket
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.durations import duration
from hostler.core.state.fabrics import (
    CABLING,
    Fabric,
    FabricCase,
    FabricFindingSeen,
    FabricReport,
    PlannedWork,
    Recabling,
)
from hostler.core.state.fleet import Fleet
from hostler.core.state.links import LinkCase, LinkCheck
from hostler.core.state.model import HoldKind, Node, Phase
from hostler.core.state.scopes import POOL, RACK, SWITCH, WHOLE_CELL, Scope

CLEAN_RUNS = 2
"""After so many whole validations in a row without it a finding is closed: links come and go while people work."""

TICKETS_MOST = 500
"""So many tickets of one network may be open: a design that is wrong as a whole has a finding at every port."""

LATE_S = 86_400.0
"""A validation looks every four hours and seldom at the window's very end: so much later it counts as late."""

_NOT_IN_SERVICE = frozenset(
    {Phase.registered, Phase.initializing, Phase.onboard, Phase.zap, Phase.triage, Phase.debug, Phase.rma}
)
"""Phases in which people or plans have a node without power or cables."""

_HANDS = frozenset({HoldKind.operator, HoldKind.physical_work, HoldKind.power})


def of_report(context: DecisionContext, seen: FabricReport) -> Iterator[e.Event]:
    """Events of a validation. Each must be folded before the next is asked for."""
    fabric = context.fleet.fabrics.get(seen.fabric)
    if fabric is None or seen.look.design != fabric.digest:
        return  # it was compared with a design that is no longer in force
    if _is_news(fabric, seen):
        yield e.FabricValidated(fabric.name, seen.look)
    if not seen.look.verdict.concludes:
        return
    yield from _compared(context, fabric, seen)
    yield from switch_incidents.of_network(context, fabric)
    yield from finding_walks.judged(context, fabric.name, seen.look.began)
    yield from finding_walks.ended(context.fleet, fabric.name)
    if fabric.recabling is not None and fabric.recabling.before:
        yield from _work_ended(context, fabric.recabling, seen)


def _compared(context: DecisionContext, fabric: Fabric, seen: FabricReport) -> Iterator[e.Event]:
    """Open cases beside what was found. Cases that have become one repair go on as one, so that one ticket asks."""
    found = {finding.key: finding for finding in seen.findings}
    dark = frozenset(name for finding in seen.findings if finding.kind == DARK for name in finding.devices)
    cases = [case for case in context.fleet.cases_of(fabric.name) if case.finding.kind not in KINDS]  # not a subnet's
    same = _same(cases, found)
    heirs = {
        key: _heir([case for case in cases if same.get(case.id) == key], key) for key in dict.fromkeys(same.values())
    }
    for case in cases:
        if case.id in same and (heir := heirs[same[case.id]]).id != case.id:
            asks = f", ticket {heir.ticket}" if heir.ticket else ""
            yield from finding_walks.moved(context, case, heir)
            yield from ended(case, f"it is one repair with finding {heir.finding.key} by now{asks}", HOSTLER)
    for case in cases:
        if case.id not in same and (hidden := dark.intersection(case.finding.devices)):
            yield from _hidden(case, min(hidden))
        elif case.id not in same:
            yield from went_on(context, case, None)
        elif heirs[same[case.id]].id == case.id:
            yield from went_on(context, case, found[same[case.id]])
    for key in sorted(found.keys() - heirs.keys()):
        yield from opened(context, fabric, found[key])


def _work_ended(context: DecisionContext, work: Recabling, seen: FabricReport) -> Iterator[e.Event]:
    """A re-cabling is over when its design holds and no part of it lies as the old one had it."""
    if any(finding.planned is PlannedWork.late for finding in seen.findings):
        return
    after = (context.now - work.ends).total_seconds()
    when = f"{duration(after)} after its window" if after >= LATE_S else "by the end of its window"
    yield e.RecablingEnded(seen.fabric, HOSTLER, f"everything was found re-cabled {when}")


def _is_news(fabric: Fabric, seen: FabricReport) -> bool:
    """Whether it tells something new, or answers what was asked for."""
    if fabric.look is None or fabric.look.digest != seen.look.digest:
        return True
    return fabric.asked is not None and seen.look.began >= fabric.asked and seen.look.verdict.concludes


def _same(cases: Sequence[FabricCase], found: Mapping[str, FabricFindingSeen]) -> dict[str, str]:
    """Open case -> key of the finding that it is: by its own key, or by its ports, of which half a repair leaves fewer.

    A device that does not answer is another finding than how its cables lay before. Of several findings a case is one
    that no other case is.
    """
    same = {case.id: case.finding.key for case in cases if case.finding.key in found}
    for case in cases:
        ports, dark = frozenset(case.finding.ports), case.finding.kind == DARK
        alike = [k for k, one in found.items() if (one.kind == DARK) is dark and ports.intersection(one.ports)]
        if case.id not in same and alike:
            free = [key for key in alike if key not in same.values()]
            same[case.id] = min(free or alike)
    return same


def _heir(rivals: Sequence[FabricCase], key: str) -> FabricCase:
    """The case that goes on as this finding: one that is asked for already, so that nobody is sent there twice."""
    return min(rivals, key=lambda case: (not case.ticket, case.finding.key != key, case.since, case.id))


def _hidden(case: FabricCase, device: str) -> Iterator[e.Event]:
    """The case while a device that takes part does not answer: nobody sees how its cables lie."""
    waits = case.waits if case.ticket else f"{device} does not answer: how its cables lie is seen when it does"
    if waits != case.waits:
        yield e.FabricFindingChanged(replace(case, waits=waits))


def went_on(context: DecisionContext, case: FabricCase, seen: FabricFindingSeen | None) -> Iterator[e.Event]:
    """The case after a look that could have found it; None: that look did not."""
    if seen is None:
        if case.clean + 1 < CLEAN_RUNS:
            yield e.FabricFindingChanged(replace(case, clean=case.clean + 1))
            return
        yield from ended(case, f"{CLEAN_RUNS} validations in a row have not found it any more", HOSTLER)
        return
    told = replace(case, finding=replace(seen, key=case.finding.key), clean=0)
    yield from _asked_for(context, case, told)


def opened(context: DecisionContext, fabric: Fabric, finding: FabricFindingSeen) -> Iterator[e.Event]:
    """A case of a finding that none is open of, with its ticket."""
    case = FabricCase(fabric.name, finding, context.now)
    yield from _asked_for(context, None, case)


def _asked_for(context: DecisionContext, before: FabricCase | None, case: FabricCase) -> Iterator[e.Event]:
    """The case with its ticket: opened, told anew, or not yet, and then why."""
    if case.ticket:
        told = replace(case, waits="")
        if told != before:
            yield e.FabricFindingChanged(told)
        known = context.fleet.tickets.get(case.ticket)
        fresh = _ticket(context, case)
        if known is not None and (known.summary, known.action) != (fresh.summary, fresh.action):
            yield e.TicketUpdated(replace(fresh, opened=known.opened, updated=context.now))
        return
    fleet = context.fleet
    waits = expected(context, case.finding) or _asked_by_links(fleet, case) or finding_walks.asked_by_walk(fleet, case)
    waits = waits or _too_many(fleet, case.fabric)
    ticket = "" if waits else f"{case.fabric}-t{context.fleet.cell.seq}"
    told = replace(case, ticket=ticket, waits=waits)
    if told != before:
        yield e.FabricFindingOpened(told) if before is None else e.FabricFindingChanged(told)
    if ticket or before is None:
        yield from _takes_over(context, told)
    if ticket:
        yield e.TicketOpened(_ticket(context, told))


def _takes_over(context: DecisionContext, told: FabricCase) -> Iterator[e.Event]:
    """Links that the finding explains ask for nothing from now on, and their nodes are not treated for them."""
    fleet = context.fleet
    for link in [] if fleet.link_cases.bare else list(fleet.link_cases.values()):
        if not (why := explained_by(told, link)):
            continue
        if link.ticket in fleet.tickets:
            yield e.TicketClosed(link.ticket, why, HOSTLER)
            yield e.LinkFaultChanged(replace(link, ticket="", waits=why))
        yield from set_on_nodes(context, link, standing=False)


def ended(case: FabricCase, why: str, by: str) -> Iterator[e.Event]:
    """The finding and its ticket are over."""
    yield e.FabricFindingClosed(case, why)
    if case.ticket:
        yield e.TicketClosed(case.ticket, why, by)


def said_done(case: FabricCase, person: str, reason: str) -> Iterator[e.Event]:
    """A person says that it is repaired: the ticket is closed, and a validation shows whether the finding is over."""
    yield e.TicketClosed(case.ticket, reason, person)
    waits = f"{person} says that it is repaired; the next validation shows whether it is"
    yield e.FabricFindingChanged(replace(case, ticket="", waits=waits, done_by=person))
    yield e.FabricValidationAsked(case.fabric, person, f"ticket {case.ticket} was closed: {reason}"[:500])


def of_ticket(fleet: Fleet, ticket: Ticket) -> FabricCase | None:
    """The finding that a ticket is about."""
    if ticket.kind != CABLING:
        return None
    return next((case for case in fleet.fabric_cases.values() if case.ticket == ticket.id), None)


def _asked_by_links(fleet: Fleet, case: FabricCase) -> str:
    """Why it is asked for already, by the fault that rounds of readings saw: a dark switch, a cable that is down."""
    if fleet.link_cases.bare:
        return ""
    mine = (c for c in fleet.link_cases.values() if c.fabric == case.fabric and c.ticket in fleet.tickets)
    asked = next((c for c in mine if _is_of(case.finding, c)), None)
    return f"ticket {asked.ticket} asks for {asked.fault.bearer} already" if asked is not None else ""


def _is_of(finding: FabricFindingSeen, link: LinkCase) -> bool:
    """Whether the link's fault is this finding: of a dark switch, or of the one cable that has no link."""
    if finding.kind == DARK:
        return link.fault.switch in finding.switches
    return link.fault.check is LinkCheck.down and {link.fault.a, link.fault.z} == {*finding.ports}


def _too_many(fleet: Fleet, fabric: str) -> str:
    standing = sum(1 for case in fleet.cases_of(fabric) if case.ticket)
    if standing < TICKETS_MOST:
        return ""
    return f"{standing} tickets of this network are open; it is asked for when one of them is closed"


def _ticket(context: DecisionContext, case: FabricCase) -> Ticket:
    finding = case.finding
    nodes = nodes_of(context.fleet, finding)  # of several the ticket names all, and so is nobody's who sees only one
    again = f" {case.done_by} said that it was done, and it is still found." if case.done_by else ""
    acts = " ".join(f"{number}. {act}" for number, act in enumerate(finding.steps, start=1))
    return Ticket(
        id=case.ticket,
        node=nodes[0].id if len(nodes) == 1 else e.fabric_subject(case.fabric),
        kind=CABLING,
        summary=f"{finding.headline}.{again}",
        opened=context.now,
        component=finding.switches[0] if finding.switches and not nodes else "",
        fault=finding.kind,
        action=f"{acts} Then close the ticket: the network is validated again, and it stays closed if this is gone.",
        owner="operator" if finding.kind in KINDS else "technician",
        due=DUE_DAY,
    )


def expected(context: DecisionContext, finding: FabricFindingSeen) -> str:
    """Why nobody is asked to repair it now: something that takes part is in maintenance; "" where nothing is."""
    fleet = context.fleet
    if finding.planned is PlannedWork.under_way:
        return "it is being re-cabled as planned; it is asked for where it is not done when the window ends"
    for node in nodes_of(fleet, finding):
        if why := node_in_maintenance(context, node):
            return f"{node.id} {why}"
    for name in finding.switches:
        if why := switch_in_maintenance(context, name):
            return f"switch {name} {why}"
    return ""


def switch_in_maintenance(context: DecisionContext, name: str) -> str:
    """Why the switch is in maintenance, "" where it is not: its asset's state, or a hold or window of "switch:NAME"."""
    asset = context.fleet.assets.get(name)
    if asset is not None and asset.state != "in_service":
        return f"is {asset.state}"
    return _held(context, (Scope("", name), Scope(SWITCH, name), Scope("leaf", name)))


def node_in_maintenance(context: DecisionContext, node: Node) -> str:
    """Why the node is in maintenance, "" where it is not."""
    if node.phase in _NOT_IN_SERVICE:
        return f"is in {node.phase}"
    if node.plan is not None and node.plan.disturbed:
        return f"is being worked on ({node.plan.name})"
    pool = (Scope(POOL, node.pool),) if node.pool else ()
    return _held(context, (node.scope, Scope(RACK, node.position.rack), *node.domains, *pool, WHOLE_CELL))


def _held(context: DecisionContext, scopes: Iterable[Scope]) -> str:
    wanted = frozenset(scopes)
    held = next((h for h in context.fleet.holds_on(wanted) if h.kind in _HANDS), None)
    if held is not None:
        return f"is held by {held.owner}: {held.reason}"
    inside = (w for w in context.fleet.windows.values() if w.scope in wanted and w.starts <= context.now < w.ends)
    window = next(inside, None)
    return f"is in maintenance window {window.id}" if window is not None else ""
