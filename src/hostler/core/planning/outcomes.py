"""How steps and plans end: what an outcome means, where a failed plan leaves its node, what a finished one answers."""

from datetime import datetime, timedelta
from typing import assert_never

from msgspec.structs import replace

from hostler.core.conditions import unanswered_checks
from hostler.core.conditions.recurrence import count_act
from hostler.core.conditions.site_checks import asked_by, name_of
from hostler.core.planning import refusals
from hostler.core.planning.domain_plans import request_of
from hostler.core.planning.without_bmc import words_without
from hostler.core.policy import rma_cases
from hostler.core.policy.remedy_escalation import is_on_probation
from hostler.core.state import events as e
from hostler.core.state.cases import DUE_DAY, Ticket
from hostler.core.state.configuration import LAB_PHASE_FLOOR_S, scaled
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.events.operations import unmarked
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import (
    GONE,
    OWNER,
    Condition,
    Evidence,
    Hold,
    HoldKind,
    Node,
    Operation,
    Outcome,
    Part,
    Phase,
    Plan,
    Severity,
    Verdict,
)
from hostler.core.state.plan_rules import Answers, OnFailure, Releases
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.operations import OPERATIONS
from hostler.core.tables.phases import PHASES, edge
from hostler.core.tables.recipe_facts import rules_of
from hostler.core.tables.verdicts import ENDS, Conviction, StepEnd, verdict_of


def conclude(context: DecisionContext, node: Node, operation: Operation, outcome: Outcome) -> tuple[e.Event, ...]:
    """Events of a known outcome (done, failed, refused, open) of the outstanding operation.

    Only a check that says *failed* convicts; what needs an ability that the agent lacks leaves the step open.
    """
    end = _end_of(operation, outcome)
    result = _RESULTS[end] if operation.kind == "run_checks" else outcome.result
    finished = e.OperationFinished(node.id, operation.id, operation.kind, result, outcome.detail[:500], outcome.facts)
    plan = node.plan
    if plan is None or plan.id != operation.plan or operation.aside:
        return (finished,)
    match end:
        case StepEnd.passed:
            # an eviction, or a cordon laid again, only makes way for the step
            aside = plan.state == "running" and plan.steps[plan.index].operation != operation.kind
            moved = () if aside else (e.PlanAdvanced(node.id, plan.id, plan.index + 1),)
            allowed = refusals.granted(context, node, operation.kind)
            return (finished, *moved, *_counted(context, node, plan, operation), *allowed)
        case StepEnd.open:
            return (finished, *unsaid(context, node, operation, verdict_of(outcome), outcome.detail or outcome.result))
        case StepEnd.failed:
            return (finished, *_failed(context, node, plan, operation, outcome))
        case _:
            assert_never(end)


_RESULTS = {StepEnd.passed: "done", StepEnd.failed: "failed", StepEnd.open: "open"}
"""How a check's end is recorded as the result of its operation."""


def _end_of(operation: Operation, outcome: Outcome) -> StepEnd:
    """A check ends as its verdict says; what the agent has no means for is open; else done is passed."""
    if operation.kind == "run_checks":
        return ENDS[verdict_of(outcome)]
    if outcome.result == "done":
        return StepEnd.passed
    refused = OPERATIONS[operation.kind].answers and outcome.result == "refused"
    return StepEnd.open if refused else StepEnd.failed


def _failed(
    context: DecisionContext, node: Node, plan: Plan, operation: Operation, outcome: Outcome
) -> tuple[e.Event, ...]:
    """A check that failed is evidence, and so are drives that defy erasing; that anything else failed is none."""
    if (back := _begins_again(plan, operation, outcome)) is not None:
        return (e.PlanAdvanced(node.id, plan.id, back),)
    if operation.kind == "cordon" and _leads_out(plan) and context.live.has_left(node):
        return (e.PlanAdvanced(node.id, plan.id, plan.index + 1),)
    why = f"{getattr(operation.act, 'profile', operation.kind)}: {outcome.detail or outcome.result}"
    if outcome.result == "refused" and plan.state == "running" and not plan.steps[plan.index].optional:
        return _refused(context, node, operation, outcome)
    ground = Conviction(why) if operation.kind in ("run_checks", unanswered_checks.SANITISE) else None
    asked = unanswered_checks.defied(context, node, why) if operation.kind == unanswered_checks.SANITISE else ()
    return (*asked, *fail_step(context, node, plan, why, ground))


