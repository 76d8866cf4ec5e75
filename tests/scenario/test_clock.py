"""Clocks that stand, leap and lie: time never goes back, and nothing expires that nobody could attend to."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hostler.controller.cell_clock import CellClock
from hostler.controller.inputs import ClockSeen, Observed, Replied, Tick
from hostler.controller.loop import Controller
from hostler.core.policy.storm_brake import storm
from hostler.core.state import events as e
from hostler.core.state.clock_doubt import GAP_S, LONG_S, Witness, opening
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import HoldKind, Node, Observation, Outcome, Phase
from tests.kit import BAD_LINES, NOW, Drive, a_hold, a_node, after, configuration, fold, pool_document

YEAR_S = 365 * 86_400.0
ALONE = configuration({"train": pool_document(target=1)})
FLASHES = configuration({"train": pool_document(target=1)}, firmware={"BIOS": "2"})


class Shell:
    """A driver's two clocks beside a Drive: what a runner does every turn."""

    def __init__(self, drive: Drive) -> None:
        self.drive = drive
        self.wall = drive.now
        self.monotonic_s = 1_000.0
        self.clock = CellClock(drive.controller.now, self.wall, self.monotonic_s)

    def turn(self, seconds: float, leap_s: float = 0.0) -> ClockSeen:
        """Time passes and perhaps the wall clock leaps besides; then one step of the controller."""
        self.monotonic_s += seconds
        self.wall += timedelta(seconds=seconds + leap_s)
        return self.read()

    def read(self) -> ClockSeen:
        doubted = self.drive.fleet.cell.doubt is not None
        seen = self.clock.read(self.wall, self.monotonic_s, doubted=doubted)
        self.drive.now = self.clock.now
        self.drive.step(*([seen] if seen else [Tick()]))
        return seen

    def attend(self, seconds: float, turn_s: float = 30.0) -> None:
        """So long, in turns as a running controller has them."""
        for _ in range(round(seconds / turn_s)):
            self.turn(turn_s)


def doubted(drive: Drive) -> bool:
    return drive.fleet.cell.doubt is not None


def zapping() -> Node:
    return a_node("a", pool="", phase=Phase.zap, phase_since=NOW, deadline=after(hours=6), firmware=(("BIOS", "1"),))


# --- nobody there


@pytest.mark.parametrize("landed", [True, False])
def test_seven_hours_down_in_the_middle_of_firmware(landed: bool) -> None:
    """Mutants: deadlines stand as recorded; the operation times out before it was observed; it is sent again."""
    drive = Drive(FLASHES, [zapping()])
    started = drive.node("a").operation
    assert started is not None
    assert started.kind == "update_firmware"
    deadline, limit = started.deadline, drive.node("a").deadline
    drive.restart(gap_s=7 * 3600, out_happens=landed)
    assert [gap.unattended_s for gap in drive.events(e.ClockGap)] == [7 * 3600]
    node = drive.node("a")
    assert node.phase is Phase.zap
    assert node.operation is not None
    assert node.operation.deadline == deadline + timedelta(hours=7)
    assert limit is not None
    assert node.deadline == limit + timedelta(hours=7)
    assert [send.how for send in drive.pending] == ["observe"]
    drive.run()
    assert drive.performed[started.id, 1] == landed, "firmware is never written a second time by itself"
    assert drive.node("a").phase is (Phase.production if landed else Phase.zap_fail)


def test_nothing_expires_before_it_was_observed_after_a_start() -> None:
    """Mutant: `_outstanding` looks at the deadline only."""
    drive = Drive(FLASHES, [zapping()])
    operation = drive.node("a").operation
    assert operation is not None
    drive.pending.clear()
    drive.now = operation.deadline - timedelta(seconds=1)
    drive.ask("pause", "rack:far")  # the last record, one second before the deadline
    drive.restart(gap_s=600, out_happens=True)
    (look,) = drive.pending
    drive.pending.clear()
    drive.now += timedelta(seconds=30)
    drive.step(Tick())
    assert drive.node("a").operation == look.operation, "its second is over, and nobody has looked yet"
    drive.effects.add(operation.id)
    drive.serve(look)
    drive.run()
    assert "timed_out" not in [f.result for f in drive.events(e.OperationFinished)]
    assert drive.node("a").phase is Phase.production


