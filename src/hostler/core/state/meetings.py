"""Nouns of a meeting of nodes under check, as controller and agent say them to each other."""

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

TAKES_MOST = 8
"""Nodes that an agent of this version can meet at once, itself included."""


class MeetingOrder(Struct, frozen=True):
    """One rank's order of a meeting: what `hostler-check meet` takes, and the meeting's id."""

    meeting: str
    address: str
    port: int
    rank: int
    names: tuple[str, ...]
    secret: str
    via: str
    interface: str = ""
    deadline_s: float = 30.0
    seconds: float = 5.0
    mib: int = 64

    def for_suite(self) -> dict[str, Any]:
        """The order in the suite's words."""
        return {name: value for name, value in asdict(self).items() if name != "meeting"}


class MeetingReply(Struct, frozen=True):
    """An order, or to ask again. `is_done`: nobody is left. `waits`: who says that the node meets nobody now, and why.

    `standing`: sound, acquitted, passed, blamed, beyond_leaf, inconclusive, open.
    """

    order: MeetingOrder | None = None
    is_done: bool = False
    standing: str = "open"
    waits: str = ""
