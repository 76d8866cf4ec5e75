"""Faults of links from round to round: opened, graver, over; what follows by the profile of the nodes at their ends.

Of a link with an unmanaged node nothing follows by itself: its fault is tracked and shown. Of any other a technician is
asked, and its managed node is drained after its job by the policy's rule for `network.link_flaps`.
"""

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from hostler.core.policy import switch_incidents
from hostler.core.policy.fabric_cases import node_in_maintenance, switch_in_maintenance
from hostler.core.policy.link_conditions import explained_by, node_at, set_on_nodes
from hostler.core.policy.switch_incidents import HOSTLER
from hostler.core.state import events as e
from hostler.core.state.cases import Ticket
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fabrics import Fabric, FabricCase, FabricFindingSeen
from hostler.core.state.fleet import Fleet
from hostler.core.state.links import LinkCase, LinkCheck, LinkFault, LinkGrade, LinkRound
from hostler.core.state.model import Profile

CLEAN_ROUNDS = 3
"""So many rounds in a row must read a link without a fault: at 12 minutes each, more than half an hour."""
TICKETS_MOST = 200
"""So many tickets of one network's links may be open: where more ask at once it is no cable that is bad."""
LINK = "link"
"""The kind of their tickets."""
SHARED_GRADE = "high"
"""Grade of a fault that many links share, beside findings of the cabling."""

_ACTS = {
    LinkCheck.eeprom: "Reseat the module; where its memory still cannot be read, exchange it.",
    LinkCheck.dirty_optics: "Clean both plugs and both modules with a dry cleaner; read the lanes again.",
    LinkCheck.bit_errors: "Reseat and clean both ends; where errors go on, exchange the cable, then the modules.",
    LinkCheck.temperature: "Look at the airflow, blanks and fans around the port; then exchange the module.",
    LinkCheck.power: "Reseat the module; where it still lacks power, exchange it.",
    LinkCheck.firmware: "Bring the module's firmware to the version of its neighbours.",
    LinkCheck.flaps: "Reseat both ends; where it falls again, exchange the cable.",
    LinkCheck.slow: "Look at the adapter's PCIe link and firmware; then reseat both ends, and exchange the cable.",
    LinkCheck.down: "Look at both plugs and their LEDs; reseat them; where it stays dark, exchange the cable.",
}

_HOST = "Look at the node itself: its PCIe links, and its adapters' firmware and settings. Its cables share no fault."
_SWITCH = "Look at the switch itself: its power supplies, fans, temperature and log; then at what its links share."


def of_round(context: DecisionContext, seen: LinkRound) -> Iterator[e.Event]:
    """Events of a round. Each must be folded before the next is asked for."""
    fabric = context.fleet.fabrics.get(seen.fabric)
    if fabric is None:
        return
    found = {fault.key: fault for fault in seen.faults}
    clean = frozenset(seen.clean)
    for case in links_of(context.fleet, fabric.name):
        fault = found.pop(case.fault.key, None)
        if fault is not None:
            yield from _told(context, case, replace(case, fault=fault, clean=0))
        elif case.fault.key in clean:
            yield from _unseen(context, case)
    for fault in found.values():
        yield from _opened(context, fabric, fault)
    yield from switch_incidents.of_network(context, fabric)


def links_of(fleet: Fleet, fabric: str) -> list[LinkCase]:
    """The open faults of a network's links."""
    return [] if fleet.link_cases.bare else [c for c in fleet.link_cases.values() if c.fabric == fabric]


def resets(fleet: Fleet, fabric: str) -> dict[str, datetime | None]:
    """Keys of the network's links with an open fault → when Hostler last reset a port of it, None for never."""
    return {case.fault.key: case.reset_at for case in links_of(fleet, fabric)}


def act_of(fault: LinkFault) -> str:
    """Name the act of a technician about a fault."""
    if fault.host:
        return _HOST
    return _SWITCH if fault.switch else _ACTS[fault.check]


def as_finding(case: LinkCase) -> FabricCase:
    """A fault that a switch, a rail or all up-links of a leaf have, as a finding of the network."""
    fault = case.fault
    ports = sorted({port for key in fault.links for port in key.split("|")})
    finding = FabricFindingSeen(
        key=fault.key,
        kind=fault.check.value,
        grade=SHARED_GRADE,
        ports=tuple(ports),
        devices=tuple(sorted({port.rpartition(":")[0] for port in ports})),
        switches=(fault.switch,),
        headline=f"{fault.bearer}: {fault.text}",
        steps=(act_of(fault),),
    )
    return FabricCase(case.fabric, finding, case.since, case.ticket, case.waits, case.clean)


def shared_faults(fleet: Fleet, fabric: str) -> list[FabricCase]:
    """Open faults of a network that somebody is to act on and that are no single link's, as findings."""
    faults = (case for case in links_of(fleet, fabric) if case.fault.switch and case.fault.grade is LinkGrade.act)
    return [as_finding(case) for case in faults]


def _opened(context: DecisionContext, fabric: Fabric, fault: LinkFault) -> Iterator[e.Event]:
    nodes = tuple({node.id: None for port in fault.ports if (node := node_at(context.fleet, port)) is not None})
    yield from _told(context, None, LinkCase(fabric.name, fault, context.now, nodes))


