"""Early ends of plans, at a step boundary: failed bring-up, a graver need, an override, a cause that is gone."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from hostler.core.conditions import unanswered_checks
from hostler.core.planning import domain_plans, yielded_places
from hostler.core.planning.bring_up_faults import bring_up_faults, fault_text
from hostler.core.planning.outcomes import fail_plan, has_left
from hostler.core.planning.remediation import may_begin, needed, remedy
from hostler.core.policy.corroboration import is_confirmed_down
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import blockers
from hostler.core.policy.holds_and_pauses import held, scopes
from hostler.core.policy.remedy_escalation import Need, rank
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Wait, soonest
from hostler.core.state.model import ActClass, HoldKind, Node, Phase, Plan
from hostler.core.state.plan_rules import Releases
from hostler.core.state.requalification import has_proven_itself
from hostler.core.tables.recipe_facts import rules_of

CALLED_OFF = "it was called off"
"""Why a plan turns back whose request a person has withdrawn."""


def bring_up_fails(context: DecisionContext, node: Node, plan: Plan) -> str:
    """Why a phase's own work has failed already: over the limit, or a grave condition appeared; "" if it has not."""
    if not plan.failed_phase:
        return ""
    if (limit := limit_at(node, plan)) is not None and limit <= context.now:
        return f"over the limit of {node.phase}"
    if node.phase not in (Phase.seatrial, Phase.zap, Phase.test):
        return ""
    checking = plan.index < len(plan.steps) and plan.steps[plan.index].operation == "run_checks"
    grave = bring_up_faults(context.fleet.policy_of(node), node, checking=checking)
    return fault_text(grave[0]) if grave else ""


def limit_at(node: Node, plan: Plan) -> datetime | None:
    """When the phase's own work has had its time; None where no clock ends it.

    A step that waits for an answer has a deadline of its own, and what nobody answers is no failure; the steps behind
    it have their own times as well.
    """
    if not plan.failed_phase or node.deadline is None or plan.index >= len(plan.steps):
        return None
    if unanswered_checks.profile_at(plan):
        return None
    asked = any(unanswered_checks.profile_of(step.act) for step in plan.steps[: plan.index])
    left_s = sum(step.deadline_s for step in plan.steps[plan.index :]) if asked else 0.0
    if plan.step_since is None:
        return node.deadline
    return max(node.deadline, plan.step_since + timedelta(seconds=left_s))


def abort_at_boundary(context: DecisionContext, node: Node, plan: Plan, need: Need | None) -> Act | datetime | None:
    """The end of the plan at this boundary; None where it goes on, a moment where the clock alone may end it then."""
    if held := _held_beyond_its_limit(context, node, plan):
        return Act((e.PlanEnded(node.id, plan.id, "cancelled", held),))
    if why := bring_up_fails(context, node, plan) or _down_at_its_gate(context, node, plan):
        return Act(fail_plan(context, node, plan, why))
    if domain_plans.is_called_off(context.fleet, node, plan):
        return Act((e.PlanUndoing(node.id, plan.id, CALLED_OFF),))
    remedial = plan.disruptive or plan.act_class in (ActClass.pending, ActClass.immediate)
    if plan.act_class in (ActClass.protective, ActClass.easing) or not remedial:
        made_way = _makes_way(node, plan, need)
        return Act(made_way) if made_way else limit_at(node, plan)
    release = _releases(context, node, plan)
    if isinstance(release, Act):
        return release
    graver = _to_a_graver(context, node, plan, need)
    if isinstance(graver, Act):
        return graver
    if (turned := _turns_back(context, node, plan)) is not None:
        return Act(turned)
    return soonest(context.now, release, graver)


_OTHERS = ("hold", "pause", "brake", "restored", "danger")
"""Blockers that keep a phase's own work from its next step: its time is not used by it meanwhile."""


def _held_beyond_its_limit(context: DecisionContext, node: Node, plan: Plan) -> str:
    """Reason why others keep the phase's work as its time ends, "" for none; the work begins anew once they let go."""
    limit = limit_at(node, plan)
    if limit is None or limit > context.now:
        return ""
    request = DisruptionRequest(plan.name, plan.act_class, (node,), approved=True)
    stops = [b for b in blockers(context, request) if b.kind in _OTHERS]
    return f"{stops[0].text}, beyond the limit of {node.phase}" if stops else ""


