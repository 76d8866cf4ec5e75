"""Waits as history: each reason with its length in the story, the lane and the statement; and how seldom it flaps."""

from datetime import timedelta
from itertools import pairwise

import pytest
from msgspec.structs import replace

from hostler.controller.wakeups import TOLD_AT_ONCE, told
from hostler.core.report.explain import explain, text
from hostler.core.report.lanes import lanes
from hostler.core.report.node_hours import stays
from hostler.core.state import events as e
from hostler.core.state.decisions import Wait
from hostler.core.state.model import Blocker, HoldKind, Waiting
from hostler.core.state.ways_out import by_time
from tests.kit import NOW, Drive, a_node, a_workload, after, configuration, pool_document


def two(**budget: object) -> Drive:
    pools = {"train": pool_document(target=2, budget={"count": 1, "percent": 100, "reserve": 0, **budget})}
    return Drive(configuration(pools), [a_node("a"), a_node("b")])


def waited() -> Drive:
    """A power cycle of `a` that waited for the budget, then for a hold, and is done."""
    drive = two()
    drive.see_work("b", a_workload("w"))
    assert drive.ask("drain", "b").granted
    drive.run()
    drive.fault("a", "off_bus")
    drive.run()
    assert drive.node("a").plan is None
    drive.wait(seconds=73)
    drive.ask("hold", "a")
    drive.wait(seconds=30)
    drive.see_work("b")
    drive.run()
    drive.ask("uncordon", "b")
    drive.wait(minutes=1)
    drive.ask("release", next(iter(drive.fleet.holds)))
    drive.wait(minutes=20)
    assert drive.node("a").conditions == ()
    return drive


def records(drive: Drive, node: str) -> list[e.Record]:
    return [record for record in drive.journal if node in e.subjects_of(record.event)]


def test_a_remedy_that_has_waited_is_told_with_each_wait_its_reason_and_its_length() -> None:
    """Mutants: waits are left out of the story; what it took begins with the plan; a reason's end is the next's end."""
    drive = waited()
    found = explain(records(drive, "a"), drive.node("a"))
    (chain,) = (one for one in found.chains if one.remedy is not None and one.remedy.name == "power_cycle")
    first = chain.waits[0]
    assert (first.what, first.kinds) == ("power_cycle", ("budget",))
    assert first.seconds is not None
    assert 103 <= first.seconds < 110, "the hold came on top of the budget"
    assert any("hold" in spell.kinds for spell in chain.waits), [spell.kinds for spell in chain.waits]
    before = [spell for spell in chain.waits if spell.since < chain.remedy.recorded]  # type: ignore[union-attr,operator]
    assert all(one.until == two.since for one, two in pairwise(before)), "one after the other"
    assert "of it before it began" in chain.outcome
    said = text(found)
    assert f"waited     {first.since:%H:%M:%S} for" in said
    assert "pool train: 1 of 2 unavailable" in said


def test_a_changed_reason_does_not_begin_the_wait_anew() -> None:
    """Mutant: `since` is the last reason's."""
    drive = two()
    drive.see_work("b", a_workload("w"))
    drive.ask("drain", "b")
    drive.run()
    drive.fault("a", "off_bus")
    drive.run()
    began = drive.node("a").waiting
    assert began is not None
    drive.wait(seconds=40)
    drive.ask("hold", "a")
    drive.see_work("b")
    drive.run()
    drive.ask("uncordon", "b")
    drive.wait(seconds=10)
    now = drive.node("a").waiting
    assert now is not None
    assert [b.kind for b in now.blockers] == ["hold"]
    assert now.since == began.since
    assert now.told is not None
    assert now.told > began.since


