"""Holds, pauses and a restored journal: what a person, or a copied journal, keeps as it is."""

from collections.abc import Iterable
from datetime import datetime

from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import OWNER, ActClass, Blocker, Hold, HoldKind, Node, Phase
from hostler.core.state.scopes import CLUSTER, FLEET, POOL, RACK, WHOLE_CELL, Scope
from hostler.core.state.verbs.command_line import TO_SAY
from hostler.core.state.verbs.holds import ReleaseHold, Resume
from hostler.core.state.verbs.maintenance import EndWork, StartWork
from hostler.core.state.verbs.recovery import ReleaseRestore
from hostler.core.state.verbs.remedies import Drain
from hostler.core.state.ways_out import by_act
from hostler.core.tables.recipe_facts import rules_of

CORDONING = (HoldKind.cordon, HoldKind.physical_work, HoldKind.power)
"""Kinds of holds that keep new work away; under the last two the node is dark as well."""
CORDON = "cordon"
"""Key of the hold that a request for a drain placed, in the request's evidence."""


def scopes(fleet: Fleet, node: Node) -> tuple[Scope, ...]:
    """Every scope that a hold, pause or window on the node may be placed on."""
    pool = fleet.pool_of(node)
    found = [WHOLE_CELL, node.scope, *node.domains, Scope(RACK, node.position.rack)]
    if pool is not None:
        found += [Scope(POOL, pool.name), Scope(CLUSTER, pool.cluster)]
    elif node.assignment is not None:
        found.append(Scope(CLUSTER, node.assignment.cluster))
    return tuple(found)


def keeping_away(holds: Iterable[Hold]) -> list[Hold]:
    """Holds that keep new work away; who lifted our cordon by other means overrides a cordon."""
    found = list(holds)
    overridden = any(h.kind is HoldKind.override for h in found)
    return [h for h in found if h.kind in CORDONING and not (overridden and h.kind is HoldKind.cordon)]


def lacks_cordon(fleet: Fleet, node: Node) -> bool:
    """Whether a person has asked that new work be kept away, and no cordon of ours stands yet.

    The cordon of a drain comes with the drain, which may end work and so waits for guards.
    """
    if fleet.holds.bare or node.phase is not Phase.production or node.assignment is None or OWNER in node.cordons:
        return False
    found = keeping_away(fleet.holds_on(scopes(fleet, node)))
    return any(h.kind is HoldKind.cordon and not is_of_drain(node, h) for h in found)


def is_of_drain(node: Node, hold: Hold) -> bool:
    """Whether the hold was placed by a person's request to drain the node, and that request still stands."""
    drains = (c for c in node.conditions if c.type == Drain.remedy.condition)
    return any(one.facts.get(CORDON) == hold.id for c in drains for one in c.evidence)


def restored(context: DecisionContext, _request: DisruptionRequest) -> list[Blocker]:
    """Blocker of everything while the journal is a copy that nobody has released."""
    since = context.fleet.cell.restored
    return [] if since is None else [restored_at(since)]


def restored_at(since: datetime) -> Blocker:
    """Blocker of all disruption until a person has looked at how reality differs from a copied journal."""
    text = f"the journal was restored at {since:%Y-%m-%d %H:%M} UTC; no disruption until a person releases it"
    return Blocker("restored", "journal", text, by_act(ReleaseRestore(), FLEET, "a person releases it"))


def paused(context: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    """Blockers of the scopes for which a person has paused disruption."""
    if not context.fleet.cell.paused:
        return []
    paused = sorted(_concerned(context.fleet, request) & set(context.fleet.cell.paused))
    return [
        Blocker(
            "pause",
            s.text,
            f"disruption is paused for {s}",
            by_act(Resume(), s.text, "a person resumes it"),
        )
        for s in paused
    ]


def stopped_by_hold(context: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    """Blockers by holds; what is kept off may be powered off again: somebody may have pressed its button.

    An idle check is new work for the node, so that a cordon stops it too.
    """
    if request.act_class is ActClass.idle_check:
        return _holds(context, request, (HoldKind.operator, HoldKind.cordon, HoldKind.override, HoldKind.power))
    kinds = (HoldKind.operator, HoldKind.override, HoldKind.power)
    return _holds(context, request, kinds[:2] if rules_of(request.remedy).keeps == HoldKind.power else kinds)


def worked_on(context: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    """Blockers of nodes that somebody has the hands in."""
    return _holds(context, request, (HoldKind.physical_work,))


def _holds(context: DecisionContext, request: DisruptionRequest, kinds: tuple[HoldKind, ...]) -> list[Blocker]:
    if context.fleet.holds.bare:
        return []
    found = [h for h in context.fleet.holds_on(_concerned(context.fleet, request)) if h.kind in kinds]
    return [held(h) for h in sorted(found, key=lambda h: h.id) if h.until is None or h.until > context.sure]


def _concerned(fleet: Fleet, request: DisruptionRequest) -> set[Scope]:
    return {scope for node in request.nodes for scope in scopes(fleet, node)} | set(request.beside)


def held(hold: Hold) -> Blocker:
    """A hold as the blocker it is."""
    scope = hold.scope.text
    released = by_act(ReleaseHold(), hold.id, "the hold is released")
    if hold.kind is HoldKind.power and hold.owner != OWNER:
        begins = by_act(StartWork(serial=TO_SAY), scope, "work begins")
        text = f"{hold.owner} keeps {scope} powered off: {hold.reason}"
        return Blocker("hold", hold.id, text, (begins, released))
    ended = by_act(EndWork(), scope, "the work is ended")
    way = ended if hold.kind is HoldKind.physical_work else released
    word = f" (by {hold.owner}'s word of {hold.since:%Y-%m-%d %H:%M} UTC: {hold.word})" if hold.word else ""
    return Blocker("hold", hold.id, f"{hold.owner} holds {scope}: {hold.reason}{word}", way)
