"""How a frozen plan moves: one operation at a time, ended early only at a step boundary, through its undo tail."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from hostler.core.conditions import unanswered_checks
from hostler.core.conditions.machine_identity import is_listed_from_an_earlier_boot
from hostler.core.conditions.site_checks import has_passed_since
from hostler.core.conditions.sku_doubt import doubt_of_sku
from hostler.core.conditions.sku_match import gaps
from hostler.core.conditions.unanswered_checks import INVENTORY
from hostler.core.planning import domain_plans, gate_requirements
from hostler.core.planning.outcomes import complete, fail_plan, fail_step, has_left, undone, unsaid
from hostler.core.planning.remediation import may_begin, needed, protect, remedy
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.disturb import Consent, Disturbance, Lost, lost_to, may_disturb
from hostler.core.policy.guards import GUARDS, blockers
from hostler.core.policy.holds_and_pauses import held, scopes
from hostler.core.policy.incidents import holding
from hostler.core.policy.response import Need, rank, rule_for
from hostler.core.policy.second_witness import has_second_witness
from hostler.core.state import events as e
from hostler.core.state.configuration import Pool, scaled
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait
from hostler.core.state.health import is_unheard
from hostler.core.state.model import (
    LIFTED,
    ActClass,
    Blocker,
    CheckResult,
    Condition,
    HoldKind,
    Node,
    Operation,
    Phase,
    Plan,
    Severity,
    Step,
    Ticket,
    Verdict,
    WorkClass,
    Workload,
)
from hostler.core.state.plan_rules import Releases
from hostler.core.state.requalification import has_proven_itself
from hostler.core.tables.operations import OPERATIONS, OperationKind
from hostler.core.tables.recipe_facts import rules_of
from hostler.core.tables.verdicts import Conviction

CHECK_ENDS_S = 60.0
"""So long an idle check that was called off may hold up what called it off: a machine that hangs never ends it."""

ASKED_AGAIN = timedelta(days=1)
"""Who has consented to the end of work that does not end is not asked again before."""

DEAD_S = 60.0
"""So long the work of a node that is lost with all of it has for being told to end and shown as ended."""


def advance(scene: DecisionContext, node: Node, plan: Plan, need: Need | None) -> Answer:
    """The plan's next event, or what its current step waits for."""
    if _must_protect(scene, node, plan, need):
        return Act(_drop(node, plan, scene.now))
    if plan.state == "proposed":
        return _proposed(scene, node, plan, need)
    if node.operation is not None:
        return _outstanding(scene, node, plan, node.operation)
    if plan.state == "undoing":
        return _undo(scene, node, plan)
    early = _ends_early(scene, node, plan, need)
    if early is not None:
        return Act(early)
    if late := domain_plans.behind(scene.fleet, node, plan):
        return Wait(plan.name, late)
    if plan.index >= len(plan.steps):
        return Act(complete(scene, node, plan))
    return _step(scene, node, plan)


def _must_protect(scene: DecisionContext, node: Node, plan: Plan, need: Need | None) -> bool:
    """Protection waits for nobody's plan; a node that is held dark already may go on with its own."""
    if need is None or need.act_class is not ActClass.protective or plan.act_class is need.act_class:
        return False
    return isinstance(protect(scene, node, need), Act)


def _drop(node: Node, plan: Plan, now: datetime) -> tuple[e.Event, ...]:
    ended = e.PlanEnded(node.id, plan.id, "superseded", "protective power-off")
    operation = node.operation
    if operation is None:
        return (ended,)
    return (_give_up(node, operation, OPERATIONS[operation.kind], "revoked", now), ended)


def _proposed(scene: DecisionContext, node: Node, plan: Plan, need: Need | None) -> Answer:
    if not domain_plans.stands(scene.fleet, node, plan) or (need is not None and need.remedy != plan.remedy):
        return Act((e.PlanEnded(node.id, plan.id, "cancelled", "it is no longer needed"),))
    if held := holding(scene.fleet, node, plan.causes):
        return Act((e.PlanEnded(node.id, plan.id, "cancelled", held[0].text),))
    text = f"{plan.name} is proposed and waits for a yes (hostler plan approve {node.id})"
    return Wait(plan.name, (Blocker("approval", plan.id, text, "a person approves or rejects it"),))