def test_each_reason_is_a_span_of_the_timeline_and_hours_of_the_statement() -> None:
    """Mutants: the lane shows one span for all reasons; the statement forgets who waited; a wait outlives its phase."""
    drive = waited()
    mine = records(drive, "a")
    found = [one for one in lanes("a", mine).intervals if one.lane == "wait"]
    assert found[0].what == "power_cycle"
    assert found[0].state == "budget"
    assert all(one.until is not None for one in found), "nothing waits now"
    assert any(one.state == "hold" for one in found)
    (stay,) = stays("a", mine, drive.node("a"), NOW, drive.now + timedelta(minutes=1))
    awaited = {(one.what, one.reason): seconds for one, seconds in stay.waited}
    assert 73 <= awaited["power_cycle", "budget"] < 120
    assert sum(seconds for _, seconds in stay.spent) == stay.had_s, "what waited is no part of the sum"


def wait_for(*names: str) -> Wait:
    return Wait("reboot", tuple(Blocker("budget", f"pool:{n}", n, by_time("later")) for n in names), None)


REASONS = [
    ("ab", "c"),
    ("a", "b", "c"),
    ("a", "ab", "b"),
    ("abcd", "bcd", "cd", "d"),
    ("abc", "bc", "c", "xyz", "yz", "z"),
    tuple("abcdefghijkl"),
]


@pytest.mark.parametrize("reasons", REASONS)
def test_reasons_that_flap_are_told_a_bounded_number_of_times(reasons: tuple[str, ...]) -> None:
    """A day in which the reason changes each minute. Mutants: each change is told; `since` moves; the last one is lost.

    What is told while reasons flap among a few names all of them most of the time, as coming by turns.
    """
    node, told_times, untrue, now = a_node("a"), 0, 0, NOW
    waiting: Waiting | None = None
    for minute in range(24 * 60):
        now = after(minutes=minute)
        here = set(reasons[minute % len(reasons)])
        fresh = told(replace(node, waiting=waiting), wait_for(*reasons[minute % len(reasons)]), now)
        assert fresh is not None
        untrue += not here <= {b.text for b in fresh.blockers}
        told_times += fresh != waiting
        waiting = fresh
    assert waiting is not None
    assert TOLD_AT_ONCE <= told_times <= 110
    assert waiting.since == NOW
    if len(reasons) < 4:
        assert untrue <= 0.12 * 24 * 60
    quiet = told(replace(node, waiting=waiting), wait_for("a"), now + timedelta(hours=4))
    assert quiet is not None
    assert [b.text for b in quiet.blockers] == ["a"]
    assert not quiet.by_turns


def test_that_fewer_are_waited_for_is_told_at_once_and_is_no_turn() -> None:
    """A rack of 18 catches up tray by tray. Mutant: after six, trays are named that have caught up long since.

    What is waited for after them is the first change of reason, and told at once as well.
    """
    everybody = "abcdefghijklmnopq"
    waiting: Waiting | None = None
    for caught_up in range(len(everybody)):
        now = after(seconds=caught_up)
        waiting = told(replace(a_node("a"), waiting=waiting), wait_for(*everybody[caught_up:]), now)
        assert waiting is not None
        assert [b.text for b in waiting.blockers] == list(everybody[caught_up:])
    waiting = told(replace(a_node("a"), waiting=waiting), wait_for("job"), after(seconds=20))
    assert waiting is not None
    assert [b.text for b in waiting.blockers] == ["job"]
    assert waiting.changes == 1


def test_a_day_of_flapping_reasons_is_few_records_and_a_sweep_finds_nothing() -> None:
    """Through the loop. Mutant: the clock does not wake what is told late, and a sweep finds it."""
    drive = two()
    drive.ask("cordon", "b")
    drive.run()
    drive.fault("a", "off_bus")
    drive.run()
    for _ in range(60):
        drive.ask("hold", "a")
        drive.wait(minutes=5)
        assert drive.sweep() == 0
        drive.ask("release", next(h.id for h in drive.fleet.holds.values() if h.kind is HoldKind.operator))
        drive.ask("pause", "pool:train")
        drive.wait(minutes=5)
        assert drive.sweep() == 0
        drive.ask("resume", "pool:train")
    changes = [one for one in drive.events(e.WaitingChanged) if one.node == "a"]
    assert len(changes) <= 60
