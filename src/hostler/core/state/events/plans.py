"""Events of plans: recorded, approved, advanced, undone, ended; and the consent to end work for one."""

from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.cell_record import Removal
from hostler.core.state.customer_workloads import ConsentedWork
from hostler.core.state.drills import Drill, running
from hostler.core.state.events.rollouts import note_plan
from hostler.core.state.events.row import EventRow, EventRows, FoldError, node_of, of_node
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import ActClass, ActFailure, Attempt, Evidence, Node, Phase, Plan
from hostler.core.state.repairs import RepairDone

ATTEMPTS_KEPT = 32
RECENT_KEPT = 4096
YIELDED = "yielded"
"""Result of a plan that gave its place of a budget to an immediate remedy."""
CONSENTS_KEPT = 64
FAILURES_KEPT, REASON_KEPT = 3, 300


class PlanRecorded(Struct, frozen=True, tag="plan_recorded"):
    """A frozen plan with the evidence that decided it and the present facts it was decided on."""

    plan: Plan
    evidence: tuple[Evidence, ...] = ()
    present: dict[str, str] = {}


class PlanApproved(Struct, frozen=True, tag="plan_approved"):
    """A person said yes to a proposed plan."""

    node: str
    plan: str
    person: str


class PlanAdvanced(Struct, frozen=True, tag="plan_advanced"):
    """The plan passed a step boundary and now stands before step `index`."""

    node: str
    plan: str
    index: int


class PlanUndoing(Struct, frozen=True, tag="plan_undoing"):
    """The plan ends early; its undo tail runs from here. `result`: how it will end (cancelled, failed, yielded)."""

    node: str
    plan: str
    reason: str
    result: str = "cancelled"


class PlanEnded(Struct, frozen=True, tag="plan_ended"):
    """`result`: done, failed, cancelled (through its undo tail), superseded (by a graver plan, or by a release).

    Or yielded: it had disturbed nobody, and gave its place of a budget to an immediate remedy; its need waits again.
    """

    node: str
    plan: str
    result: str
    reason: str


class WorkConsented(Struct, frozen=True, tag="work_consented"):
    """Consent to end this running work for one remedy; nothing else on the node is included."""

    node: str
    ticket: str
    work: tuple[ConsentedWork, ...]
    reason: str


def _record_plan(fleet: Fleet, event: PlanRecorded, at: datetime) -> None:
    plan = event.plan
    node = node_of(fleet, plan.node)
    attempts = _kept((*node.attempts, Attempt(plan.remedy or plan.name, plan.part, at, drill=bool(plan.drill))))
    counts = plan.disruptive or plan.act_class in (ActClass.pending, ActClass.immediate)
    deadline = plan.limit if plan.failed_phase and plan.limit else node.deadline
    fleet.put_node(node.id, replace(node, plan=plan, attempts=attempts if counts else node.attempts, deadline=deadline))
    note_plan(fleet, plan)
    if plan.state != "proposed":
        _count_removal(fleet, fleet.nodes[node.id], at)


def _approve(fleet: Fleet, event: PlanApproved, at: datetime) -> None:
    _put_plan(fleet, event.node, lambda p: replace(p, state="running", step_since=at))
    _count_removal(fleet, node_of(fleet, event.node), at)


def _advance(fleet: Fleet, event: PlanAdvanced, at: datetime) -> None:
    _put_plan(
        fleet,
        event.node,
        lambda p: replace(p, index=event.index, step_since=at, refused=p.refused and p.state == "undoing"),
    )


def _undo(fleet: Fleet, event: PlanUndoing, at: datetime) -> None:
    said = {"reason": event.reason, "result": event.result}
    _put_plan(fleet, event.node, lambda p: replace(p, state="undoing", reached=p.index, index=0, step_since=at, **said))


def _put_plan(fleet: Fleet, node_id: str, change: Callable[[Plan], Plan]) -> None:
    node = node_of(fleet, node_id)
    if node.plan is None:
        raise FoldError(f"{node_id} has no plan")
    fleet.put_node(node_id, replace(node, plan=change(node.plan)))


def _count_removal(fleet: Fleet, node: Node, at: datetime) -> None:
    """Guards remember what begins to disturb; what is only proposed takes nothing from any budget."""
    plan = node.plan
    if plan is not None and plan.disruptive:
        seen = Removal(at=at, node=node.id, pool=node.pool, name=plan.name)
        fleet.singles.put("cell", replace(fleet.cell, recent=_recent(fleet, seen)))


def _uncount_removal(fleet: Fleet, plan: Plan) -> None:
    """Forget what began and gave way before it disturbed anybody: it begins once more."""
    own = (plan.node, plan.name, plan.recorded_at)
    kept = tuple(r for r in fleet.cell.recent if (r.node, r.name, r.at) != own)
    fleet.singles.put("cell", replace(fleet.cell, recent=kept))


