"""Requests called off: one verb withdraws what people asked for, and every other place that refuses names it.

Each withdrawal undoes what its own request laid, and nothing else (law 6). A tenant calls off what the tenant asked
for, a technician what they asked for themselves, an operator anything; what waits for a second person is withdrawn by
its asker and denied by others. Acts on a whole rack or domain end whole.
"""

from collections.abc import Iterable, Sequence
from typing import cast, get_args

from msgspec.structs import replace

from hostler.core.intents.ask import AnyAsk, Ask, Granted, Handler, Handlers, Nodes, RefusalError, nodes_of
from hostler.core.intents.bounds import is_theirs
from hostler.core.intents.standing_requests import LEFT, REMEDIES, Asker, StandingRequest, standing
from hostler.core.planning.domain_plans import DomainAct, acted_upon, acts, request_of
from hostler.core.planning.outcomes import TENANT
from hostler.core.planning.what_if import begins
from hostler.core.policy.blast_radius import resolve
from hostler.core.state import events as e
from hostler.core.state.model import Condition, Node
from hostler.core.state.people import is_same
from hostler.core.state.scopes import NODES
from hostler.core.state.verbs.activation import Activate, StopRollout
from hostler.core.state.verbs.approvals import ApproveRequest, WithdrawRequest
from hostler.core.state.verbs.call_off import CallOff, What
from hostler.core.state.verbs.command_line import command_of
from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.fabrics import CancelRecabling, PlanRecabling
from hostler.core.state.verbs.facts import Target, Verb
from hostler.core.state.verbs.holds import Pause, PlaceHold, ReleaseHold, Resume, Uncordon
from hostler.core.state.verbs.maintenance import CancelMaintenance, EndWork, ScheduleMaintenance, StartWork
from hostler.core.state.verbs.proposals import Approve, Reject
from hostler.core.state.verbs.racks import RackBringUp, RackCallOff

KINDS: tuple[str, ...] = get_args(What)
"""The words of `--what`."""


def call_off(ask: Ask[CallOff]) -> Granted:
    """Requests that stand are withdrawn. Raises RefusalError where nothing is: it says why, and what to do instead."""
    acts_found = _domain_acts(ask)
    if acts_found:
        return _acts_called_off(ask, acts_found)
    found = [(node, one) for node in _nodes(ask) for one in _named(ask, node)]
    own = [(node, one) for node, one in found if _may_end(ask, one)]
    ended = [(node, one) for node, one in own if not one.stays]
    events = tuple(dict.fromkeys(event for _, one in ended for event in one.ends))
    stays = [f"{_told(ask, node, one)} is not: {one.stays}" for node, one in own if one.stays]
    if not ended:
        raise RefusalError(_nothing(ask, found, stays))
    then = dict.fromkeys(one.then for _, one in ended if one.then)
    text = f"{_listed(_told(ask, node, one) for node, one in ended)} called off"
    return "; ".join((text, *then, *stays[:5], *_left(ask))), events


def _nodes(ask: AnyAsk) -> tuple[Node, ...]:
    """The nodes of the target, which may be a domain without its kind before it. Raises RefusalError."""
    target = ask.intent.target
    known = target == NODES or ask.context.fleet.resolve(target) is not None
    scopes = () if known else resolve(ask.context.fleet, target)
    return nodes_of(replace(ask, intent=replace(ask.intent, target=scopes[0].text)) if scopes else ask)


def _named(ask: Ask[CallOff], node: Node) -> list[StandingRequest]:
    """The requests of the node that are meant."""
    what = ask.act.what
    found = standing(ask.context, node, _asker(ask))
    if not what:
        return [one for one in found if one.what not in LEFT or one.approval]
    return [one for one in found if what == one.what or (what == "approval" and one.approval)]


def _asker(ask: AnyAsk) -> Asker:
    return Asker(ask.intent.person, ask.intent.reason, ask.intent.known_as, ask.intent.bounds)


def _may_end(ask: AnyAsk, one: StandingRequest) -> bool:
    """Whether it is theirs to end, or to be told why it cannot be."""
    if ask.intent.own_work and not is_same(ask.context.fleet.policy.people, one.person, ask.intent.names):
        return False
    return is_theirs(ask.intent.bounds, one.tenant)


def _told(ask: AnyAsk, node: Node, one: StandingRequest) -> str:
    whose = f"{ask.called(one.person)}'s " if one.person else ""
    return f"{whose}{one.what} of {node.id}"


def _listed(items: Iterable[str]) -> str:
    found = list(items)
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    return f"{', '.join(found[:5])}{more} {'is' if len(found) == 1 else 'are'}"


def _nothing(ask: Ask[CallOff], found: Sequence[tuple[Node, StandingRequest]], stays: Sequence[str]) -> str:
    """Why nothing is called off."""
    if stays:
        return "; ".join(stays[:5])
    if found:
        node, one = found[0]
        whose = "another customer's" if ask.intent.bounds.tenant else f"{ask.called(one.person)}'s"
        return f"{one.what} of {node.id} is not yours to call off, it is {whose}; ask them, or an operator"
    target, what = ask.intent.target, ask.act.what or "anything that is not done"
    nodes = _nodes(ask)
    text = f"nobody has asked for {what} on {target if target != NODES else f'these {len(nodes)} nodes'}"
    return "; ".join((text, *(_instead(node) for node in nodes[:1])))


def _instead(node: Node) -> str:
    """The command for what a node does that no person's request asks for."""
    plan = node.plan
    if plan is not None and plan.state == "proposed":
        return f"{plan.name} is proposed for {plan.rule}: `{command_of(Reject(), node.id)}`"
    if plan is not None and plan.rule and not plan.rule.startswith("operator."):
        return f"{plan.name} answers {plan.rule}: `{command_of(PlaceHold(), node.id)}` keeps what may wait"
    return f"see `hostler node explain {node.id}`"


