"""A domain act: all of a rack or NVLink domain is taken as one, from the first cordon to the last uncordon.

It is admitted whole or waits whole (`remediation`), and undone whole. In between its members wait for each other at
four gates: nobody is drained before all are cordoned, nothing is acted upon before all are drained, nobody is opened
before all may be, and it is done for all at once. It is no record of its own: what stands on its members says all.
"""

from collections.abc import Iterator
from enum import IntEnum

from msgspec import Struct

from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Blocker, Condition, Node, Phase, Plan
from hostler.core.state.scopes import ALONE, ActGroup, Scope
from hostler.core.state.ways_out import observed


class DomainStage(IntEnum):
    """How far a member has come: what it does next."""

    cordon = 0
    drain = 1
    act = 2
    open = 3
    done = 4


_STAGES = {"cordon": DomainStage.cordon, "drain": DomainStage.drain, "uncordon": DomainStage.open}
_TAKEN_BACK = (*_STAGES, "collect_evidence")
"""Steps behind which the undo tail leaves a node as it was, whose hardware nothing was done to."""
REQUESTED = "operator."
"""How the types of conditions begin that are people's requests."""


def request_of(node: Node, group: ActGroup) -> Condition | None:
    """The condition by which somebody asked for this act on the node."""
    return next((c for c in node.conditions if c.group == group), None)


def members(fleet: Fleet, group: ActGroup) -> list[Node]:
    """The nodes that are to be taken or have been: on them the request stands, or the act's plan. By id."""
    return [fleet.nodes[i] for i in fleet.index.members(f"group:{group}")]


def mates(fleet: Fleet, node: Node) -> Iterator[tuple[Node, Plan]]:
    """The other members on which the act of the node's plan has begun, with their plans."""
    plan = node.plan
    if plan is None or plan.group.scope is None:
        return
    for mate in members(fleet, plan.group):
        if mate.id != node.id and mate.plan is not None and mate.plan.group == plan.group:
            yield mate, mate.plan


def stage_of(plan: Plan) -> DomainStage:
    """The plan's next stage."""
    if plan.index >= len(plan.steps):
        return DomainStage.done
    return _STAGES.get(plan.steps[plan.index].operation, DomainStage.act)


def behind(fleet: Fleet, node: Node, plan: Plan) -> tuple[Blocker, ...]:
    """The members that have not come as far as this one, each with what it waits for itself."""
    stage = stage_of(plan)
    late = [(m, p) for m, p in mates(fleet, node) if p.state == "running" and stage_of(p) < stage]
    return tuple(_late(plan, mate, theirs) for mate, theirs in late)


def _late(plan: Plan, mate: Node, theirs: Plan) -> Blocker:
    doing = theirs.steps[theirs.index].operation
    why = f": {mate.waiting.blockers[0].text}" if mate.waiting and mate.waiting.blockers[0].kind != "domain" else ""
    text = f"{plan.group.scope} is treated as a whole, and {mate.id} is still at {doing}{why}"
    return Blocker(
        "domain", mate.id, text[:500], observed(f"{mate.id} has caught up or left the act", "hostler", mate.id)
    )


def going_on(fleet: Fleet, node: Node) -> tuple[Blocker, ...]:
    """The members that have not turned back yet: before they do, a member that has is not opened again."""
    return tuple(
        Blocker(
            "domain",
            mate.id,
            f"the plan of {mate.id} is not undone yet; all members return to service together",
            observed(f"the plan of {mate.id} is undone", "hostler", mate.id),
        )
        for mate, theirs in mates(fleet, node)
        if theirs.state == "running"
    )


def turned_back(fleet: Fleet, node: Node) -> str:
    """Why the act is being undone by another member, "" where it is not."""
    return next((f"{m.id} turned back: {p.reason}"[:500] for m, p in mates(fleet, node) if p.state == "undoing"), "")