def _turns_back(context: DecisionContext, node: Node, plan: Plan) -> tuple[e.Event, ...] | None:
    """The undoing of a plan that others have turned back from, or whose reason is gone; None where it stands."""
    if why := domain_plans.turned_back(context.fleet, node) or _overridden(context, node, plan):
        return (e.PlanUndoing(node.id, plan.id, why),)
    if plan.disturbed or domain_plans.has_disturbed(context.fleet, node):
        return None
    if plan.causes and not domain_plans.stands(context.fleet, node, plan):
        return (e.PlanUndoing(node.id, plan.id, "its cause is gone"),)
    request = DisruptionRequest(plan.remedy or plan.name, plan.act_class, (node,), plan.causes, approved=True)
    stops = [b for b in blockers(context, request) if b.kind in ("hold", "pause", "brake", "incident", "danger")]
    if stops:
        return (e.PlanUndoing(node.id, plan.id, stops[0].text),)
    return yielded_places.give_way(context, node, plan)


def _down_at_its_gate(context: DecisionContext, node: Node, plan: Plan) -> str:
    """Why the plan has failed though nobody has answered its gate: the node is down again, and two paths say so.

    The check says nothing, and convicts nobody; that the node does not stay up is evidence of its own.
    """
    if unanswered_checks.profile_at(plan) != "gate" or plan.failed_phase or not unanswered_checks.is_open(node, plan):
        return ""
    lost = next((c for c in node.conditions if c.type == "agent.lost" and c.unknown_since is None), None)
    if lost is None or not is_confirmed_down(context.live, node):
        return ""
    return f"it went down before its gate was answered: {lost.evidence[-1].text if lost.evidence else lost.type}"


def _to_a_graver(context: DecisionContext, node: Node, plan: Plan, need: Need | None) -> Act | datetime | None:
    """The end of a plan that a graver need takes the place of.

    Where the graver plan would wait, this one goes on: its cordon would stand with nothing being done. A release of a
    node that has not proven itself goes on too: what the last remedy was for would only begin the next.
    """
    if need is None or need.act_class is ActClass.protective or not _is_graver(need, plan):
        return None
    if plan.group.scope is not None:
        return None
    if plan.rules.releases is Releases.done and not need.requested and not has_proven_itself(node):
        return None
    begins = may_begin(context, node, need)
    if begins is not True:
        return begins or None
    return Act((e.PlanEnded(node.id, plan.id, "superseded", f"{need.remedy} is needed for {need.rule}"),))


def _releases(context: DecisionContext, node: Node, plan: Plan) -> Act | datetime | None:
    """A gate that nobody can answer keeps a node from no release that a person asks for; it stays unproven.

    It is free of work already. What the remedy was for stands, and is answered once the tenant has let go.
    """
    asked = (c for c in node.conditions if rules_of(c.remedy).releases is Releases.done and not c.group)
    request = next(asked, None)
    if (
        request is None
        or plan.rules.releases is Releases.done
        or plan.group
        or not unanswered_checks.is_open(node, plan)
    ):
        return None
    apart = replace(node, plan=None, conditions=(request,))
    need = needed(context, apart)
    begun = remedy(context, apart, need) if need is not None else None
    if isinstance(begun, Wait):
        return begun.until
    if not isinstance(begun, Act) or not any(isinstance(event, e.PlanRecorded) for event in begun.events):
        return None
    return Act((e.PlanEnded(node.id, plan.id, "superseded", f"{request.type} is asked for"), *begun.events))


def _makes_way(node: Node, plan: Plan, need: Need | None) -> tuple[e.Event, ...] | None:
    """A phase's own work that waits for an answer waits in no person's way."""
    if need is None or not need.requested or not unanswered_checks.is_open(node, plan):
        return None
    return (e.PlanEnded(node.id, plan.id, "superseded", f"{need.remedy} is asked for"),)


def _overridden(context: DecisionContext, node: Node, plan: Plan) -> str:
    """Owner of a lift of our cordon, "" for none, while the hardware is untouched: a drain without one never ends.

    It does not matter that some work was ended already; hardware that was acted upon has to prove itself first.
    """
    if has_left(plan) or plan.touched or any(theirs.touched for _, theirs in domain_plans.mates(context.fleet, node)):
        return ""
    found = (h for h in context.fleet.holds_on(scopes(context.fleet, node)) if h.kind is HoldKind.override)
    return next((held(hold).text for hold in found), "")


def _is_graver(need: Need, plan: Plan) -> bool:
    """A higher rung, or the same at once instead of later; never between power off and on."""
    between_off_and_on = (
        plan.disturbed and plan.index < len(plan.steps) and plan.steps[plan.index].operation == "power_on"
    )
    sooner = need.act_class is ActClass.immediate and plan.act_class is ActClass.pending and not plan.disturbed
    graver = rank(need.remedy) > rank(plan.remedy) or (need.remedy == plan.remedy and sooner)
    return graver and not between_off_and_on
