"""How a frozen plan moves: one operation at a time, ended early only at a step boundary, through its undo tail."""

from datetime import datetime, timedelta

from hostler.core.conditions import unanswered_checks
from hostler.core.conditions.site_checks import has_passed_since
from hostler.core.planning import boot_media, cabling, cords, domain_plans, gate_requirements, hardware_step
from hostler.core.planning.boot_waits import wait_agent, wait_bmc, wait_boot
from hostler.core.planning.drain import drain, empty, undrained
from hostler.core.planning.in_service import cordon_as_asked
from hostler.core.planning.inventory_step import verify_inventory
from hostler.core.planning.outcomes import complete, fail_plan, fail_step, undone, unsaid
from hostler.core.planning.plan_abort import abort_at_boundary, bring_up_fails, limit_at
from hostler.core.planning.remediation import protect
from hostler.core.planning.step_operation import start
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import GUARDS, blockers
from hostler.core.policy.holds_and_pauses import scopes
from hostler.core.policy.incidents import holding
from hostler.core.policy.presuppositions import sendable
from hostler.core.policy.remedy_escalation import Need
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait, asked_again, soonest
from hostler.core.state.health import is_unheard
from hostler.core.state.model import LIFTED, ActClass, Blocker, HoldKind, Node, Operation, Plan, Step, Verdict
from hostler.core.state.operations import UNPLUG, plain
from hostler.core.state.requalification import has_proven_itself
from hostler.core.state.verbs.proposals import Approve, Reject
from hostler.core.state.ways_out import by_act, observed
from hostler.core.tables.operations import OPERATIONS, OperationKind


def advance(context: DecisionContext, node: Node, plan: Plan, need: Need | None) -> Answer:
    """The plan's next event, or what its current step waits for."""
    protection = _protection(context, node, plan, need)
    if isinstance(protection, Act):
        return Act(_drop(node, plan, context.now))
    answer = _go_on(context, node, plan, need)
    return answer if protection is None else asked_again(context.now, answer, protection.until)


def _go_on(context: DecisionContext, node: Node, plan: Plan, need: Need | None) -> Answer:
    if plan.state == "proposed":
        return _proposed(context, node, plan, need)
    if node.operation is not None:
        return _outstanding(context, node, plan, node.operation)
    if plan.state == "undoing":
        return _undo(context, node, plan)
    early = abort_at_boundary(context, node, plan, need)
    if isinstance(early, Act):
        return early
    return asked_again(context.now, _forward(context, node, plan), early)


def _forward(context: DecisionContext, node: Node, plan: Plan) -> Answer:
    if late := domain_plans.behind(context.fleet, node, plan):
        return Wait(plan.name, late, until=None)
    if plan.index >= len(plan.steps):
        return Act(complete(context, node, plan))
    return sendable(context, plan.name, _step(context, node, plan))


def _protection(context: DecisionContext, node: Node, plan: Plan, need: Need | None) -> Answer | None:
    """Protection waits for nobody's plan; a node that is held dark already may go on with its own."""
    if need is None or need.act_class is not ActClass.protective or plan.act_class is need.act_class:
        return None
    return protect(context, node, need)


def _drop(node: Node, plan: Plan, now: datetime) -> tuple[e.Event, ...]:
    ended = e.PlanEnded(node.id, plan.id, "superseded", "protective power-off")
    operation = node.operation
    if operation is None:
        return (ended,)
    return (_give_up(node, operation, OPERATIONS[operation.kind], "revoked", now), ended)


