"""Events of rollouts: started, slice by slice, stopped or completed."""

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.change_control import ERRORS_KEPT, ROLLOUTS_KEPT, Rollout, SliceError
from hostler.core.state.events.row import EventRow, EventRows
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Phase, Plan


class RolloutStarted(Struct, frozen=True, tag="rollout_started"):
    """A new configuration is put in force slice by slice, the first from here on."""

    rollout: Rollout


class SliceStarted(Struct, frozen=True, tag="slice_started"):
    """The slice before gave no cause to stop: the next is reached, and watched until `until` at least."""

    rollout: str
    index: int
    pool: str
    until: datetime
    expected: tuple[str, ...] = ()


class SliceErrorSeen(Struct, frozen=True, tag="slice_error_seen"):
    """The new configuration did something to a node that the one before would not have done."""

    rollout: str
    index: int
    error: SliceError


class RolloutStopped(Struct, frozen=True, tag="rollout_stopped"):
    """The configuration before is in force everywhere again. `person` "hostler": it stopped by itself."""

    rollout: str
    reason: str
    person: str


class RolloutCompleted(Struct, frozen=True, tag="rollout_completed"):
    """Every slice was watched; the new configuration is activated with the record that follows."""

    rollout: str


def _start(fleet: Fleet, event: RolloutStarted, _at: datetime) -> None:
    """The first slice is reached; rollouts that ended long ago are left to the journal."""
    ended = [key for key in fleet.rollouts if fleet.rollouts[key].state != "running"]
    for key in ended[: max(0, len(ended) - ROLLOUTS_KEPT + 1)]:
        fleet.rollouts.put(key, None)
    fleet.rollouts.put(event.rollout.id, event.rollout)
    fleet.singles.put("cell", replace(fleet.cell, rollout=event.rollout.id))


def _start_slice(fleet: Fleet, event: SliceStarted, at: datetime) -> None:
    """The next slice is reached, and watched with a clean sheet."""
    rollout = fleet.rollouts[event.rollout]
    reached = replace(rollout, index=event.index, since=at, until=event.until, expected=event.expected, errors=())
    fleet.rollouts.put(rollout.id, reached)


def _note_error(fleet: Fleet, event: SliceErrorSeen, _at: datetime) -> None:
    """One more error of the slice; of each kind a node shows one."""
    rollout = fleet.rollouts[event.rollout]
    if event.error.kind == "ahead":
        fleet.rollouts.put(rollout.id, replace(rollout, ahead=(*rollout.ahead, event.error.node)))
    else:
        fleet.rollouts.put(rollout.id, replace(rollout, errors=(*rollout.errors, event.error)[-ERRORS_KEPT:]))


def _end(fleet: Fleet, rollout_id: str, state: str, ending: tuple[datetime, str, str]) -> None:
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


ROWS: EventRows = (
    EventRow(RolloutStarted, lambda e: (e.rollout.id,), _start),
    EventRow(SliceStarted, lambda e: (e.rollout, f"pool:{e.pool}") if e.pool else (e.rollout,), _start_slice),
    EventRow(SliceErrorSeen, lambda e: (e.rollout, e.error.node), _note_error),
    EventRow(
        RolloutStopped,
        lambda e: (e.rollout,),
        lambda fleet, e, at: _end(fleet, e.rollout, "stopped", (at, e.person, e.reason)),
    ),
    EventRow(
        RolloutCompleted,
        lambda e: (e.rollout,),
        lambda fleet, e, at: _end(fleet, e.rollout, "completed", (at, "hostler", "every slice was watched")),
    ),
)
