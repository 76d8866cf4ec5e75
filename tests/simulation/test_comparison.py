"""The comparison as it is told: how ours stands, what is kept on disk, what moves the answer, and the page."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from hostler.sim.comparison import constant_ranges, fairness, outcome, page, report_store, sensitivity
from hostler.sim.comparison.comparison_run import ComparisonRequest, Mean, Trial, hold, run_all
from hostler.sim.comparison.constant_ranges import ConstantSensitivity
from hostler.sim.comparison.sensitivity import RangeEnd
from hostler.sim.constants import CONSTANTS
from hostler.sim.difficulty import Hardship
from hostler.sim.peers.peer_table import OURS, PEERS
from hostler.sim.pool_run import SimSettings, run
from hostler.sim.run_report import RunReport

pytestmark = pytest.mark.nightly("whole worlds are lived through")

TINY = SimSettings(nodes=16, days=3.0, rates="rsc1")
DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("figure", "mean", "half", "standing"),
    [
        ("goodput", 0.01, 0.005, "worse"),
        ("goodput", -0.01, 0.005, "better"),
        ("goodput", 0.01, 0.02, "equal"),
        ("goodput", 0.01, None, "equal"),
        ("human_touches", 3.0, 1.0, "better"),
        ("human_touches", -3.0, 1.0, "worse"),
        ("human_touches", 1.0, 1.0, "equal"),
    ],
)
def test_how_ours_stands_is_said_beyond_the_interval_only(
    figure: str, mean: float, half: float | None, standing: str
) -> None:
    """Mutants: an interval that holds 0 counts as a win; more touches are better; one seed decides."""
    assert outcome.stands(figure, Mean(mean, half)) == standing


@pytest.fixture(scope="module")
def trials() -> dict[bool, Trial]:
    return {
        hard: hold(
            ComparisonRequest(replace(TINY, hardship=Hardship() if hard else None), ("rsc1",), ("nobody",), 2, 1)
        )
        for hard in (False, True)
    }


def test_what_is_lost_is_told_first(trials: dict[bool, Trial]) -> None:
    ours, theirs = trials[False].tables["rsc1"]
    worse = dict.fromkeys(theirs.against_ours, Mean(-1.0, 0.1)) | {"goodput": Mean(1.0, 0.1)}
    lines = list(
        outcome.told(
            "plain worlds", replace(trials[False], tables={"rsc1": (ours, replace(theirs, against_ours=worse))})
        )
    )
    assert lines[2].startswith("- *not best in* goodput % (nobody); ")
    assert lines[4] == "- *better in* nothing."


def test_the_oracle_is_no_rival(trials: dict[bool, Trial]) -> None:
    ours, theirs = trials[False].tables["rsc1"]
    bound = replace(theirs, peer="oracle", against_ours=dict.fromkeys(theirs.against_ours, Mean(1.0, 0.1)))
    lines = list(outcome.told("plain worlds", replace(trials[False], tables={"rsc1": (ours, bound)})))
    assert lines[2:5] == [
        "- *not best in* nothing.",
        "- *not told apart by these seeds in* nothing.",
        "- *better in* nothing.",
    ]


def test_what_is_kept_is_not_run_again(tmp_path: Path) -> None:
    """Mutants: the peer, the seed or the hardship is not part of what is asked for."""
    kept = report_store.ReportStore(tmp_path)
    found = run_all([(TINY, OURS.name)], 1, None, kept)
    report = kept.get(TINY, OURS.name)
    assert report == found[TINY, OURS.name]
    assert kept.get(TINY, "nobody") is None
    assert kept.get(replace(TINY, seed=2), OURS.name) is None
    assert kept.get(replace(TINY, hardship=Hardship()), OURS.name) is None
    kept.put(TINY, OURS.name, replace(report, goodput=0.5))
    assert run_all([(TINY, OURS.name)], 1, None, kept)[TINY, OURS.name].goodput == 0.5


def test_a_report_that_was_cut_off_is_run_again(tmp_path: Path) -> None:
    kept = report_store.ReportStore(tmp_path)
    kept.put(TINY, OURS.name, run(TINY))
    next(tmp_path.iterdir()).write_text('{"violations": 0')
    assert kept.get(TINY, OURS.name) is None


def test_other_code_has_other_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: the code that ran is not part of the key."""
    kept = report_store.ReportStore(tmp_path)
    kept.put(TINY, OURS.name, run(TINY))
    monkeypatch.setattr(report_store, "code_digest", lambda: "another")
    assert kept.get(TINY, OURS.name) is None


