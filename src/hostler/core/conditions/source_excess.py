"""A source that says more than its budget: one condition on its node counts what is not recorded."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from hostler.core.conditions.lifecycle import stand
from hostler.core.diagnose import Finding
from hostler.core.diagnose.findings import over, stands
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import Condition, Evidence, Facts, Node
from hostler.core.state.source_budgets import LOUD, QUIET_S, SOURCE_OF, Excess


def loud_events(context: DecisionContext, node_id: str, source: str) -> Iterator[tuple[e.Event, ...]]:
    """The condition on the source's node, where something was counted that is not told yet and is news."""
    excess = context.live.budgets.excess.get(f"{node_id}/{source}")
    node = context.fleet.nodes.get(node_id)
    if excess is None or not excess.untold or node is None:
        return
    text = _said(excess)
    facts: Facts = {"count": excess.count, "first": excess.first_text, "last": excess.last_text}
    finding = stands(LOUD.get(source, LOUD["agent"]), text, facts=facts)
    evidence = Evidence(context.now, "hostler", finding.text, facts=finding.facts)
    event = stand(node, finding, evidence, "", excess.untold)
    if event is not None:
        excess.untold = 0
        yield (event,)


def _said(excess: Excess) -> str:
    what = "1 word is" if excess.count == 1 else f"{excess.count:,} words are"
    span = f'first "{excess.first_text}" at {excess.since:%H:%M:%S} UTC, last "{excess.last_text}"'
    return f"it says more than its budget: {what} counted here and not recorded; {span}"


def quiet_again(context: DecisionContext, node: Node) -> Iterator[Finding]:
    """Findings that end the conditions of sources that have kept within their budget for a while."""
    for condition in node.conditions:
        at = quiet_at(context, condition)
        if at is None or context.now < at:
            continue
        excess = context.live.budgets.excess.get(f"{node.id}/{SOURCE_OF[condition.type]}")
        count = excess.count if excess is not None else condition.count
        yield over(condition.type, f"it has kept within its budget for an hour; {count:,} words were not recorded")


def quiet_at(context: DecisionContext, condition: Condition) -> datetime | None:
    """When the condition ends unless its source says too much again; None for other conditions."""
    source = SOURCE_OF.get(condition.type)
    if source is None:
        return None
    excess = context.live.budgets.excess.get(f"{condition.node}/{source}")
    last = excess.last if excess is not None else condition.last_seen
    return max(last, condition.last_seen) + timedelta(seconds=QUIET_S)
