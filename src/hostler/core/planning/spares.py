"""Delivery of spares: which spare fills which place of a pool."""

from itertools import islice

from msgspec.structs import replace

from hostler.core.conditions.sku_match import gaps
from hostler.core.planning import drills
from hostler.core.planning.plan_builder import Frame, record
from hostler.core.planning.remediation import retry_wait
from hostler.core.policy import pool_places
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import blockers
from hostler.core.policy.holds_and_pauses import keeping_away, scopes
from hostler.core.policy.pool_modes import mode_of
from hostler.core.policy.remedy_escalation import is_on_probation
from hostler.core.state import events as e
from hostler.core.state.configuration import Pool, SpareOrder
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import ActClass, Assignment, Node
from hostler.core.state.pool_mode import Mode
from hostler.core.state.requalification import has_proven_itself
from hostler.core.state.trends import DRIFT
from hostler.core.tables.recipes import RECIPES


def balance(context: DecisionContext, pool: Pool, dark: pool_places.Dark) -> tuple[e.Event, ...]:
    """Deliver spares for the places that nobody fills, in id order; one call delivers all that is to be had.

    A place is free below the pool's target, and where a member stays dark until a person comes (`dark`). Who comes back
    to a place that was filled makes the pool larger than its target until it loses a member.
    """
    missing = pool.target - context.fleet.index.count(f"pool:{pool.name}") + len(dark)
    if missing <= 0:
        return ()
    found: list[e.Event] = []
    for node, assignment in _fitting(context, pool, missing):
        found.append(e.NodeAssigned(node.id, assignment, _why(context, node, dark)))
        joined = replace(node, assignment=assignment)
        found.append(record(context, joined, RECIPES["deliver"], Frame(ActClass.bring_up)))
        told = frozenset(one.drill for one in found if isinstance(one, e.DrillPlaceFilled))
        found.extend(drills.filled(context, pool.name, told, node.id))
    return tuple(found)


def _fitting(context: DecisionContext, pool: Pool, missing: int) -> list[tuple[Node, Assignment]]:
    """So many spares as are missing, while the pool's floor of spares is left.

    Only who could be delivered counts for the floor: a spare of another profile, or one that is held, replaces nobody.
    """
    suspected = pool_places.suspected(context.fleet)
    spares = [context.fleet.nodes[i] for i in context.fleet.spares(pool.sku)]
    sound = _by_trend(context, [node for node in spares if suspected.isdisjoint(node.shares)])
    assignment = Assignment(pool.name, pool.tenant, pool.cluster, context.now)
    floor = pool.budget.spares_floor
    deliverable = (node for node in sound if _is_deliverable(context, node, replace(node, assignment=assignment), pool))
    fitting = list(islice(deliverable, missing + floor))
    return [(node, assignment) for node in fitting[: max(0, len(fitting) - floor)]]


def _why(context: DecisionContext, node: Node, dark: pool_places.Dark) -> str:
    """Reason of the delivery: dark members whose place is filled, and that all spares without probation are taken."""
    until = node.probation_until
    last = is_on_probation(node, context.now) and until is not None
    watched = (
        f"every spare without probation is taken; this one is on probation until {until:%Y-%m-%d %H:%M} UTC"
        if last
        else ""
    )
    return "; ".join(text for text in (pool_places.told(dark), watched) if text)


def _by_trend(context: DecisionContext, spares: list[Node]) -> list[Node]:
    """Spares on probation come last; so do those with a reading that drifts, or not at all, as the policy says."""
    spares = sorted(spares, key=lambda node: is_on_probation(node, context.now))
    how = context.fleet.policy.trends.spares
    drifting = {node.id for node in spares if any(c.type == DRIFT for c in node.conditions)}
    if how is SpareOrder.take or not drifting:
        return spares
    kept = spares if how is SpareOrder.last else [node for node in spares if node.id not in drifting]
    return sorted(kept, key=lambda node: node.id in drifting)


def _is_deliverable(context: DecisionContext, node: Node, joined: Node, pool: Pool) -> bool:
    """An adopted spare is delivered only where the pool's mode says that Hostler may act there."""
    if node.profile is not pool.profile or node.provisioner == "none" or not has_proven_itself(node):
        return False
    if node.adopted and mode_of(context, joined, "deliver") is not Mode.act:
        return False
    if keeping_away(context.fleet.holds_on(scopes(context.fleet, node))) or gaps(context.fleet, node):
        return False
    return not retry_wait(context, node, "deliver") and not blockers(
        context, DisruptionRequest("deliver", ActClass.bring_up, (joined,))
    )
