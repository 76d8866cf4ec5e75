"""Requests that people have made of a node and that are not done: found kind by kind, with what would withdraw each.

Nothing here is recorded a second time. A request stands as what it became (a condition, a hold, a light, an approval),
so that what a restart or another controller finds is the same. `call_off` withdraws them, the API's progress of an
intent asks whether its own still stands. A kind that is missing here can be asked for and never be called off.
"""

from collections.abc import Callable, Iterator

from msgspec import Struct

from hostler.core.intents.ask import called
from hostler.core.planning.domain_plans import acted_upon
from hostler.core.planning.outcomes import TENANT
from hostler.core.policy.holds_and_pauses import CORDON, is_of_drain
from hostler.core.state import events as e
from hostler.core.state.bmc_certificate import CERTIFY
from hostler.core.state.bmc_login import RENEW, RETIRE
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.dpu_login import RENEW_DPU
from hostler.core.state.intent import Bounds
from hostler.core.state.model import OWNER, Condition, HoldKind, Node, Phase, Plan
from hostler.core.state.people import is_same
from hostler.core.state.verbs.approvals import DenyRequest, WithdrawRequest
from hostler.core.state.verbs.call_off import CallOff
from hostler.core.state.verbs.command_line import command_of
from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.remedies import RemedyVerb

REMEDIES = {kind.remedy.condition: verb for verb, kind in VERBS.items() if issubclass(kind, RemedyVerb)}
"""Type of the condition that a request becomes → its verb."""
_MACHINE_WORK = {"inspect_machine": "inspect", "deploy_image": "deploy", "clean_machine": "clean"}
LEFT = frozenset({"cordon"})
"""Requests that stand because they are done: called off by name alone."""


class Asker(Struct, frozen=True):
    """The person who withdraws, why, and their other names."""

    person: str
    reason: str
    known_as: tuple[str, ...] = ()
    bounds: Bounds = Bounds()

    @property
    def names(self) -> tuple[str, ...]:
        """Every name of the person."""
        return (self.person, *self.known_as)


class StandingRequest(Struct, frozen=True):
    """A person's request that stands: its verb, whose it is, and the events that withdraw it.

    `stays` says why it cannot be withdrawn, and what to do instead; it has no `ends` then. `then` says what follows.
    `approval`: it only waits for a second person.
    """

    what: str
    person: str
    tenant: str = ""
    ends: tuple[e.Event, ...] = ()
    stays: str = ""
    then: str = ""
    approval: str = ""


Finder = Callable[[DecisionContext, Node, Asker], Iterator[StandingRequest]]


def standing(context: DecisionContext, node: Node, by: Asker) -> list[StandingRequest]:
    """Requests that people have made of the node and that are not done."""
    return [found for finder in _FINDERS for found in finder(context, node, by)]


def _remedies(context: DecisionContext, node: Node, by: Asker) -> Iterator[StandingRequest]:
    for condition in node.conditions:
        verb = REMEDIES.get(condition.type)
        if verb is None:
            continue
        tenant = str(condition.evidence[0].facts.get(TENANT, "")) if condition.evidence else ""
        stays, then = _of_remedy(context, node, condition)
        ends = (*_drain_s_cordon(context, node, condition, by), _cleared(node, condition, by)) if not stays else ()
        yield StandingRequest(verb, condition.owner, tenant, ends, stays, then)


def _cleared(node: Node, condition: Condition, by: Asker) -> e.Event:
    return e.ConditionCleared(node.id, condition.id, by.person, by.reason)


def _drain_s_cordon(context: DecisionContext, node: Node, condition: Condition, by: Asker) -> Iterator[e.Event]:
    """The end of the hold that this request for a drain placed, and of no other."""
    named = [one.facts.get(CORDON) for one in condition.evidence]
    for hold in context.fleet.holds_of(node.id):
        if hold.id in named:
            yield e.HoldReleased(hold.id, hold.scope, by.person, by.reason)


def _of_remedy(context: DecisionContext, node: Node, condition: Condition) -> tuple[str, str]:
    """Why the request cannot be withdrawn, "" where it can, and what follows where it is."""
    plan = node.plan if node.plan is not None and condition.id in node.plan.causes else None
    if condition.group.scope is not None:
        scope = condition.group.scope
        return f"it is part of one act on all of {scope}: `{command_of(CallOff(), scope.text)}`", ""
    if plan is None:
        return "", _without_plan(node, condition)
    if plan.state != "undoing" and (step := acted_upon(context.fleet, node, plan)):
        return f"{_begun(plan, step)}, and cannot be taken back: {_goes_on(plan)}", ""
    if set(plan.causes) - {condition.id} & {c.id for c in node.conditions}:
        others = ", ".join(c.type for c in node.conditions if c.id in plan.causes and c.id != condition.id)
        return "", f"{plan.name} goes on for {others}"
    return "", f"{plan.name} ends after the step under way, and what it has done is taken back"


def _without_plan(node: Node, condition: Condition) -> str:
    if node.phase is Phase.production or REMEDIES[condition.type] == "power-off":
        return ""
    return f"{node.id} has left production already; its phase goes on ({node.phase})"


def _begun(plan: Plan, step: str) -> str:
    """The step that was begun, for people: firmware is named, as it takes longest and must not be cut off."""
    operation = step.partition(" of ")[0]
    if operation in ("update_firmware", "write_device_firmware"):
        return "its firmware is being written, or was"
    return f"{plan.name} has begun ({step})"


