"""Puts together, metric by metric, which series of each node is nearest to its alarm."""

from collections.abc import Sequence
from datetime import datetime

import numpy as np

from hostler.core.state.trends import DriftScores, series_key
from hostler.core.statistics.medians import Floats

SERIES_BITS = 32
"""Of a number that holds a score and, below it, the place of its series: the larger of two is the nearer one."""


class WorstSeries:
    """The worst series of each node so far."""

    def __init__(self) -> None:
        self._worst: dict[str, int] = {}
        self._keys: dict[str, int] = {}

    def add(self, metric: str, series: Sequence[tuple[str, str]], nearness: Floats) -> None:
        """Take in a metric's series (node, part), each with how near it is to its alarm; NaN: it was not judged."""
        rows = np.flatnonzero(~np.isnan(nearness))
        scores = np.floor(nearness[rows] * 100).astype(np.int64) << SERIES_BITS
        places: dict[str, int] = {}
        for row, score in zip(rows.tolist(), scores.tolist(), strict=True):
            node, part = series[row]
            place = places.get(part)
            if place is None:
                place = places[part] = self._keys.setdefault(series_key(metric, part), len(self._keys))
            if score + place > self._worst.get(node, -1):
                self._worst[node] = score + place

    def scores(self, at: datetime) -> DriftScores:
        """Score and worst series of each node that has one, by name."""
        nodes = sorted(self._worst)
        found = [self._worst[node] for node in nodes]
        return DriftScores(
            at,
            tuple(nodes),
            tuple(one >> SERIES_BITS for one in found),
            tuple(one & (1 << SERIES_BITS) - 1 for one in found),
            tuple(self._keys),
        )
