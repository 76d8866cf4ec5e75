"""Progress of an intent: its answer, who waits for what on each node, and how it came out."""

from collections.abc import Callable, Iterable
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.client.answers import IntentProgress, NodeProgress
from hostler.core.report.last_failures import failure_text, last_failures
from hostler.core.report.next_actor import acts_next
from hostler.core.state import events as e
from hostler.core.state.fleet import Fleet
from hostler.core.state.intent import Intent
from hostler.core.state.model import Node
from hostler.core.state.verbs.remedies import RemedyVerb
from hostler.server.acts import act_view

NODES_SHOWN = 200
HISTORY = 500
"""Records of a node that are looked through for how its plan ended."""
_ENDS = {"done": "done", "failed": "failed"}
_OPEN = ("waiting", "running")

History = Callable[[str], list[e.Record]]
"""Records about a subject, newest first. Blocks."""


class Asked(Struct, frozen=True):
    """An intent as it stands recorded: when, its answer, the nodes that it concerns, and its approval's end."""

    intent: Intent
    seq: int
    at: datetime
    granted: bool
    answer: str
    nodes: tuple[str, ...]
    approval: str = ""
    ended: str = ""


def handle_of(intent: str) -> str:
    """The subject under which an intent's records are found."""
    return f"intent:{intent}"


def asked(identity: str, history: History) -> Asked | None:
    """The intent of that id, None where none is recorded."""
    found = next((r for r in history(handle_of(identity)) if isinstance(r.event, e.IntentRecorded)), None)
    if found is None or not isinstance(found.event, e.IntentRecorded):
        return None
    event = found.event
    nodes = event.disturbs or event.intent.nodes or (event.intent.target,)
    ended = ""
    for record in history(event.approval) if event.approval else ():
        match record.event:
            case e.ApprovalEnded(result=result):
                ended = ended or result
            case e.ApprovalRequested(approval=approval):
                nodes = approval.nodes or nodes
            case _:
                continue
    return Asked(event.intent, found.seq, found.at, event.granted, event.answer, nodes, event.approval, ended)


def progress(fleet: Fleet, found: Asked, history: History) -> IntentProgress:
    """The intent's present state."""
    nodes = [fleet.nodes[name] for name in found.nodes if name in fleet.nodes]
    state, rows = _state(found), tuple[NodeProgress, ...]()
    if state == "under_way":
        shown = nodes[:NODES_SHOWN]
        rows = tuple(_with_failure(fleet, found, node, _of_node(found, node, history)) for node in shown)
        state = _together(row.state for row in rows)
    intent = found.intent
    return IntentProgress(
        id=intent.id,
        verb=intent.verb,
        act=act_view(intent),
        target=intent.target,
        person=intent.person,
        reason=intent.reason,
        asked=found.at,
        state=state,
        text=found.answer,
        approval=found.approval,
        nodes=rows,
        more=max(0, len(nodes) - len(rows)) if rows else 0,
    )


def _state(found: Asked) -> str:
    if found.granted or found.ended == "approved":
        return "under_way"
    if not found.approval:
        return "refused"
    return "denied" if found.ended else "waiting_for_approval"


def _together(states: Iterable[str]) -> str:
    """One word for all nodes: what is still open counts before what went wrong, and that before what went well."""
    seen = frozenset(states)
    if seen & frozenset(_OPEN):
        return "under_way"
    return next((state for state in ("failed", "ended") if state in seen), "done")


def _with_failure(fleet: Fleet, found: Asked, node: Node, row: NodeProgress) -> NodeProgress:
    """The row with what has failed since it was asked for, and who acts next."""
    since = [one for one in last_failures(node, found.at) if one.at >= found.at]
    if not since or row.state == "done":
        return row
    return replace(row, failed=failure_text(since[0]), next=acts_next(fleet, node).text)


def _of_node(found: Asked, node: Node, history: History) -> NodeProgress:
    """Progress on one node. What is no remedy was done when it was granted."""
    act = found.intent.act
    if not isinstance(act, RemedyVerb):
        return NodeProgress(node.id, "done")
    request, plan = f"{node.id}/{act.remedy.condition}", node.plan
    if plan is not None and request in plan.causes:
        step = plan.steps[plan.index].operation if plan.index < len(plan.steps) else ""
        told = f"step {min(plan.index + 1, len(plan.steps))} of {len(plan.steps)}, {plan.state}"
        blockers = node.waiting.blockers if node.waiting is not None else ()
        return NodeProgress(node.id, "running", plan.id, step, told, blockers)
    if any(condition.id == request for condition in node.conditions):
        return NodeProgress(node.id, "waiting", blockers=node.waiting.blockers if node.waiting is not None else ())
    return _ended(found, node, request, history)


def _ended(found: Asked, node: Node, request: str, history: History) -> NodeProgress:
    """How it came out, from the node's records since."""
    plans: dict[str, e.PlanEnded] = {}
    cleared = "it is no longer asked for"
    for record in history(node.id):
        if record.seq <= found.seq:
            break
        match record.event:
            case e.PlanEnded():
                plans[record.event.plan] = record.event
            case e.PlanRecorded(plan=plan) if request in plan.causes and (ended := plans.get(plan.id)) is not None:
                return NodeProgress(node.id, _ENDS.get(ended.result, "ended"), plan.id, detail=ended.reason)
            case e.ConditionCleared(condition=condition) if condition == request:
                cleared = record.event.reason
            case _:
                continue
    return NodeProgress(node.id, "ended", detail=cleared)