def step_deadline(plan: Plan) -> datetime:
    """When the current step is given up."""
    assert plan.step_since is not None, "a running plan knows since when it stands at its step"
    return plan.step_since + timedelta(seconds=plan.steps[plan.index].deadline_s)


def _outstanding(scene: DecisionContext, node: Node, plan: Plan, operation: Operation) -> Answer:
    row = OPERATIONS[operation.kind]
    first = scene.present.unobserved.get(operation.id)
    if first is not None and scene.now < first:
        text = f"{operation.kind} was under way when nobody attended: what came of it is observed first"
        return Wait(plan.name, (Blocker("operation", operation.id, text, "its outcome is known"),), until=first)
    if row.interruptible and (why := _bring_up_fails(scene, node, plan)):
        return Act((_give_up(node, operation, row, "revoked", scene.now), *fail_plan(scene, node, plan, why)))
    if operation.deadline <= scene.now:
        gone = _give_up(node, operation, row, "timed_out", scene.now)
        if row.answers:
            said = unsaid(scene, node, operation, Verdict.inconclusive, "nobody answered in its time")
            return Act((gone, *said))
        return Act((gone, *fail_step(scene, node, plan, f"{operation.kind} did not finish in time")))
    text = f"{operation.kind} was asked for at {operation.started:%H:%M:%S} and has not been answered"
    return Wait(
        plan.name, (Blocker("operation", operation.id, text, "its outcome is known"),), until=operation.deadline
    )


def _give_up(node: Node, operation: Operation, row: OperationKind, result: str, now: datetime) -> e.Event:
    until = now + timedelta(seconds=row.settle_s) if row.settle_s else None
    return e.OperationFinished(node.id, operation.id, operation.kind, result, settle_until=until)


def _bring_up_fails(scene: DecisionContext, node: Node, plan: Plan) -> str:
    """Why a phase's own work has failed already: over the limit, or a grave condition appeared; "" if it has not."""
    if not plan.failed_phase:
        return ""
    if _is_over_limit(scene, node, plan):
        return f"over the limit of {node.phase}"
    if node.phase not in (Phase.seatrial, Phase.zap, Phase.test):
        return ""
    checking = plan.index < len(plan.steps) and plan.steps[plan.index].operation == "run_checks"
    grave = [
        c
        for c in node.conditions
        if c.severity >= Severity.critical
        and rule_for(scene.fleet.policy_of(node), c).remedy
        and (checking or c.type not in _AWAY)
        and not c.type.startswith("inventory.")  # a step of its own looks at that
    ]
    return f"{grave[0].type}: {grave[0].evidence[-1].text if grave[0].evidence else ''}" if grave else ""


def _is_over_limit(scene: DecisionContext, node: Node, plan: Plan) -> bool:
    """Whether the phase has had its time.

    A step that waits for an answer has a deadline of its own, and what nobody answers is no failure; the steps behind
    it have their own times as well.
    """
    if node.deadline is None or node.deadline > scene.now or plan.index >= len(plan.steps):
        return False
    if unanswered_checks.profile_at(plan):
        return False
    asked = any(unanswered_checks.profile_of(step.operation, step.args) for step in plan.steps[: plan.index])
    left_s = sum(step.deadline_s for step in plan.steps[plan.index :]) if asked else 0.0
    return plan.step_since is None or plan.step_since + timedelta(seconds=left_s) <= scene.now


_AWAY = ("agent.lost", "power.off_unexpected")
"""What a phase that powers its node off and on shows by itself; its waits for the agent have limits of their own."""


