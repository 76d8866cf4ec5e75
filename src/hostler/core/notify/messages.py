"""Messages: what one route is sent, with a key that stays the same from the first word to the last."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import force_setattr

from hostler.core.state.model import Severity
from hostler.logs.secret_patterns import redact, redact_facts

NAMED = 10
"""Nodes that a message names; the rest it counts."""
LINES_MAX = 200
"""Lines of a digest; what is beyond is counted."""


class Message(Struct, frozen=True):
    """One thing that one route is told.

    `id` is the same however often it is sent, `key` in all that is told of a cause.
    `action`: open, more, over, note, digest, test, or file: a bundle of evidence belongs to a ticket. `seq` is the
    record that began it, `since` when that was. `count` is how many there are of it, `nodes` the first of them. `lines`
    are a digest's. A message holds no secret, whoever makes it: its texts are read by strangers.
    """

    id: str
    route: str
    key: str
    action: str
    topic: str
    severity: Severity
    page: bool
    summary: str
    seq: int
    since: datetime
    at: datetime
    count: int = 1
    nodes: tuple[str, ...] = ()
    pool: str = ""
    tenant: str = ""
    site: str = ""
    rack: str = ""
    details: dict[str, str] = {}
    lines: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Take secrets out of the texts."""
        force_setattr(self, "summary", redact(self.summary))
        force_setattr(self, "lines", tuple(redact(line) for line in self.lines))
        force_setattr(self, "details", redact_facts(self.details))
