"""The closed family of answers to "what does this node need now?": record events, wait for a reason, or rest."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state import events as e
from hostler.core.state.model import Blocker


class Act(Struct, frozen=True):
    """Record these. Operations among them are sent after the commit."""

    events: tuple[e.Event, ...]


class Wait(Struct, frozen=True):
    """Wait: no step can be taken now, because of these; at `until` the clock alone may change that.

    `until` is None where the clock changes nothing: what ends the wait is recorded, observed or told. `urgent`: an
    immediate remedy waits. `in_hands`: nothing is under way, and tickets ask people.
    """

    what: str
    blockers: tuple[Blocker, ...]
    until: datetime | None
    urgent: bool = False
    in_hands: bool = False


class Rest(Struct, frozen=True):
    """Rest: no step is to be taken; at `until` the clock alone may change that."""

    until: datetime | None = None


Answer = Act | Wait | Rest


def soonest(now: datetime, *moments: datetime | None) -> datetime | None:
    """The first of these moments that is to come, None where none is."""
    return min((at for at in moments if at is not None and at > now), default=None)


def asked_again(now: datetime, answer: Answer, *moments: datetime | None) -> Answer:
    """The answer; a wait or rest is to be asked again at the first of these moments too."""
    if isinstance(answer, Act):
        return answer
    until = soonest(now, answer.until, *moments)
    return answer if until == answer.until else replace(answer, until=until)
