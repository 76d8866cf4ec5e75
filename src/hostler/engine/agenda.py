"""Who must be looked at when: nodes by the clock, and operations of unknown outcome that are to be observed again."""

import heapq
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

OBSERVE_AFTER_S = (1.0, 2.0, 3.0, 5.0, 10.0, 30.0)
"""How long after an unknown outcome its effect is looked for: first, second … and every later time."""

_NEVER = datetime.max.replace(tzinfo=UTC)


class _Look(NamedTuple):
    at: datetime
    times: int
    how: str


class Agenda:
    """Volatile: rebuilt from the fleet after a restart."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, str]] = []
        self._waking: dict[str, datetime] = {}
        self._looks: dict[str, _Look] = {}

    def wake(self, node_id: str, at: datetime, now: datetime) -> None:
        """Look at the node then, unless it is looked at earlier anyway."""
        known = self._waking.get(node_id)
        if known is None or at < known or known <= now:
            self._waking[node_id] = at
            heapq.heappush(self._heap, (at, node_id))

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
        looked = self._looks[operation].times if operation in self._looks else 0
        at = now + timedelta(seconds=OBSERVE_AFTER_S[min(looked, len(OBSERVE_AFTER_S) - 1)])
        self._looks[operation] = _Look(at, looked + 1, how)
        heapq.heappush(self._heap, (at, node_id))

    def due_for(self, operation: str, now: datetime) -> str:
        """How to come back to the operation now ("" for not at all); asking takes it off the agenda."""
        look = self._looks.get(operation)
        if look is None or look.at > now:
            return ""
        self._looks[operation] = _Look(_NEVER, look.times, "")
        return look.how

    def known(self, operation: str) -> None:
        """The outcome is known."""
        self._looks.pop(operation, None)