def _recent(fleet: Fleet, seen: Removal) -> tuple[Removal, ...]:
    day = seen.at - timedelta(days=1)
    kept = fleet.cell.recent
    if kept and kept[0].at < day:
        kept = tuple(r for r in kept if r.at >= day)
    return (*kept, seen)[-RECENT_KEPT:]


def _end_plan(fleet: Fleet, event: PlanEnded, at: datetime) -> None:
    """A plan that disturbed nobody or was refused is a mere try, not a strike; one called off in time is forgotten."""
    node = node_of(fleet, event.node)
    plan, attempts = node.plan, node.attempts
    if plan is not None:
        own = (plan.remedy or plan.name, plan.recorded_at)
        others = tuple(a for a in attempts if (a.remedy, a.at) != own)
        if event.result == "failed":
            struck = plan.disturbed and not plan.busy and not plan.refused
            touched = plan.touched and not plan.busy
            how = Attempt(own[0], plan.part, own[1], struck, failed=True, touched=touched, busy=plan.busy)
            tried = replace(how, drill=bool(plan.drill))
            attempts = (*others, tried)
        elif event.result == YIELDED:
            attempts = (*others, Attempt(own[0], plan.part, own[1], struck=False, touched=False, yielded=True))
            _uncount_removal(fleet, plan)
        elif event.result in ("cancelled", "superseded") and not _has_acted(plan):
            attempts = others
        else:
            did = {"touched": plan.touched, "drill": bool(plan.drill)}
            attempts = tuple(replace(a, **did) if (a.remedy, a.at) == own else a for a in attempts)
    over = plan is not None and plan.disruptive and event.result in ("done", "failed")
    consented = () if over else node.consented
    ended = replace(node, plan=None, attempts=_kept(attempts), consented=consented, drill=_drilled(node, event))
    repairs, failed = _unproven(node, event.result), _failures(node, event, at)
    fleet.put_node(node.id, replace(ended, repairs=repairs, failed=failed))


def _drilled(node: Node, event: PlanEnded) -> Drill | None:
    """The node's drill; one whose remedy failed comes to nothing more."""
    drill, plan = running(node.drill), node.plan
    if drill is None or plan is None or plan.drill != drill.id or event.result != "failed":
        return node.drill
    said = f": {event.reason}" if event.reason else ""
    return replace(drill, failed=f"{plan.name} {event.result}{said}"[:300])


def _failures(node: Node, event: PlanEnded, at: datetime) -> tuple[ActFailure, ...]:
    """The node's last failures: what failed is shown until something of more than ease is done."""
    plan = node.plan
    if event.result == "failed" and not (plan is not None and plan.drill):
        name = plan.name if plan is not None else "a plan"
        return (ActFailure(name, at, event.result, event.reason[:REASON_KEPT]), *node.failed)[:FAILURES_KEPT]
    if event.result != "done" or plan is None:
        return node.failed
    return tuple(one for one in node.failed if plan.act_class is ActClass.easing and one.what != plan.name)


def _unproven(node: Node, result: str) -> tuple[RepairDone, ...]:
    """The repairs that no return has tested yet: in production a whole one answers for those that were before it."""
    plan = node.plan
    if plan is None or result != "done" or node.phase is not Phase.production or not plan.rules.hands:
        return node.repairs
    return tuple(repair for repair in node.repairs if repair.at > plan.recorded_at)


def _kept(attempts: tuple[Attempt, ...]) -> tuple[Attempt, ...]:
    """So many; mere tries are forgotten first: however often one is in vain, what touched the node is remembered."""
    while len(attempts) > ATTEMPTS_KEPT:
        mere = (i for wanted in (_is_mere, _is_in_vain) for i, a in enumerate(attempts[:-1]) if wanted(a))
        first = next(mere, 0)
        attempts = (*attempts[:first], *attempts[first + 1 :])
    return attempts


def _is_mere(attempt: Attempt) -> bool:
    return not attempt.struck


def _is_in_vain(attempt: Attempt) -> bool:
    return not attempt.touched


def _has_acted(plan: Plan) -> bool:
    """Whether calling it off came too late; of a plan that disturbs nobody, every step that was reached is an act."""
    return plan.disturbed or (not plan.disruptive and plan.reached > 0)


def _consent(fleet: Fleet, event: WorkConsented, _at: datetime) -> None:
    """The work may be ended, for that remedy only."""
    node = node_of(fleet, event.node)
    named = frozenset(w.workload for w in event.work)
    others = tuple(w for w in node.consented if w.workload not in named)
    fleet.put_node(node.id, replace(node, consented=(*others, *event.work)[-CONSENTS_KEPT:]))


ROWS: EventRows = (
    EventRow(PlanRecorded, lambda e: (e.plan.node, e.plan.part) if e.plan.part else (e.plan.node,), _record_plan),
    EventRow(PlanApproved, of_node, _approve),
    EventRow(PlanAdvanced, of_node, _advance),
    EventRow(PlanUndoing, of_node, _undo),
    EventRow(PlanEnded, of_node, _end_plan),
    EventRow(WorkConsented, lambda e: (e.node, e.ticket), _consent),
)
