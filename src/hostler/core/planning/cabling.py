"""A node's cabling step: its ports stand as designed, at full width and speed, by a validation of this bring-up.

What nobody has looked at convicts nobody: an old, partial or missing validation makes the step wait. A node's cabling
is never evidence against the node, so a step that fails stays open until a validation shows the repair.
"""

from collections.abc import Iterator
from datetime import datetime

from hostler.core.conditions import unanswered_checks
from hostler.core.conditions.unanswered_checks import Unsaid
from hostler.core.fabric.links import sentence
from hostler.core.planning.step_operation import step_deadline
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait
from hostler.core.state.fabrics import CABLING, DesignedLink, Fabric, LinkCondition
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Blocker, CheckResult, Node, Plan, Verdict
from hostler.core.state.operations import VerifyCabling
from hostler.core.state.ways_out import observed

_NAMES = ("hostname", "kubernetes", "slurm")
_TOLD = 4
"""So many ports are named; the rest are counted."""


def fabrics_of(fleet: Fleet, node: Node) -> Iterator[tuple[Fabric, str]]:
    """The networks whose design names the node, each with the name."""
    names = dict.fromkeys((node.id, *(node.binding(kind) for kind in _NAMES)))
    for fabric in fleet.fabrics.values():
        if (name := next((one for one in names if one in fabric.hosts), None)) is not None:
            yield fabric, name


def waiting(fleet: Fleet, fabric: str) -> list[str]:
    """The nodes that stand at their cabling step for this network."""
    return [node_id for node_id in fleet.index.members("planned") if _stands_at(fleet.nodes[node_id], fabric)]


def wanted_since(fleet: Fleet, fabric: str) -> datetime | None:
    """Since when a node has waited for a validation of this network, None where none does: the latest of them."""
    plans = (fleet.nodes[node_id].plan for node_id in waiting(fleet, fabric))
    return max((plan.step_since for plan in plans if plan and plan.step_since), default=None)


def _stands_at(node: Node, fabric: str) -> bool:
    plan = node.plan
    if plan is None or plan.state != "running" or plan.index >= len(plan.steps):
        return False
    act = plan.steps[plan.index].act
    return isinstance(act, VerifyCabling) and act.fabric == fabric


def verify(context: DecisionContext, node: Node, plan: Plan) -> Answer:
    """Pass the step, wait for a validation, or leave it open with what is wrong at which port."""
    act = plan.steps[plan.index].act
    assert isinstance(act, VerifyCabling), "the table of steps leads here"
    fabric, device = context.fleet.fabrics.get(act.fabric), act.device
    if fabric is None or device not in fabric.hosts:
        return _passed(context, node, plan, f"the design of {act.fabric} names {device} no more", asked=False)
    verdict, text = _judged(context, node, plan, fabric, device)
    if verdict is Verdict.passed:
        return _passed(context, node, plan, text)
    until = step_deadline(plan)
    standing = unanswered_checks.standing(node, CABLING)
    if verdict is Verdict.inconclusive and standing is None and context.now < until:
        coming = Blocker(
            "observation",
            text[:120],
            text,
            observed("a validation of the network has seen the node's ports", "network"),
        )
        return Wait(plan.name, (coming,), until=until)
    if standing is None or not standing.evidence[-1].text.endswith(text):
        ticketed = any(c.ticket and device in c.finding.devices for c in context.fleet.cases_of(fabric.name))
        return Act(unanswered_checks.left_open(context, node, Unsaid(CABLING, verdict, text, ticketed=ticketed)))
    designed = observed("a validation finds its ports as designed", "network")
    ways = (designed, *unanswered_checks.ways_of(node, CABLING))
    return Wait(plan.name, (Blocker(CABLING, text[:120], text, ways),), until=None)


def _passed(context: DecisionContext, node: Node, plan: Plan, text: str, *, asked: bool = True) -> Act:
    """The step is over; where its design is gone nothing was looked at, and nothing is recorded as passed."""
    over = unanswered_checks.answered(context.fleet, node, CABLING, "observation", text)
    recorded = (e.CheckRecorded(node.id, CheckResult(CABLING, Verdict.passed, context.now, text)),) if asked else ()
    return Act((*recorded, *over, e.PlanAdvanced(node.id, plan.id, plan.index + 1)))


def _judged(context: DecisionContext, node: Node, plan: Plan, fabric: Fabric, device: str) -> tuple[Verdict, str]:
    """Verdict of the last whole validation on the node's ports, and in which words.

    One from before the phase, or from before a repair, says nothing. One from before the step, when the node may have
    been without power, passes and does not fail it.
    """
    seen = context.live.fabrics.get(fabric.name)
    if seen is None or seen.good is None:
        why = f": {seen.last.why}" if seen is not None else " since the controller began"
        return Verdict.inconclusive, f"no validation of {fabric.name} has concluded anything{why}"
    if seen.good.design != fabric.digest:
        return Verdict.inconclusive, f"{fabric.name} has not been validated against its new design yet"
    if before := _before(node, seen.good.began):
        since = f"{_at(seen.good.began)}, from before {before}"
        why = f"; the last one concluded nothing: {seen.last.why}" if not seen.last.verdict.concludes else ""
        return Verdict.inconclusive, f"the last whole validation of {fabric.name} is of {since}{why}"
    links = seen.links.of(device)
    wrong = [link for link in links if link.condition is not LinkCondition.as_designed]
    if links and not wrong:
        return Verdict.passed, f"{len(links)} ports as designed in {fabric.name}, validated {_at(seen.good.began)}"
    if not links:
        return Verdict.inconclusive, f"the validation of {fabric.name} says nothing of this node"
    if plan.step_since is None or seen.good.began < plan.step_since:
        return Verdict.inconclusive, f"{fabric.name} was last validated {_at(seen.good.began)}, before the node was up"
    if all(link.condition is LinkCondition.unrated for link in wrong):
        return Verdict.inconclusive, _told(wrong)
    return Verdict.failed, _told([link for link in wrong if link.condition is not LinkCondition.unrated])


def _before(node: Node, began: datetime) -> str:
    """Event that a validation which began then cannot have seen, "" where it has seen all."""
    if began < node.phase_since:
        return f"the node came to {node.phase}"
    return "hands were in it" if any(began < repair.at for repair in node.repairs) else ""


def _at(moment: datetime) -> str:
    return f"{moment:%d %H:%M} UTC"


def _told(links: list[DesignedLink]) -> str:
    more = f"; and {len(links) - _TOLD} more" if len(links) > _TOLD else ""
    return "; ".join(sentence(link) for link in links[:_TOLD])[:400] + more