def _refused(context: DecisionContext, node: Node, operation: Operation, outcome: Outcome) -> tuple[e.Event, ...]:
    """Events of a refusal: what came before is taken back, unless the hardware was touched or a fault was seen."""
    assert node.plan is not None, "a step has a plan"
    plan, why = unmarked(node.plan, operation), f"{operation.kind}: {outcome.detail or outcome.result}"
    told = tuple(refusals.follows(context, node, plan, operation, outcome))
    lasts = bool(refusals.mend_of(context, node, operation, outcome))
    if refusals.is_tried_later(plan, lasts=lasts):
        return (*told, e.PlanEnded(node.id, plan.id, "cancelled", why))
    if plan.disruptive and not plan.touched and refusals.is_requested(node, plan):
        return (*told, e.PlanUndoing(node.id, plan.id, why, "failed"))
    return (*told, *fail_plan(context, node, plan, why))


def _begins_again(plan: Plan, operation: Operation, outcome: Outcome) -> int | None:
    """The step that is to bring about anew what is gone, None where nothing is."""
    wanted = OPERATIONS[operation.kind].begins_again
    if plan.state != "running" or not wanted or not outcome.facts.get(GONE):
        return None
    return next((i for i, step in enumerate(plan.steps[: plan.index]) if step.operation == wanted), None)


def unsaid(
    context: DecisionContext, node: Node, operation: Operation, verdict: Verdict, detail: str
) -> tuple[e.Event, ...]:
    """The operation was to be an answer and was none: its step stays open, and the node where it is."""
    profile = unanswered_checks.profile_of(operation.act)
    return unanswered_checks.left_open(context, node, unanswered_checks.Unsaid(profile, verdict, detail))


def _leads_out(plan: Plan) -> bool:
    """Whether the plan takes its node out of the cluster: where it is out already, there is nothing to cordon."""
    return plan.state == "running" and any(step.operation == "leave_cluster" for step in plan.steps)


def _counted(context: DecisionContext, node: Node, plan: Plan, operation: Operation) -> tuple[e.Event, ...]:
    """One more cure; what a person asked for is none that has failed to last."""
    cures = plan.remedy != "" and plan.rules.cures == operation.kind
    if not cures or plan.drill or plan.rule.startswith("operator.") or plan.state != "running":
        return ()
    return tuple(count_act(context.fleet, node, f"act:{plan.remedy}", plan.part, context.now))


def fail_step(
    context: DecisionContext, node: Node, plan: Plan, why: str, ground: Conviction | None = None
) -> tuple[e.Event, ...]:
    """An optional step (or a step of the undo tail) is passed over; any other ends the plan."""
    if plan.state == "undoing" or plan.steps[plan.index].optional:
        return (e.PlanAdvanced(node.id, plan.id, plan.index + 1),)
    return fail_plan(context, node, plan, why, ground)