def _told(context: DecisionContext, before: LinkCase | None, case: LinkCase) -> Iterator[e.Event]:
    """The case as it now stands. Readings change with each round: only another check, grade or ticket is news."""
    acts = case.fault.grade is LinkGrade.act
    case = case if case.ticket in context.fleet.tickets else replace(case, ticket="")
    if case.ticket and (why := _explained(context.fleet, case)):
        yield e.TicketClosed(case.ticket, why, HOSTLER)
        case = replace(case, ticket="")
    waits = (_not_asked(context, case) if acts else "") if not case.ticket else ""
    ticket = case.ticket or (f"{case.fabric}-l{context.fleet.cell.seq}" if acts and not waits else "")
    told = replace(case, ticket=ticket, waits=waits)
    if before is None:
        yield e.LinkFaultOpened(told)
    elif _is_news(before, told):
        yield e.LinkFaultChanged(told)
    if ticket and not case.ticket:
        yield e.TicketOpened(_ticket(context, told))
    if told.fault.links:
        yield from _absorbed(context, told)
    if told.fault.switch:
        return
    if acts and not _switch_at_work(context, told):
        yield from set_on_nodes(context, told, standing=not _explained(context.fleet, told))


def _absorbed(context: DecisionContext, told: LinkCase) -> Iterator[e.Event]:
    """Faults of links that stood each by itself are over: the switch or the host explains them."""
    why = f"{told.fault.bearer} explains it"
    for key in told.fault.links:
        if (case := context.fleet.link_cases.get(f"{told.fabric}/{key}")) is not None:
            yield from _closed(context, case, why, HOSTLER)


def _explained(fleet: Fleet, case: LinkCase) -> str:
    """Why a link asks for nothing itself: a finding of its network says more of it."""
    reasons = (explained_by(one, case) for one in fleet.cases_of(case.fabric))
    return next((why for why in reasons if why), "")


def _is_news(before: LinkCase, told: LinkCase) -> bool:
    was, now = before.fault, told.fault
    changed = (was.check, was.grade, was.parts) != (now.check, now.grade, now.parts)
    return changed or (before.ticket, before.waits, before.clean) != (told.ticket, told.waits, told.clean)


def _unseen(context: DecisionContext, case: LinkCase) -> Iterator[e.Event]:
    if case.clean + 1 < CLEAN_ROUNDS:
        yield e.LinkFaultChanged(replace(case, clean=case.clean + 1))
        return
    yield from _closed(context, case, f"{CLEAN_ROUNDS} rounds in a row have read it without a fault", HOSTLER)


def ended(context: DecisionContext, fabric: str, why: str, by: str) -> Iterator[e.Event]:
    """All faults of a network's links are over, with their tickets and the conditions of nodes."""
    for case in links_of(context.fleet, fabric):
        yield from _closed(context, case, why, by)


def _closed(context: DecisionContext, case: LinkCase, why: str, by: str) -> Iterator[e.Event]:
    yield e.LinkFaultClosed(case, why)
    if case.ticket in context.fleet.tickets:
        yield e.TicketClosed(case.ticket, why, by)
    yield from set_on_nodes(context, case, standing=False)


def _not_asked(context: DecisionContext, case: LinkCase) -> str:
    """Why no technician is asked: another ticket asks, an end is unmanaged or in maintenance, or too many are asked."""
    fleet = context.fleet
    if why := _explained(fleet, case):
        return why
    for node in (fleet.nodes[name] for name in case.nodes if name in fleet.nodes):
        if node.profile is Profile.unmanaged:
            return f"{node.id} is unmanaged: nothing follows by itself"
        if why := node_in_maintenance(context, node):
            return f"{node.id} {why}"
    if why := _switch_at_work(context, case):
        return why
    asked = sum(1 for one in links_of(fleet, case.fabric) if one.ticket)
    return f"{asked} tickets of this network's links are open" if asked >= TICKETS_MOST else ""


def _switch_at_work(context: DecisionContext, case: LinkCase) -> str:
    """Why a switch at the link's end is in maintenance, "" where none is: its nodes are not to be drained for that."""
    for port in (case.fault.a, case.fault.z):
        name = port.rpartition(":")[0]
        if name and context.fleet.resolve(name) is None and (why := switch_in_maintenance(context, name)):
            return f"switch {name} {why}"
    return ""


def _ticket(context: DecisionContext, case: LinkCase) -> Ticket:
    fault = case.fault
    acts = act_of(fault)
    parts = f" Parts: {', '.join(fault.parts)}." if fault.parts else ""
    return Ticket(
        id=case.ticket,
        node=case.nodes[0] if len(case.nodes) == 1 else e.fabric_subject(case.fabric),
        kind=LINK,
        summary=f"{fault.bearer}: {fault.text}",
        opened=context.now,
        component=fault.switch or fault.host or (fault.z if case.nodes else fault.a),
        fault=fault.check.value,
        action=f"{acts}{parts} It is closed when {CLEAN_ROUNDS} rounds have read no fault.",
        owner="technician",
    )
