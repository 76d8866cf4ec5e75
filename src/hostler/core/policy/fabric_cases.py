"""Findings of a network from validation to validation: opened, going on, repaired; each with a ticket of its own.

A validation that concludes nothing changes no finding. What stands in maintenance is expected: it is open and shown,
and nobody is asked to repair it before the maintenance is over. Several findings of one switch are one incident.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from msgspec.structs import replace

from hostler.core.policy.incidents import INDIVIDUAL
from hostler.core.state import events as e
from hostler.core.state.cases import DUE_DAY, Incident, Ticket
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fabrics import CABLING, Fabric, FabricCase, FabricFindingSeen, FabricReport
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import HoldKind, Node, Phase
from hostler.core.state.scopes import FLEET, Scope

CLEAN_RUNS = 2
"""After so many whole validations in a row without it a finding is closed: links come and go while people work."""

TICKETS_MOST = 500
"""So many tickets of one network may be open: a design that is wrong as a whole has a finding at every port."""

INCIDENT_LEAST = 2
"""So many findings at one switch are one incident: whoever goes there repairs them on one way."""

HOSTLER = "hostler"

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
    left = {finding.key: finding for finding in seen.findings}
    for case in context.fleet.cases_of(fabric.name):
        same = _same(case.finding, left)
        yield from _went_on(context, case, left.pop(same) if same is not None else None)
    for key in sorted(left):
        yield from _opened(context, fabric, left[key])
    yield from _incidents(context, fabric)


def _is_news(fabric: Fabric, seen: FabricReport) -> bool:
    """Whether it tells something new, or answers what was asked for."""
    if fabric.look is None or fabric.look.digest != seen.look.digest:
        return True
    return fabric.asked is not None and seen.look.began >= fabric.asked and seen.look.verdict.concludes


def _same(old: FabricFindingSeen, fresh: dict[str, FabricFindingSeen]) -> str | None:
    """The finding that an open one is: by its key, or by its ports, of which half a repair leaves fewer."""
    if old.key in fresh:
        return old.key
    ports = frozenset(old.ports)
    return min((key for key, finding in fresh.items() if ports.intersection(finding.ports)), default=None)


def _went_on(context: DecisionContext, case: FabricCase, seen: FabricFindingSeen | None) -> Iterator[e.Event]:
    if seen is None:
        if case.clean + 1 < CLEAN_RUNS:
            yield e.FabricFindingChanged(replace(case, clean=case.clean + 1))
            return
        yield from ended(case, f"{CLEAN_RUNS} validations in a row have not found it any more", HOSTLER)
        return
    told = replace(case, finding=replace(seen, key=case.finding.key), clean=0)
    yield from _asked_for(context, case, told)


def _opened(context: DecisionContext, fabric: Fabric, finding: FabricFindingSeen) -> Iterator[e.Event]:
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
    waits = expected(context, case.finding) or _too_many(context.fleet, case.fabric)
    ticket = "" if waits else f"{case.fabric}-t{context.fleet.cell.seq}"
    told = replace(case, ticket=ticket, waits=waits)
    if told != before:
        yield e.FabricFindingOpened(told) if before is None else e.FabricFindingChanged(told)
    if ticket:
        yield e.TicketOpened(_ticket(context, told))


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
        owner="technician",
        due=DUE_DAY,
    )


def nodes_of(fleet: Fleet, finding: FabricFindingSeen) -> list[Node]:
    """The nodes that take part, in the order of the devices' names."""
    found = (fleet.resolve(name) for name in finding.devices if name not in finding.switches)
    return [node for node in found if node is not None]


def expected(context: DecisionContext, finding: FabricFindingSeen) -> str:
    """Why nobody is asked to repair it now: something that takes part is in maintenance; "" where nothing is."""
    fleet = context.fleet
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
    return _held(context, (name, f"switch:{name}", f"leaf:{name}"))


