"""Keeps the node's own history: residuals of each reading that physics and bits have passed, oldest first."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hostler_checks import state_dir
from hostler_checks.judging import MIN_HISTORY

FILE, MAX_KEYS, MAX_VALUES = "history.json", 2_000, 400


def load(folder: Path) -> dict[str, list[float]]:
    """The history. Raises DamagedError (the file is set aside), OSError."""
    told = state_dir.read(folder / FILE)
    rows: Mapping[str, Any] = told.get("history", {}) if told else {}
    return {
        key: [float(one) for one in row if isinstance(one, int | float) and math.isfinite(one)]
        for key, row in rows.items()
        if isinstance(row, list)
    }


def save(folder: Path, history: Mapping[str, list[float]]) -> None:
    """Keep it, at most MAX_KEYS keys. Raises OSError."""
    kept = dict(list(history.items())[-MAX_KEYS:])
    state_dir.write(folder / FILE, {"history": kept})


def add(history: dict[str, list[float]], residuals: Mapping[str, float]) -> None:
    """Take in one result's residuals by key; the first ones, the baseline, stay."""
    for key, value in residuals.items():
        row = history.setdefault(key, [])
        row.append(value)
        if len(row) > MAX_VALUES:
            del row[MIN_HISTORY]
