"""Progress of an intent: its answer, who waits for what on each node, and how it came out."""

from collections.abc import Callable, Iterable
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.client.answers import IntentProgress, NodeProgress
from hostler.core.planning.domain_plans import is_requested
from hostler.core.policy.holds_and_pauses import held, keeping_away, scopes
from hostler.core.report.last_failures import failure_text, last_failures
from hostler.core.report.next_actor import acts_next
from hostler.core.state import bmc_certificate, bmc_login
from hostler.core.state import events as e
from hostler.core.state.bmc_certificate import BmcCertificate
from hostler.core.state.bmc_login import BmcLogin
from hostler.core.state.change_control import Rollout
from hostler.core.state.dpu_login import login_at
from hostler.core.state.fleet import Fleet
from hostler.core.state.intent import Intent
from hostler.core.state.model import OWNER, Blocker, HoldKind, Node, Phase, Plan
from hostler.core.state.verbs.activation import Activate
from hostler.core.state.verbs.bmc_certificates import RenewCertificate
from hostler.core.state.verbs.bmc_logins import RenewLogin
from hostler.core.state.verbs.call_off import CallOff
from hostler.core.state.verbs.holds import Cordon, Uncordon
from hostler.core.state.verbs.lights import Locate
from hostler.core.state.verbs.machine_work import Clean, Deploy, Inspect
from hostler.core.state.verbs.remedies import RemedyVerb
from hostler.journal.named_records import record_names
from hostler.server.acts import act_view

NODES_SHOWN = 200
_ENDS = {"done": "done", "failed": "failed"}
_OPEN = ("waiting", "running")

History = Callable[[str, int], Iterable[e.Record]]
"""Records about a subject after a record, of the names READ, newest first. Blocks."""
READ = record_names(
    *(e.IntentRecorded, e.ApprovalRequested, e.ApprovalEnded, e.PlanRecorded, e.PlanEnded, e.ConditionCleared)
)


class Asked(Struct, frozen=True):
    """An intent as it stands recorded: when, its answer, the nodes that it concerns, and its approval's end.

    `decided`: when it was granted, by its own answer or by a second person's yes.
    """

    intent: Intent
    seq: int
    at: datetime
    granted: bool
    answer: str
    nodes: tuple[str, ...]
    decided: datetime
    approval: str = ""
    ended: str = ""


def handle_of(intent: str) -> str:
    """The subject under which an intent's records are found."""
    return f"intent:{intent}"


def asked(identity: str, history: History) -> Asked | None:
    """The intent of that id, None where none is recorded."""
    found = next((r for r in history(handle_of(identity), 0) if isinstance(r.event, e.IntentRecorded)), None)
    if found is None or not isinstance(found.event, e.IntentRecorded):
        return None
    event = found.event
    nodes = event.disturbs or event.concerns or event.intent.nodes or (event.intent.target,)
    ended, decided = "", found.at
    for record in history(event.approval, 0) if event.approval else ():
        match record.event:
            case e.ApprovalEnded(result=result):
                ended, decided = ended or result, record.at
            case e.ApprovalRequested(approval=approval):
                nodes = approval.nodes or nodes
            case _:
                continue
    return Asked(event.intent, found.seq, found.at, event.granted, event.answer, nodes, decided, event.approval, ended)


def progress(fleet: Fleet, found: Asked, history: History) -> IntentProgress:
    """The intent's present state."""
    nodes = [fleet.nodes[name] for name in found.nodes if name in fleet.nodes]
    state, text, rows = _state(found), found.answer, tuple[NodeProgress, ...]()
    if state == "under_way":
        shown = nodes[:NODES_SHOWN]
        rows = tuple(_with_failure(fleet, found, node, _of_node(fleet, found, node, history)) for node in shown)
        state = _together(row.state for row in rows)
        if (rollout := _rollout(fleet, found)) is not None:
            state, text = _of_rollout(rollout)
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
        text=text,
        approval=found.approval,
        nodes=rows,
        more=max(0, len(nodes) - len(rows)) if rows else 0,
    )


def _rollout(fleet: Fleet, found: Asked) -> Rollout | None:
    """The rollout by which a configuration comes into force that was asked for; None for what began none."""
    if not isinstance(found.intent.act, Activate):
        return None
    rollouts = (fleet.rollouts[key] for key in fleet.rollouts)
    return next((one for one in rollouts if one.started == found.decided), None)


def _of_rollout(rollout: Rollout) -> tuple[str, str]:
    """State and text of a rollout: it is done once every slice was watched to its end."""
    if rollout.state == "running":
        return "under_way", f"rollout {rollout.id}: slice {rollout.index + 1} of {len(rollout.slices)} is watched"
    if rollout.state == "completed":
        return "done", f"rollout {rollout.id} is completed"
    return "failed", f"rollout {rollout.id} was stopped by {rollout.ended_by}: {rollout.why}"


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


def _of_node(fleet: Fleet, found: Asked, node: Node, history: History) -> NodeProgress:
    """Progress on one node. *Done* is said of what was observed done; of an act that only records, with its answer."""
    act = found.intent.act
    match act:
        case RemedyVerb():
            return _of_remedy(found, node, act, history)
        case Cordon():
            return _cordoned(fleet, found, node, history)
        case Uncordon():
            return _opened(fleet, found, node, history)
        case CallOff():
            return _taken_back(found, node)
        case Locate():
            return _lit(found, node)
        case Inspect() | Deploy() | Clean():
            return _worked_on(found, node)
        case RenewLogin() | RenewCertificate():
            return _renewed(found, node, act)
        case _:
            return NodeProgress(node.id, "done")