def fail_plan(
    context: DecisionContext, node: Node, plan: Plan, why: str, ground: Conviction | None = None
) -> tuple[e.Event, ...]:
    """The plan has failed: its phase says where the node goes; a remedy leaves the next rung to the ladder.

    `ground` is the evidence, where a check has found any: without it no plan leads where only evidence may. Before
    anybody was disturbed the undo tail runs; afterwards the node stays out of service.
    """
    ended = e.PlanEnded(node.id, plan.id, "failed", why)
    if plan.to_phase == Phase.retired:
        return (ended, *_not_wiped(context, node, why))
    if after := _leads_to(plan, ground):
        return (ended, *change_phase(context, node, after, why, ground))
    if plan.rules.left_phase and has_left(plan):
        reason = f"a customer's data may still be on it: {why}"
        return (ended, *change_phase(context, node, Phase(plan.rules.left_phase), reason, ground))
    if plan.rules.on_failure is OnFailure.undoes or (plan.disruptive and not plan.disturbed):
        return (e.PlanUndoing(node.id, plan.id, why, "failed"),)
    if plan.rules.on_failure is OnFailure.raises:
        return (ended, e.ConditionRaised(_failed_remedy(node, plan, why, context.now)))
    return (ended,)


def _leads_to(plan: Plan, ground: Conviction | None) -> Phase | None:
    """Phase that the failed plan leads to, None where it is; a plan frozen by an older version names one phase."""
    name = plan.failed_phase if ground is None else plan.convicted_phase or plan.failed_phase
    if not name or (ground is None and PHASES[Phase(name)].convicted):
        return None
    return Phase(name)


def has_left(plan: Plan) -> bool:
    """Whether the running plan has taken its node out of the cluster, so that no customer's work can be on it."""
    return plan.state == "running" and any(s.operation == "leave_cluster" for s in plan.steps[: plan.index])


def undone(context: DecisionContext, node: Node, plan: Plan) -> tuple[e.Event, ...]:
    """The undo tail has run. A node that could not be delivered is a spare again."""
    ended = e.PlanEnded(node.id, plan.id, plan.result, plan.reason)
    if plan.rules.releases is not Releases.undone or node.assignment is None:
        return (ended,)
    return (ended, e.NodeReleased(node.id, context.now, plan.reason))


def _failed_remedy(node: Node, plan: Plan, why: str, now: datetime) -> Condition:
    return Condition(
        id=f"{node.id}/remedy.failed",
        type="remedy.failed",
        node=node.id,
        severity=Severity.critical,
        since=now,
        last_seen=now,
        clears="remedy",
        owner="hostler",
        evidence=(Evidence(now, "hostler", f"{plan.name} failed: {why}"),),
    )


def complete(context: DecisionContext, node: Node, plan: Plan) -> tuple[e.Event, ...]:
    """The plan is done: its causes are answered, and the node stands where the recipe says."""
    kept = (*_kept_away(context, node, plan), *_kept_dark(context, node, plan))
    found: list[e.Event] = [*kept, e.PlanEnded(node.id, plan.id, "done", "")]
    answered = _answered(context.fleet, node, plan)
    found.extend(e.ConditionCleared(node.id, c.id, "remedy", f"{plan.name} done") for c in answered)
    found.extend(
        e.TicketClosed(t.id, f"{plan.name} done", "hostler")
        for t in context.fleet.tickets_about(node.id)
        if (t.kind == "consent" and plan.disruptive) or (t.kind == "stuck" and t.action in (plan.remedy, plan.name))
    )
    if plan.rules.releases is Releases.done:
        found.append(e.NodeReleased(node.id, context.now, plan.rule or "released"))
    if plan.to_phase == Phase.retired:
        found.extend(gone(context.fleet, node, OWNER))
    if plan.to_phase:
        found.extend(_moved(context, node, plan, [c for c in node.conditions if c not in answered]))
    return tuple(found)


def _moved(context: DecisionContext, node: Node, plan: Plan, left: list[Condition]) -> tuple[e.Event, ...]:
    """Phase to which the finished plan leads; an examination that leaves evidence standing leads to the vendor."""
    after, shown = Phase(plan.to_phase), [c.type for c in node.conditions if c.id in plan.causes and is_evidence(c)]
    if plan.rules.found_phase:
        shown = [f"{c.type}: {c.evidence[-1].text if c.evidence else c.part}" for c in left if _is_for_vendor(c)]
        after = Phase(plan.rules.found_phase) if shown else after
    ground = Conviction("; ".join(shown)[:500]) if shown else None
    return change_phase(context, node, after, f"{plan.name} done", ground)


