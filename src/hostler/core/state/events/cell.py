"""Events of the whole cell: pauses, modes, other remediators, the storm brake, controllers, clock, format."""

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state import remediators
from hostler.core.state.audit import Seal
from hostler.core.state.cell_record import CellRecord
from hostler.core.state.clock_doubt import Doubt
from hostler.core.state.deadlines import extend
from hostler.core.state.events.rollouts import postpone, watch_anew
from hostler.core.state.events.row import EventRow, EventRows, of_nobody
from hostler.core.state.fleet import Fleet
from hostler.core.state.pool_mode import Mode
from hostler.core.state.scopes import Scope


class PauseSet(Struct, frozen=True, tag="pause_set"):
    """Disruption stops (or goes on) in FLEET, "cluster:NAME" or "pool:NAME"."""

    scope: Scope
    paused: bool
    person: str
    reason: str


class ModeSet(Struct, frozen=True, tag="mode_set"):
    """The pool's mode for one remedy ("*" for all)."""

    pool: str
    remedy: str
    mode: Mode
    person: str


class RemediatorsFound(Struct, frozen=True, tag="remediators_found"):
    """Programs that treat nodes of the cluster too, all that are there now; `person` is who looked."""

    cluster: str
    remediators: tuple[str, ...]
    person: str


class RemediatorAccepted(Struct, frozen=True, tag="remediator_accepted"):
    """A person lets Hostler act beside this program of the cluster, or no longer."""

    cluster: str
    remediator: str
    accepted: bool
    person: str
    reason: str


class BrakeLatched(Struct, frozen=True, tag="brake_latched"):
    """Too much was being disturbed: nothing more is until a person releases the brake."""

    reason: str


class BrakeReleased(Struct, frozen=True, tag="brake_released"):
    """A person released the storm brake."""

    person: str
    reason: str


class ControllerStarted(Struct, frozen=True, tag="controller_started"):
    """A controller became active."""

    epoch: int
    version: str


class ClockGap(Struct, frozen=True, tag="clock_gap"):
    """Time without a controller (`unattended_s`), by which deadlines move; or the clock is in doubt (`doubt`).

    `leap_s`: how much further the wall clock moved than the monotonic one, 0 where that is not the reason.
    """

    unattended_s: float
    leap_s: float = 0.0
    doubt: str = ""


class ClockConfirmed(Struct, frozen=True, tag="clock_confirmed"):
    """The clock is believed again: by a person's word, or because the clocks agree (`person` "clocks")."""

    person: str
    reason: str


class FormatRaised(Struct, frozen=True, tag="format_raised"):
    """From here on events of this format may be written: every controller in `members` reads it."""

    format: int
    members: tuple[str, ...]


class DiskRoomChanged(Struct, frozen=True, tag="disk_room_changed"):
    """The journal's disk has only its reserve left, so that no observations are taken (`low` says so); "": it has room.

    What agents and BMCs saw meanwhile is kept by them and comes later.
    """

    low: str


class AuditSealed(Struct, frozen=True, tag="audit_sealed"):
    """The audit log stood like this: an entry of before that is changed or taken away no longer fits."""

    seals: tuple[Seal, ...]


def _pause(fleet: Fleet, event: PauseSet, at: datetime) -> None:
    kept = tuple(s for s in fleet.cell.paused if s != event.scope)
    _put(fleet, replace(fleet.cell, paused=(*kept, event.scope) if event.paused else kept))
    if not event.paused:
        watch_anew(fleet, at)


def _set_mode(fleet: Fleet, event: ModeSet, _at: datetime) -> None:
    kept = tuple(m for m in fleet.cell.modes if m[:2] != (event.pool, event.remedy))
    _put(fleet, replace(fleet.cell, modes=(*kept, (event.pool, event.remedy, event.mode.value))))


def _find(fleet: Fleet, event: RemediatorsFound, at: datetime) -> None:
    _put(fleet, remediators.found(fleet.cell, event.cluster, event.remediators, at))


def _accept(fleet: Fleet, event: RemediatorAccepted, _at: datetime) -> None:
    who = event.person if event.accepted else ""
    _put(fleet, remediators.accepted(fleet.cell, event.cluster, event.remediator, who))


def _release_brake(fleet: Fleet, _event: BrakeReleased, at: datetime) -> None:
    _put(fleet, replace(fleet.cell, brake="", brake_since=None, calm_since=at))
    watch_anew(fleet, at)


def _gap(fleet: Fleet, event: ClockGap, at: datetime) -> None:
    extend(fleet, timedelta(seconds=event.unattended_s))
    postpone(fleet, timedelta(seconds=event.unattended_s))
    if event.doubt and fleet.cell.doubt is None:
        _put(fleet, replace(fleet.cell, doubt=Doubt(at, event.doubt)))


def _put(fleet: Fleet, cell: CellRecord) -> None:
    fleet.singles.put("cell", cell)


ROWS: EventRows = (
    EventRow(PauseSet, lambda e: (e.scope.text,), _pause),
    EventRow(ModeSet, lambda e: (f"pool:{e.pool}",), _set_mode),
    EventRow(RemediatorsFound, lambda e: (f"cluster:{e.cluster}",), _find),
    EventRow(RemediatorAccepted, lambda e: (f"cluster:{e.cluster}",), _accept),
    EventRow(
        BrakeLatched, of_nobody, lambda fleet, e, at: _put(fleet, replace(fleet.cell, brake=e.reason, brake_since=at))
    ),
    EventRow(BrakeReleased, of_nobody, _release_brake),
    EventRow(ControllerStarted, of_nobody, lambda _fleet, _e, _at: None),
    EventRow(ClockGap, of_nobody, _gap),
    EventRow(ClockConfirmed, of_nobody, lambda fleet, _e, _at: _put(fleet, replace(fleet.cell, doubt=None))),
    EventRow(FormatRaised, of_nobody, lambda fleet, e, _at: _put(fleet, replace(fleet.cell, format=e.format))),
    EventRow(DiskRoomChanged, of_nobody, lambda fleet, e, _at: _put(fleet, replace(fleet.cell, disk=e.low))),
    EventRow(AuditSealed, of_nobody, lambda _fleet, _e, _at: None),
)