def _ends_early(scene: DecisionContext, node: Node, plan: Plan, need: Need | None) -> tuple[e.Event, ...] | None:
    """The events that end the plan at this boundary, None where it goes on."""
    if why := _bring_up_fails(scene, node, plan) or _down_at_its_gate(scene, node, plan):
        return fail_plan(scene, node, plan, why)
    remedial = plan.disruptive or plan.act_class in (ActClass.pending, ActClass.immediate)
    if plan.act_class in (ActClass.protective, ActClass.easing) or not remedial:
        return _makes_way(node, plan, need)
    if given_way := _releases(scene, node, plan) or _to_a_graver(scene, node, plan, need):
        return given_way
    if why := domain_plans.turned_back(scene.fleet, node) or _overridden(scene, node, plan):
        return (e.PlanUndoing(node.id, plan.id, why),)
    if plan.disturbed or domain_plans.has_disturbed(scene.fleet, node):
        return None
    if plan.causes and not domain_plans.stands(scene.fleet, node, plan):
        return (e.PlanUndoing(node.id, plan.id, "its cause is gone"),)
    request = DisruptionRequest(plan.remedy or plan.name, plan.act_class, (node,), plan.causes, approved=True)
    stops = [b for b in blockers(scene, request) if b.kind in ("hold", "pause", "brake", "incident")]
    if stops:
        return (e.PlanUndoing(node.id, plan.id, stops[0].text),)
    return None


def _down_at_its_gate(scene: DecisionContext, node: Node, plan: Plan) -> str:
    """Why the plan has failed though nobody has answered its gate: the node is down again, and two paths say so.

    The check says nothing, and convicts nobody; that the node does not stay up is evidence of its own.
    """
    if unanswered_checks.profile_at(plan) != "gate" or plan.failed_phase or not unanswered_checks.is_open(node, plan):
        return ""
    lost = next((c for c in node.conditions if c.type == "agent.lost" and c.unknown_since is None), None)
    if lost is None or not has_second_witness(scene.present, node):
        return ""
    return f"it went down before its gate was answered: {lost.evidence[-1].text if lost.evidence else lost.type}"


def _to_a_graver(scene: DecisionContext, node: Node, plan: Plan, need: Need | None) -> tuple[e.Event, ...] | None:
    """The end of a plan that a graver need takes the place of.

    Where the graver plan would wait, this one goes on: its cordon would stand with nothing being done. A release of a
    node that has not proven itself goes on too: what the last remedy was for would only begin the next.
    """
    if need is None or need.act_class is ActClass.protective or not _is_graver(need, plan):
        return None
    if domain_plans.scope_of(plan.group) or not may_begin(scene, node, need):
        return None
    if plan.rules.releases is Releases.done and not need.wished and not has_proven_itself(node):
        return None
    return (e.PlanEnded(node.id, plan.id, "superseded", f"{need.remedy} is needed for {need.rule}"),)


def _releases(scene: DecisionContext, node: Node, plan: Plan) -> tuple[e.Event, ...] | None:
    """A gate that nobody can answer keeps a node from no release that a person asks for; it stays unproven.

    It is free of work already. What the remedy was for stands, and is answered once the tenant has let go.
    """
    asked = (c for c in node.conditions if rules_of(c.remedy).releases is Releases.done and not c.group)
    wish = next(asked, None)
    if wish is None or plan.rules.releases is Releases.done or plan.group or not unanswered_checks.is_open(node, plan):
        return None
    apart = replace(node, plan=None, conditions=(wish,))
    need = needed(scene, apart)
    begun = remedy(scene, apart, need) if need is not None else None
    if not isinstance(begun, Act) or not any(isinstance(event, e.PlanRecorded) for event in begun.events):
        return None
    return (e.PlanEnded(node.id, plan.id, "superseded", f"{wish.type} is asked for"), *begun.events)


def _makes_way(node: Node, plan: Plan, need: Need | None) -> tuple[e.Event, ...] | None:
    """A phase's own work that waits for an answer waits in no person's way."""
    if need is None or not need.wished or not unanswered_checks.is_open(node, plan):
        return None
    return (e.PlanEnded(node.id, plan.id, "superseded", f"{need.remedy} is asked for"),)


def _overridden(scene: DecisionContext, node: Node, plan: Plan) -> str:
    """Who lifted our cordon, "" where nobody did, while the hardware is as it was: a drain without a cordon never ends.

    It does not matter that some work was ended already; hardware that was acted upon has to prove itself first.
    """
    if has_left(plan) or plan.touched or any(theirs.touched for _, theirs in domain_plans.mates(scene.fleet, node)):
        return ""
    found = (h for h in scene.fleet.holds_on(scopes(scene, node)) if h.kind is HoldKind.override)
    return next((held(hold).text for hold in found), "")


