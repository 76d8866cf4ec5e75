"""Tests of a network by hand: a schedule with an owner, results set against earlier runs, a person who signs."""

from datetime import timedelta

import pytest

from hostler.core.fabric.manual_results import read
from hostler.core.notify.notices import notices
from hostler.core.state import events as e
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.manual_tests import ManualTest
from hostler.core.state.notify_routes import PageRules
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
            self.tick()
            assert self.drive.ask("sign-manual-test", NAME, person="otto").granted

    def tick(self) -> None:
        for step in self.test.unticked:
            assert self.drive.ask("tick-manual-test", NAME, person="tess", step=str(step)).granted

    def overdue(self) -> list[e.ManualTestOverdue]:
        """Returns the recorded overdue runs so far."""
        return [r.event for r in self.drive.journal if isinstance(r.event, e.ManualTestOverdue)]


def test_a_run_is_entered_signed_by_a_person_and_due_again_a_week_later() -> None:
    week = Week()
    assert week.test.due - week.test.since == timedelta(days=7)
    week.run(SOUND, signed=False)
    assert week.test.due < week.drive.now + timedelta(seconds=1), "entered is not signed off"
    week.tick()
    assert week.drive.ask("sign-manual-test", NAME, person="otto").granted
    (run,) = week.test.runs
    assert (run.person, run.signed_by, run.notes, len(run.results)) == ("tess", "otto", "rail 3 was warm", 2)
    assert week.test.due == week.test.runs[0].signed + timedelta(days=7)  # type: ignore[operator]
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


PHOTO = {"digest": "a" * 64, "name": "leaf.jpg", "media_type": "image/jpeg", "size": "1000"}


def test_each_step_is_ticked_by_a_person_before_the_run_is_signed_and_stays_with_it() -> None:
    """Mutants: a run is signed over a step that nobody did; ticks of one week count for the next."""
    week = Week()
    week.run(SOUND, signed=False)
    assert week.drive.ask("tick-manual-test", NAME, person="tess", step="2", note="none was amber").granted
    refused = week.drive.ask("sign-manual-test", NAME, person="otto")
    assert not refused.granted
    assert "step 1 (ib_write_bw by rail) is not ticked" in refused.text
    assert not week.drive.ask("tick-manual-test", NAME, person="tess", step="3").granted
    assert week.drive.ask("tick-manual-test", NAME, person="tess", step="1").granted
    again = week.drive.ask("tick-manual-test", NAME, person="ann", step="1", note="looked twice")
    assert again.granted
    assert [(tick.step, tick.person, tick.note) for tick in week.test.ticks] == [
        (1, "ann", "looked twice"),
        (2, "tess", "none was amber"),
    ]
    assert week.drive.ask("add-manual-test-file", NAME, person="tess", **PHOTO).granted
    assert week.drive.ask("sign-manual-test", NAME, person="otto").granted
    run = week.test.runs[-1]
    assert ([tick.person for tick in run.ticks], [file.name for file in run.files]) == (["ann", "tess"], ["leaf.jpg"])
    assert (week.test.ticks, week.test.files, week.test.unticked) == ((), (), (1, 2))
    assert load(dump(state_of(week.drive.fleet))).manual_tests[NAME] == week.test
    assert digest(fold(week.drive.journal)) == digest(week.drive.fleet)


def test_another_checklist_has_no_ticks_of_the_old_one() -> None:
    week = Week()
    week.tick()
    same = {"owner": "ann", "checklist": "ib_write_bw by rail; look at LEDs"}
    assert week.drive.ask("schedule-manual-test", NAME, **same).granted
    assert len(week.test.ticks) == 2
    assert week.drive.ask("schedule-manual-test", NAME, **same | {"checklist": "another; look at LEDs"}).granted
    assert not week.test.ticks


def test_the_same_file_is_added_once_and_so_many_at_most() -> None:
    week = Week()
    assert week.drive.ask("add-manual-test-file", NAME, **PHOTO).granted
    before = len(week.test.files)
    assert week.drive.ask("add-manual-test-file", NAME, **PHOTO).granted
    assert len(week.test.files) == before == 1
    for number in range(19):
        assert week.drive.ask("add-manual-test-file", NAME, **PHOTO | {"digest": f"{number:064x}"}).granted
    assert not week.drive.ask("add-manual-test-file", NAME, **PHOTO | {"digest": "b" * 64}).granted
    assert not week.drive.ask("add-manual-test-file", NAME, **PHOTO | {"media_type": "text/html"}).granted


def test_an_overdue_test_is_told_once_and_is_over_when_a_run_is_signed() -> None:
    """Mutants: it is told at each look; entered is as good as signed; a schedule that is set anew is never overdue."""
    week = Week()
    week.drive.wait(days=6, hours=23)
    assert week.overdue() == []
    week.drive.wait(hours=2)
    (told,) = week.overdue()
    assert (told.owner, told.due) == ("tess", week.test.due)
    (notice,) = notices(told, {}, PageRules())
    assert (notice.topic, notice.action, notice.subject) == ("manual_test", "open", f"manual_test/{NAME}")
    assert f"network {NAME} has been overdue since" in notice.summary
    week.drive.wait(days=3)
    week.run(SOUND, signed=False)
    assert len(week.overdue()) == 1
    week.tick()
    assert week.drive.ask("sign-manual-test", NAME, person="otto").granted
    (signed,) = (r.event for r in week.drive.journal if isinstance(r.event, e.ManualTestSigned))
    (over,) = notices(signed, {}, PageRules())
    assert (over.action, over.subject) == ("over", notice.subject)
    week.drive.wait(days=7, hours=1)
    assert len(week.overdue()) == 2
    assert week.drive.ask("schedule-manual-test", NAME, owner="ann", every_days="1", checklist="x").granted
    assert [one.owner for one in week.overdue()] == ["tess", "tess", "ann"]
    assert digest(fold(week.drive.journal)) == digest(week.drive.fleet)


@pytest.mark.parametrize(
    ("verb", "args"),
    [
        ("schedule-manual-test", {"owner": "", "checklist": "x"}),
        ("schedule-manual-test", {"owner": "tess", "checklist": " ; "}),
        ("schedule-manual-test", {"owner": "tess", "checklist": "x", "every_days": "0.1"}),
        ("schedule-manual-test", {"owner": "tess", "checklist": ";".join("x" * 51)}),
        ("enter-manual-test", {"results": "a,1"}),
        ("sign-manual-test", {}),
        ("tick-manual-test", {"step": "1"}),
        ("add-manual-test-file", PHOTO),
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