def _blockers(node: Node) -> tuple[Blocker, ...]:
    return node.waiting.blockers if node.waiting is not None else ()


def _of_remedy(found: Asked, node: Node, act: RemedyVerb, history: History) -> NodeProgress:
    request, plan = f"{node.id}/{act.remedy.condition}", node.plan
    if plan is not None and request in plan.causes:
        return _running(node, plan)
    if any(condition.id == request for condition in node.conditions):
        return NodeProgress(node.id, "waiting", blockers=_blockers(node))
    return _ended(found, node, request, history)


def _running(node: Node, plan: Plan) -> NodeProgress:
    step = plan.steps[plan.index].operation if plan.state != "undoing" and plan.index < len(plan.steps) else ""
    told = f"step {min(plan.index + 1, len(plan.steps))} of {len(plan.steps)}, {plan.state}"
    if plan.state == "undoing":
        told = f"is being taken back: {plan.reason}"
    return NodeProgress(node.id, "running", plan.id, step, told, _blockers(node))


def _cordoned(fleet: Fleet, found: Asked, node: Node, history: History) -> NodeProgress:
    """Done once the scheduler has shown our cordon, or where no scheduler gives the node work."""
    holds = [hold for hold in fleet.holds_on(scopes(fleet, node)) if hold.kind is HoldKind.cordon]
    if not holds:
        return NodeProgress(node.id, "ended", detail="the cordon has been lifted")
    if OWNER in node.cordons:
        return NodeProgress(node.id, "done")
    if node.assignment is None or node.phase is not Phase.production:
        return NodeProgress(node.id, "done", detail=f"it is in no cluster ({node.phase}), and is kept shut")
    if node.plan is not None and node.plan.name == "cordon":
        return _running(node, node.plan)
    return _tried_again(found, node, "cordon", history)


def _opened(fleet: Fleet, found: Asked, node: Node, history: History) -> NodeProgress:
    """Done once no cordon of ours stands; who else keeps it shut is told."""
    if not node.cordons:
        return NodeProgress(node.id, "done")
    if kept := keeping_away(fleet.holds_on(scopes(fleet, node))):
        return NodeProgress(node.id, "ended", detail=f"it stays shut: {held(kept[0]).text}")
    if node.plan is not None:
        return _running(node, node.plan)
    return _tried_again(found, node, "uncordon", history)


def _tried_again(found: Asked, node: Node, plan: str, history: History) -> NodeProgress:
    """A wait for the scheduler's next turn, or for what the node does; with what the last try since came to."""
    return NodeProgress(node.id, "waiting", detail=_last_failure(found, node, plan, history), blockers=_blockers(node))


def _last_failure(found: Asked, node: Node, plan: str, history: History) -> str:
    ends: dict[str, str] = {}
    for record in history(node.id, found.seq):
        match record.event:
            case e.PlanEnded(plan=ended, reason=reason):
                ends[ended] = reason
            case e.PlanRecorded() if record.event.plan.name == plan:
                return ends.get(record.event.plan.id, "")
            case _:
                continue
    return ""


def _taken_back(found: Asked, node: Node) -> NodeProgress:
    """Done once what the withdrawn request had begun has been taken back; a plan that goes on for a fault is told."""
    plan = node.plan
    if plan is None or not is_requested(plan) or plan.recorded_at > found.at:
        return NodeProgress(node.id, "done")
    if plan.state == "undoing" or not any(condition.id in plan.causes for condition in node.conditions):
        return _running(node, plan)
    return NodeProgress(node.id, "done", detail=f"{plan.name} goes on: {plan.rule}")


def _lit(found: Asked, node: Node) -> NodeProgress:
    light = node.light
    if light is None or not light.wanted or light.asked_at < found.at:
        return NodeProgress(node.id, "ended", detail="it is no longer asked for")
    if light.lit:
        return NodeProgress(node.id, "done")
    return NodeProgress(node.id, "failed" if light.given_up else "running", detail=light.detail)


def _worked_on(found: Asked, node: Node) -> NodeProgress:
    work = node.machine_work
    if work is None or work.asked_at < found.at:
        return NodeProgress(node.id, "ended", detail="it is no longer asked for")
    states = {"asked": "waiting", "begun": "running", "done": "done", "withdrawn": "ended"}
    waits = _blockers(node) if work.state == "asked" else ()
    return NodeProgress(node.id, states.get(work.state, "failed"), detail=work.detail, blockers=waits)


def _renewed(found: Asked, node: Node, act: RenewLogin | RenewCertificate) -> NodeProgress:
    """Done once the new one has been proved; failed where no more is tried before a person says so."""
    known: BmcLogin | BmcCertificate | None = node.bmc_certificate
    gives_up = node.bmc_certificate is not None and bmc_certificate.gives_up(node.bmc_certificate)
    if isinstance(act, RenewLogin):
        known = login_at(node.dpu_logins, act.dpu).login if act.dpu else node.bmc_login
        gives_up = bmc_login.gives_up(known)
    if known is not None and known.renewed_at is not None and known.renewed_at >= found.at:
        return NodeProgress(node.id, "done")
    if known is None or known.asked_at is None:
        return NodeProgress(node.id, "ended", detail="it is no longer asked for")
    if gives_up:
        return NodeProgress(node.id, "failed", detail=known.detail)
    return NodeProgress(node.id, "running" if node.aside else "waiting", detail=known.detail, blockers=_blockers(node))


def _ended(found: Asked, node: Node, request: str, history: History) -> NodeProgress:
    """How it came out, from the node's records since."""
    plans: dict[str, e.PlanEnded] = {}
    cleared = "it is no longer asked for"
    for record in history(node.id, found.seq):
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