def _is_graver(need: Need, plan: Plan) -> bool:
    """A higher rung, or the same at once instead of later; never between power off and on."""
    between_off_and_on = (
        plan.disturbed and plan.index < len(plan.steps) and plan.steps[plan.index].operation == "power_on"
    )
    sooner = need.act_class is ActClass.immediate and plan.act_class is ActClass.pending and not plan.disturbed
    graver = rank(need.remedy) > rank(plan.remedy) or (need.remedy == plan.remedy and sooner)
    return graver and not between_off_and_on


def _step(scene: DecisionContext, node: Node, plan: Plan) -> Answer:
    step = plan.steps[plan.index]
    row = OPERATIONS[step.operation]
    if (moot := _passed_over(scene, node, plan)) is not None:
        return Act((*moot, e.PlanAdvanced(node.id, plan.id, plan.index + 1)))
    if "drained" in row.needs and plan.disruptive:
        if (again := _cordon_again(scene, node, plan)) is not None:
            return again
        if undrained := _empty(scene, node, plan):
            return undrained
    if stopped := _preconditions(scene, node, plan, row):
        return Wait(plan.name, stopped)
    if row.answers and row.port != "present" and (unasked := unanswered_checks.unasked(scene, node, plan)):
        return unasked
    if row.port == "present":
        return _PRESENT[step.operation](scene, node, plan)
    # A plan of an older version has a gate that names nothing to see.
    laid = gate_requirements.seeing(scene.fleet, node, plan).steps[plan.index]
    return Act((e.OperationStarted(start(scene, node, plan, laid)),))


def _passed_over(scene: DecisionContext, node: Node, plan: Plan) -> tuple[e.Event, ...] | None:
    """Events where the step is not taken, None where it is.

    It was meant for another boot, it would open a node that is to stay shut, or a site's check has passed by itself.
    """
    operation, profile = plan.steps[plan.index].operation, unanswered_checks.profile_at(plan)
    if "boot" in OPERATIONS[operation].needs and plan.boot_id and node.boot_id != plan.boot_id:
        return ()
    if operation == "uncordon" and (_cordoned_by_person(scene, node) or _stays_cordoned(node, plan)):
        return ()
    if has_passed_since(node, plan, profile):
        return tuple(unanswered_checks.answered(scene.fleet, node, profile, "observation", f"{profile} passed"))
    return None


def _cordon_again(scene: DecisionContext, node: Node, plan: Plan) -> Act | None:
    """The plan's own cordon once more, where a person had lifted it and has let us go on; None where none is needed.

    To an open node work comes while the last of it is being ended, and what disturbs would end that unasked.
    """
    laid = next((step for step in plan.steps[: plan.index] if step.operation == "cordon"), None)
    if laid is None or LIFTED not in node.cordons or plan.act_class is ActClass.protective:
        return None
    if any(hold.kind is HoldKind.override for hold in scene.fleet.holds_on(scopes(scene, node))):
        return None
    return Act((e.OperationStarted(start(scene, node, plan, laid)),))


def _stays_cordoned(node: Node, plan: Plan) -> bool:
    """Unknown is not healthy: who fell silent before new work is let in keeps our cordon until it is heard."""
    return plan.act_class is not ActClass.easing and is_unheard(node)


def _cordoned_by_person(scene: DecisionContext, node: Node) -> bool:
    """A person keeps new work away too: our cordon stays until theirs is lifted, or somebody overrides it."""
    kinds = {h.kind for h in scene.fleet.holds_on(scopes(scene, node))}
    return HoldKind.physical_work in kinds or (HoldKind.cordon in kinds and HoldKind.override not in kinds)


def start(scene: DecisionContext, node: Node, plan: Plan, step: Step) -> Operation:
    """The operation of a step, meant for the boot the node is in now."""
    row = OPERATIONS[step.operation]
    return Operation(
        id=f"{node.id}-o{scene.fleet.cell.seq}",
        kind=step.operation,
        node=node.id,
        plan=plan.id,
        step=plan.index,
        started=scene.now,
        deadline=scene.now + timedelta(seconds=step.deadline_s),
        args=step.args,
        boot_id=node.boot_id if row.port == "agent" else plan.boot_id,
        disturbs=row.disrupts,
        touches=row.touches,
        restarts=row.restarts,
    )


