"""Trends of a large fleet from its files, by the command that a controller runs: `python -m bench trend_files`.

100,000 nodes with 20 metrics: a day's runs, as lines, become Parquet and medians and are judged beside the month's
medians; then the same folder is judged again, as on the other times of that day.
"""

import os
import resource
import subprocess
import sys
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pyarrow as pa

from bench.figures import Figures
from hostler.core.statistics.metrics import METRICS
from hostler.journal.daily_medians import COLUMNS, write

NODES = int(os.environ.get("BENCH_NODES", "100000"))
DAYS = int(os.environ.get("BENCH_DAYS", "30"))
RUNS = int(os.environ.get("BENCH_RUNS", "1"))
MISSED = 0.02
"""Of a day's readings, so that no day has the series of another."""
CHECKED = [name for name, metric in METRICS.items() if not metric.at_equal][:20]
"""Metrics of checks and counters, in the order of their table."""


def main() -> Figures:
    """Write the fleet's month, and judge it twice."""
    figures = Figures(f"Trends from files: {NODES:,} nodes, {len(CHECKED)} metrics, {DAYS} days, {RUNS} runs a day")
    last = datetime.now(UTC).date() - timedelta(days=1)
    rng = np.random.default_rng(7)
    levels = {name: 100 * np.exp(rng.normal(0, 0.01, NODES)) for name in CHECKED}
    with TemporaryDirectory() as place:
        folder = Path(place)
        for ago in range(1, DAYS):
            write(folder, last - timedelta(days=ago), _medians(rng, levels, is_moved=ago < 10))
        _write_lines(folder, last)
        figures.add("a day's lines", (folder / f"readings-{last}.jsonl").stat().st_size / 1e6, "MB")
        for what in ("the day's first judgement, which makes its medians", "a judgement of that day"):
            _add_judgement(figures, what, folder)
    return figures


def _add_judgement(figures: Figures, what: str, folder: Path) -> None:
    before, began, load = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter(), os.getloadavg()[0]
    words = (sys.executable, "-m", "hostler.cli.main", "trend", "judge", str(folder), "-o", "json")
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    took, spent = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = spent.ru_utime + spent.ru_stime - before.ru_utime - before.ru_stime
    figures.add(what, took, "s", f"{cpu:.1f} s of CPU, {cpu / 2:.1f} s on each of two cores, load {load:.1f}")
    figures.add("  most memory so far", spent.ru_maxrss / 1024, "MiB")


def _medians(rng: np.random.Generator, levels: dict[str, np.ndarray], *, is_moved: bool) -> pa.Table:
    """A day's medians of all metrics. With the rollout a quarter of the nodes has moved to another driver."""
    names = [f"node-{i:06d}\t" for i in range(NODES)]
    ran = [f"h100 driver={'570' if is_moved and i < NODES // 4 else 550 + i % 4}.86.15" for i in range(NODES)]
    empty = pa.nulls(NODES, pa.float64())
    days = [
        {
            "metric": pa.array([name]).take(pa.array(np.zeros(NODES, dtype=np.int64))),
            "series": names,
            "value": levels[name] * np.exp(rng.normal(0, 0.0055, NODES)),
            "stack": ran,
        }
        for name in sorted(CHECKED)
    ]
    rest = dict.fromkeys(COLUMNS.names[4:], empty)
    whole = pa.concat_tables([pa.table(one | rest, schema=COLUMNS) for one in days])
    return whole.filter(pa.array(rng.random(len(whole)) > MISSED))


def _write_lines(folder: Path, day: date) -> None:
    """Write the runs of a day as the controller leaves them."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        names = ", ".join(f"('{name}')" for name in CHECKED)
        asked = _RUNS.format(day=day, names=names, nodes=NODES, runs=RUNS)
        database.execute(f"COPY ({asked}) TO '{folder}/readings-{day}.jsonl' (FORMAT json)")


_RUNS = """
SELECT strftime(TIMESTAMP '{day}' + INTERVAL (86400 // {runs} * run + i % 3600) SECOND, '%Y-%m-%dT%H:%M:%SZ')
       AS received, printf('node-%06d', i) AS node, 'op-' || run || '-' || i || '/1' AS source, metric, '' AS part,
       100 * exp(0.01 * sin(i) + 0.0055 * 3.46 * (random() - 0.5)) AS value, 'h100' AS sku,
       'driver=' || CASE WHEN i < {nodes} // 4 THEN 570 ELSE 550 + i % 4 END || '.86.15' AS stack,
       '{{"observed_s": 86400}}' AS conditions
FROM range({runs}) r(run), range({nodes}) t(i), (VALUES {names}) m(metric)
"""
