"""Events of holds and maintenance windows."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.events.row import EventRow, EventRows, FoldError, of_nobody, of_others
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import LIFTED, OWNER, Hold, HoldKind
from hostler.core.state.scopes import Scope
from hostler.core.state.windows import Window, WindowAnswer


class HoldPlaced(Struct, frozen=True, tag="hold_placed"):
    """Hold of a person on a node, asset, pool or the fleet."""

    hold: Hold


class HoldReleased(Struct, frozen=True, tag="hold_released"):
    """The hold is over."""

    hold: str
    scope: Scope
    person: str
    reason: str


class WindowScheduled(Struct, frozen=True, tag="window_scheduled"):
    """A maintenance window was set."""

    window: Window


class WindowEnded(Struct, frozen=True, tag="window_ended"):
    """A maintenance window was cancelled."""

    window: str
    person: str


class WindowAnswered(Struct, frozen=True, tag="window_answered"):
    """A tenant whose nodes the window concerns acknowledged it, or asked for another time."""

    window: str
    scope: Scope
    answer: WindowAnswer


def _place(fleet: Fleet, event: HoldPlaced, _at: datetime) -> None:
    fleet.put_hold(event.hold.id, event.hold)
    _lift(fleet, event.hold)


def _lift(fleet: Fleet, hold: Hold) -> None:
    """A person's override is of the cordon that stands: once it is released, a lift that still shows is no other."""
    node = fleet.nodes.get(hold.scope.identity) if hold.kind is HoldKind.override else None
    if node is not None and OWNER in node.cordons:
        fleet.put_node(node.id, replace(node, cordons=(*of_others(node.cordons), LIFTED)))


def _answer(fleet: Fleet, event: WindowAnswered, _at: datetime) -> None:
    """Keep one answer of each tenant: its last."""
    window = fleet.windows.get(event.window)
    if window is None:
        raise FoldError(f"no maintenance window {event.window}")
    others = (one for one in window.answers if one.tenant != event.answer.tenant)
    fleet.windows.put(window.id, replace(window, answers=(*others, event.answer)))


ROWS: EventRows = (
    EventRow(HoldPlaced, lambda e: (e.hold.scope.text,), _place),
    EventRow(HoldReleased, lambda e: (e.scope.text,), lambda fleet, e, _at: fleet.put_hold(e.hold, None)),
    EventRow(
        WindowScheduled,
        lambda e: (e.window.scope.text,),
        lambda fleet, e, _at: fleet.windows.put(e.window.id, e.window),
    ),
    EventRow(WindowAnswered, lambda e: (e.scope.text,), _answer),
    EventRow(WindowEnded, of_nobody, lambda fleet, e, _at: fleet.windows.put(e.window, None)),
)