def _proposed(context: DecisionContext, node: Node, plan: Plan, need: Need | None) -> Answer:
    if not domain_plans.stands(context.fleet, node, plan) or (need is not None and need.remedy != plan.remedy):
        return Act((e.PlanEnded(node.id, plan.id, "cancelled", "it is no longer needed"),))
    if held := holding(context.fleet, node, plan.causes):
        return Act((e.PlanEnded(node.id, plan.id, "cancelled", held[0].text),))
    text = f"{plan.name} is proposed and needs approval"
    ways = (by_act(Approve(), node.id, "a person approves it"), by_act(Reject(), node.id, "a person rejects it"))
    waits = Wait(plan.name, (Blocker("approval", plan.id, text, ways),), until=None)
    if isinstance(answer := cordon_as_asked(context, node, waits), Act):
        why = f"{node.id} is cordoned or opened for a person first; what is still needed then is proposed again"
        acts = ((node, plan), *domain_plans.mates(context.fleet, node))
        return Act(tuple(e.PlanEnded(one.id, p.id, "cancelled", why) for one, p in acts if p.state == "proposed"))
    return answer


def _outstanding(context: DecisionContext, node: Node, plan: Plan, operation: Operation) -> Answer:
    row = OPERATIONS[operation.kind]
    first = context.live.unobserved.get(operation.id)
    if first is not None and context.now < first:
        text = f"{operation.kind} was under way while no controller was active; its result is being checked"
        return Wait(
            plan.name,
            (Blocker("operation", operation.id, text, observed("its outcome is known", "hostler")),),
            until=first,
        )
    if row.interruptible and (why := bring_up_fails(context, node, plan)):
        return Act((_give_up(node, operation, row, "revoked", context.now), *fail_plan(context, node, plan, why)))
    if operation.deadline <= context.now:
        gone = _give_up(node, operation, row, "timed_out", context.now)
        if row.answers:
            said = unsaid(context, node, operation, Verdict.inconclusive, "nobody answered in its time")
            return Act((gone, *said))
        return Act((gone, *fail_step(context, node, plan, f"{operation.kind} did not finish in time")))
    text = f"{operation.kind} was asked for at {operation.started:%H:%M:%S} and has not been answered"
    asked = Blocker("operation", operation.id, text, observed("its outcome is known", "hostler"))
    waits_for = cords.blocker(operation) if operation.kind == UNPLUG else asked
    limit = limit_at(node, plan) if row.interruptible else None
    until = soonest(context.now, operation.deadline, limit)
    return Wait(plan.name, (waits_for,), until=until)


def _give_up(node: Node, operation: Operation, row: OperationKind, result: str, now: datetime) -> e.Event:
    until = now + timedelta(seconds=row.settle_s) if row.settle_s else None
    return e.OperationFinished(node.id, operation.id, operation.kind, result, settle_until=until)


def _step(context: DecisionContext, node: Node, plan: Plan) -> Answer:
    step = plan.steps[plan.index]
    row = OPERATIONS[step.operation]
    if (moot := _passed_over(context, node, plan)) is not None:
        return Act((*moot, e.PlanAdvanced(node.id, plan.id, plan.index + 1)))
    if "drained" in row.needs and plan.disruptive:
        if (again := _cordon_again(context, node, plan)) is not None:
            return again
        if undrained := empty(context, node, plan):
            return undrained
    if stopped := _preconditions(context, node, plan, row):
        return Wait(plan.name, stopped, until=None)
    if row.answers and row.port != "present" and (unasked := unanswered_checks.unasked(context, node, plan)):
        return unasked
    if row.port == "present":
        return _PRESENT[step.operation](context, node, plan)
    # A plan of an older version has a gate that names nothing to see.
    laid = gate_requirements.seeing(context.fleet, node, plan).steps[plan.index]
    due = boot_media.due(context, node, plan, row.kind)
    return Act((*due, e.OperationStarted(start(context, node, plan, laid))))


def _passed_over(context: DecisionContext, node: Node, plan: Plan) -> tuple[e.Event, ...] | None:
    """Events where the step is not taken, None where it is.

    It was meant for another boot or an agent that is not heard, it would open a node that is to stay shut, or a site's
    check has passed by itself.
    """
    operation, profile = plan.steps[plan.index].operation, unanswered_checks.profile_at(plan)
    if _has_nobody(context, node, operation):
        return ()
    if "boot" in OPERATIONS[operation].needs and plan.boot_id and node.boot_id != plan.boot_id:
        return ()
    if operation == "uncordon" and (_cordoned_by_person(context, node) or _stays_cordoned(node, plan)):
        return ()
    if has_passed_since(node, plan, profile):
        return tuple(unanswered_checks.answered(context.fleet, node, profile, "observation", f"{profile} passed"))
    return None