TENANT = "tenant"
"""Key of the tenant whose token asked, in the condition's evidence."""
HOURS = "hours"
"""How long the cordon of a drain stands that a person asked for, of a domain: in its request's evidence."""


def _kept_away(context: DecisionContext, node: Node, plan: Plan) -> tuple[e.Event, ...]:
    """A domain that a person had drained stays cordoned from the moment that all of it is drained."""
    keeps = plan.rules.keeps == HoldKind.cordon and plan.group.scope is not None
    request = request_of(node, plan.group) if keeps else None
    if request is None:
        return ()
    told = request.evidence[0]
    hours = told.facts.get(HOURS)
    until = context.now + timedelta(hours=hours) if isinstance(hours, float) else None
    identity = f"h{context.fleet.cell.seq}-cordon-{node.id}"[:100]
    tenant = str(told.facts.get(TENANT, ""))
    hold = Hold(identity, node.scope, HoldKind.cordon, request.owner, told.text, context.now, until, tenant=tenant)
    return (e.HoldPlaced(hold),)


def _kept_dark(context: DecisionContext, node: Node, plan: Plan) -> tuple[e.Event, ...]:
    """Keep a node off that a person has powered off, whatever its phase would do, until work begins or they let go."""
    requested = _requested_dark(node) if plan.rules.keeps == HoldKind.power else ()
    request = next((c for c in requested if c.id in plan.causes), None)
    if request is None or any(h.kind is HoldKind.power for h in context.fleet.holds_of(node.id)):
        return ()
    told = request.evidence[0]
    identity = f"h{context.fleet.cell.seq}-power-{node.id}"[:100]
    tenant = str(told.facts.get(TENANT, ""))
    return (
        e.HoldPlaced(Hold(identity, node.scope, HoldKind.power, request.owner, told.text, context.now, tenant=tenant)),
    )


_RETURNED = frozenset(kind.type for kind in CONDITIONS.values() if kind.returned)


def _has_left(fleet: Fleet, condition: Condition) -> bool:
    """Whether the part is in the node no more."""
    part = fleet.parts.get(condition.part)
    return part is not None and part.node != condition.node


def is_evidence(condition: Condition) -> bool:
    """Whether somebody has seen a fault of this machine, and it is known: neither a request, nor silence, nor a doubt.

    What a site's own check says is none: it leads to triage, where the suspect profile decides.
    """
    row = CONDITIONS.get(condition.type)
    if row is None or condition.drill or condition.remedy or condition.unknown_since is not None or name_of(condition):
        return False
    return row.source == "observer" and condition.severity >= Severity.degraded and not row.silence


def _is_for_vendor(condition: Condition) -> bool:
    """Whether a node whose examination has passed shows it still, or it is a reason to return the part by itself."""
    if condition.type in _RETURNED:
        return condition.unknown_since is None
    if condition.type.startswith("inventory."):
        return False  # a step of its own has looked at that, or a person has vouched for it
    return condition.clears == "observation" and condition.severity >= Severity.critical and is_evidence(condition)


def _answered(fleet: Fleet, node: Node, plan: Plan) -> list[Condition]:
    """Conditions that the plan answers: its causes; for a node that passed examination, all that a remedy clears.

    What leaves the cluster takes its conditions along: triage still has to find their cause. A node that proved
    itself on its return has answered what a remedy was to clear before its present boot.
    """
    answers = plan.rules.answers
    if answers is Answers.nothing:
        return []
    remediable = [c for c in node.conditions if c.clears == "remedy"]
    if answers is Answers.examined:
        remediable = [c for c in remediable if c.type not in _RETURNED or _has_left(fleet, c)]
        return [*remediable, *(c for c in node.conditions if c.clears == "age" and c.boot_id not in ("", node.boot_id))]
    if answers is Answers.earlier_boots:
        return [c for c in remediable if c.type == "remedy.failed" or c.boot_id not in ("", node.boot_id)]
    asked = asked_by(plan)
    remediable += [c for c in node.conditions if name_of(c) in asked]
    ended = ("", plan.boot_id, plan.left_boot)
    return [c for c in remediable if c.id in plan.causes and (not plan.boot_id or c.boot_id in ended)]


