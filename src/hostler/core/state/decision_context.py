"""The context of a decision: the recorded fleet, live state, and the moment. Nothing else decides."""

from datetime import datetime

from msgspec import Struct

from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import LiveState


class DecisionContext(Struct, frozen=True):
    """The world at one moment, as far as it is known."""

    fleet: Fleet
    live: LiveState
    now: datetime

    def may_write(self, name: str) -> bool:
        """Whether every controller reads the event of this stored name; what is new falls back where not."""
        return self.live.release.format_of(name) <= self.fleet.cell.format

    @property
    def sure(self) -> datetime:
        """The last moment that the clock was believed: strikes, brake, holds and windows count to it."""
        doubt = self.fleet.cell.doubt
        return self.now if doubt is None else min(self.now, doubt.since)