def _preconditions(scene: DecisionContext, node: Node, plan: Plan, row: OperationKind) -> tuple[Blocker, ...]:
    found: list[Blocker] = []
    if "drained" in row.needs and not plan.disruptive:
        found.extend(_undrained(scene, node, plan))
    if "power" in row.needs or ("power_off" in row.needs and plan.act_class is not ActClass.protective):
        found.extend(_dark(scene, node, "power" in row.needs))
    if plan.act_class is ActClass.bring_up and GUARDS["pause"][ActClass.bring_up]:
        request = DisruptionRequest(plan.name, plan.act_class, (node,), approved=True)
        found.extend(b for b in blockers(scene, request) if b.kind in ("hold", "pause", "brake"))
    if row.port == "bmc":
        found.extend(
            Blocker("operation", o.id, f"{o.kind} may still land", "its settle time is over")
            for o in node.settling
            if OPERATIONS[o.kind].port == "bmc" and plan.act_class is not ActClass.protective
        )
    return tuple(found)


def _undrained(scene: DecisionContext, node: Node, plan: Plan) -> list[Blocker]:
    consents = _consents(scene, node, plan)
    if isinstance(consents, Blocker):
        return [consents]
    return [
        c.blocker or Blocker("workload", c.workload.id, f"{c.workload.id} still runs here", "it ends") for c in consents
    ]


def _consents(scene: DecisionContext, node: Node, plan: Plan) -> tuple[Consent, ...] | Blocker:
    """The answers of the customers' work on the node; a Blocker where that work is unknown."""
    if has_left(plan):
        return ()
    pool = scene.fleet.pool_of(node)
    overdue = pool is not None and _agreed_at(scene, node, plan, pool) <= scene.now
    waited_s = (scene.now - _asks_since(plan)).total_seconds() * scene.fleet.policy_of(node).time_scale
    lost = _lost_already(scene, node, plan)
    asked = Disturbance(plan.act_class, lost, overdue, plan.remedy or plan.name, plan.parts, waited_s)
    said = may_disturb(node, scene.present, asked, pool)
    if isinstance(said, Blocker):
        return said
    return tuple(c for c in said if c.workload.work_class is not WorkClass.infrastructure)


def _lost_already(scene: DecisionContext, node: Node, plan: Plan) -> tuple[Lost, ...]:
    """What the plan's causes have ended; the whole node's work where the rule that decided says so, or it is down."""
    policy = scene.fleet.policy_of(node)
    said = [(rule_for(policy, c), c) for c in node.conditions]
    gone = (Lost("", scene.now),) if is_listed_from_an_earlier_boot(scene.present.of(node.id), node) else ()
    return gone + tuple(
        lost
        for rule, condition in said
        if (condition.id in plan.causes and (rule.dooms != "node" or condition.type == plan.rule))
        or (rule.dooms == "node" and rule.confirm and _is_down(scene, node, condition))
        for lost in lost_to(condition, rule.dooms)
    )


def _is_down(scene: DecisionContext, node: Node, condition: Condition) -> bool:
    """Whether two paths say that the node is lost: then all its work is, whatever its plan was laid for."""
    sure = condition.unknown_since is None and has_second_witness(scene.present, node)
    return sure and not scene.present.of(node.id).heard


def _agreed_at(scene: DecisionContext, node: Node, plan: Plan, pool: Pool) -> datetime:
    """When a pool's recorded agreement lets its work be ended; time that nobody attended to does not count."""
    return _asks_since(plan) + timedelta(seconds=scaled(scene.fleet.policy_of(node), pool.drain_deadline_s))


def _asks_since(plan: Plan) -> datetime:
    drains = plan.index < len(plan.steps) and plan.steps[plan.index].operation == "drain"
    return plan.step_since if drains and plan.step_since else plan.recorded_at