def test_every_constant_is_moved_to_both_ends_and_alone() -> None:
    """Mutant: a constant stays where it was put for the next row."""
    ends = sensitivity.worlds(TINY, 1)
    assert len(ends) == 1 + 2 * len(CONSTANTS)
    for (name, value), (world,) in ends.items():
        assert world.hardship is not None
        moved = {
            field
            for field in Hardship.__struct_fields__
            if getattr(world.hardship, field) != getattr(Hardship(), field)
        }
        assert moved == {name} - {""}
        assert not name or getattr(world.hardship, name) == value


@pytest.fixture(scope="module")
def ranges(trials: dict[bool, Trial]) -> ConstantSensitivity:
    """The table over reports that differ by their world only."""
    report = run(TINY)
    reports: dict[tuple[SimSettings, str], RunReport] = {}
    for number, (world, name) in enumerate(sensitivity.runs(TINY, 2, ("nobody",))):
        reports[world, name] = replace(report, goodput=0.9 + number / 10_000)
    assert trials
    return ConstantSensitivity(16, 3.0, 2, sensitivity.table(TINY, 2, ("nobody",), reports))


def test_differences_of_the_sensitivity_are_paired(ranges: ConstantSensitivity) -> None:
    for end in ranges.ends:
        assert end.against_ours["nobody"]["goodput"].mean == pytest.approx(0.0001)
    assert sensitivity.spread(ranges.ends, "nobody") == pytest.approx((0.0001, 0.0001))


def test_rows_that_did_not_move_are_told() -> None:
    """Mutants: every row counts; the first one counts."""
    still, moved = Mean(0.9, 0.1), Mean(0.8, 0.1)
    ends = (
        RangeEnd("", 0.0, still, {}),
        RangeEnd("restart_s", 120.0, still, {}),
        RangeEnd("restart_s", 900.0, moved, {}),
    )
    assert "1 of the 3 rows are as the first" in "\n".join(constant_ranges.told(ConstantSensitivity(16, 3.0, 2, ends)))
    assert "as the first" not in "\n".join(constant_ranges.told(ConstantSensitivity(16, 3.0, 2, (ends[0], ends[2]))))


def test_the_page_has_all_its_parts(trials: dict[bool, Trial], ranges: ConstantSensitivity) -> None:
    text = page.document(trials[False], trials[True], ranges)
    for part in ("not best in", "# Plain worlds", "# Hard worlds", "## The numbers of hard worlds", "## Sensitivity"):
        assert part in text
    assert text.index("not best in") < text.index("# Plain worlds")
    assert all(f"| `{name}` |" in text for name in CONSTANTS)


@pytest.mark.smoke
def test_the_written_page_says_what_the_code_says_today() -> None:
    """Rules, peers and constants change with the code: `make peers` writes the page anew.

    Mutant: a constant is changed, and docs/peers.md is not.
    """
    written = (DOCS / "peers.md").read_text(encoding="utf-8")
    for line in (*fairness.told(), *constant_ranges.constants()):
        assert line in written, f"docs/peers.md lacks {line!r}: run make peers"
    for part in ("# Plain worlds", "# Hard worlds", "## Sensitivity", *(f"| **{name}** |" for name in PEERS)):
        assert part in written, f"docs/peers.md lacks {part}: run make peers"


def test_node_days_at_the_vendor_and_empty_places_are_counted() -> None:
    """Two runs that differ in how long the vendor takes, and in nothing else.

    Mutants: who is still away at the end does not count; a place that stays empty does not.
    """
    hard = replace(Hardship(), nothing_found=0.0, dead_on_arrival=0.0)
    short, long = (
        run(SimSettings(nodes=64, days=30.0, rates="rsc1", spares=2, hardship=replace(hard, vendor_days=days)))
        for days in (1.0, 25.0)
    )
    assert long.vendor_node_days > 4 * short.vendor_node_days > 0
    assert long.hours_to_full > 1.5 * short.hours_to_full > 0
