"""Places of a pool that a spare may fill: those below its target, and those of members that stay dark.

A member is dark for its pool where it runs nothing and only a person brings it back: an incident holds its remedies,
or Hostler has powered it off to protect it. Filling its place disturbs nobody, so this asks for less evidence than a
remedy of the member would, but never for less than a second witness.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from hostler.core.policy.incident_tickets import part_name
from hostler.core.state.cases import Incident
from hostler.core.state.counting import first_names
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import OFF
from hostler.core.state.model import OWNER, Condition, HoldKind, Node
from hostler.core.state.scopes import Scope
from hostler.core.state.syndromes import SYNDROMES
from hostler.core.tables.recipe_facts import is_protective

NAMED = 4
"""Dark members that a delivery names, for each reason."""


Dark = dict[str, str]
"""Members of one pool that stay dark until a person comes → by what."""


def dark(context: DecisionContext) -> dict[str, Dark]:
    """By pool; found by the incidents and holds that stand, never by a walk over the fleet."""
    fleet = context.fleet
    found: dict[str, Dark] = {}
    for incident in _silent(fleet):
        why = f"in incident {incident.id} ({part_name(incident.scope)})"
        for node_id in incident.members:
            node = fleet.nodes.get(node_id)
            if node is not None and node.pool and _runs_nothing(context, node):
                found.setdefault(node.pool, {})[node_id] = why
    for hold in fleet.holds.values():
        if hold.kind is HoldKind.power and hold.owner == OWNER:
            node = fleet.nodes.get(hold.scope.identity)
            if node is not None and node.pool and _is_off(node):
                found.setdefault(node.pool, {})[node.id] = f"under hold {hold.id}"
    return found


def told(members: Dark) -> str:
    """The dark members in words, by what keeps them dark; "" where there are none."""
    return "; ".join(_told(why, members) for why in dict.fromkeys(members.values()))


def _told(why: str, members: Dark) -> str:
    names = sorted(node for node, reason in members.items() if reason == why)
    return f"{first_names(names, NAMED)} {'is' if len(names) == 1 else 'are'} dark {why}"


def suspected(fleet: Fleet) -> frozenset[Scope]:
    """The shared parts that are blamed for silence now; a spare behind one of them takes nobody's place."""
    return frozenset(incident.scope for incident in _silent(fleet))


def moments(fleet: Fleet) -> Iterator[datetime]:
    """When the clock alone lets a place be filled."""
    for incident in _silent(fleet):
        for node_id in incident.members:
            node = fleet.nodes.get(node_id)
            if node is not None and node.pool and (lost := _lost(node)) is not None:
                yield _filled_from(fleet, lost)


def _silent(fleet: Fleet) -> list[Incident]:
    if fleet.incidents.bare:
        return []
    return [i for i in fleet.incidents.values() if i.holds and (s := SYNDROMES.get(i.syndrome)) is not None and s.mute]


def _runs_nothing(context: DecisionContext, node: Node) -> bool:
    """Whether its agent is lost, and its BMC says that it is off, or its scheduler has long not seen it ready."""
    lost = _lost(node)
    if lost is None:
        return False
    seen = context.live.of(node.id)
    return seen.power == OFF or (seen.ready is False and _filled_from(context.fleet, lost) <= context.sure)


def _lost(node: Node) -> Condition | None:
    return next((c for c in node.conditions if c.type == "agent.lost" and c.unknown_since is None), None)


def _filled_from(fleet: Fleet, lost: Condition) -> datetime:
    return lost.since + timedelta(seconds=fleet.policy.incidents.fill_after_s)


def _is_off(node: Node) -> bool:
    """Whether the node's protective power-off is done; one that is seen on again is tried anew, by a plan."""
    tried = next((a for a in reversed(node.attempts) if is_protective(a.remedy)), None)
    return node.plan is None and tried is not None and not tried.failed