def _has_nobody(context: DecisionContext, node: Node, operation: str) -> bool:
    """Whether the step is for an agent that is not heard: the cluster shows later what became of its kubelet."""
    return "heard" in OPERATIONS[operation].needs and not context.live.of(node.id).heard


def _cordon_again(context: DecisionContext, node: Node, plan: Plan) -> Act | None:
    """The plan's own cordon once more, where a person had lifted it and has let us go on; None where none is needed.

    To an open node work comes while the last of it is being ended, and what disturbs would end that unasked.
    """
    laid = next((step for step in plan.steps[: plan.index] if step.operation == "cordon"), None)
    if laid is None or LIFTED not in node.cordons or plan.act_class is ActClass.protective:
        return None
    if any(hold.kind is HoldKind.override for hold in context.fleet.holds_on(scopes(context.fleet, node))):
        return None
    return Act((e.OperationStarted(start(context, node, plan, laid)),))


def _stays_cordoned(node: Node, plan: Plan) -> bool:
    """Unknown is not healthy: who fell silent before new work is let in keeps our cordon until it is heard."""
    return plan.act_class is not ActClass.easing and is_unheard(node)


def _cordoned_by_person(context: DecisionContext, node: Node) -> bool:
    """A person keeps new work away too: our cordon stays until theirs is lifted, or somebody overrides it."""
    kinds = {h.kind for h in context.fleet.holds_on(scopes(context.fleet, node))}
    return HoldKind.physical_work in kinds or (HoldKind.cordon in kinds and HoldKind.override not in kinds)


def _preconditions(context: DecisionContext, node: Node, plan: Plan, row: OperationKind) -> tuple[Blocker, ...]:
    """Blockers by others; what the act itself presupposes is asked of each answer (`policy.presuppositions`)."""
    found: list[Blocker] = []
    if "drained" in row.needs and not plan.disruptive:
        found.extend(undrained(context, node, plan))
    if plan.act_class is ActClass.bring_up and GUARDS["pause"][ActClass.bring_up]:
        request = DisruptionRequest(plan.name, plan.act_class, (node,), approved=True)
        found.extend(b for b in blockers(context, request) if b.kind in ("hold", "pause", "brake"))
    return (*found, *boot_media.ejecting(node, row.kind))


_PRESENT = {
    "verify_inventory": verify_inventory,
    "verify_cabling": cabling.verify,
    "verify_hardware": hardware_step.verify_hardware,
    "drain": drain,
    "wait_boot": wait_boot,
    "wait_agent": wait_agent,
    "wait_bmc": wait_bmc,
}


def undo_tail(plan: Plan) -> tuple[Step, ...]:
    """The easings that take back what was reached, last first."""
    return tuple(Step(plain(name), 60.0) for name in reversed(plan.undo[: plan.reached + 1]) if name)


def _undo(context: DecisionContext, node: Node, plan: Plan) -> Answer:
    tail = undo_tail(plan)
    if plan.index >= len(tail):
        return Act(undone(context, node, plan))
    if together := domain_plans.going_on(context.fleet, node):
        return Wait(plan.name, together, until=None)
    step = tail[plan.index]
    kept = step.operation == "uncordon" and (_cordoned_by_person(context, node) or not has_proven_itself(node))
    if kept or _has_nobody(context, node, step.operation):
        return Act((e.PlanAdvanced(node.id, plan.id, plan.index + 1),))
    opened = any(s.operation == "uncordon" for s in plan.steps[: plan.reached + 1])
    if opened and "drained" in OPERATIONS[step.operation].needs and (stopped := undrained(context, node, plan)):
        return Wait(plan.name, tuple(stopped), until=None)
    return Act((e.OperationStarted(start(context, node, plan, step)),))
