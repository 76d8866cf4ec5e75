"""Remedies that people may ask for: each becomes a condition with the person's name, and is decided as any fault is."""

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.intents.ask import Answered, Ask, Granted, RefusalError, hold_of, nodes_of, number_of
from hostler.core.planning.domain_plans import scope_of
from hostler.core.planning.outcomes import HOURS, TENANT
from hostler.core.planning.plan_builder import Frame, freeze
from hostler.core.policy.blast_radius import blast_radius, group_of
from hostler.core.policy.disturb import Disturbance, may_disturb
from hostler.core.policy.guards import DisruptionRequest, blockers
from hostler.core.policy.response import need_of
from hostler.core.state import events as e
from hostler.core.state.model import Condition, Evidence, Facts, HoldKind, Node, Phase, Severity
from hostler.core.tables.recipes import RECIPES


class RemedyRequest(Struct, frozen=True):
    """A remedy that a person may ask for: the condition it becomes and the remedy that answers it."""

    condition: str
    remedy: str
    clears: str = "remedy"


WISHES: dict[str, RemedyRequest] = {
    "drain": RemedyRequest("operator.drain", "drain"),
    "reset-gpu": RemedyRequest("operator.gpu_reset", "gpu_reset"),
    "reboot": RemedyRequest("operator.reboot", "reboot"),
    "power-cycle": RemedyRequest("operator.power_cycle", "power_cycle"),
    "power-off": RemedyRequest("operator.power_off", "power_off"),
    "update-firmware": RemedyRequest("operator.firmware_update", "firmware_update"),
    "return-for-maintenance": RemedyRequest("operator.maintenance", "triage", "operator"),
    "request-replacement": RemedyRequest("operator.replacement", "triage"),
    "release-node": RemedyRequest("operator.release", "release"),
}


def grant_wish(ask: Ask) -> Granted:
    """Each node of the target gets the condition that asks for the remedy."""
    wish = WISHES[ask.intent.verb]
    nodes = nodes_of(ask)
    events: list[e.Event] = []
    group = _group(ask, nodes)
    for node in nodes:
        if wish.remedy == "power_off" and node.phase is Phase.production:
            raise RefusalError(f"{node.id} is in production: return it for maintenance first")
        if wish.remedy != "power_off" and node.phase is not Phase.production:
            raise RefusalError(f"{node.id} stands at {node.phase}; {ask.intent.verb} is for nodes in production")
        if wish.remedy == "drain" and not scope_of(group):  # of a domain, once all of it is drained
            events.append(e.HoldPlaced(hold_of(ask, node.id, HoldKind.cordon)))
        events.append(e.ConditionRaised(_wished(ask, node, wish, group)))
    if found := [n.id for n in nodes if any(c.type == wish.condition and scope_of(c.group) for c in n.conditions)]:
        raise RefusalError(f"{found[0]} is part of such an act already; see `hostler domain list`")
    return f"{ask.intent.verb} is asked for on {len(nodes)} node{'s' if len(nodes) > 1 else ''}", tuple(events)


def _group(ask: Ask, nodes: tuple[Node, ...]) -> str:
    """What ties the wishes of one act together; a domain's members go together all the way (`core.domains`)."""
    if len(nodes) == 1:
        return ""
    return group_of(ask.scene.fleet, ask.intent.target, ask.intent.id) or ask.intent.id


def _wished(ask: Ask, node: Node, wish: RemedyRequest, group: str) -> Condition:
    intent = ask.intent
    hours: Facts = {HOURS: number_of(intent.args[HOURS], 24 * 365)} if intent.args.get(HOURS) else {}
    asker: Facts = {TENANT: intent.bounds.tenant} if intent.bounds.tenant else {}
    now = "immediate" if intent.args.get("now") == "true" else "pending"
    return Condition(
        id=f"{node.id}/{wish.condition}",
        type=wish.condition,
        node=node.id,
        severity=Severity.warning,
        since=ask.scene.now,
        last_seen=ask.scene.now,
        clears=wish.clears,
        owner=intent.person,
        evidence=(Evidence(ask.scene.now, intent.person, intent.reason, facts={**hours, **asker}),),
        remedy=wish.remedy,
        timing=now,
        group=group,
    )


def preview(ask: Ask) -> Answered:
    """What would happen: the plan, whom it disturbs, and what it would wait for. Records nothing."""
    wish = WISHES[ask.intent.verb]
    nodes = nodes_of(ask)
    grant_wish(ask)
    group = _group(ask, nodes)
    wishing = tuple(replace(n, conditions=(_wished(ask, n, wish, group),)) for n in nodes)
    need = need_of(ask.scene.fleet.policy_of(wishing[0]), wishing[0], ask.scene.now)
    if need is None:
        raise RefusalError(f"{nodes[0].id} would not be touched: its phase or profile does not allow it")
    frame = Frame(need.act_class, need.causes, need.rule, need.part, need.remedy)
    plan = freeze(ask.scene, wishing[0], RECIPES[need.remedy], frame)
    request = DisruptionRequest(need.remedy, need.act_class, wishing, approved=True, scope=scope_of(group))
    waits = [b.text for b in blockers(ask.scene, request)]
    for node in wishing:
        consents = may_disturb(node, ask.scene.present, Disturbance(need.act_class, parts=plan.parts), None)
        if isinstance(consents, tuple):
            waits.extend(c.blocker.text for c in consents if c.blocker)
        else:
            waits.append(consents.text)
    detail = {
        "plan": " → ".join(step.operation for step in plan.steps),
        "nodes": ",".join(n.id for n in nodes),
        "gpus": str(sum(blast_radius(ask.scene.fleet, n.id).gpus for n in nodes)),
        "waits_for": "; ".join(waits[:20]),
    }
    return Answered(True, f"would {need.remedy} {len(nodes)} node(s)", detail=detail)
