"""The step that compares a node with its SKU."""

from datetime import timedelta

from hostler.core.conditions import unanswered_checks
from hostler.core.conditions.sku_doubt import doubt_of_sku
from hostler.core.conditions.sku_match import gaps, hidden_kinds
from hostler.core.conditions.unanswered_checks import INVENTORY
from hostler.core.planning.outcomes import fail_step
from hostler.core.planning.step_operation import step_deadline
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait
from hostler.core.state.model import Blocker, CheckResult, Node, Plan, Verdict
from hostler.core.state.operations import VerifyInventory
from hostler.core.state.ways_out import by_time, observed
from hostler.core.tables.verdicts import Conviction


def verify_inventory(context: DecisionContext, node: Node, plan: Plan) -> Answer:
    """The node is what its SKU says, as it was seen in this boot; else the step waits where it is, or convicts.

    What nobody has looked at convicts nobody, and neither does a part of another model, or one that it never showed.
    """
    found = gaps(context.fleet, node)
    if not found:
        passed = CheckResult(
            INVENTORY, Verdict.passed, context.now, f"as its SKU, in this boot{_hidden(context, node)}"
        )
        over = unanswered_checks.answered(context.fleet, node, INVENTORY, "observation", "it is as its SKU")
        return Act((e.CheckRecorded(node.id, passed), *over, e.PlanAdvanced(node.id, plan.id, plan.index + 1)))
    text = "; ".join(str(gap) for gap in found)[:400]
    missing = [str(gap) for gap in found if gap.missing]
    if missing and plan.steps[plan.index].act == VerifyInventory(convicts=True):
        return _still_missing(context, node, plan, missing)
    verdict = Verdict.failed if any(gap.seen for gap in found) else Verdict.inconclusive
    if verdict is Verdict.inconclusive and context.now < step_deadline(plan):
        coming = Blocker("observation", text[:120], text, observed("its agent or BMC reports it", "agent"))
        return Wait(plan.name, (coming,), until=step_deadline(plan))
    standing = unanswered_checks.standing(node, INVENTORY)
    if standing is None or not standing.evidence[-1].text.endswith(text):
        hint = doubt_of_sku(context.fleet, node, found)
        unsaid = unanswered_checks.Unsaid(INVENTORY, verdict, text, hint=hint)
        return Act(unanswered_checks.left_open(context, node, unsaid))
    blocker = Blocker("inventory", text[:120], text, unanswered_checks.ways_of(node, INVENTORY))
    return Wait(plan.name, (blocker,), until=None)


def _hidden(context: DecisionContext, node: Node) -> str:
    """Kinds of part that nobody could see, in words; "" for none."""
    sku = context.fleet.configuration_of(node).skus.get(node.sku)
    hidden = sorted(hidden_kinds(node, sku)) if sku is not None else []
    return f"; nobody can see {', '.join(hidden)}, as it has no BMC" if hidden else ""


def _still_missing(context: DecisionContext, node: Node, plan: Plan, missing: list[str]) -> Answer:
    """A part convicts by its absence once nothing more has been seen of the node for as long as the step has.

    After a restart inventories come in pieces: a BMC still lists a board's parts, and adapters and drives come up late.
    """
    why, step = f"still missing: {'; '.join(missing)}"[:400], plan.steps[plan.index]
    assert plan.step_since is not None, "a running plan knows when its step began"
    settled = max(plan.step_since, node.inventory_at or plan.step_since) + timedelta(seconds=step.deadline_s)
    if context.now < settled:
        coming = Blocker(
            "inventory",
            why[:120],
            why,
            (observed("it is seen", "agent"), by_time(f"the step fails at {settled:%Y-%m-%d %H:%M} UTC", settled)),
        )
        return Wait(plan.name, (coming,), until=settled)
    failed = CheckResult(INVENTORY, Verdict.failed, context.now, why)
    return Act((e.CheckRecorded(node.id, failed), *fail_step(context, node, plan, why, Conviction(why))))
