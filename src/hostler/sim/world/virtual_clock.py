"""Virtual time: a heap of what happens when. Equal moments happen in the order in which they were planned."""

import heapq
from collections.abc import Callable
from datetime import datetime, timedelta

Happening = Callable[[], None]


class VirtualClock:
    """The world's time. It moves only when the next thing happens."""

    def __init__(self, start: datetime) -> None:
        self.start = self.now = start
        self._heap: list[tuple[datetime, int, Happening]] = []
        self._planned = 0

    def at(self, moment: datetime, happen: Happening) -> None:
        """Have it happen then, or now where that has passed."""
        self._planned += 1
        heapq.heappush(self._heap, (max(moment, self.now), self._planned, happen))

    def after(self, seconds: float, happen: Happening) -> None:
        """Have something happen this many seconds from now."""
        self.at(self.now + timedelta(seconds=seconds), happen)

    def next(self) -> datetime | None:
        """When the next thing happens, None where nothing will."""
        return self._heap[0][0] if self._heap else None

    def turn(self) -> None:
        """Move to the next moment and let happen all that was planned for it."""
        self.now = self._heap[0][0]
        while self._heap and self._heap[0][0] <= self.now:
            heapq.heappop(self._heap)[2]()

    def skip(self, moment: datetime) -> None:
        """Move on to a moment before which nothing is planned."""
        self.now = max(self.now, moment)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the world began."""
        return (self.now - self.start).total_seconds()