def _goes_on(plan: Plan) -> str:
    """The end of a plan that goes on."""
    if any(step.operation == "run_checks" for step in plan.steps):
        return "the plan goes on, checks the node, and opens it again"
    return "the plan goes on to its end"


def _dark(context: DecisionContext, node: Node, by: Asker) -> Iterator[StandingRequest]:
    """The hold that keeps a node off whose power-off is done."""
    for hold in context.fleet.holds_of(node.id):
        if hold.kind is HoldKind.power and hold.owner != OWNER:
            ends = (e.HoldReleased(hold.id, hold.scope, by.person, by.reason),)
            then = f"nothing keeps {node.id} off any more; its phase powers it on ({node.phase})"
            yield StandingRequest("power-off", hold.owner, hold.tenant, ends, then=then)


def _cordons(context: DecisionContext, node: Node, by: Asker) -> Iterator[StandingRequest]:
    for hold in context.fleet.holds_of(node.id):
        if hold.kind is HoldKind.cordon and not is_of_drain(node, hold):
            ends = (e.HoldReleased(hold.id, hold.scope, by.person, by.reason),)
            yield StandingRequest("cordon", hold.owner, hold.tenant, ends)


def _approvals(context: DecisionContext, node: Node, by: Asker) -> Iterator[StandingRequest]:
    for approval in context.fleet.approvals_for(node.id):
        intent = approval.intent
        if approval.expires <= context.now:
            continue
        stays = ""
        if not is_same(context.fleet.policy.people, intent.names, by.names):
            asker = called(intent.person, by.bounds, by.names)
            stays = f"{asker} asked for it; deny it instead (`{command_of(DenyRequest(), approval.id)}`)"
        elif intent.target != node.id:
            stays = f"it is one request for {intent.target}: `{command_of(WithdrawRequest(), approval.id)}`"
        ended = e.ApprovalEnded(approval.id, intent.target, "withdrawn", by.person, by.reason[:500])
        ends = () if stays else (ended,)
        yield StandingRequest(intent.verb, intent.person, intent.bounds.tenant, ends, stays, approval=approval.id)


def _windows(context: DecisionContext, node: Node, by: Asker) -> Iterator[StandingRequest]:
    """Maintenance windows of this node alone."""
    for window in context.fleet.windows.values():
        if window.scope == node.scope and window.ends > context.now:
            ends = (e.WindowEnded(window.id, by.person),)
            yield StandingRequest("schedule-maintenance", window.owner, ends=ends)


def _machine_work(_context: DecisionContext, node: Node, by: Asker) -> Iterator[StandingRequest]:
    work = node.machine_work
    if work is None or work.state not in ("asked", "begun"):
        return
    kind = work.act.kind
    begun = work.state == "begun" or (node.aside is not None and node.aside.kind == kind)
    stays = f"Ironic has begun it, and is not stopped by Hostler: `hostler node get {node.id}` shows its end"
    ends = (e.RequestWithdrawn(node.id, kind, by.person, by.reason),)
    yield StandingRequest(_MACHINE_WORK[kind], work.by, ends=() if begun else ends, stays=stays if begun else "")


def _renewals(_context: DecisionContext, node: Node, by: Asker) -> Iterator[StandingRequest]:
    """Passwords and certificates that a person has had renewed; what is due by the clock is nobody's request."""
    login, certificate = node.bmc_login, node.bmc_certificate
    if login is not None and login.asked_at is not None:
        yield from _renewal(node, ("renew-login", RENEW, ""), login.asked_by, by)
    if certificate is not None and certificate.asked_at is not None:
        yield from _renewal(node, ("renew-certificate", CERTIFY, ""), certificate.asked_by, by)
    for one in node.dpu_logins:
        if one.login.asked_at is not None:
            yield from _renewal(node, ("renew-login", RENEW_DPU, one.bmc), one.login.asked_by, by)


def _renewal(node: Node, asked: tuple[str, str, str], person: str, by: Asker) -> Iterator[StandingRequest]:
    what, kind, bmc = asked
    if person in ("", OWNER):
        return
    begun = node.aside is not None and node.aside.kind == kind
    ends = (e.RequestWithdrawn(node.id, kind, by.person, by.reason, bmc),)
    stays = "it is under way, and a BMC between two secrets is not left alone: it ends within minutes" if begun else ""
    yield StandingRequest(what, person, ends=() if begun else ends, stays=stays)


def _light(_context: DecisionContext, node: Node, by: Asker) -> Iterator[StandingRequest]:
    light = node.light
    if light is not None and light.wanted and light.by != OWNER:
        yield StandingRequest("locate", light.by, ends=(e.LightAsked(node.id, by.person, by.reason),))


def _retirement(_context: DecisionContext, node: Node, by: Asker) -> Iterator[StandingRequest]:
    """A plan that wipes logins before its node is retired; which person asked, its plan does not say."""
    plan = node.plan
    if plan is None or plan.name != RETIRE:
        return
    begun = plan.index > 0 or node.operation is not None
    stays = "passwords are being wiped, and what is wiped is not brought back" if begun else ""
    ends = (e.PlanEnded(node.id, plan.id, "cancelled", f"called off by {by.person}: {by.reason}"[:500]),)
    yield StandingRequest("retire", "", ends=() if begun else ends, stays=stays)


_FINDERS: tuple[Finder, ...] = (
    _approvals,
    _remedies,
    _dark,
    _cordons,
    _windows,
    _machine_work,
    _renewals,
    _light,
    _retirement,
)
"""Kinds of requests, in the order in which they are told."""
