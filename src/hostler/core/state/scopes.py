"""Scopes: what an intent, hold, pause, window, incident or failure domain is about, read from its text in one place.

People write and records hold "rack:r1", "pool:train", "fleet" or an id; everything that decides asks the struct.
"""

from functools import lru_cache

from msgspec import Struct

FLEET = "fleet"
"""The scope that holds and pauses of the whole cell are placed on."""
NODES = "nodes"
"""The target of an intent that lists its nodes."""
POOL, CLUSTER, FABRIC, SWITCH, FIRMWARE = "pool", "cluster", "fabric", "switch", "firmware"
DOMAINS = ("rack", "nvlink", "power", "leaf")
"""Kinds of failure domain that people act on, in the order in which a bare name is looked for among them."""

_APART = frozenset({"", FLEET, NODES, POOL, CLUSTER, FABRIC, SWITCH, FIRMWARE})
READ_MOST = 65_536


class Scope(Struct, frozen=True):
    """A kind and a name. `kind` is "" for one thing by its id or name: a node, an asset, a ticket, a hold.

    FLEET and NODES are kinds without a name. Any other kind is one of the site's failure domains.
    """

    kind: str
    name: str = ""

    @staticmethod
    def of(text: str) -> "Scope":
        """The scope that the text means."""
        return _read(text)

    def __str__(self) -> str:
        """The scope as people write it."""
        if self.kind in (FLEET, NODES):
            return self.kind
        return f"{self.kind}:{self.name}" if self.kind else self.name

    @property
    def is_domain(self) -> bool:
        """Whether it is a failure domain of nodes."""
        return self.kind not in _APART

    @property
    def shared(self) -> str:
        """The index entry of the nodes that share it (`index_keys`)."""
        return str(self) if self.kind == POOL else f"member:{self}"

    def named(self, kind: str) -> str:
        """The name where it is of this kind, or where only a name was given; "" for any other."""
        return self.name if self.kind in (kind, "") else ""


@lru_cache(maxsize=READ_MOST)
def _read(text: str) -> Scope:
    if text in (FLEET, NODES):
        return Scope(text)
    kind, colon, name = text.partition(":")
    return Scope(kind, name) if colon else Scope("", text)