def node_in_maintenance(context: DecisionContext, node: Node) -> str:
    """Why the node is in maintenance, "" where it is not."""
    if node.phase in _NOT_IN_SERVICE:
        return f"is in {node.phase}"
    if node.plan is not None and node.plan.disturbed:
        return f"is being worked on ({node.plan.name})"
    pool = (f"pool:{node.pool}",) if node.pool else ()
    return _held(context, (node.id, f"rack:{node.position.rack}", *node.domains, *pool, FLEET))


def _held(context: DecisionContext, scopes: Iterable[str]) -> str:
    wanted = frozenset(scopes)
    held = next((h for h in context.fleet.holds_on(wanted) if h.kind in _HANDS), None)
    if held is not None:
        return f"is held by {held.owner}: {held.reason}"
    inside = (w for w in context.fleet.windows.values() if w.scope in wanted and w.starts <= context.now < w.ends)
    window = next(inside, None)
    return f"is in maintenance window {window.id}" if window is not None else ""


def _incidents(context: DecisionContext, fabric: Fabric) -> Iterator[e.Event]:
    """Incidents of switches at which several findings stand; those at whose switch none is left are closed."""
    fleet = context.fleet
    at = _by_switch([case for case in fleet.cases_of(fabric.name) if case.ticket])
    standing = {i.scope: i for i in fleet.incidents.values() if _is_of(i, fabric.name)}
    involved = {name for case in fleet.cases_of(fabric.name) for name in case.finding.switches}
    for scope, known in standing.items():
        if Scope.of(scope).name not in involved:
            reason = "no finding is left at this switch"
            yield e.IncidentClosed(known.id, scope, CABLING, tuple(known.members), HOSTLER, reason)
    for switch, cases in at.items():
        incident = standing.get(f"switch:{switch}")
        members = {node.id: context.now for case in cases for node in nodes_of(fleet, case.finding)}
        if incident is None and len(cases) >= INCIDENT_LEAST:
            yield e.IncidentOpened(_incident(context, fabric, switch, members))
        elif incident is not None and members.keys() != incident.members.keys():
            joined = {name: since for name, since in members.items() if name not in incident.members}
            left = tuple(sorted(incident.members.keys() - members.keys()))
            yield e.IncidentUpdated(incident.id, incident.scope, incident.state, joined, left)


def _is_of(incident: Incident, fabric: str) -> bool:
    return incident.syndrome == CABLING and incident.id.rpartition("-i")[0] == fabric


def incidents_of(fleet: Fleet, fabric: str) -> list[Incident]:
    """The incidents of a network's switches."""
    return [incident for incident in fleet.incidents.values() if _is_of(incident, fabric)]


def _by_switch(cases: list[FabricCase]) -> dict[str, list[FabricCase]]:
    """Switch → its findings: the switch with most takes all of its own, then the next of what is left."""
    found: dict[str, list[FabricCase]] = {}
    left = list(cases)
    while left:
        count = Counter(name for case in left for name in case.finding.switches)
        if not count:
            break
        switch = min(count, key=lambda name: (-count[name], name))
        found[switch] = [case for case in left if switch in case.finding.switches]
        left = [case for case in left if switch not in case.finding.switches]
    return found


def _incident(context: DecisionContext, fabric: Fabric, switch: str, members: dict[str, datetime]) -> Incident:
    """Its tickets are those of its findings; it keeps no remedy of a node waiting."""
    limits = context.fleet.policy.incidents
    return Incident(
        id=f"{fabric.name}-i{context.fleet.cell.seq}",
        scope=f"switch:{switch}",
        syndrome=CABLING,
        conditions=(),
        members=members,
        size=fabric.switches,
        needed=INCIDENT_LEAST,
        opened=context.now,
        deadline=context.now + timedelta(seconds=limits.deadline_s),
        owner=limits.owner,
        ticket="",
        state=INDIVIDUAL,
    )