def change_phase(
    context: DecisionContext, node: Node, after: Phase, why: str, ground: Conviction | None = None
) -> tuple[e.Event, ...]:
    """The move along an edge of the graph, with what follows from it: limit, release, ticket."""
    assert edge(node.phase, after), f"no edge from {node.phase} to {after}"
    assert ground is not None or not PHASES[after].convicted, f"nothing convicts {node.id}: it does not go to {after}"
    limit_s, policy = PHASES[after].limit_s, context.fleet.policy_of(node)
    deadline = context.now + timedelta(seconds=scaled(policy, limit_s, LAB_PHASE_FLOOR_S)) if limit_s else None
    found: list[e.Event] = []
    if node.phase is Phase.production and node.assignment is not None:
        found.append(e.NodeReleased(node.id, context.now, why))
    probation = _probation(context, node, after)
    person, convicted = (ground.person, "" if ground.person else ground.text) if ground else ("", "")
    moved = e.PhaseChanged(node.id, node.phase, after, why, deadline, person, probation)
    found.append(replace(moved, convicted=convicted))
    if after is Phase.production:
        refused = "it is in service now: return it for maintenance first"
        found.extend(e.ConditionCleared(node.id, c.id, "hostler", refused) for c in _requested_dark(node))
    if after is Phase.rma:
        found.extend(_to_vendor(context, node, why))
    if after is Phase.zap_fail:
        found.append(e.TicketOpened(_zap_ticket(context, node, why)))
    if node.phase is Phase.production and convicted and is_on_probation(node, context.now):
        found.append(e.TicketOpened(_repeat_ticket(context, node, why)))
    if node.phase is Phase.triage:
        taken = (c for c in node.conditions if c.type == MAINTENANCE)
        found.extend(e.ConditionCleared(node.id, c.id, person or OWNER, why[:500]) for c in taken)
        about = context.fleet.tickets_about(node.id)
        found.extend(e.TicketClosed(t.id, why[:500], person or "hostler") for t in about if t.kind == REPEAT)
    if node.phase is Phase.zap_fail:
        about = context.fleet.tickets_about(node.id)
        found.extend(e.TicketClosed(t.id, why[:500], person or "hostler") for t in about if t.kind == ZAP)
    return tuple(found)


def gone(fleet: Fleet, node: Node, person: str) -> tuple[e.Event, ...]:
    """Ends of a retired node's tickets and holds."""
    closed = [e.TicketClosed(t.id, "retired", person) for t in fleet.tickets_about(node.id)]
    lifted = [e.HoldReleased(h.id, h.scope, person, "retired") for h in fleet.holds_of(node.id)]
    return (*closed, *lifted)


def _requested_dark(node: Node) -> tuple[Condition, ...]:
    """Requests to have the node simply powered off, which only a node outside production is."""
    return tuple(c for c in node.conditions if rules_of(c.remedy).keeps == HoldKind.power)


def _probation(context: DecisionContext, node: Node, after: Phase) -> datetime | None:
    """Until when a node that was repaired and requalified is watched more strictly."""
    policy = context.fleet.policy_of(node)
    if after is not Phase.production or not node.visits or not policy.probation_s:
        return None
    return context.now + timedelta(seconds=scaled(policy, policy.probation_s))


MAINTENANCE = "operator.maintenance"
"""The condition of a node that a person took out of service: who sends it on from triage has seen to that."""
REPEAT = "repeat"
"""The kind of ticket that proposes to return the whole of a node whose repair did not last."""
ZAP = "zap"
"""The kind of ticket that asks a person about firmware or BIOS settings that failed."""
_OF_BIOS = ("write_bios_settings", "verify_bios_settings")


