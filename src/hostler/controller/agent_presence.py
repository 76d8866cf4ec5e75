"""Presence of agents: boots, silence, return and refused words become events."""

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from hostler.controller.inputs import AgentRefused
from hostler.core.conditions import unanswered_checks
from hostler.core.conditions.lifecycle import as_history, stand
from hostler.core.diagnose import Finding
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.drills import running
from hostler.core.state.model import Evidence, HoldKind, Node, Phase, Severity
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.operations import OPERATIONS


def of_boot(node: Node, boot_id: str, now: datetime) -> Iterator[e.Event]:
    """Another boot: what a remedy was to clear in the boots before is history, unless a remedy is at it.

    What a part keeps over restarts, and is returned for, stands as before.
    """
    if not boot_id or boot_id == node.boot_id:
        return
    yield e.BootObserved(node.id, boot_id)
    answered = node.plan.causes if node.plan else ()
    for condition in node.conditions:
        if condition.clears != "remedy" or condition.boot_id in ("", boot_id) or condition.id in answered:
            continue
        kept = (row := CONDITIONS.get(condition.type)) is not None and row.returned
        yield e.ConditionUpdated(replace(condition, boot_id=boot_id) if kept else as_history(condition, now))


_SILENCE_MATTERS = frozenset({Phase.onboard, Phase.seatrial, Phase.zap, Phase.test, Phase.production})


def of_silence(context: DecisionContext, node: Node, since: datetime) -> e.Event | None:
    """agent.lost, unless the node is meant to be away: in the middle of a plan that restarts it, or held dark.

    A node at a check without an answer is meant to be up again.
    """
    if any(h.kind in (HoldKind.power, HoldKind.physical_work) for h in context.fleet.holds_of(node.id)):
        return None
    away = node.plan is not None and node.plan.disturbed and not unanswered_checks.is_open(node, node.plan)
    if away or node.phase not in _SILENCE_MATTERS:
        return None
    if node.operation is not None and OPERATIONS[node.operation.kind].port == "bmc":
        return None
    text = f"the agent has not been heard since {since:%H:%M:%S} UTC"
    drill = running(node.drill)
    of = drill.id if drill is not None and drill.shows("agent.lost", context.now) else ""
    finding = Finding("agent.lost", CONDITIONS["agent.lost"].severity, text, drill=of)
    return stand(node, finding, Evidence(context.now, "hostler", text), "")


def of_return(node: Node, now: datetime) -> e.Event | None:
    """agent.lost is over."""
    finding = Finding("agent.lost", Severity.info, "the agent is heard again", standing=False)
    return stand(node, finding, Evidence(now, "agent", finding.text), "")


def of_refusal(node: Node, one: AgentRefused, now: datetime) -> tuple[e.Event, ...]:
    """The node's condition comes with what is refused and goes with the first that is taken."""
    said = one.text or "what the agent says is taken again"
    finding = Finding(one.condition, CONDITIONS[one.condition].severity, said, standing=bool(one.text))
    event = stand(node, finding, Evidence(now, "hostler", said), "")
    return (event,) if event else ()