def _next_agreement(scene: DecisionContext, node: Node, plan: Plan, pool: Pool | None) -> datetime | None:
    """When some work that is waited for may be ended, by its own agreement or its pool's, or is not waited for."""
    scale = scene.fleet.policy_of(node).time_scale
    own = (w.agreed_after_s for w in scene.present.workloads(node) or ())
    moments = [_asks_since(plan) + timedelta(seconds=s / scale) for s in own if s is not None]
    if pool is not None and pool.evict_after_deadline:
        moments.append(_agreed_at(scene, node, plan, pool))
    if (over := _nobody_ends_it_after(scene, node, plan)) is not None:
        moments.append(over)
    return min((at for at in moments if at > scene.now), default=None)


def _dark(scene: DecisionContext, node: Node, powers_on: bool) -> list[Blocker]:
    kinds = (HoldKind.physical_work, HoldKind.power) if powers_on else (HoldKind.physical_work,)
    return [held(h) for h in scene.fleet.holds_on(scopes(scene, node)) if h.kind in kinds]


def _drain(scene: DecisionContext, node: Node, plan: Plan) -> Answer:
    return _empty(scene, node, plan) or Act((e.PlanAdvanced(node.id, plan.id, plan.index + 1),))


def _empty(scene: DecisionContext, node: Node, plan: Plan) -> Answer | None:
    """End the work that may be ended, wait for the rest; None where no work is left."""
    if plan.act_class is ActClass.protective:
        return None
    if (check := _ending_check(scene, node, plan)) is not None:
        return check
    consents = _consents(scene, node, plan)
    if isinstance(consents, Blocker):
        return _overdue(scene, node, plan, (consents,))
    allowed = [c.workload.id for c in consents if c.allowed and not c.workload.held_by]
    if allowed:
        left = (step_deadline(plan) - scene.now).total_seconds()
        step = Step("evict", max(60.0, min(left, 600.0)), {"workloads": ",".join(allowed[:64])})
        return Act((e.OperationStarted(start(scene, node, plan, step)),))
    stopped = tuple(c.blocker or _held_work(c.workload) for c in consents)
    if not stopped or _is_past_ending(scene, node, plan):
        return None
    if (agreed := _all_agreed_at(node, plan, consents)) is not None and scene.now < agreed + ASKED_AGAIN:
        return Wait(plan.name, stopped, until=_sooner(_next_agreement(scene, node, plan, None), agreed + ASKED_AGAIN))
    return _overdue(scene, node, plan, stopped)


def _all_agreed_at(node: Node, plan: Plan, waiting: tuple[Consent, ...]) -> datetime | None:
    """When the last owner agreed to the end of all that is waited for; None where somebody has not been asked."""
    given = {c.workload: c.at for c in node.consented if c.remedy == (plan.remedy or plan.name)}
    moments = [given.get(one.workload.id) for one in waiting]
    known = [at for at in moments if at is not None]
    return max(known) if known and len(known) == len(moments) else None


def _sooner(one: datetime | None, other: datetime) -> datetime:
    return min(one or other, other)


def _is_past_ending(scene: DecisionContext, node: Node, plan: Plan) -> bool:
    """Whether what the fault has ended may be left as its scheduler lists it: nobody there is left to take it away."""
    until = _nobody_ends_it_after(scene, node, plan)
    return until is not None and until <= scene.now


def _nobody_ends_it_after(scene: DecisionContext, node: Node, plan: Plan) -> datetime | None:
    """When work on a node that is lost with all of it is waited for no longer; None while somebody there is heard.

    A kubelet or slurmd that is dead never says that what it ran is gone, and no budget protects what has ended. Nor
    does one that has not come up with its node.
    """
    here = scene.present.of(node.id)
    if all(lost.part for lost in _lost_already(scene, node, plan)):
        return None
    silent = not here.heard and has_second_witness(scene.present, node)
    if not silent and not is_listed_from_an_earlier_boot(here, node):
        return None
    policy, asked = scene.fleet.policy_of(node), _asks_since(plan)
    told_s = max(scaled(policy, DEAD_S), policy.agent_silence_s)
    return max(asked, scene.present.started or asked) + timedelta(seconds=told_s)


