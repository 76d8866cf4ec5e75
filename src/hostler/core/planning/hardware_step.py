"""The step that holds a node's links, settings and places against its SKU's hardware manifest.

Each aspect's verdict is recorded by its own name. What fails, or what nobody can read, leaves the node at the step with
one ticket; it is judged again whenever a reading changes.
"""

from collections.abc import Iterator

from hostler.core.conditions import unanswered_checks
from hostler.core.conditions.hardware_match import CHECKS, AspectVerdict, verdicts
from hostler.core.conditions.unanswered_checks import HARDWARE
from hostler.core.planning.step_operation import step_deadline
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait
from hostler.core.state.model import Blocker, CheckResult, Node, Plan, Verdict
from hostler.core.state.ways_out import observed


def stands_at(node: Node) -> bool:
    """Whether the node's plan is at this step, so that its BMC is looked at for it."""
    plan = node.plan
    here = plan is not None and plan.state == "running" and plan.index < len(plan.steps)
    return plan is not None and here and plan.steps[plan.index].operation == "verify_hardware"


def verify_hardware(context: DecisionContext, node: Node, plan: Plan) -> Answer:
    """Pass the step, wait for a reading, or leave it open with everything that is not as the manifest says."""
    found = verdicts(context.fleet, context.live.of(node.id), node, context.now, plan.step_since)
    standing = unanswered_checks.standing(node, HARDWARE)
    deadline = step_deadline(plan)
    news = tuple(_news(context, node, found, late=standing is not None or context.now >= deadline))
    open_ = [one for one in found if one.verdict is not Verdict.passed]
    if not open_:
        over = unanswered_checks.answered(context.fleet, node, HARDWARE, "observation", "it is as its SKU's manifest")
        return Act((*news, *over, e.PlanAdvanced(node.id, plan.id, plan.index + 1)))
    failed = [one for one in open_ if one.verdict is Verdict.failed]
    moments = [one.until for one in open_ if one.until is not None and one.until > context.now]
    text = "; ".join(str(one) for one in (*failed, *(one for one in open_ if one not in failed)))[:400]
    if not failed and standing is None and context.now < deadline:
        if news:
            return Act(news)
        coming = Blocker("observation", text[:120], text, observed("its agent or BMC reports it", "agent"))
        return Wait(plan.name, (coming,), until=min((*moments, deadline)))
    if standing is None or not standing.evidence[-1].text.endswith(text):
        verdict = Verdict.failed if failed else Verdict.inconclusive
        unsaid = unanswered_checks.Unsaid(HARDWARE, verdict, text)
        return Act((*news, *unanswered_checks.left_open(context, node, unsaid)))
    if news:
        return Act(news)
    blocker = Blocker("inventory", text[:120], text, unanswered_checks.ways_of(node, HARDWARE))
    return Wait(plan.name, (blocker,), until=min(moments, default=None))


def _news(
    context: DecisionContext, node: Node, found: tuple[AspectVerdict, ...], *, late: bool
) -> Iterator[e.CheckRecorded]:
    """Verdicts that are not on record yet; what nobody has read is told once it is late."""
    before = {check.profile: check for check in node.checks}
    for one in found:
        if one.verdict is Verdict.inconclusive and not late:
            continue
        known, detail = before.get(f"{CHECKS}{one.aspect}"), str(one)[:400]
        if known is None or (known.verdict, known.detail) != (one.verdict, detail):
            yield e.CheckRecorded(node.id, CheckResult(f"{CHECKS}{one.aspect}", one.verdict, context.now, detail))
