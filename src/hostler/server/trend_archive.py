"""Trends as the server knows them: where readings go, and the last report on them."""

from datetime import datetime
from pathlib import Path

from hostler.core.state.trends import TrendReport
from hostler.journal.reading_files import ReadingSeries, series_of
from hostler.journal.readings import ReadingStore
from hostler.journal.trend_files import last_report


class TrendArchive:
    """The store of readings of a cell, and the last report; None where nothing was judged yet."""

    def __init__(self, folder: Path) -> None:
        self.store = ReadingStore(folder)
        self.report: TrendReport | None = last_report(folder)

    def series(self, node: str, since: datetime) -> tuple[ReadingSeries, ...]:
        """The node's series since a moment, today's readings among them. Blocks. Raises JournalError."""
        self.store.flush()
        return series_of(self.store.folder, node, since)
