"""`hostler trend` against a served cell: drifts, a node's days, shifts and scores, as an operator types them."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from hostler.cli.exit_codes import ExitCode
from hostler.core.state.trends import DriftFinding, MetricLooked, RuleScore, ShiftFinding, TrendReport
from hostler.journal.readings import Reading, ReadingStore
from hostler.journal.trend_files import REPORT
from tests.end_to_end.served import NODE, Served, served_beside

pytestmark = pytest.mark.nightly("processes are started and ended for minutes")

METRIC = "gemm_perf.bf16_tflops"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    """A served node, whose controller finds readings and a report beside its journal."""
    now = datetime.now(UTC)
    folder = tmp_path / "archive" / "readings"
    store = ReadingStore(folder)
    store.add(
        [Reading(now - timedelta(days=n), NODE, f"op-{n}", METRIC, "cuda:0", 740.0 - n, "this") for n in range(3)]
    )
    store.flush()
    drift = DriftFinding(NODE, METRIC, "cuda:0", -0.02, now, now, 1e-6, 1e-4)
    shift = ShiftFinding(METRIC, "this driver=560", "this driver=550", -0.06, now, 900)
    report = TrendReport(
        now, 60, (drift,), (shift,), (MetricLooked(METRIC, 40),), (RuleScore(METRIC, 3, 1, 2, 1, 6.5),)
    )
    (folder / REPORT).write_bytes(msgspec.json.encode(report))
    how = ["--archive", str(tmp_path / "archive")]
    async with served_beside(tmp_path, "none", {}, how, 90.0) as world:
        yield world


async def test_trends_as_an_operator_asks_for_them(served: Served) -> None:
    """Mutants: a verb of the command line asks another path than the API has; a table lacks its column."""
    code, said = await served.tell("trend", "list")
    assert code == ExitCode.ok, said
    assert NODE in said
    assert METRIC in said
    code, said = await served.tell("trend", "list", "-o", "json")
    assert [(row["node"], row["acted"]) for row in json.loads(said)["items"]] == [(NODE, False)]
    code, said = await served.tell("trend", "show", NODE)
    assert code == ExitCode.ok, said
    assert "740" in said
    code, said = await served.tell("trend", "shifts")
    assert code == ExitCode.ok, said
    assert "driver=560" in said
    code, said = await served.tell("trend", "scorecard", "-o", "json")
    assert json.loads(said)["items"][0]["precision"] == pytest.approx(0.75)
    code, said = await served.tell("trend", "show", "nobody")
    assert code != ExitCode.ok
    assert "nobody" in said