def _ending_check(scene: DecisionContext, node: Node, plan: Plan) -> Wait | None:
    """Our own idle check was called off when the plan came: its end is waited for, though not for ever."""
    left = next((w for w in scene.present.workloads(node) or () if w.check), None)
    until = plan.recorded_at + timedelta(seconds=CHECK_ENDS_S)
    if left is None or until <= scene.now:
        return None
    text = f"the idle check {left.check} is being ended"
    return Wait(plan.name, (Blocker("operation", left.check, text, "the node is rid of it"),), until=until)


def _held_work(work: Workload) -> Blocker:
    text = f"{work.job or work.id} may be ended and is not yet: {work.held_by}"
    return Blocker("scheduler", work.id, text, "that allows it, or the work ends by itself")


def _overdue(scene: DecisionContext, node: Node, plan: Plan, stopped: tuple[Blocker, ...]) -> Answer:
    """Waiting for work to end; past the deadline it becomes a named person's decision, never an eviction.

    A plan that can still be taken back then is. What is broken already, or must not wait, stays cordoned.
    """
    pool = scene.fleet.pool_of(node)
    deadline = step_deadline(plan)
    if scene.now < deadline:
        return Wait(plan.name, stopped, until=min(_next_agreement(scene, node, plan, pool) or deadline, deadline))
    asked = next((t for t in scene.fleet.tickets_about(node.id) if t.kind == "consent"), None)
    stays = plan.disturbed or plan.act_class is ActClass.immediate or domain_plans.has_disturbed(scene.fleet, node)
    if stays and asked is not None:
        text = f"{asked.owner} is asked to consent (ticket {asked.id})"
        return Wait(plan.name, (*stopped, Blocker("person", asked.owner, text, "the work ends")))
    ticket = asked or _consent_ticket(scene, node, plan, stopped[0], pool)
    opened = () if asked is not None else (e.TicketOpened(ticket),)
    if stays:
        return Act(opened)
    why = f"the drain deadline has passed; {ticket.owner} is asked (ticket {ticket.id})"
    return Act((*opened, e.PlanUndoing(node.id, plan.id, why)))


def _consent_ticket(scene: DecisionContext, node: Node, plan: Plan, waits_for: Blocker, pool: Pool | None) -> Ticket:
    """Person to ask about the work: whom the work itself names, else its pool's owner."""
    works = scene.present.workloads(node) or ()
    named = next((w.owner for w in works if w.id == waits_for.name and w.owner), "")
    return Ticket(
        id=f"{node.id}-t{scene.fleet.cell.seq}",
        node=node.id,
        kind="consent",
        summary=f"{plan.name} is needed ({plan.rule}) and waits: {waits_for.text}",
        opened=scene.now,
        action=plan.remedy or plan.name,
        owner=named or (pool.owner if pool else "") or "the pool's owner",
        account=pool.tenant if pool else "",
    )


def _wait_boot(scene: DecisionContext, node: Node, plan: Plan) -> Answer:
    """Another boot than the one that ended: a node that has restarted by itself meanwhile has not for that."""
    before = plan.boot_id if plan.left_boot is None else plan.left_boot
    booted = node.boot_id != before or not before or node.test_mode
    return _wait_heard(scene, node, plan, done=booted)


def _wait_agent(scene: DecisionContext, node: Node, plan: Plan) -> Answer:
    return _wait_heard(scene, node, plan, done=True)


def _wait_heard(scene: DecisionContext, node: Node, plan: Plan, *, done: bool) -> Answer:
    if done and scene.present.of(node.id).heard:
        return Act((e.PlanAdvanced(node.id, plan.id, plan.index + 1),))
    if scene.now >= step_deadline(plan):
        return Act(fail_step(scene, node, plan, "the agent was not heard in time"))
    blocker = Blocker("boot", node.id, "the node boots: its agent has not been heard", "the agent reports")
    return Wait(plan.name, (blocker,), until=step_deadline(plan))


def _wait_bmc(scene: DecisionContext, node: Node, plan: Plan) -> Answer:
    here = scene.present.of(node.id)
    if here.power_at is not None and not here.bmc_unreachable:
        return Act((e.PlanAdvanced(node.id, plan.id, plan.index + 1),))
    if scene.now >= step_deadline(plan):
        return Act(fail_step(scene, node, plan, "the BMC did not answer in time"))
    blocker = Blocker("bmc", node.id, "the BMC restarts and has not answered yet", "it answers a look")
    return Wait(plan.name, (blocker,), until=step_deadline(plan))


