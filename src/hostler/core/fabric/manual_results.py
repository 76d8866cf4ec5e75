"""Results of a test by hand: read from CSV whole or refused whole, and set against those of earlier runs."""

import csv
import math
from collections.abc import Iterable, Iterator
from statistics import median

from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.core.state.manual_tests import ManualRun

MOST_ROWS = 2_000
MOST_NAME = 80
LEAST_RUNS = 3
"""Fewer earlier values of a metric are no distribution."""
SPREADS = 5.0
"""So many spreads (median absolute deviations) from the median are irregular; five are past 3 sigma of a bell curve."""
LEAST_SPREAD = 0.02
"""The spread counts for at least this share of the median: bandwidths of sound links repeat within 1 to 2 percent."""


def read(text: str) -> tuple[tuple[str, float], ...]:
    """Metrics and values of CSV lines `metric,value`, with or without a header. Raises InvalidInputError."""
    found: dict[str, float] = {}
    problems: list[Problem] = []
    for line, row in enumerate(csv.reader(text.splitlines()), start=1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or (line == 1 and [cell.lower() for cell in cells] == ["metric", "value"]):
            continue
        if wrong := _wrong(cells, found):
            problems.append(Problem("results", line, wrong, 'write "metric,value": gpu-0001 to gpu-0002,392.1'))
        else:
            found[cells[0]] = float(cells[1])
    if len(found) > MOST_ROWS:
        problems.append(Problem("results", 0, f"{len(found):,} metrics", f"give at most {MOST_ROWS:,}"))
    if not found and not problems:
        problems.append(Problem("results", 0, "no metric", 'write "metric,value"'))
    if problems:
        raise InvalidInputError(tuple(problems[:50]))
    return tuple(found.items())


def _wrong(cells: list[str], found: dict[str, float]) -> str:
    if len(cells) != 2:
        return f"{len(cells)} columns"
    name, value = cells
    if not name or len(name) > MOST_NAME or not name.isprintable():
        return f"metric {name[:40]!r}"
    if name in found:
        return f"metric {name[:40]!r} twice"
    try:
        return "" if math.isfinite(float(value)) else f"value {value[:40]!r}"
    except ValueError:
        return f"value {value[:40]!r}"


def irregular(results: Iterable[tuple[str, float]], earlier: Iterable[ManualRun]) -> tuple[str, ...]:
    """Sentences about the metrics that are not as in the signed runs before, by median and spread of each."""
    runs = [dict(run.results) for run in earlier if run.signed is not None]
    return tuple(_told(results, runs))


def _told(results: Iterable[tuple[str, float]], runs: list[dict[str, float]]) -> Iterator[str]:
    now = dict(results)
    for name, value in now.items():
        before = [run[name] for run in runs if name in run]
        if len(before) < LEAST_RUNS:
            continue
        middle = median(before)
        spread = max(median(abs(one - middle) for one in before), LEAST_SPREAD * abs(middle) / SPREADS * 2)
        if spread and abs(value - middle) > SPREADS * spread:
            yield f"{name} is {value:g}, the median of {len(before)} runs is {middle:g}"
    missed = [name for name in (runs[-1] if runs else {}) if name not in now]
    if missed:
        yield f"{len(missed)} metrics of the last run are missing, {missed[0]} first"