def _repeat_ticket(context: DecisionContext, node: Node, why: str) -> Ticket:
    return Ticket(
        id=f"{node.id}-t{context.fleet.cell.seq}-repeat",
        node=node.id,
        kind=REPEAT,
        summary=f"{node.id} failed again on probation, so the repair did not last: return the whole node"[:500],
        opened=context.now,
        hardware=node.binding("serial"),
        component="node",
        fault=why[:500],
        action=f"hostler node rma-send {node.id} --reason …; or close this ticket: it is examined as any other, as it "
        "is after a day",
        owner="operator",
        due=DUE_DAY,
    )


UNWIPED = "retire"
"""The kind of ticket that asks a person about a BMC whose password could not be wiped."""


def _not_wiped(context: DecisionContext, node: Node, why: str) -> tuple[e.TicketOpened, ...]:
    """The ticket of a node that stays, one at a time."""
    if any(t.kind == UNWIPED for t in context.fleet.tickets_about(node.id)):
        return ()
    again = f"hostler node retire {node.id} --reason …"
    ticket = Ticket(
        id=f"{node.id}-t{context.fleet.cell.seq}-retire",
        node=node.id,
        kind=UNWIPED,
        summary=f"{node.id} is not retired: the password of its BMC, or of a DPU's, was not wiped: {why}"[:500],
        opened=context.now,
        hardware=node.binding("serial"),
        component="bmc",
        fault=why[:500],
        action=f"reach that BMC, then {again}; or, where that is dead, {again} --credentials-left WHY",
        owner="operator",
        due=DUE_DAY,
    )
    return (e.TicketOpened(ticket),)


def _zap_ticket(context: DecisionContext, node: Node, why: str) -> Ticket:
    again = f"hostler node zap-again {node.id} --reason …"
    what, mended = "firmware", f"`hostler node firmware {node.id}` shows what differs; put it right"
    if why.startswith(_OF_BIOS):
        what, mended = "BIOS settings", "set it in the BIOS setup, or take it out of the SKU's hardware.bios,"
    return Ticket(
        id=f"{node.id}-t{context.fleet.cell.seq}",
        node=node.id,
        kind=ZAP,
        summary=f"{what} of {node.id} failed: {why}"[:500],
        opened=context.now,
        hardware=node.binding("serial"),
        component=what,
        fault=why[:500],
        action=f"{mended} and {again}, or, where the machine is faulty, hostler node triage {node.id} --reason …"
        + words_without(context, node),
        owner="operator",
        due=DUE_DAY,
    )


def _to_vendor(context: DecisionContext, node: Node, why: str) -> tuple[e.Event, ...]:
    """The ticket that asks for hands, and the case that is followed until the vendor has settled it."""
    worst = max(node.conditions, key=lambda c: (c.severity, c.id), default=None)
    whole = any(t.kind == REPEAT for t in context.fleet.tickets_about(node.id))
    part = context.fleet.parts.get(worst.part) if worst and not whole else None
    ticket = _rma_ticket(context, node, worst, part, why)
    return (e.TicketOpened(ticket), *rma_cases.opened(context, node, part, ticket.fault, ticket.id))


def _rma_ticket(context: DecisionContext, node: Node, worst: Condition | None, part: Part | None, why: str) -> Ticket:
    return Ticket(
        id=f"{node.id}-t{context.fleet.cell.seq}",
        node=node.id,
        kind="rma",
        summary=f"return {node.id} to the vendor: {why}",
        opened=context.now,
        hardware=part.serial if part else node.binding("serial"),
        component=part.kind if part else "node",
        fault=worst.type if worst else why,
        action="return for repair or replacement",
        handover=node.handover,
        owner="technician",
        due=DUE_DAY,
    )
