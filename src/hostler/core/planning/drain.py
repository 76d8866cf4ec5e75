"""Draining: work that may be ended is ended, the rest is waited for, and its owner asked in the end."""

from datetime import datetime, timedelta

from hostler.core.conditions.machine_identity import is_listed_from_an_earlier_boot
from hostler.core.planning import domain_plans
from hostler.core.planning.outcomes import has_left
from hostler.core.planning.step_operation import start, step_deadline
from hostler.core.policy.corroboration import is_confirmed_down
from hostler.core.policy.remedy_escalation import rule_for
from hostler.core.policy.workload_consent import Consent, Disturbance, Lost, consent_or_end, lost_to, may_disturb
from hostler.core.state import events as e
from hostler.core.state.cases import DUE_DAY, Ticket
from hostler.core.state.configuration import Pool, scaled
from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait, soonest
from hostler.core.state.model import ActClass, Blocker, Condition, Node, Plan, Step
from hostler.core.state.operations import Evict
from hostler.core.state.ways_out import observed

CHECK_ENDS_S = 60.0
"""So long an idle check that was called off may hold up what called it off: a machine that hangs never ends it."""


ASKED_AGAIN = timedelta(days=1)
"""Pause before an owner who has consented is asked again about work that does not end."""


DEAD_S = 60.0
"""So long the work of a node that is lost with all of it has for being told to end and shown as ended."""


def undrained(context: DecisionContext, node: Node, plan: Plan) -> list[Blocker]:
    """Blockers of a step that needs an empty node: the work that is still there, or is unknown."""
    consents = _consents(context, node, plan)
    if isinstance(consents, Blocker):
        return [consents]
    return [
        c.blocker
        or Blocker(
            "workload", c.workload.id, f"workload {c.workload.id} still runs here", observed("it ends", "scheduler")
        )
        for c in consents
    ]


def _consents(context: DecisionContext, node: Node, plan: Plan) -> tuple[Consent, ...] | Blocker:
    """The answers of the customers' work on the node; a Blocker where that work is unknown."""
    if has_left(plan):
        return ()
    pool = context.fleet.pool_of(node)
    overdue = pool is not None and _agreed_at(context, node, plan, pool) <= context.now
    waited_s = (context.now - _asks_since(plan)).total_seconds() * context.fleet.policy_of(node).time_scale
    lost = _lost_already(context, node, plan)
    asked = Disturbance(plan.act_class, lost, overdue, plan.remedy or plan.name, plan.parts, waited_s)
    said = may_disturb(node, context.live, asked, pool)
    if isinstance(said, Blocker):
        return said
    return tuple(c for c in said if c.workload.work_class is not WorkClass.infrastructure)


def _lost_already(context: DecisionContext, node: Node, plan: Plan) -> tuple[Lost, ...]:
    """Work that the plan's causes have ended; all of the node's where the deciding rule says so, or it is down."""
    policy = context.fleet.policy_of(node)
    said = [(rule_for(policy, c), c) for c in node.conditions]
    gone = (Lost("", context.now),) if is_listed_from_an_earlier_boot(context.live.of(node.id), node) else ()
    return gone + tuple(
        lost
        for rule, condition in said
        if not condition.drill  # it has ended nobody's work
        if (condition.id in plan.causes and (rule.dooms != "node" or condition.type == plan.rule))
        or (rule.dooms == "node" and rule.confirm and _is_down(context, node, condition))
        for lost in lost_to(condition, rule.dooms)
    )


def _is_down(context: DecisionContext, node: Node, condition: Condition) -> bool:
    """Whether two paths say that the node is lost: then all its work is, whatever its plan was laid for."""
    sure = condition.unknown_since is None and is_confirmed_down(context.live, node)
    return sure and not context.live.of(node.id).heard


def _agreed_at(context: DecisionContext, node: Node, plan: Plan, pool: Pool) -> datetime:
    """When a pool's recorded agreement lets its work be ended; time that nobody attended to does not count."""
    return _asks_since(plan) + timedelta(seconds=scaled(context.fleet.policy_of(node), pool.drain_deadline_s))


def _asks_since(plan: Plan) -> datetime:
    drains = plan.index < len(plan.steps) and plan.steps[plan.index].operation == "drain"
    return plan.step_since if drains and plan.step_since else plan.recorded_at


def _next_agreement(context: DecisionContext, node: Node, plan: Plan, pool: Pool | None) -> datetime | None:
    """When some work that is waited for may be ended, by its own agreement or its pool's, or is not waited for."""
    scale = context.fleet.policy_of(node).time_scale
    own = (w.agreed_after_s for w in context.live.workloads(node) or ())
    moments = [_asks_since(plan) + timedelta(seconds=s / scale) for s in own if s is not None]
    if pool is not None and pool.evict_after_deadline:
        moments.append(_agreed_at(context, node, plan, pool))
    if (over := _nobody_ends_it_after(context, node, plan)) is not None:
        moments.append(over)
    return min((at for at in moments if at > context.now), default=None)


def drain(context: DecisionContext, node: Node, plan: Plan) -> Answer:
    """Go on once the node is empty."""
    return empty(context, node, plan) or Act((e.PlanAdvanced(node.id, plan.id, plan.index + 1),))


