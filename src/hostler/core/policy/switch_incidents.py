"""Incidents of a network's switches: one for all that is wrong with a switch, whichever way it was found.

A switch has an incident with several findings of its cabling, when it is dark, or when most of its links fail one
check. It keeps no remedy waiting: it says that these tickets and these nodes are one thing.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from hostler.core.policy.incidents import INDIVIDUAL
from hostler.core.state import events as e
from hostler.core.state.cases import Incident
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fabrics import CABLING, Fabric, FabricCase, FabricFindingSeen
from hostler.core.state.fleet import Fleet
from hostler.core.state.links import LinkCase
from hostler.core.state.model import Node
from hostler.core.state.scopes import SWITCH, Scope

INCIDENT_LEAST = 2
"""So many findings at one switch are one incident: whoever goes there repairs them on one way."""
HOSTLER = "hostler"
DARK = "dark_device"

Members = dict[str, datetime]


def of_network(context: DecisionContext, fabric: Fabric) -> Iterator[e.Event]:
    """Incidents of switches at which something stands; those at whose switch nothing is left are closed."""
    fleet = context.fleet
    cases, faults = fleet.cases_of(fabric.name), _of_switches(fleet, fabric.name)
    involved = {name for case in cases for name in case.finding.switches} | {case.fault.switch for case in faults}
    standing = {i.scope: i for i in incidents_of(fleet, fabric.name)}
    for scope, known in standing.items():
        if scope.name not in involved:
            reason = "no finding is left at this switch"
            yield e.IncidentClosed(known.id, scope, CABLING, tuple(known.members), HOSTLER, reason)
    for switch, (members, enough) in _standing_at(context, fabric, cases, faults).items():
        incident = standing.get(Scope(SWITCH, switch))
        if incident is None and enough:
            yield e.IncidentOpened(_incident(context, fabric, switch, members))
        elif incident is not None and members.keys() != incident.members.keys():
            joined = {name: since for name, since in members.items() if name not in incident.members}
            left = tuple(sorted(incident.members.keys() - members.keys()))
            yield e.IncidentUpdated(incident.id, incident.scope, incident.state, joined, left)


def incidents_of(fleet: Fleet, fabric: str) -> list[Incident]:
    """The incidents of a network's switches."""
    return [i for i in fleet.incidents.values() if i.syndrome == CABLING and i.id.rpartition("-i")[0] == fabric]


def nodes_of(fleet: Fleet, finding: FabricFindingSeen) -> list[Node]:
    """The nodes that take part, in the order of the devices' names."""
    found = (fleet.resolve(name) for name in finding.devices if name not in finding.switches)
    return [node for node in found if node is not None]


def _of_switches(fleet: Fleet, fabric: str) -> list[LinkCase]:
    """The open faults that switches have themselves."""
    return (
        [] if fleet.link_cases.bare else [c for c in fleet.link_cases.values() if c.fabric == fabric and c.fault.switch]
    )


def _standing_at(
    context: DecisionContext, fabric: Fabric, cases: list[FabricCase], faults: list[LinkCase]
) -> dict[str, tuple[Members, bool]]:
    """Switch → the nodes that are concerned, and whether that is enough for an incident."""
    found: dict[str, tuple[Members, bool]] = {}
    for switch, mine in _by_switch([case for case in cases if case.ticket]).items():
        nodes = {node.id for case in mine for node in nodes_of(context.fleet, case.finding)}
        dark = any(case.finding.kind == DARK for case in mine)
        nodes |= _attached(context, fabric, switch) if dark else set()
        found[switch] = (dict.fromkeys(sorted(nodes), context.now), dark or len(mine) >= INCIDENT_LEAST)
    for case in faults:
        if case.ticket:
            nodes = found.get(case.fault.switch, ({}, False))[0].keys() | {*_at_links(context.fleet, case)}
            found[case.fault.switch] = (dict.fromkeys(sorted(nodes), context.now), True)
    return found


def _attached(context: DecisionContext, fabric: Fabric, switch: str) -> set[str]:
    """The nodes that are to be cabled to the switch, as the last whole validation knows the design."""
    live = context.live.fabrics.get(fabric.name)
    links = live.links.of(switch) if live is not None else ()
    nodes = (context.fleet.resolve(link.z.rpartition(":")[0]) for link in links)
    return {node.id for node in nodes if node is not None}


def _at_links(fleet: Fleet, case: LinkCase) -> Iterator[str]:
    for key in case.fault.links:
        for port in key.split("|"):
            if (node := fleet.resolve(port.rpartition(":")[0])) is not None:
                yield node.id


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


def _incident(context: DecisionContext, fabric: Fabric, switch: str, members: Members) -> Incident:
    """The incident, whose tickets are those of its findings; it keeps no remedy of a node waiting."""
    limits = context.fleet.policy.incidents
    return Incident(
        id=f"{fabric.name}-i{context.fleet.cell.seq}",
        scope=Scope(SWITCH, switch),
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