def test_what_was_observed_not_to_have_happened_and_is_over_its_time_ends_at_once() -> None:
    """Mutant: it is left for whoever comes by next, as what may be sent again usually is."""
    drive = Drive(FLASHES, [a_node("a")])
    drive.script("cordon", *["vanished"] * 9)
    drive.fault("a")
    while (operation := drive.node("a").operation) is None or operation.attempt < 3:
        drive.wait(seconds=1)
    drive.now = operation.deadline - timedelta(seconds=1)
    drive.ask("pause", "rack:far")  # the last record, one second before the deadline
    drive.restart(gap_s=5)
    (look,) = drive.pending
    drive.pending.clear()
    drive.now += timedelta(seconds=1)
    drive.step(Tick())
    assert drive.node("a").operation == look.operation, "nobody has looked yet"
    drive.step(Replied(Outcome(operation.id, "a", "not_done", attempt=operation.attempt)))
    assert drive.node("a").operation != look.operation
    assert drive.sweep() == 0


def test_an_answer_about_an_earlier_attempt_does_not_say_what_came_of_this_one() -> None:
    """Mutant: any answer about an operation counts as having looked, and what is over its time is given up at once."""
    drive = Drive(FLASHES, [a_node("a")])
    drive.script("cordon", *["vanished"] * 9)
    drive.fault("a")
    while (operation := drive.node("a").operation) is None or operation.attempt < 3:
        drive.wait(seconds=1)
    drive.now = operation.deadline - timedelta(seconds=1)
    drive.ask("pause", "rack:far")  # the last record, one second before the deadline
    drive.restart(gap_s=5)
    (look,) = drive.pending
    drive.pending.clear()
    drive.now += timedelta(seconds=1)
    drive.step(Replied(Outcome(operation.id, "a", "done", attempt=operation.attempt - 1)))
    assert drive.node("a").operation == look.operation, "nobody has looked what came of the last attempt"
    drive.step(Replied(Outcome(operation.id, "a", "done", attempt=operation.attempt)))
    assert drive.node("a").operation != look.operation


def test_what_cannot_be_observed_expires_all_the_same() -> None:
    """Operations of all kinds end. Mutant: an unobserved operation waits for ever."""
    drive = Drive(FLASHES, [zapping()])
    drive.script("update_firmware", "mute")
    drive.run()
    drive.restart(gap_s=3600)
    drive.pending.clear()
    drive.wait(hours=3)
    assert drive.events(e.OperationFinished)[0].result == "timed_out"


def test_a_process_that_was_held_up_finds_out_by_itself() -> None:
    """A gap inside a running controller. Mutants: it is no event; the present of seven hours ago still counts."""
    drive = Drive(FLASHES, [zapping(), a_node("b")])
    shell = Shell(drive)
    operation = drive.node("a").operation
    assert operation is not None
    drive.pending.clear()
    shell.turn(7 * 3600)
    (gap,) = drive.events(e.ClockGap)
    assert (gap.unattended_s, gap.leap_s, gap.doubt) == (7 * 3600, 0.0, "")
    assert drive.controller.live.workloads(drive.node("b")) is None
    assert [(s.how, s.operation.id) for s in drive.pending] == [("observe", operation.id)]
    assert drive.node("a").operation is not None
    assert drive.node("a").phase is Phase.zap


def test_a_turn_of_less_than_a_minute_is_no_gap() -> None:
    drive = Drive(ALONE, [a_node("a")])
    shell = Shell(drive)
    before = len(drive.journal)
    for seconds in (0.5, 59.0, 60.0, 1.0):
        assert not shell.turn(seconds)
    assert len(drive.journal) == before


# --- clocks that leap


@pytest.mark.parametrize("leap_s", [YEAR_S, -YEAR_S])
def test_a_leap_of_a_year_moves_no_deadline_and_is_doubted(leap_s: float) -> None:
    """Mutants: controller time follows the wall; a doubt is not recorded; time stands still after a leap back."""
    drive = Drive(FLASHES, [zapping()])
    shell = Shell(drive)
    operation = drive.node("a").operation
    assert operation is not None
    drive.pending.clear()
    shell.turn(10.0, leap_s)
    (gap,) = drive.events(e.ClockGap)
    assert gap.leap_s == pytest.approx(leap_s)
    assert "jumped" in gap.doubt
    assert drive.controller.now == after(seconds=10)
    assert drive.node("a").operation == operation
    shell.attend(1800)
    assert drive.controller.now == after(seconds=1810), "time goes on by the clock that did not leap"
    assert drive.node("a").operation == operation
    shell.attend(5400)
    assert drive.node("a").operation is None, "and its deadline comes when its time is over"


