"""The closed family of answers to "what does this node need now?": record events, wait for a reason, or rest."""

from datetime import datetime

from msgspec import Struct

from hostler.core.state import events as e
from hostler.core.state.model import Blocker


class Act(Struct, frozen=True):
    """Record these. Operations among them are sent after the commit."""

    events: tuple[e.Event, ...]


class Wait(Struct, frozen=True):
    """Nothing can be done now, because of these; at `until` the clock alone changes that."""

    what: str
    blockers: tuple[Blocker, ...]
    until: datetime | None = None


class Rest(Struct, frozen=True):
    """Nothing is to be done."""


Answer = Act | Wait | Rest
