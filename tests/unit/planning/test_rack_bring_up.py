"""One step forward for a rack, from values alone."""

from datetime import timedelta

from msgspec.structs import replace

from hostler.core.planning.rack_bring_up import next_rack_step, seat_of, steps_of
from hostler.core.state import events as e
from hostler.core.state.assets import Asset, AssetKind, Binding, Position
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Rest, Wait
from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import Operation
from hostler.core.state.operations import ResetBmc
from hostler.core.state.rack_runs import Rack, RackRun
from hostler.core.tables.rack_recipe import RACK_STEPS
from tests.kit import NOW, configuration

CONFIG = configuration({}, rack={"power_shelves": 1})


def a_context(**length: float) -> DecisionContext:
    return DecisionContext(Fleet(CONFIG), LiveState(), NOW + timedelta(**length))


def a_run(index: int = 0) -> RackRun:
    return RackRun("r7-r1", "r7", "h100", "", steps_of(CONFIG.policy), "ann", "new", NOW, NOW, index=index)


def test_a_rack_without_a_bring_up_rests() -> None:
    assert next_rack_step(a_context(), Rack("r7")) == Rest()


def test_a_step_waits_until_its_limit_and_then_the_bring_up_ends_with_a_ticket() -> None:
    """Mutants: a limit of a step is that of the run; the wait is not asked again at it."""
    rack = Rack("r7", a_run())
    waits = next_rack_step(a_context(), rack)
    assert isinstance(waits, Wait)
    assert waits.until == NOW + timedelta(hours=2)
    over = next_rack_step(a_context(hours=2), rack)
    assert isinstance(over, Act)
    assert [type(event) for event in over.events] == [e.RackRunEnded, e.TicketOpened]


def test_the_last_step_ends_the_bring_up() -> None:
    (ended,) = _events(Rack("r7", a_run(len(RACK_STEPS))))
    assert isinstance(ended, e.RackRunEnded)
    assert (ended.result, ended.step) == ("done", "compute_trays")


def test_an_operation_is_given_up_at_its_deadline_and_may_settle_after_it() -> None:
    """Mutant: what was given up can no longer land."""
    late = Operation("sw1-o1", ResetBmc(), "sw1", "r7-r1", 0, NOW, NOW + timedelta(minutes=15))
    rack = Rack("r7", a_run(), operations=(late,))
    waits = next_rack_step(a_context(), rack)
    assert isinstance(waits, Wait)
    assert waits.until == late.deadline
    gone, *_ = _events(rack, minutes=15)
    assert isinstance(gone, e.AssetOperationFinished)
    assert (gone.result, gone.settle_until) == ("timed_out", NOW + timedelta(minutes=19))
    settled = Rack("r7", settling=(replace(late, deadline=NOW),))
    assert isinstance(_events(settled)[0], e.AssetOperationSettled)


def test_drivers_are_shown_an_asset_by_its_names() -> None:
    names = (Binding("serial", "TR-1", NOW), Binding("bmc", "https://x", NOW))
    seat = seat_of(Asset("sw1", AssetKind.switch_tray, Position("c1"), names), NOW)
    assert (seat.id, seat.binding("serial"), seat.binding("bmc")) == ("sw1", "TR-1", "https://x")


def _events(rack: Rack, **length: float) -> tuple[e.Event, ...]:
    answer = next_rack_step(a_context(**length), rack)
    assert isinstance(answer, Act)
    return answer.events
