"""Tests of a network by hand: a schedule with an owner, results set against earlier runs, a person who signs."""

from datetime import timedelta

import pytest

from hostler.core.fabric.manual_results import due, read
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.manual_tests import ManualTest
from hostler.core.state.snapshot import dump, load, state_of
from tests.fabric_cell import NAME, FabricCell
from tests.fabrics import a_fabric
from tests.kit import Drive, digest, fold

SOUND = "metric,value\ngpu-0001 to gpu-0002,392.1\ngpu-0003 to gpu-0004,391.8\n"


class Week:
    """A network whose test by hand is scheduled."""

    def __init__(self) -> None:
        self.cell = FabricCell(Drive(), a_fabric())
        self.drive = self.cell.drive
        asked = self.drive.ask(
            "schedule-manual-test", NAME, owner="tess", checklist="ib_write_bw by rail; look at LEDs"
        )
        assert asked.granted, asked.text

    @property
    def test(self) -> ManualTest:
        return self.drive.fleet.manual_tests[NAME]

    def run(self, results: str, *, signed: bool = True) -> None:
        self.drive.wait(days=7)
        entered = self.drive.ask("enter-manual-test", NAME, person="tess", results=results, notes="rail 3 was warm")
        assert entered.granted, entered.text
        if signed:
            assert self.drive.ask("sign-manual-test", NAME, person="otto").granted


def test_a_run_is_entered_signed_by_a_person_and_due_again_a_week_later() -> None:
    week = Week()
    assert due(week.test) - week.test.since == timedelta(days=7)
    week.run(SOUND, signed=False)
    assert due(week.test) < week.drive.now + timedelta(seconds=1), "entered is not signed off"
    assert week.drive.ask("sign-manual-test", NAME, person="otto").granted
    (run,) = week.test.runs
    assert (run.person, run.signed_by, run.notes, len(run.results)) == ("tess", "otto", "rail 3 was warm", 2)
    assert due(week.test) == week.test.runs[0].signed + timedelta(days=7)  # type: ignore[operator]
    assert not week.drive.ask("sign-manual-test", NAME, person="otto").granted, "there is nothing left to sign"


def test_a_metric_that_is_not_as_in_the_weeks_before_is_pointed_out() -> None:
    """Mutants: unsigned runs count; two runs are a distribution; a metric that is missing is not told."""
    week = Week()
    for _ in range(3):
        week.run(SOUND)
        assert week.test.runs[-1].irregular == ()
    week.run(SOUND.replace("392.1", "340"), signed=False)
    (told,) = week.test.runs[-1].irregular
    assert told == "gpu-0001 to gpu-0002 is 340, the median of 3 runs is 392.1"
    week.run(SOUND.replace("392.1", "390"), signed=False)
    assert not week.test.runs[-1].irregular, "half a percent is the usual spread"
    week.run("gpu-0001 to gpu-0002,392\n", signed=False)
    assert week.test.runs[-1].irregular == ("1 metrics of the last run are missing, gpu-0003 to gpu-0004 first",)


def test_runs_survive_a_new_schedule_and_a_snapshot_and_end_with_the_network() -> None:
    week = Week()
    week.run(SOUND)
    again = week.drive.ask("schedule-manual-test", NAME, owner="ann", every_days="14", checklist="one step")
    assert again.granted, again.text
    assert (week.test.owner, week.test.every_days, len(week.test.runs)) == ("ann", 14, 1)
    assert load(dump(state_of(week.drive.fleet))).manual_tests[NAME] == week.test
    assert digest(fold(week.drive.journal)) == digest(week.drive.fleet)
    for _ in range(20):
        week.run(SOUND)
    assert len(week.test.runs) == 12
    assert week.drive.ask("remove-fabric", NAME).granted
    assert not list(week.drive.fleet.manual_tests.values())


@pytest.mark.parametrize(
    ("verb", "args"),
    [
        ("schedule-manual-test", {"owner": "", "checklist": "x"}),
        ("schedule-manual-test", {"owner": "tess", "checklist": " ; "}),
        ("schedule-manual-test", {"owner": "tess", "checklist": "x", "every_days": "0.1"}),
        ("schedule-manual-test", {"owner": "tess", "checklist": ";".join("x" * 51)}),
        ("enter-manual-test", {"results": "a,1"}),
        ("sign-manual-test", {}),
    ],
)
def test_what_makes_no_sense_is_refused(verb: str, args: dict[str, str]) -> None:
    cell = FabricCell(Drive(), a_fabric())
    assert not cell.drive.ask(verb, NAME, **args).granted
    assert not list(cell.drive.fleet.manual_tests.values())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no metric"),
        ("a", "1 columns"),
        ("a,1,2", "3 columns"),
        ("a,fast", "value 'fast'"),
        ("a,nan", "value 'nan'"),
        ("a,1\na,2", "twice"),
        (",1", "metric ''"),
        ("a\x1b[31m,1", "metric"),
        (f"{'x' * 81},1", "metric"),
        ("\n".join(f"m{n},1" for n in range(2_001)), "at most 2,000"),
    ],
)
def test_results_are_refused_whole_with_the_line(text: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        read(text)
