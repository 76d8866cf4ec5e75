"""The agenda of looks: nodes by the clock, and operations of unknown outcome that are to be observed again."""

import heapq
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

OBSERVE_AFTER_S = (1.0, 2.0, 3.0, 5.0, 10.0, 30.0)
"""How long after an unknown outcome its effect is looked for: first, second … and every later time."""

TIDY_AT_LEAST = 1024
"""So many entries may stand in the heap before doubled ones are looked for."""

CALENDAR = ""
"""The entry for holds and windows that begin or end by the clock; no node has this id."""

OBSERVED_WITHIN = timedelta(minutes=5)
"""How long after a start an outstanding operation may wait to be observed before its deadline counts again."""

_NEVER = datetime.max.replace(tzinfo=UTC)


class _Look(NamedTuple):
    at: datetime
    times: int


class Agenda:
    """Volatile: rebuilt from the fleet after a restart."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, str]] = []
        self._waking: dict[str, datetime] = {}
        self._looks: dict[tuple[str, str], _Look] = {}
        self._tidy_at = TIDY_AT_LEAST

    def wake(self, node_id: str, at: datetime, now: datetime) -> None:
        """Look at the node then, unless it is looked at earlier anyway."""
        known = self._waking.get(node_id)
        if known is None or at < known or known <= now:
            self._waking[node_id] = at
            self._push(at, node_id)

    def _push(self, at: datetime, node_id: str) -> None:
        """A far moment is entered anew after every nearer one; doubled entries go whenever the heap has doubled."""
        heapq.heappush(self._heap, (at, node_id))
        if len(self._heap) > self._tidy_at:
            self._heap = sorted(dict.fromkeys(self._heap))
            self._tidy_at = max(TIDY_AT_LEAST, 2 * len(self._heap))

    def due(self, now: datetime) -> list[str]:
        """The nodes whose time has come; each is given once."""
        found: list[str] = []
        while self._heap and self._heap[0][0] <= now:
            at, node_id = heapq.heappop(self._heap)
            if self._waking.get(node_id) == at:
                del self._waking[node_id]
            found.append(node_id)
        return list(dict.fromkeys(found))

    def next(self) -> datetime | None:
        """When the clock alone gives something to do, None where it never does."""
        return self._heap[0][0] if self._heap else None

    def return_to(self, how: str, operation: str, node_id: str, now: datetime) -> None:
        """Come back to the operation after a while, longer each time, to `observe` it or to `perform` it again."""
        known = self._looks.get((operation, how))
        times = known.times if known else 0
        at = now + timedelta(seconds=OBSERVE_AFTER_S[min(times, len(OBSERVE_AFTER_S) - 1)])
        self._looks[operation, how] = _Look(at, times + 1)
        self._push(at, node_id)

    def due_for(self, operation: str, now: datetime) -> str:
        """How to come back to the operation now ("" for not at all); asking takes it off the agenda."""
        for how in ("observe", "perform"):
            look = self._looks.get((operation, how))
            if look is not None and look.at <= now:
                self._looks[operation, how] = _Look(_NEVER, look.times)
                return how
        return ""

    def attempted(self, operation: str) -> None:
        """Note that it was sent again: its effect is looked for soon, as after the first time."""
        self._looks.pop((operation, "observe"), None)

    def known(self, operation: str) -> None:
        """The outcome is known."""
        self.attempted(operation)
        self._looks.pop((operation, "perform"), None)
