"""Changes of the last 24 hours, counted from the journal as far as it is cheap, and people's changes."""

import asyncio
from collections import Counter, deque
from datetime import datetime, timedelta
from itertools import islice

from msgspec import Struct

from hostler.core.state import events as e
from hostler.core.state.events import Record, name_of
from hostler.core.state.health import BARS
from hostler.journal.named_records import each_named_since, record_names
from hostler.server.api_resources import HistoryRow, history_row
from hostler.server.cell_view import CellView

DAY = timedelta(hours=24)
LOOK_BACK = 20_000
"""Records counted when the first caller asks; what is older is not counted, and `since` says so."""
AT_ONCE = 20_000
"""Records read per request after that."""
CHANGES_KEPT = 100
MOVES_KEPT = 20
HOURS_KEPT = 25
CHANGES = record_names(e.IntentRecorded, e.BrakeLatched, e.ControllerStarted)
MOVES = record_names(e.PhaseChanged, e.ConditionRaised)


def _is_move(event: e.Event) -> bool:
    """Tell whether the event changes how a node stands: a move of phase, or a condition that bars service."""
    if isinstance(event, e.ConditionRaised):
        return event.condition.severity >= BARS
    return isinstance(event, e.PhaseChanged)


def _is_change(event: e.Event) -> bool:
    """Tell whether the event helps to find the cause of a change."""
    if isinstance(event, e.IntentRecorded):
        return event.granted
    return isinstance(event, e.BrakeLatched | e.ControllerStarted)


class Changes(Struct, frozen=True):
    """Events by name since `since`; newest first, what people had done, brakes latched and controllers started.

    `moves`: newest first, nodes that moved along the lifecycle, and conditions that keep nodes from service. Both lists
    are read by name and of all 24 hours, whatever else was recorded.
    """

    since: datetime | None
    counts: dict[str, int]
    latest: tuple[HistoryRow, ...]
    moves: tuple[HistoryRow, ...] = ()


class Recent:
    """Reads what the journal has gained since it was asked last."""

    def __init__(self, cell: CellView) -> None:
        self._cell = cell
        self._seen: int | None = None
        self._since: datetime | None = None
        self._hours: dict[datetime, Counter[str]] = {}
        self._latest: deque[Record] = deque(maxlen=CHANGES_KEPT)
        self._moves: deque[Record] = deque(maxlen=MOVES_KEPT)
        self._lock = asyncio.Lock()

    async def changes(self, now: datetime) -> Changes:
        """The last 24 hours as far as they have been read."""
        async with self._lock:
            seq = self._cell.health().seq
            after = max(0, seq - LOOK_BACK) if self._seen is None else self._seen
            if seq > after:
                first = self._seen is None and after > 0
                named = await asyncio.to_thread(self._read_named, now - DAY, after) if first else []
                records = await asyncio.to_thread(self._read, after)
                self._keep(named)
                self._take(records)
        begin = now - DAY
        for hour in [h for h in self._hours if h < begin - timedelta(hours=1)]:
            del self._hours[hour]
        counts: Counter[str] = sum(self._hours.values(), Counter())
        since = max(self._since, begin) if self._since else None
        latest, moves = (
            tuple(history_row(r) for r in reversed(kept) if r.at >= begin) for kept in (self._latest, self._moves)
        )
        return Changes(since, dict(sorted(counts.items())), latest, moves)

    def _read(self, after: int) -> list[Record]:
        return list(islice(self._cell.journal.records(after), AT_ONCE))

    def _read_named(self, begin: datetime, last: int) -> list[Record]:
        """Changes and moves since a moment up to record `last`, as many as are kept, in their order."""
        found: dict[int, Record] = {}
        for names, wanted, most in ((CHANGES, _is_change, CHANGES_KEPT), (MOVES, _is_move, MOVES_KEPT)):
            told = each_named_since(self._cell.journal, names, begin)
            kept = islice((r for r in told if r.seq <= last and wanted(r.event)), most)
            found |= {record.seq: record for record in kept}
        return [found[seq] for seq in sorted(found)]

    def _keep(self, records: list[Record]) -> None:
        self._latest.extend(record for record in records if _is_change(record.event))
        self._moves.extend(record for record in records if _is_move(record.event))

    def _take(self, records: list[Record]) -> None:
        for record in records:
            hour = record.at.replace(minute=0, second=0, microsecond=0)
            self._hours.setdefault(hour, Counter())[name_of(record.event)] += 1
        self._keep(records)
        if records:
            self._since = self._since or records[0].at
            self._seen = records[-1].seq