def test_holds_windows_strikes_and_the_brake_stand_still_while_the_clock_is_doubted() -> None:
    """Mutants: `Scene.now` in the place of `Scene.sure`, for each of the four."""
    pools = {"train": pool_document(target=4)}
    drive = Drive(configuration(pools), [a_node(f"n{i}") for i in range(4)])
    drive.ask("hold", "n0", hours="1")
    drive.ask("schedule-maintenance", "pool:train", starts=str(after(minutes=30)), ends=str(after(hours=2)))
    drive.fault("n1", "ecc")
    drive.run()
    shell = Shell(drive)
    shell.turn(1.0, 8 * 86_400.0)
    shell.attend(3 * 3600, 50.0)
    assert [h.scope.text for h in drive.fleet.holds.values()] == ["n0"], "the hold's hour is not known to be over"
    assert drive.fleet.windows, "nor is the window"
    drive.ask("drain", "n2")
    waiting = drive.node("n2").waiting
    assert waiting is not None
    assert "no maintenance window" in waiting.blockers[0].text
    assert "hostler clock confirm" in waiting.blockers[0].ends_when
    limit = drive.fleet.policy.brake.disruptions
    assert storm(DecisionContext(drive.fleet, drive.controller.live, drive.now), limit), (
        "the brake's window has not moved on"
    )
    drive.ask("confirm-clock", "fleet")
    assert not doubted(drive)
    shell.read()
    assert drive.controller.now == shell.wall, "a person has said that the wall clock is right"
    assert "n0" not in [h.scope.text for h in drive.fleet.holds.values()]
    assert not list(drive.fleet.windows.values())
    assert drive.events(e.ClockGap)[-1].unattended_s == pytest.approx(8 * 86_400.0, abs=60.0)


def test_a_strike_is_not_forgotten_because_the_clock_jumped() -> None:
    """Mutant: the ladder counts its seven days by a clock that nobody believes."""
    honest, leaping = (Drive(ALONE, [a_node("a")]) for _ in range(2))
    shell = Shell(leaping)
    for drive in (honest, leaping):
        for _ in range(2):
            drive.fault("a", "ecc")
            drive.wait(minutes=20)
    shell = Shell(leaping)
    shell.turn(1.0, 30 * 86_400.0)
    honest.fault("a", "ecc")
    leaping.fault("a", "ecc")
    assert leaping.plans("a") == honest.plans("a")
    assert leaping.plans("a")[-1] != leaping.plans("a")[0], "the third time is graver"


def test_the_clocks_agreeing_again_ends_the_doubt() -> None:
    drive = Drive(ALONE, [a_node("a")])
    shell = Shell(drive)
    shell.turn(5.0, YEAR_S)
    shell.turn(600.0 / 12)
    assert doubted(drive)
    seen = shell.turn(5.0, -YEAR_S)
    assert seen.agrees
    assert not doubted(drive)
    assert [c.person for c in drive.events(e.ClockConfirmed)] == ["clocks"]
    assert drive.controller.now == shell.wall
    assert not shell.turn(1.0)


def test_a_clock_that_a_person_confirms_though_it_jumped_back_never_takes_time_back() -> None:
    drive = Drive(ALONE, [a_node("a")])
    shell = Shell(drive)
    shell.turn(5.0, -YEAR_S)
    drive.ask("confirm-clock", "fleet")
    moments = []
    for _ in range(10):
        shell.turn(30.0)
        moments.append(drive.controller.now)
    assert moments == sorted(moments)
    assert moments[-1] - moments[0] == timedelta(seconds=270)
    assert not doubted(drive)


@pytest.mark.parametrize("leap_s", [YEAR_S, -YEAR_S, -3600.0])
def test_a_start_whose_clock_is_a_year_off_is_doubted_and_goes_on_from_the_journal(leap_s: float) -> None:
    """Mutants: a start follows any clock; what was recorded last is forgotten."""
    drive = Drive(FLASHES, [zapping()])
    before = drive.now
    operation = drive.node("a").operation
    assert operation is not None
    drive.pending.clear()
    drive.controller = Controller(fold(drive.journal), LiveState(), {}, 2)
    drive._complete(drive.controller.resume(before + timedelta(seconds=leap_s), "test"))  # noqa: SLF001 - a start
    assert drive.controller.now == before
    doubt = drive.fleet.cell.doubt
    assert doubt is not None
    assert f"{before:%Y-%m-%d}" in doubt.text
    assert drive.node("a").operation is not None
    assert drive.node("a").operation.deadline == operation.deadline  # type: ignore[union-attr]