def _verify_inventory(scene: DecisionContext, node: Node, plan: Plan) -> Answer:
    """The node is what its SKU says, as it was seen in this boot; else the step waits where it is, or convicts.

    What nobody has looked at convicts nobody, and neither does a part of another model, or one that it never showed.
    """
    found = gaps(scene.fleet, node)
    if not found:
        passed = CheckResult(INVENTORY, Verdict.passed, scene.now, "as its SKU, in this boot")
        over = unanswered_checks.answered(scene.fleet, node, INVENTORY, "observation", "it is as its SKU")
        return Act((e.CheckRecorded(node.id, passed), *over, e.PlanAdvanced(node.id, plan.id, plan.index + 1)))
    text = "; ".join(str(gap) for gap in found)[:400]
    missing = [str(gap) for gap in found if gap.missing]
    if missing and plan.steps[plan.index].args.get("missing") == "convicts":
        return _still_missing(scene, node, plan, missing)
    verdict = Verdict.failed if any(gap.seen for gap in found) else Verdict.inconclusive
    if verdict is Verdict.inconclusive and scene.now < step_deadline(plan):
        coming = Blocker("observation", text[:120], text, "its agent or BMC reports it")
        return Wait(plan.name, (coming,), until=step_deadline(plan))
    standing = unanswered_checks.standing(node, INVENTORY)
    if standing is None or not standing.evidence[-1].text.endswith(text):
        hint = doubt_of_sku(scene.fleet, node, found)
        unsaid = unanswered_checks.Unsaid(INVENTORY, verdict, text, hint=hint)
        return Act(unanswered_checks.left_open(scene, node, unsaid))
    blocker = Blocker("inventory", text[:120], text, unanswered_checks.next_command(node, INVENTORY))
    return Wait(plan.name, (blocker,))


def _still_missing(scene: DecisionContext, node: Node, plan: Plan, missing: list[str]) -> Answer:
    """A part convicts by its absence once nothing more has been seen of the node for as long as the step has.

    After a restart inventories come in pieces: a BMC still lists a board's parts, and adapters and drives come up late.
    """
    why, step = f"still missing: {'; '.join(missing)}"[:400], plan.steps[plan.index]
    assert plan.step_since is not None, "a running plan knows since when it stands at its step"
    settled = max(plan.step_since, node.inventory_at or plan.step_since) + timedelta(seconds=step.deadline_s)
    if scene.now < settled:
        coming = Blocker("inventory", why[:120], why, f"it is seen, or is still missing at {settled:%d %H:%M} UTC")
        return Wait(plan.name, (coming,), until=settled)
    failed = CheckResult(INVENTORY, Verdict.failed, scene.now, why)
    return Act((e.CheckRecorded(node.id, failed), *fail_step(scene, node, plan, why, Conviction(why))))


_PRESENT = {
    "verify_inventory": _verify_inventory,
    "drain": _drain,
    "wait_boot": _wait_boot,
    "wait_agent": _wait_agent,
    "wait_bmc": _wait_bmc,
}


def undo_tail(plan: Plan) -> tuple[Step, ...]:
    """The easings that take back what was reached, last first."""
    return tuple(Step(name, 60.0) for name in reversed(plan.undo[: plan.reached + 1]) if name)


def _undo(scene: DecisionContext, node: Node, plan: Plan) -> Answer:
    tail = undo_tail(plan)
    if plan.index >= len(tail):
        return Act(undone(scene, node, plan))
    if together := domain_plans.going_on(scene.fleet, node):
        return Wait(plan.name, together)
    step = tail[plan.index]
    if step.operation == "uncordon" and (_cordoned_by_person(scene, node) or not has_proven_itself(node)):
        return Act((e.PlanAdvanced(node.id, plan.id, plan.index + 1),))
    opened = any(s.operation == "uncordon" for s in plan.steps[: plan.reached + 1])
    if opened and "drained" in OPERATIONS[step.operation].needs and (stopped := _undrained(scene, node, plan)):
        return Wait(plan.name, tuple(stopped))
    return Act((e.OperationStarted(start(scene, node, plan, step)),))
