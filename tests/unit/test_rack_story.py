"""A rack's bring-up as it is told step by step: what stood when, where it is or ended, what is to come."""

from datetime import UTC, datetime, timedelta

from hostler.core.report.rack_story import steps_of
from hostler.core.state import events as e
from hostler.core.state.events import Record
from hostler.core.state.rack_runs import Rack, RackEnd, RackRun, RackStep
from hostler.core.tables.rack_recipe import RACK_STEPS

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
STEPS = tuple(RackStep(name, 3600.0, ends_when=f"{name} stands") for name in ("shelves", "trays", "nodes"))


def hour(number: int) -> datetime:
    return NOW + timedelta(hours=number)


def a_run(name: str = "run-2", index: int = 0, since: datetime = NOW) -> RackRun:
    return RackRun(name, "r7", "nvl72", "b1", STEPS, "ada", "new", NOW, since, index)


def records(*events: e.Event) -> list[Record]:
    return [Record(seq, hour(seq), 1, "clock", event) for seq, event in enumerate(events, 1)]


def test_a_step_that_stood_has_its_moments_and_the_present_one_a_deadline() -> None:
    """Mutant: the deadline counts from the run's beginning."""
    told = records(
        e.RackStepDone("r7", "run-1", "shelves", 1),
        e.RackRunBegan(a_run()),
        e.RackStepDone("r7", "run-2", "shelves", 1),
    )
    rows = steps_of(Rack("r7", a_run(index=1, since=hour(3))), reversed(told))
    assert [(row.name, row.state, row.since, row.until, row.deadline) for row in rows] == [
        ("shelves", "done", NOW, hour(3), None),
        ("trays", "at", hour(3), None, hour(4)),
        ("nodes", "to_come", None, None, None),
    ]


def test_a_bring_up_that_failed_or_was_called_off_says_where() -> None:
    """Mutants: steps of the bring-up before count; what ended is still at it; the step that failed counts as done."""
    before = e.RackStepDone("r7", "run-1", "trays", 2)
    told = records(before, e.RackRunBegan(a_run()), e.RackStepDone("r7", "run-2", "shelves", 1))
    for result in ("failed", "called_off"):
        ended = RackEnd("run-2", hour(5), result, "trays", "a fan is ill")
        rows = steps_of(Rack("r7", ended=ended), told)
        assert [(row.state, row.until) for row in rows] == [("done", hour(3)), (result, hour(5)), ("to_come", None)]
    done = records(e.RackRunBegan(a_run()), *(e.RackStepDone("r7", "run-2", s.name, n) for n, s in enumerate(STEPS, 1)))
    over = RackEnd("run-2", hour(5), "done", "nodes")
    assert [row.state for row in steps_of(Rack("r7", ended=over), done)] == ["done"] * 3


def test_a_rack_that_nobody_has_brought_up_has_its_recipe_to_come() -> None:
    rows = steps_of(Rack("r7"), [])
    assert [(row.name, row.state) for row in rows] == [(step.name, "to_come") for step in RACK_STEPS]