def has_disturbed(fleet: Fleet, node: Node) -> bool:
    """Whether the act may have ended work on any member by now: then it goes on."""
    return any(theirs.disturbed for _, theirs in mates(fleet, node))


def is_called_off(fleet: Fleet, node: Node, plan: Plan) -> bool:
    """Whether people have called off what the plan answers, and it can still be taken back whole."""
    if not (plan.group.scope is not None or is_requested(plan)) or stands(fleet, node, plan):
        return False
    return not acted_upon(fleet, node, plan)


def is_requested(plan: Plan) -> bool:
    """Whether a person's request is among the causes of the plan."""
    return any(cause.partition("/")[2].startswith(REQUESTED) for cause in plan.causes)


def acted_upon(fleet: Fleet, node: Node, plan: Plan) -> str:
    """The step by which the act can no longer be taken back, with its node; "" where it can."""
    everybody = ((node, plan), *mates(fleet, node))
    return next((f"{step} of {one.id}" for one, theirs in everybody if (step := _acted_upon(one, theirs))), "")


def _acted_upon(node: Node, plan: Plan) -> str:
    begun = plan.index + (node.operation is not None and node.operation.plan == plan.id)
    return next((step.operation for step in plan.steps[:begun] if step.operation not in _TAKEN_BACK), "")


def stands(fleet: Fleet, node: Node, plan: Plan) -> bool:
    """Whether a cause of the plan stands, on this node or on a member for whose fault all are taken."""
    causes = frozenset(plan.causes)
    if any(c.id in causes for c in node.conditions):
        return True
    if plan.group.scope is None or request_of(node, plan.group) is not None:
        return False
    names = {cause.partition("/")[0] for cause in plan.causes} - {node.id}
    found = (fleet.nodes.get(name) for name in sorted(names))
    return any(c.id in causes for other in found if other is not None for c in other.conditions)


class DomainMember(Struct, frozen=True):
    """One node of a domain act: waiting to begin (`stage` None), how far it has come, or turned back."""

    node: Node
    stage: DomainStage | None
    state: str
    blockers: tuple[Blocker, ...]


class DomainAct(Struct, frozen=True):
    """A domain act as it stands. `state`: waiting, proposed, running or undoing, for all of it."""

    group: ActGroup
    scope: Scope
    remedy: str
    state: str
    request: Condition | None
    members: tuple[DomainMember, ...]


def acts(fleet: Fleet) -> list[DomainAct]:
    """Every domain act that waits or is under way, by scope."""
    groups: dict[ActGroup, Scope] = {}
    for node_id in (*fleet.index.members("grouped"), *fleet.index.members("together")):
        node = fleet.nodes[node_id]
        found = (*(c.group for c in node.conditions), node.plan.group if node.plan else ALONE)
        groups.update((group, group.scope) for group in found if group.scope is not None)
    return [_act(fleet, group, groups[group]) for group in sorted(groups)]


def _act(fleet: Fleet, group: ActGroup, scope: Scope) -> DomainAct:
    """The act of this group, with all its members."""
    nodes = [node for node in members(fleet, group) if node.phase is Phase.production or _plan(node, group)]
    plans = [plan for node in nodes if (plan := _plan(node, group)) is not None]
    request = next((found for node in nodes if (found := request_of(node, group)) is not None), None)
    states = [plan.state for plan in plans]
    state = next((s for s in ("undoing", "running", "proposed") if s in states), "waiting")
    remedy = plans[0].remedy or plans[0].name if plans else request.remedy if request else ""
    return DomainAct(group, scope, remedy, state, request, tuple(_member(node, group) for node in nodes))


def _plan(node: Node, group: ActGroup) -> Plan | None:
    return node.plan if node.plan is not None and node.plan.group == group else None


def _member(node: Node, group: ActGroup) -> DomainMember:
    plan = _plan(node, group)
    waits = node.waiting.blockers if node.waiting else ()
    return DomainMember(node, stage_of(plan) if plan else None, plan.state if plan else "waiting", waits)
