"""The fold of reach: what approvals, consents and rollouts do to the fleet. Reads no table, no clock and no present."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from hostler.core.state import events as e
from hostler.core.state.cell_record import DisturbanceByPerson
from hostler.core.state.change_control import ERRORS_KEPT, ROLLOUTS_KEPT, Rollout
from hostler.core.state.fleet import ACTS_KEPT, Fleet
from hostler.core.state.model import Node, Phase, Plan

CONSENTS_KEPT = 64


def count_act(fleet: Fleet, event: e.IntentRecorded, at: datetime) -> None:
    """Remember whom a person's word alone let be disturbed, for a day."""
    if not event.granted or not event.disturbs:
        return
    day = at - timedelta(days=1)
    acts = (*(a for a in fleet.cell.acts if a.at > day), DisturbanceByPerson(at, event.intent.person, event.disturbs))[
        -ACTS_KEPT:
    ]
    fleet.singles.put("cell", replace(fleet.cell, acts=acts))


def consent(fleet: Fleet, node: Node, event: e.WorkConsented) -> None:
    """The work may be ended, for that remedy only."""
    named = frozenset(w.workload for w in event.work)
    others = tuple(w for w in node.consented if w.workload not in named)
    fleet.put_node(node.id, replace(node, consented=(*others, *event.work)[-CONSENTS_KEPT:]))


def start(fleet: Fleet, rollout: Rollout) -> None:
    """The first slice is reached; rollouts that ended long ago are left to the journal."""
    ended = [key for key in fleet.rollouts if fleet.rollouts[key].state != "running"]
    for key in ended[: max(0, len(ended) - ROLLOUTS_KEPT + 1)]:
        fleet.rollouts.put(key, None)
    fleet.rollouts.put(rollout.id, rollout)
    fleet.singles.put("cell", replace(fleet.cell, rollout=rollout.id))


def start_slice(fleet: Fleet, event: e.SliceStarted, at: datetime) -> None:
    """The next slice is reached, and watched with a clean sheet."""
    rollout = fleet.rollouts[event.rollout]
    reached = replace(rollout, index=event.index, since=at, until=event.until, expected=event.expected, errors=())
    fleet.rollouts.put(rollout.id, reached)


def note_error(fleet: Fleet, event: e.SliceErrorSeen) -> None:
    """One more error of the slice; of each kind a node shows one."""
    rollout = fleet.rollouts[event.rollout]
    if event.error.kind == "ahead":
        fleet.rollouts.put(rollout.id, replace(rollout, ahead=(*rollout.ahead, event.error.node)))
    else:
        fleet.rollouts.put(rollout.id, replace(rollout, errors=(*rollout.errors, event.error)[-ERRORS_KEPT:]))


def end(fleet: Fleet, rollout_id: str, state: str, ending: tuple[datetime, str, str]) -> None:
    """The rollout is over: `ending` is when, by whom and why. What it carried is in the journal."""
    ended, by, why = ending
    over = replace(
        fleet.rollouts[rollout_id], state=state, ended=ended, ended_by=by, why=why, configuration=None, documents={}
    )
    fleet.rollouts.put(rollout_id, over)
    fleet.singles.put("cell", replace(fleet.cell, rollout=""))


def note_plan(fleet: Fleet, plan: Plan) -> None:
    """A plan of the configuration that is rolled out takes its node out of its pool: remember the node."""
    rollout = fleet.rollout
    if rollout is None or plan.config != rollout.sha256 or plan.to_phase != Phase.triage.value:
        return
    if plan.node not in rollout.removed:
        fleet.rollouts.put(rollout.id, replace(rollout, removed=(*rollout.removed, plan.node)[-ERRORS_KEPT:]))


def watch_anew(fleet: Fleet, at: datetime) -> None:
    """Disruption goes on after a pause or the brake: only from now on does the slice show what it would do."""
    rollout = fleet.rollout
    if rollout is not None:
        until = max(rollout.until, at + timedelta(seconds=rollout.soak_s))
        fleet.rollouts.put(rollout.id, replace(rollout, since=at, until=until))


def postpone(fleet: Fleet, gap: timedelta) -> None:
    """Move the deadlines of slices and approvals by `gap`: meanwhile nobody watched the slice or could answer."""
    rollout = fleet.rollout
    if rollout is not None:
        fleet.rollouts.put(rollout.id, replace(rollout, since=rollout.since + gap, until=rollout.until + gap))
    for key in list(fleet.approvals):
        approval = fleet.approvals[key]
        fleet.put_approval(key, replace(approval, expires=approval.expires + gap))
