"""Readings of a drawn fleet as files, as the checks of a real one leave them: to try trends on."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from hostler.journal.readings import Reading, ReadingStore
from hostler.sim.degrading.readings import Degradation, FleetReadings, ReadingWorld, draw

METRIC = "gemm_perf.bf16_tflops"


def write(folder: Path, world: ReadingWorld, degradation: Degradation, seed: int, until: datetime) -> FleetReadings:
    """Draw a fleet and write its readings, the last of them on the day of `until`. Raises JournalError."""
    fleet = draw(world, degradation, seed)
    first = until.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=world.days - 1)
    store = ReadingStore(folder)
    for day in range(world.days):
        store.add([one for one in _day(fleet, day, first + timedelta(days=day)) if one.received <= until])
        store.flush()
    return fleet


def _day(fleet: FleetReadings, day: int, begins: datetime) -> list[Reading]:
    found = []
    runs = fleet.runs.shape[2]
    for row, run in zip(*np.nonzero(~np.isnan(fleet.runs[:, day])), strict=True):
        node, at = f"n{row:04d}", begins + timedelta(hours=24 * int(run) / runs)
        stack = "driver=560" if fleet.stacks[row, day] else "driver=550"
        source = f"{node}-idle-{int(at.timestamp())}"
        found.append(Reading(at, node, source, METRIC, "cuda:0", float(fleet.runs[row, day, run]), "H100", stack))
    return found
