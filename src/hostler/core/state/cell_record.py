"""The record of the whole cell: counters, brake, pauses, modes, and what guards remember of recent disturbances."""

from datetime import datetime

from msgspec import Struct

from hostler.core.state.boot import Stranger
from hostler.core.state.clock_doubt import Doubt
from hostler.core.state.model import Remediator
from hostler.core.state.scopes import Scope


class Removal(Struct, frozen=True):
    """A disturbance that guards still remember: when, on which node, of which pool, and what kind."""

    at: datetime
    node: str
    pool: str
    name: str


class Closure(Struct, frozen=True):
    """An incident that is over: what its scope showed of this syndrome by then proves nothing any more."""

    scope: Scope
    syndrome: str
    at: datetime


class DisturbanceByPerson(Struct, frozen=True):
    """Nodes that one person's word let be disturbed."""

    at: datetime
    person: str
    nodes: tuple[str, ...]


class CellRecord(Struct, frozen=True):
    """The record of the whole cell: counters for ids, the brake, pauses, modes, recent disturbances and incidents.

    `doubt`: the clock is not believed. `format`: up to which format events may be written. `restored`: since when the
    cell stands still because its journal is a copy, whose last record was `copied`. `strangers`: machines that asked
    for a boot and are not expected, the latest last. `disk`: why no observations are taken, for want of room.
    """

    seq: int = 0
    last_at: datetime | None = None
    epoch: int = 0
    brake: str = ""
    brake_since: datetime | None = None
    calm_since: datetime | None = None
    paused: tuple[Scope, ...] = ()
    modes: tuple[tuple[str, str, str], ...] = ()
    recent: tuple[Removal, ...] = ()
    closures: tuple[Closure, ...] = ()
    intents: int = 0
    acts: tuple[DisturbanceByPerson, ...] = ()
    rollout: str = ""
    doubt: Doubt | None = None
    format: int = 1
    restored: datetime | None = None
    copied: int = 0
    remediators: tuple[Remediator, ...] = ()
    strangers: tuple[Stranger, ...] = ()
    disk: str = ""


class StoredAnswer(Struct, frozen=True):
    """An intent's answer, kept so that the same key gets the same answer. `content`: as in `events.IntentRecorded`."""

    intent: str
    answer: str
    granted: bool
    at: datetime
    approval: str = ""
    content: str = ""
