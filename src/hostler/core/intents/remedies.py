"""Remedies that people may ask for: each becomes a condition with the person's name, and is decided as any fault is."""

from msgspec.structs import replace

from hostler.core.intents import own_work
from hostler.core.intents.affected_nodes import named
from hostler.core.intents.ask import Answered, Ask, Granted, Handler, Handlers, RefusalError, hold_of, nodes_of
from hostler.core.intents.what_fits import demand_means, demand_room
from hostler.core.planning.outcomes import HOURS, TENANT
from hostler.core.planning.plan_builder import Frame, freeze
from hostler.core.policy.abilities import Answer, remedy_ability
from hostler.core.policy.blast_radius import blast_radius, group_of
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import blockers
from hostler.core.policy.holds_and_pauses import CORDON
from hostler.core.policy.remedy_escalation import need_of
from hostler.core.policy.workload_consent import Disturbance, may_disturb
from hostler.core.state import events as e
from hostler.core.state.model import ActClass, Condition, Evidence, Facts, HoldKind, Node, Phase, Severity
from hostler.core.state.scopes import ALONE, ActGroup
from hostler.core.state.verbs.remedies import (
    Drain,
    PowerCycle,
    PowerOff,
    Reboot,
    ReleaseNode,
    RemedyRequest,
    RemedyVerb,
    RequestReplacement,
    ResetGpu,
    ReturnForMaintenance,
    UpdateFirmware,
)
from hostler.core.state.ways_out import by_act
from hostler.core.tables.recipes import RECIPES


def grant_remedy(ask: Ask[RemedyVerb]) -> Granted:
    """Each node of the target gets the condition that asks for the remedy."""
    request = ask.act.remedy
    nodes = nodes_of(ask)
    events: list[e.Event] = []
    group = _group(ask, nodes)
    for node in nodes:
        if isinstance(ask.act, PowerOff) and node.phase is Phase.production:
            raise RefusalError(
                f"{node.id} is in production: return it for maintenance first",
                way=by_act(ReturnForMaintenance(), node.id, "it is returned for maintenance"),
            )
        if not isinstance(ask.act, PowerOff) and node.phase is not Phase.production:
            raise RefusalError(f"{node.id} is in phase {node.phase}; {ask.intent.verb} is for nodes in production")
        kept: Facts = {}
        if isinstance(ask.act, Drain) and group.scope is None:  # of a domain, once all of it is drained
            hold = hold_of(ask, node.scope, HoldKind.cordon, ask.act.hours)
            events.append(e.HoldPlaced(hold))
            kept = {CORDON: hold.id}
        events.append(e.ConditionRaised(_condition_of(ask, node, request, group, kept)))
    if found := [n.id for n in nodes if any(c.type == request.condition and c.group.scope for c in n.conditions)]:
        raise RefusalError(f"{found[0]} is part of another act already; see `hostler domain list`")
    demand_means(ask, nodes, request.remedy)
    if not isinstance(ask.act, PowerOff):
        demand_room(ask, _asked_for(ask, nodes, group))
    return f"{ask.intent.verb} is asked for on {len(nodes)} node{'s' if len(nodes) > 1 else ''}", tuple(events)


def power_off(ask: Ask[RemedyVerb]) -> Granted:
    """The same for a power-off: a technician's is of a machine that they work on or have claimed a ticket about."""
    if ask.intent.own_work:
        for node in nodes_of(ask):
            own_work.demand(ask, node)
    return grant_remedy(ask)


def _asked_for(ask: Ask[RemedyVerb], nodes: tuple[Node, ...], group: ActGroup) -> DisruptionRequest:
    """The request as the guards would be asked for it."""
    act_class = ActClass.immediate if ask.act.now else ActClass.pending
    return DisruptionRequest(ask.act.remedy.remedy, act_class, nodes, approved=True, scope=group.scope)


def _group(ask: Ask[RemedyVerb], nodes: tuple[Node, ...]) -> ActGroup:
    """The group that ties the requests of one act together; members of a domain go together all the way."""
    if len(nodes) == 1:
        return ALONE
    return group_of(ask.context.fleet, ask.intent.target, ask.intent.id)


def _condition_of(ask: Ask[RemedyVerb], node: Node, request: RemedyRequest, group: ActGroup, kept: Facts) -> Condition:
    intent = ask.intent
    hours: Facts = {HOURS: ask.act.hours} if isinstance(ask.act, Drain) and ask.act.hours else {}
    asker: Facts = {TENANT: intent.bounds.tenant} if intent.bounds.tenant else {}
    now = "immediate" if ask.act.now else "pending"
    return Condition(
        id=f"{node.id}/{request.condition}",
        type=request.condition,
        node=node.id,
        severity=Severity.warning,
        since=ask.context.now,
        last_seen=ask.context.now,
        clears=request.clears,
        owner=intent.person,
        evidence=(Evidence(ask.context.now, intent.person, intent.reason, facts={**hours, **asker, **kept}),),
        remedy=request.remedy,
        timing=now,
        group=group,
    )


def preview(ask: Ask[RemedyVerb]) -> Answered:
    """Answer what would happen: the plan, whom it disturbs, and what it would wait for. Records nothing."""
    request = ask.act.remedy
    nodes = nodes_of(ask)
    grant_remedy(ask)
    group = _group(ask, nodes)
    asked = tuple(replace(n, conditions=(_condition_of(ask, n, request, group, {}),)) for n in nodes)
    need = need_of(ask.context.fleet.policy_of(asked[0]), asked[0], ask.context.now)
    if need is None:
        raise RefusalError(f"{nodes[0].id} would not be touched: its phase or profile does not allow it")
    frame = Frame(need.act_class, need.causes, need.rule, need.part, need.remedy)
    plan = freeze(ask.context, asked[0], RECIPES[need.remedy], frame)
    disruption = DisruptionRequest(need.remedy, need.act_class, asked, approved=True, scope=group.scope)
    waits = [b.text for b in blockers(ask.context, disruption)]
    for node in asked:
        consents = may_disturb(node, ask.context.live, Disturbance(need.act_class, parts=plan.parts), None)
        if isinstance(consents, tuple):
            waits.extend(c.blocker.text for c in consents if c.blocker)
        else:
            waits.append(consents.text)
    means = [(node, remedy_ability(ask.context, node, need.remedy)) for node in asked]
    waits.extend(found.text for _, found in means if found.silent)
    unsure = [found.text for _, found in means if found.answer is Answer.unknown and not found.silent]
    detail = {
        "plan": " → ".join(step.operation for step in plan.steps),
        "nodes": ",".join(n.id for n in nodes),
        "gpus": str(sum(blast_radius(ask.context.fleet, n.id).gpus for n in nodes)),
        "waits_for": "; ".join(waits[:20]),
    }
    if unsure:  # it is found out by trying: neither promised nor refused
        detail["not_known"] = "; ".join(unsure[:20])
    return Answered(True, f"would {need.remedy} {len(nodes)} node(s)", detail=detail)


HANDLERS: Handlers = {
    **dict.fromkeys(
        (Drain, ResetGpu, Reboot, PowerCycle, UpdateFirmware, ReturnForMaintenance, RequestReplacement, ReleaseNode),
        Handler(grant_remedy, named),
    ),
    PowerOff: Handler(power_off),
}
