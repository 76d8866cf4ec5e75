"""From files of readings to a report, and what became of its findings."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from hostler.core.report.trend_sentences import drift_sentence, shift_sentence
from hostler.core.state.trends import DaysToFloor, DriftFinding, DriftScores, ShiftFinding, TrendReport
from hostler.core.statistics.false_alarms import AlarmBudget
from hostler.journal.readings import Reading, ReadingStore
from hostler.journal.trend_files import findings, keep, last_report, last_scores
from hostler.runtime.trend_judging import judge_readings
from hostler.runtime.trend_scores import score
from hostler.sim.degrading.readings import Degradation, ReadingWorld
from hostler.sim.degrading.written_readings import METRIC, write

pytestmark = pytest.mark.nightly("trends are judged over months")

NOW = datetime(2026, 3, 30, 23, 59, tzinfo=UTC)
DAY = timedelta(days=1)
WORLD = ReadingWorld(nodes=60, days=30, runs_a_day=4, faulty=2, onset=(8, 12))
BUDGET = AlarmBudget()


def a_drift(**fields: object) -> DriftFinding:
    return replace(DriftFinding("n0001", METRIC, "cuda:0", -0.02, NOW - 5 * DAY, NOW, 1e-6, 1e-4), **fields)


def judged(folder: Path, before: TrendReport | None = None, now: datetime = NOW) -> TrendReport:
    return judge_readings(folder, now, BUDGET, before).report


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    folder = tmp_path_factory.mktemp("readings")
    fleet = write(folder, WORLD, Degradation.step_4, 3, NOW)
    return folder, {f"n{row:04d}" for row in fleet.faulty.nonzero()[0]}


def test_the_faulty_are_found_with_their_day_and_size(drawn: tuple[Path, set[str]]) -> None:
    folder, faulty = drawn
    report = judged(folder)
    assert {one.node for one in report.drifts} == faulty
    assert all(-0.06 < one.change < -0.02 for one in report.drifts)
    assert [(one.metric, one.judged) for one in report.metrics] == [(METRIC, 60)]


def test_each_judged_node_has_a_score_which_is_highest_for_the_faulty(drawn: tuple[Path, set[str]]) -> None:
    """Mutants: only who drifts has one; the score is of the highest sum ever, so that who recovered stays near."""
    folder, faulty = drawn
    scores = judge_readings(folder, NOW, BUDGET).scores
    assert scores.nodes == tuple(f"n{row:04d}" for row in range(60))
    found = dict(zip(scores.nodes, scores.score, strict=True))
    assert {node for node, score in found.items() if score == 100} == faulty
    assert sum(score < 25 for score in found.values()) > 40
    assert {scores.series[at] for at in scores.worst} == {f"{METRIC}/cuda:0"}


def test_a_metric_that_nobody_described_is_not_judged(tmp_path: Path) -> None:
    store = ReadingStore(tmp_path)
    store.add([Reading(NOW, "n1", "op", "made.up", "", 1.0)])
    store.flush()
    assert judged(tmp_path) == TrendReport(NOW, 60)


def test_a_finding_keeps_the_moment_at_which_it_was_found_first(drawn: tuple[Path, set[str]]) -> None:
    folder, _ = drawn
    first = judged(folder, now=NOW - DAY)
    assert {one.found for one in judged(folder, first).drifts} == {NOW - DAY}


def test_who_is_not_looked_at_any_more_has_not_recovered(drawn: tuple[Path, set[str]]) -> None:
    """Mutant: forgetting it clears the condition of a node that has been busy for a month."""
    folder, _ = drawn
    before = TrendReport(NOW, 60, (a_drift(node="gone"),))
    (kept,) = [one for one in judged(folder, before).drifts if one.node == "gone"]
    assert not kept.judged
    assert "could not be judged again" in drift_sentence(kept)


def test_who_is_looked_at_and_drifts_no_more_is_left_out(drawn: tuple[Path, set[str]]) -> None:
    folder, faulty = drawn
    healthy = next(f"n{row:04d}" for row in range(60) if f"n{row:04d}" not in faulty)
    report = judged(folder, TrendReport(NOW, 60, (a_drift(node=healthy),)))
    assert healthy not in {one.node for one in report.drifts}


def test_reports_and_findings_are_kept(tmp_path: Path) -> None:
    assert last_report(tmp_path) is None
    assert findings(tmp_path) == []
    assert last_scores(tmp_path) is None
    report, scores = TrendReport(NOW, 60, (a_drift(),)), DriftScores(NOW, ("n0001",), (100,), (0,), (METRIC,))
    keep(tmp_path, report, scores)
    keep(tmp_path, report, DriftScores(NOW))
    keep(tmp_path, TrendReport(NOW, 60, (a_drift(node="n0002"),)), scores)
    assert last_scores(tmp_path) == scores
    assert [one.node for one in findings(tmp_path)] == ["n0001", "n0002"]
    (tmp_path / "trends.json").write_text("{")
    assert last_report(tmp_path) is None


def test_a_score_counts_what_came_and_what_did_not() -> None:
    """Mutants: an open finding counts as false; a failure before the finding as come true."""
    found = [
        a_drift(node="hit", found=NOW - 40 * DAY),
        a_drift(node="false", found=NOW - 40 * DAY),
        a_drift(node="open", found=NOW - DAY),
        a_drift(node="late", found=NOW - 35 * DAY),
    ]
    failed = [("hit", NOW - 36 * DAY), ("late", NOW - 38 * DAY), ("missed", NOW - 3 * DAY)]
    (one,) = score([METRIC], found, failed, NOW)
    assert (one.came_true, one.false_alarms, one.open, one.missed) == (1, 2, 1, 2)
    assert one.lead_days == 4
    assert one.precision == pytest.approx(1 / 3)
    assert one.recall == pytest.approx(1 / 3)


def test_a_metric_without_findings_has_no_precision() -> None:
    (one,) = score([METRIC], [], [], NOW)
    assert one.precision is None
    assert one.recall is None
    assert one.lead_days is None


def test_findings_as_sentences() -> None:
    assert (
        drift_sentence(a_drift()) == f"{METRIC} of cuda:0 has changed by -2.0% beside peers since 2026-03-25, in a step"
    )
    going = a_drift(daily=-0.002, floor_in=DaysToFloor(12.4, 8.2, None))
    assert "in 12 days (8 to more than 365, 90 %)" in drift_sentence(going)
    shift = ShiftFinding(METRIC, "h100 driver=560", "h100 driver=550", -0.06, NOW, 900)
    assert "with the change from 'h100 driver=550' to 'h100 driver=560'" in shift_sentence(shift)
    assert "without a known change" in shift_sentence(replace(shift, before=shift.stack))
