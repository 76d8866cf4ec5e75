"""Trends as the server knows them: where readings go, the last report on them, and each node's drift score."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

from hostler.core.state.model import Node
from hostler.core.state.passive_series import PassiveReading
from hostler.core.state.trends import DriftScores, TrendReport
from hostler.journal.reading_files import Drawn, ReadingSeries, drawn_of, series_of
from hostler.journal.readings import Reading, ReadingStore
from hostler.journal.trend_files import last_report, last_scores

AMBIENT_FOR = timedelta(hours=9)
"""A BMC's word on the air that a node draws in is believed for so long: two windows and a little."""
SCORED_FOR = timedelta(days=1)
"""A drift score is believed for so long: readings are judged four times a day."""
HEAT, OVER_AMBIENT = "gpu.temperature_c", "gpu.over_ambient_c"


class DriftScore(NamedTuple):
    """How near a node's worst series was to its alarm when it was judged last, in hundredths, and which one it is."""

    hundredths: int
    series: str


class TrendArchive:
    """The store of readings of a cell, the last report, None where nothing was judged yet, and drift scores by node."""

    def __init__(self, folder: Path) -> None:
        self.store = ReadingStore(folder)
        self.report: TrendReport | None = last_report(folder)
        self._scores = DriftScores(datetime.min.replace(tzinfo=UTC))
        self._places: dict[str, int] = {}
        self.read_scores()
        self._ambient: dict[str, tuple[datetime, float, str]] = {}

    def read_scores(self) -> None:
        """Take the drift scores of the last judgement from their file. Blocks."""
        if (found := last_scores(self.store.folder)) is not None:
            self._scores = found
            self._places = {node: place for place, node in enumerate(found.nodes)}

    def drift_score(self, node: str, now: datetime) -> DriftScore | None:
        """The node's drift score; None where it was not judged, or not within SCORED_FOR."""
        place = self._places.get(node)
        if place is None or now - self._scores.at > SCORED_FOR:
            return None
        return DriftScore(self._scores.score[place], self._scores.series[self._scores.worst[place]])

    def series(self, node: str, since: datetime) -> tuple[ReadingSeries, ...]:
        """The node's series since a moment, today's readings among them. Blocks. Raises JournalError."""
        self.store.flush()
        return series_of(self.store.folder, node, since)

    def drawn(self, node: str, since: datetime, until: datetime) -> Drawn:
        """The node's series between two moments in steps, today's readings among them. Blocks. Raises JournalError."""
        self.store.flush()
        return drawn_of(self.store.folder, node, since, until)

    def ambient(self, node: str, at: datetime, mean_c: float, sensor: str) -> None:
        """Keep what a node's BMC says of the air it draws in: a window's mean, and by which sensor."""
        self._ambient[node] = (at, mean_c, sensor)

    def take(self, node: Node, source: str, told: Sequence[PassiveReading], received: datetime) -> None:
        """Keep a window of passive series that was checked. Heat is kept above ambient where that is known."""
        self.store.add([_reading(node, source, received, self._above(node, one, received)) for one in told])

    def _above(self, node: Node, one: PassiveReading, at: datetime) -> PassiveReading:
        known = self._ambient.get(node.id)
        if one.metric != HEAT or known is None or abs(at - known[0]) > AMBIENT_FOR:
            return one
        _, ambient_c, sensor = known
        stack = f"{one.stack} ambient={sensor}".strip()
        conditions = {**one.conditions, "ambient_c": ambient_c}
        return PassiveReading(OVER_AMBIENT, one.part, round(one.value - ambient_c, 3), stack, conditions)


def _reading(node: Node, source: str, received: datetime, one: PassiveReading) -> Reading:
    conditions = msgspec.json.encode(one.conditions).decode()
    return Reading(received, node.id, source, one.metric, one.part, one.value, node.sku, one.stack, conditions)
