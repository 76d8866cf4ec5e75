"""A node between the shelf and the customer: cordoned for a person, proving itself, delivered as a spare."""

from collections.abc import Iterable

from msgspec.structs import replace

from hostler.core.conditions.sku_match import gaps
from hostler.core.planning.plan_builder import Frame, record
from hostler.core.planning.remediation import tired
from hostler.core.policy import pool_places
from hostler.core.policy.guards import DisruptionRequest, blockers, held, mode_of, reopens, scopes
from hostler.core.state import events as e
from hostler.core.state.configuration import Pool
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Rest, Wait
from hostler.core.state.model import OWNER, ActClass, Assignment, Blocker, Hold, HoldKind, Mode, Node
from hostler.core.state.requalification import has_proven_itself
from hostler.core.tables.recipes import RECIPES

CORDONING = (HoldKind.cordon, HoldKind.physical_work, HoldKind.power)
"""Kinds of holds that keep new work away; under the last two the node is dark as well."""


def keeping_away(holds: Iterable[Hold]) -> list[Hold]:
    """Those of the holds that keep new work away; who lifted our cordon by other means overrides a cordon."""
    found = list(holds)
    overridden = any(h.kind is HoldKind.override for h in found)
    return [h for h in found if h.kind in CORDONING and not (overridden and h.kind is HoldKind.cordon)]


def serve(scene: DecisionContext, node: Node) -> Answer:
    """What a node in production needs that needs no remedy."""
    if scene.fleet.holds.bare and not node.cordons and not node.attempts:
        return _unseen(scene, node) or Rest()
    holds = list(scene.fleet.holds_on(scopes(scene, node)))
    kept = keeping_away(holds)
    if kept and OWNER not in node.cordons and node.assignment is not None:
        overrides = tuple(held(hold) for hold in holds if hold.kind is HoldKind.override)
        return Wait("cordon", overrides) if overrides else _cordon(scene, node, kept)
    if kept:
        return Wait("cordoned", tuple(held(hold) for hold in kept))
    if node.cordons or not has_proven_itself(node):
        name = "uncordon" if has_proven_itself(node) else "return_to_service"
        again = Act((record(scene, node, RECIPES[name], Frame(ActClass.easing)),))
        return tired(scene, node, name) or again
    if node.assignment is None and (waiting := tired(scene, node, "deliver")):
        return waiting
    return _unseen(scene, node) or Rest()


def _unseen(scene: DecisionContext, node: Node) -> Wait | None:
    """Why a spare is delivered to nobody: it is not what its SKU says, or nobody has seen what it is in this boot."""
    if node.assignment is not None or not (found := gaps(scene.fleet, node)):
        return None
    text = "; ".join(str(gap) for gap in found)[:400]
    return Wait("deliver", (Blocker("inventory", text[:120], text, "it is seen as its SKU says, by its agent or BMC"),))


def _cordon(scene: DecisionContext, node: Node, kept: list[Hold]) -> Answer:
    """A cordon counts as disruption and asks the guards; of a node that is dark anyway it takes nothing."""
    dark = any(h.kind is not HoldKind.cordon for h in kept)
    act_class = ActClass.easing if dark else ActClass.immediate
    request = DisruptionRequest("cordon", act_class, (node,), approved=True)
    if found := blockers(scene, request):
        return Wait("cordon", found, until=reopens(scene, found))
    plan = record(scene, node, RECIPES["cordon"], Frame(act_class, remedy="cordon"))
    return tired(scene, node, "cordon") or Act((plan,))


def balance(scene: DecisionContext, pool: Pool, dark: pool_places.Dark) -> tuple[e.Event, ...]:
    """Deliver spares for the places that nobody fills, in id order; one call delivers all that is to be had.

    A place is free below the pool's target, and where a member stays dark until a person comes (`dark`). Who comes back
    to a place that was filled makes the pool larger than its target until it loses a member.
    """
    missing = pool.target - scene.fleet.index.count(f"pool:{pool.name}") + len(dark)
    if missing <= 0:
        return ()
    found: list[e.Event] = []
    suspected = pool_places.suspected(scene.fleet)
    spares = [scene.fleet.nodes[i] for i in scene.fleet.spares(pool.sku)]
    sound = [node for node in spares if suspected.isdisjoint(node.shares)]
    for node in sound[: max(0, len(sound) - pool.budget.spares_floor)]:
        if missing == 0:
            break
        assignment = Assignment(pool.name, pool.tenant, pool.cluster, scene.now)
        joined = replace(node, assignment=assignment)
        if not _is_deliverable(scene, node, joined, pool):
            continue
        missing -= 1
        found.append(e.NodeAssigned(node.id, assignment, pool_places.told(dark)))
        found.append(record(scene, joined, RECIPES["deliver"], Frame(ActClass.bring_up)))
    return tuple(found)


def _is_deliverable(scene: DecisionContext, node: Node, joined: Node, pool: Pool) -> bool:
    """An adopted spare is delivered only where the pool's mode says that Hostler may act there."""
    if node.profile is not pool.profile or node.provisioner == "none" or not has_proven_itself(node):
        return False
    if node.adopted and mode_of(scene, joined, "deliver") is not Mode.act:
        return False
    if keeping_away(scene.fleet.holds_on(scopes(scene, node))) or gaps(scene.fleet, node):
        return False
    return not tired(scene, node, "deliver") and not blockers(
        scene, DisruptionRequest("deliver", ActClass.bring_up, (joined,))
    )