def _left(ask: Ask[CallOff]) -> list[str]:
    """Cordons that stay though all else is called off."""
    if ask.act.what or len(nodes := _nodes(ask)) != 1:
        return []
    kept = [one.person for one in standing(ask.context, nodes[0], _asker(ask)) if one.what in LEFT and one.ends]
    lifts = command_of(Uncordon(), nodes[0].id)
    return [f"the cordon of {kept[0]} stays: `{lifts}`"] if kept else []


def _domain_acts(ask: Ask[CallOff]) -> list[DomainAct]:
    """Acts on all of the rack or domain that the target names."""
    if ask.context.fleet.resolve(ask.intent.target) is not None:
        return []
    scopes = resolve(ask.context.fleet, ask.intent.target)
    what = ask.act.what
    found = [act for act in acts(ask.context.fleet) if act.scope in scopes]
    return [act for act in found if not what or act.request is None or REMEDIES.get(act.request.type) == what]


def _acts_called_off(ask: Ask[CallOff], found: list[DomainAct]) -> Granted:
    target = ask.intent.target
    requested = [act for act in found if act.request is not None]
    own = [act for act in requested if act.request is not None and is_theirs(ask.intent.bounds, _tenant(act.request))]
    if not requested:
        why = "it answers a fault: hold the domain, or reject what is proposed"
        raise RefusalError(f"no act on {target} can be called off: {why}; see `hostler domain list`")
    if not own:
        raise RefusalError(f"the act on {target} is not yours to call off; ask who asked for it, or an operator")
    begun = [(act, step) for act in own if (step := _begun(ask, act))]
    ended = [act for act in own if all(act is not one for one, _ in begun)]
    stays = [f"{act.remedy} has begun ({step}), and cannot be taken back: it goes on to its end" for act, step in begun]
    if not ended:
        raise RefusalError("; ".join(stays))
    events = tuple(event for act in ended for event in _cleared(ask, act))
    text = f"{', '.join(act.remedy for act in ended)} on {ended[0].scope} is called off"
    return "; ".join((text, *stays)), events


def _begun(ask: AnyAsk, act: DomainAct) -> str:
    """The step by which the act can no longer be taken back, "" where it can."""
    for member in act.members:
        plan = member.node.plan
        if plan is not None and plan.group == act.group and plan.state == "running":
            return acted_upon(ask.context.fleet, member.node, plan)
    return ""


def _tenant(request: Condition) -> str:
    return str(request.evidence[0].facts.get(TENANT, "")) if request.evidence else ""


def _cleared(ask: AnyAsk, act: DomainAct) -> tuple[e.Event, ...]:
    requests = [(m.node.id, request.id) for m in act.members if (request := request_of(m.node, act.group)) is not None]
    return tuple(e.ConditionCleared(node, request, ask.intent.person, ask.intent.reason) for node, request in requests)


def hint(ask: AnyAsk, name: str) -> str:
    """A request that stands on this node and how to call it off, as the end of a refusal; "" where there is nothing."""
    node = ask.context.fleet.resolve(name)
    if node is None:
        return ""
    found = [one for one in standing(ask.context, node, _asker(ask)) if _may_end(ask, one) and one.ends]
    if not found:
        return ""
    return f"; {_told(ask, node, found[0])} stands: `{command(node.id, found[0].what)}`"


def command(node: str, what: str) -> str:
    """The command that calls a request off."""
    return command_of(CallOff(cast("What", what)), node)


def way_back(ask: AnyAsk, events: Sequence[e.Event], approval: str = "") -> str:
    """The command that calls the granted act off, "" where nothing can, or nothing of it is left to do."""
    act, target = _act_back(ask, events, approval)
    return command_of(act, target, ask.intent.nodes) if act is not None else ""


def _act_back(ask: AnyAsk, events: Sequence[e.Event], approval: str) -> tuple[Verb | None, str]:
    """The act that calls the granted one off, and its target."""
    intent = ask.intent
    if approval:
        return WithdrawRequest(), approval
    for event in events:
        match event, intent.act:
            case e.HoldPlaced(hold=hold), PlaceHold():
                return ReleaseHold(), hold.id
            case e.WindowScheduled(window=window), ScheduleMaintenance():
                return CancelMaintenance(), window.id
            case e.RolloutStarted(rollout=rollout), Activate() | ApproveRequest():
                return StopRollout(), rollout.id
            case _:
                continue
    if (end := _ENDS.get(type(intent.act))) is not None:
        return end, intent.target
    named = intent.verb in KINDS and VERBS[intent.verb].facts.target in (Target.node, Target.nodes)
    return (CallOff(cast("What", intent.verb)) if named else None), intent.target


_ENDS: dict[type[Verb], Verb] = {
    Pause: Resume(),
    RackBringUp: RackCallOff(),
    PlanRecabling: CancelRecabling(),
    Approve: PlaceHold(),
    StartWork: EndWork(),
}
"""Verb → the act on the same target that ends what it began; a plan that was approved is stopped by a hold."""


def _frees(ask: Ask[CallOff]) -> Nodes:
    """The nodes that wait for a window of their own which ends, and would begin something then."""
    if ask.act.what not in ("", "schedule-maintenance"):
        return ()
    try:
        nodes = _nodes(ask)
    except RefusalError:
        return ()
    waiting = (n for n in nodes if n.waiting and any(b.kind == "window" for b in n.waiting.blockers))
    scopes = {window.scope for window in ask.context.fleet.windows.values()}
    return tuple(n.id for n in waiting if n.scope in scopes and begins(ask.context, n))


HANDLERS: Handlers = {CallOff: Handler(call_off, _frees)}