def empty(context: DecisionContext, node: Node, plan: Plan) -> Answer | None:
    """End the work that may be ended, wait for the rest; None where no work is left."""
    if plan.act_class is ActClass.protective:
        return None
    if (check := _ending_check(context, node, plan)) is not None:
        return check
    consents = _consents(context, node, plan)
    if isinstance(consents, Blocker):
        return _overdue(context, node, plan, (consents,))
    allowed = [c.workload.id for c in consents if c.allowed and not c.workload.held_by]
    if allowed:
        left = (step_deadline(plan) - context.now).total_seconds()
        step = Step(Evict(tuple(allowed[:64])), max(60.0, min(left, 600.0)))
        return Act((e.OperationStarted(start(context, node, plan, step)),))
    stopped = tuple(c.blocker or _held_work(c.workload) for c in consents)
    if not stopped or _is_past_ending(context, node, plan):
        return None
    if (agreed := _all_agreed_at(node, plan, consents)) is not None and context.now < agreed + ASKED_AGAIN:
        own = _next_agreement(context, node, plan, None)
        return Wait(plan.name, stopped, until=soonest(context.now, own, agreed + ASKED_AGAIN))
    return _overdue(context, node, plan, stopped)


def _all_agreed_at(node: Node, plan: Plan, waiting: tuple[Consent, ...]) -> datetime | None:
    """When the last owner agreed to the end of all that is waited for; None where somebody has not been asked."""
    given = {c.workload: c.at for c in node.consented if c.remedy == (plan.remedy or plan.name)}
    moments = [given.get(one.workload.id) for one in waiting]
    known = [at for at in moments if at is not None]
    return max(known) if known and len(known) == len(moments) else None


def _is_past_ending(context: DecisionContext, node: Node, plan: Plan) -> bool:
    """Whether what the fault has ended may be left as its scheduler lists it: nobody there is left to take it away."""
    until = _nobody_ends_it_after(context, node, plan)
    return until is not None and until <= context.now


def _nobody_ends_it_after(context: DecisionContext, node: Node, plan: Plan) -> datetime | None:
    """When work on a node that is lost with all of it is waited for no longer; None while somebody there is heard.

    A kubelet or slurmd that is dead never says that what it ran is gone, and no budget protects what has ended. Nor
    does one that has not come up with its node.
    """
    here = context.live.of(node.id)
    if all(lost.part for lost in _lost_already(context, node, plan)):
        return None
    silent = not here.heard and is_confirmed_down(context.live, node)
    if not silent and not is_listed_from_an_earlier_boot(here, node):
        return None
    policy, asked = context.fleet.policy_of(node), _asks_since(plan)
    told_s = max(scaled(policy, DEAD_S), policy.agent_silence_s)
    return max(asked, context.live.started or asked) + timedelta(seconds=told_s)


def _ending_check(context: DecisionContext, node: Node, plan: Plan) -> Wait | None:
    """Hostler's own idle check was called off when the plan came: its end is waited for, though not for ever."""
    left = next((w for w in context.live.workloads(node) or () if w.check), None)
    until = plan.recorded_at + timedelta(seconds=CHECK_ENDS_S)
    if left is None or until <= context.now:
        return None
    text = f"the idle check {left.check} is being ended"
    return Wait(
        plan.name, (Blocker("operation", left.check, text, observed("it has left the node", "scheduler")),), until=until
    )


def _held_work(work: Workload) -> Blocker:
    text = f"{work.job or work.id} may be ended, but the scheduler does not end it: {work.held_by}"
    return Blocker(
        "scheduler", work.id, text, observed("the scheduler lets it go, or the work ends by itself", "scheduler")
    )


def _overdue(context: DecisionContext, node: Node, plan: Plan, stopped: tuple[Blocker, ...]) -> Answer:
    """Waiting for work to end; past the deadline it becomes a named person's decision, never an eviction.

    A plan that can still be taken back then is. What is broken already, or must not wait, stays cordoned.
    """
    pool = context.fleet.pool_of(node)
    deadline = step_deadline(plan)
    if context.now < deadline:
        agreement = _next_agreement(context, node, plan, pool)
        return Wait(plan.name, stopped, until=soonest(context.now, agreement, deadline))
    asked = next((t for t in context.fleet.tickets_about(node.id) if t.kind == "consent"), None)
    stays = plan.disturbed or plan.act_class is ActClass.immediate or domain_plans.has_disturbed(context.fleet, node)
    if stays and asked is not None:
        text = f"{asked.owner} has been asked to consent (ticket {asked.id})"
        later = _next_agreement(context, node, plan, pool)
        return Wait(plan.name, (*stopped, Blocker("person", asked.owner, text, consent_or_end(asked.id))), until=later)
    ticket = asked or _consent_ticket(context, node, plan, stopped[0], pool)
    opened = () if asked is not None else (e.TicketOpened(ticket),)
    if stays:
        return Act(opened)
    why = f"the drain deadline has passed; {ticket.owner} is asked (ticket {ticket.id})"
    return Act((*opened, e.PlanUndoing(node.id, plan.id, why)))


def _consent_ticket(context: DecisionContext, node: Node, plan: Plan, waits_for: Blocker, pool: Pool | None) -> Ticket:
    """Person to ask about the work: whom the work itself names, else its pool's owner."""
    works = context.live.workloads(node) or ()
    named = next((w.owner for w in works if w.id == waits_for.name and w.owner), "")
    return Ticket(
        id=f"{node.id}-t{context.fleet.cell.seq}",
        node=node.id,
        kind="consent",
        summary=f"{plan.name} is needed ({plan.rule}) and waits: {waits_for.text}",
        opened=context.now,
        action=plan.remedy or plan.name,
        owner=named or (pool.owner if pool else "") or "the pool's owner",
        account=pool.tenant if pool else "",
        due=DUE_DAY,
    )
