"""Nouns of a meeting of nodes under check, as controller and agent say them to each other."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from hostler.core.state.model import Facts

TAKES_MOST = 8
"""Nodes that an agent of this version can meet at once, itself included."""
MET = "met:"
"""Head of the facts in which a check tells how the node stands by each port."""
PORTS_MOST = 16
"""Ports of one node that are heard."""
PASSED_WITH_TWO = frozenset({"sound", "acquitted"})
"""Standings of a node that has passed with two others, or with three after a failure."""


def standings(facts: Facts) -> dict[str, str]:
    """How a check's facts say that the node stands by each port, without the words that follow the standing."""
    told = sorted((name, word) for name, word in facts.items() if name.startswith(MET) and isinstance(word, str))
    return {name.removeprefix(MET)[:64]: word.partition(",")[0][:64] for name, word in told[:PORTS_MOST]}


def blames_node(told: Mapping[str, str]) -> bool:
    """Whether the node itself is to blame: by each of its ports, and these are two or more."""
    return len(told) > 1 and all(word.partition(",")[0] == "blamed" for word in told.values())


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
