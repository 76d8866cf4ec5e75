"""One safe step forward for a node, or the blockers in its way. Asked again and again until there is nothing to do.

What does this node need *now*? A plan that runs is advanced (`execution`); else protection, then a remedy
(`remediation`), then the phase's own work, or service (`in_service`). Every answer is a value: events to record, a
reasoned wait, or rest.
"""

from hostler.core.conditions import unanswered_checks
from hostler.core.planning import bmc_side_work, cords, drills, evidence_keeping, idle_checks, rejoin_guard, triage
from hostler.core.planning.enrolment import enrol
from hostler.core.planning.execution import advance
from hostler.core.planning.in_service import cordon_as_asked, serve
from hostler.core.planning.outcomes import change_phase
from hostler.core.planning.person_waits import waits_for_person
from hostler.core.planning.plan_builder import Frame, record
from hostler.core.planning.refusals import close_past_tickets, wait_after_refusal
from hostler.core.planning.remediation import answered, needed, protect
from hostler.core.planning.restore_freeze import standing_still
from hostler.core.policy import condition_tickets, presuppositions
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import blockers
from hostler.core.policy.remedy_escalation import Need, is_lemon, ladder_changes_at
from hostler.core.policy.shadow_rules import would_have
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait, asked_again
from hostler.core.state.formats import writable
from hostler.core.state.model import ActClass, Blocker, Node, Phase
from hostler.core.state.ways_out import by_time
from hostler.core.tables.phases import PHASES
from hostler.core.tables.recipes import RECIPES, Recipe
from hostler.core.tables.verdicts import Conviction


def next_step(context: DecisionContext, node: Node) -> Answer:
    """Next step of this node: events to record, a wait, or rest."""
    if told := drills.ended(context, node) or would_have(context, node):
        return Act(told)
    need = needed(context, node)
    rung = ladder_changes_at(context.fleet.policy_of(node), node, context.sure)
    answer = asked_again(context.now, close_past_tickets(context, node, _next(context, node, need)), rung)
    answer = idle_checks.beside(context, node, condition_tickets.beside(context, node, answer))
    answer = condition_tickets.counted(context, node, cords.beside(context, node, answer))
    answer = standing_still(context, node, need, evidence_keeping.beside(context, node, answer))
    answer = rejoin_guard.beside(context, node, bmc_side_work.beside(context, node, answer))
    doing = node.plan.name if node.plan else node.phase.value
    return presuppositions.sendable(context, doing, writable(context, doing, answer))


def _next(context: DecisionContext, node: Node, need: Need | None) -> Answer:
    check = idle_checks.running(node)
    if check is not None and (called_off := idle_checks.end(context, node, check)) is not None:
        return called_off
    if node.plan is not None:
        return advance(context, node, node.plan, need)
    if need is not None and need.act_class is ActClass.protective:
        return protect(context, node, need) or _phase_work(context, node)
    if node.settling:
        return cordon_as_asked(context, node, _settling(node))
    if need is not None:
        return cordon_as_asked(context, node, answered(context, node, need))
    about = context.fleet.tickets_about(node.id)
    if moot := [t for t in about if t.kind == "consent" or (t.kind == "stuck" and t.fault)]:
        return Act(tuple(e.TicketClosed(t.id, "what it was for is no longer needed", "hostler") for t in moot))
    return _phase_work(context, node)


def _settling(node: Node) -> Wait:
    late = node.settling[0]
    text = f"{late.kind} was given up and may still take effect"
    settled = by_time("its effect is observed, or its settle time is over", late.deadline)
    return Wait("settle", (Blocker("operation", late.id, text, settled),), until=late.deadline)


def _phase_work(context: DecisionContext, node: Node) -> Answer:
    """The phase's own work. Its limit is the plan's: a node without one waits for others, and has not failed."""
    if node.phase is Phase.production:
        return serve(context, node)
    if node.phase is Phase.registered:
        return enrol(context, node)
    return _in_phase(context, node)


def _in_phase(context: DecisionContext, node: Node) -> Answer:
    row = PHASES[node.phase]
    if node.phase is Phase.triage:
        if waits := triage.waits(context, node):
            return waits
        if is_lemon(context.fleet.policy_of(node), node, context.sure):
            why = "one visit to triage too many"
            return Act(change_phase(context, node, Phase.rma, why, Conviction(why)))
    if paused := unanswered_checks.pauses(context, node) or wait_after_refusal(context, node, row.recipe):
        return paused
    if not row.recipe:
        return waits_for_person(context, node)
    return _bring_up(context, node, RECIPES[row.recipe])


def _bring_up(context: DecisionContext, node: Node, recipe: Recipe) -> Answer:
    if found := blockers(context, DisruptionRequest(recipe.name, ActClass.bring_up, (node,))):
        return Wait(recipe.name, found, until=None)
    return Act((record(context, node, recipe, Frame(ActClass.bring_up)),))
