"""Who must be looked at when: nodes by the clock, and operations of unknown outcome that are to be observed again."""

import heapq
from datetime import UTC, datetime, timedelta

OBSERVE_AFTER_S = (1.0, 2.0, 3.0, 5.0, 10.0, 30.0)
"""How long after an unknown outcome its effect is looked for: first, second … and every later time."""

_NEVER = datetime.max.replace(tzinfo=UTC)


class Agenda:
    """Volatile: rebuilt from the fleet after a restart."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, str]] = []
        self._waking: dict[str, datetime] = {}
        self._looks: dict[str, tuple[datetime, int]] = {}

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

    def observe_later(self, operation: str, node_id: str, now: datetime) -> None:
        """The outcome is unknown: look for the effect after a while, longer each time."""
        _, looked = self._looks.get(operation, (now, 0))
        at = now + timedelta(seconds=OBSERVE_AFTER_S[min(looked, len(OBSERVE_AFTER_S) - 1)])
        self._looks[operation] = (at, looked + 1)
        heapq.heappush(self._heap, (at, node_id))

    def observe_now(self, operation: str, now: datetime) -> bool:
        """Whether the operation's effect is to be looked for now; asking takes it off the agenda."""
        look = self._looks.get(operation)
        if look is None or look[0] > now:
            return False
        self._looks[operation] = (_NEVER, look[1])
        return True

    def known(self, operation: str) -> None:
        """The outcome is known."""
        self._looks.pop(operation, None)
