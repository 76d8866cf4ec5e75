"""How the boot listeners' process is, as people and metrics are told."""

from collections import deque
from datetime import datetime, timedelta

from msgspec import Struct

from hostler.server.connection_limits import ListenerCounts

ENDS_MANY, ENDS_WITHIN = 3, timedelta(hours=1)
"""A process that has ended so often within that time keeps ending: it is up now, and a person has to look."""


class BootEnds(Struct, frozen=True):
    """How often the boot listeners' process was started again, why it last ended and when; whether it keeps ending."""

    restarts: int = 0
    last_end: str = ""
    ended_at: datetime | None = None
    keeps_ending: bool = False


class BootPresence:
    """Whether the process is up, since when, and why not; how often it was started again; its listeners' numbers."""

    def __init__(self) -> None:
        self.up = False
        self.why = ""
        self.since: datetime | None = None
        self.restarts = 0
        self.last_end = ""
        self.counts: tuple[ListenerCounts, ...] = ()
        self.exhausted = 0
        self._ends: deque[datetime] = deque(maxlen=ENDS_MANY)

    def told(self) -> str:
        """A few words: "up", or that it is down, since when and why."""
        if self.up:
            return "up"
        since = f" since {self.since:%Y-%m-%dT%H:%M:%SZ}" if self.since is not None else ""
        return f"down{since}: the boot listeners' process {self.why}; it is started again by itself"

    def ended(self, why: str, now: datetime) -> None:
        """Count an end of the process, after which it is started again."""
        self.restarts += 1
        self.last_end = why
        self._ends.append(now)

    def ends(self, now: datetime) -> BootEnds:
        """Ends so far, as people are told of them."""
        many = len(self._ends) == ENDS_MANY and now - self._ends[0] <= ENDS_WITHIN
        return BootEnds(self.restarts, self.last_end, self._ends[-1] if self._ends else None, many)