def test_a_start_with_a_clock_that_agrees_ends_a_doubt() -> None:
    drive = Drive(ALONE, [a_node("a")])
    Shell(drive).turn(5.0, YEAR_S)
    assert doubted(drive)
    drive.restart(gap_s=20)
    assert not doubted(drive)


def test_a_standby_whose_wall_clock_is_two_hours_ahead_is_not_believed() -> None:
    """The standby measured on its own monotonic clock that the last record came eight seconds ago."""
    witness = Witness(unattended_s=7.0, since_record_s=8.0)
    skewed = opening(NOW, after(hours=2), witness)
    assert skewed.now == after(seconds=8)
    assert skewed.doubt
    assert skewed.unattended_s == 7.0
    honest = opening(NOW, after(seconds=9), witness)
    assert (honest.now, honest.unattended_s, honest.doubt) == (after(seconds=9), 7.0, "")


def test_a_quiet_cell_is_extended_by_what_was_unattended_only() -> None:
    """Mutant: the gap counts from the last record though a standby knows better."""
    begun = opening(NOW, after(hours=5), Witness(unattended_s=6.0, since_record_s=5 * 3600.0))
    assert (begun.now, begun.unattended_s, begun.doubt) == (after(hours=5), 6.0, "")


def test_without_a_witness_a_week_is_believed_and_more_is_asked_about() -> None:
    assert not opening(NOW, NOW + timedelta(seconds=LONG_S), None).doubt
    assert opening(NOW, NOW + timedelta(seconds=LONG_S + GAP_S + 1), None).doubt
    assert not opening(None, datetime(1970, 1, 1, tzinfo=UTC), None).doubt


@given(st.lists(st.tuples(st.floats(0, 1e5), st.sampled_from([0.0, 0.0, 61.0, -61.0, YEAR_S, -YEAR_S, 5.0, -5.0]))))
def test_time_never_goes_back_and_never_runs_ahead_of_both_clocks(turns: list[tuple[float, float]]) -> None:
    """Controller time moves by no more than the monotonic clock, whatever the wall does, unless the wall bears it out.

    Mutants: `max` is left out; a leap is followed; a leap back stops time.
    """
    wall, monotonic_s, doubted = NOW, 0.0, False
    clock = CellClock(NOW, wall, monotonic_s)
    for passed_s, leap_s in turns:
        before = clock.now
        monotonic_s += passed_s
        wall += timedelta(seconds=passed_s + leap_s)
        seen = clock.read(wall, monotonic_s, doubted=doubted)
        moved_s = (clock.now - before).total_seconds()
        assert moved_s >= 0
        assert moved_s <= passed_s + GAP_S + 1
        assert moved_s >= passed_s - 2 * GAP_S - 1
        assert bool(seen.unattended_s) == (passed_s > GAP_S)
        doubted = (doubted or abs(seen.leap_s) > GAP_S) and not seen.agrees


# --- what others stamp


def test_a_servers_stamp_from_another_year_is_not_taken_for_controller_time() -> None:
    """Mutant: the stamp of arrival is taken as it stands."""
    drive = Drive(ALONE, [a_node("a")])
    for stamp in (after(days=365), after(days=-365), datetime(1970, 1, 1, tzinfo=UTC)):
        seen = Observation(
            "a", "kernel_log", "agent", f"s{stamp.year}", 1, "a-b1", 0.0, BAD_LINES["off_bus"], facility=0
        )
        drive.step(Observed(0, "a", (replace(seen, text=seen.text.format(gpu=0), received=stamp),)))
    raised = [c.condition for c in drive.events(e.ConditionRaised)]
    assert [(c.type, c.since, c.last_seen) for c in raised] == [("gpu.fallen_off_bus", NOW, NOW)]


def test_a_hold_ends_by_the_clock_when_nothing_is_in_doubt() -> None:
    drive = Drive(ALONE, [a_node("a")])
    drive.controller._record_all((e.HoldPlaced(a_hold("a", HoldKind.operator, until=after(hours=1))),), "t")  # noqa: SLF001
    drive.fleet.merge()
    shell = Shell(drive)
    shell.attend(3700, 50.0)
    assert not list(drive.fleet.holds.values())
