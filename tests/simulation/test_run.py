"""`hostler sim run` in small: figures that add up, the same for the same seed, and rates as they were published."""

import msgspec
import pytest

from hostler.core.state.input_problems import InvalidInputError
from hostler.sim import failure_rates
from hostler.sim.pool_run import SimSettings, run
from hostler.sim.run_report import RunReport, format_report
from hostler.sim.world.fault_kinds import COMPONENTS, CURES, KINDS

SMALL = SimSettings(nodes=96, days=40.0, seed=3)


@pytest.fixture(scope="module")
def report() -> RunReport:
    return run(SMALL)


def test_a_small_cluster_breaks_no_law(report: RunReport) -> None:
    assert report.violations == 0, report.violation_texts
    assert report.sweep_findings == 0


def test_figures_add_up(report: RunReport) -> None:
    minutes = report.unproductive_minutes_per_failure
    parts = minutes.detect + minutes.isolate + minutes.replace + minutes.restart + minutes.lost_work
    assert minutes.total == pytest.approx(parts, abs=0.01)
    assert 0.9 < report.goodput < 1.0
    assert report.detections <= report.failures
    lost = minutes.total * report.failures / (report.days * 1440)
    write_share = SMALL.checkpoint_write_s / (report.checkpoint_minutes * 60 + SMALL.checkpoint_write_s)
    assert 1 - report.goodput == pytest.approx(lost + write_share, abs=0.004)


def test_the_same_seed_gives_the_same_run(report: RunReport) -> None:
    again = run(SMALL)
    assert again.journal_digest == report.journal_digest
    assert run(SimSettings(nodes=96, days=40.0, seed=4)).journal_digest != report.journal_digest


def test_progress_is_told() -> None:
    told: list[float] = []
    run(SimSettings(nodes=8, days=3.0), told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_the_report_is_readable_by_people_and_programs(report: RunReport) -> None:
    assert "goodput" in format_report(report)
    assert msgspec.json.decode(msgspec.json.encode(report), type=RunReport) == report


def test_llama3_is_the_published_count() -> None:
    found = failure_rates.load("llama3")
    assert found.per_1000_node_days == pytest.approx(3.79, abs=0.005)
    assert found.per_second(2048) * 86_400 * 54 == pytest.approx(419)
    assert sum(share.share for share in found.shares) == pytest.approx(1.0)


@pytest.mark.parametrize(("name", "rate"), [("rsc1", 6.50), ("rsc2", 2.34)])
def test_presets(name: str, rate: float) -> None:
    assert failure_rates.load(name).per_1000_node_days == rate


def test_every_component_fails_in_a_way_that_something_cures() -> None:
    for share in failure_rates.load("llama3").shares:
        assert share.component in COMPONENTS
    for ways in COMPONENTS.values():
        assert sum(part for _, part in ways) == pytest.approx(1.0)
        assert all(name in KINDS for name, _ in ways)
    for kind in KINDS.values():
        assert sum(part for _, part in kind.cures) == pytest.approx(1.0)
        assert all(cure in CURES for cure, _ in kind.cures)


TITLE = "component\tcategory\tinterruptions\n"
HEAD = "# nodes: 10\n# days: 5\n" + TITLE


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# nodes: ten\n# days: 5\n" + TITLE + "gpu\tgpu\t3\n", 1),
        ("# nodes: 10\n# days: 5\ncomponent,category,interruptions\n", 3),
        (HEAD + "gpu\tgpu\n", 4),
        (HEAD + "gpu\tgpu\t3\nnic\thost\tmany\n", 5),
        (HEAD + "gpu\tgpu\t-3\n", 4),
        (HEAD + "gpu\tgpu\tnan\n", 4),
        (HEAD, 1),
        ("# days: 5\n" + TITLE + "gpu\tgpu\t3\n", 1),
    ],
)
def test_a_malformed_table_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(InvalidInputError) as refused:
        failure_rates.parse(text, "mine.tsv")
    assert refused.value.problems[0].line == line


def test_a_file_that_is_not_there_names_the_presets() -> None:
    with pytest.raises(InvalidInputError, match="llama3"):
        failure_rates.load("/nowhere/rates.tsv")


@pytest.mark.parametrize("settings", [SimSettings(nodes=0), SimSettings(days=-1), SimSettings(spares=-1)])
def test_settings_out_of_range_are_refused(settings: SimSettings) -> None:
    with pytest.raises(InvalidInputError):
        run(settings)
