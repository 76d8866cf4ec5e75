"""Scopes: what an intent, hold, pause, window, incident or failure domain is about, read from its text in one place.

People write and records hold "rack:r1", "pool:train", "fleet" or an id. Text is read once, where it comes in
(`Scope.of`, and `scope_hook` for stored events and the API); state and decisions hold the Scope.
"""

from functools import lru_cache
from typing import Any, Final

FLEET = "fleet"
"""The scope that holds and pauses of the whole cell are placed on."""
NODES = "nodes"
"""The target of an intent that lists its nodes."""
RACK, POOL, CLUSTER, FABRIC, SWITCH, FIRMWARE = "rack", "pool", "cluster", "fabric", "switch", "firmware"
DOMAINS = (RACK, "nvlink", "power", "leaf")
"""Kinds of failure domain that people act on, in the order in which a bare name is looked for among them."""

_APART = frozenset({"", FLEET, NODES, POOL, CLUSTER, FABRIC, SWITCH, FIRMWARE})
READ_MOST = 65_536


class Scope:
    """A kind and a name. `kind` is "" for one thing by its id or name: a node, an asset, a ticket, a hold.

    FLEET and NODES are kinds without a name. Any other kind is one of the site's failure domains. `text` is the scope
    as people write it, `shared` the index entry of the nodes that share it (`index_keys`). It is no text and no struct,
    so that nothing takes it apart and msgspec asks `text_hook` and `scope_hook`. Scopes are ordered by their text.
    """

    __slots__ = ("kind", "name", "shared", "text")

    def __init__(self, kind: str, name: str = "") -> None:
        text = kind if kind in (FLEET, NODES) else f"{kind}:{name}" if kind else name
        self.kind: Final = kind
        self.name: Final = name
        self.text: Final = text
        self.shared: Final = text if kind == POOL else f"member:{text}"

    @staticmethod
    def of(text: str) -> "Scope":
        """The scope that the text means."""
        return _read(text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Scope.of({self.text!r})"

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        assert not isinstance(other, str), f"scope {self} is compared with the text {other!r}; read it by Scope.of"
        return isinstance(other, Scope) and self.text == other.text

    def __lt__(self, other: "Scope") -> bool:
        return self.text < other.text

    @property
    def is_domain(self) -> bool:
        """Whether it is a failure domain of nodes."""
        return self.kind not in _APART

    @property
    def identity(self) -> str:
        """The id where it is one thing by its id; "" for every other scope."""
        return "" if self.kind else self.name

    def named(self, kind: str) -> str:
        """The name where it is of this kind, or where only a name was given; "" for any other."""
        return self.name if self.kind in (kind, "") else ""


WHOLE_CELL = Scope(FLEET)


@lru_cache(maxsize=READ_MOST)
def _read(text: str) -> Scope:
    if text in (FLEET, NODES):
        return Scope(text)
    kind, colon, name = text.partition(":")
    return Scope(kind, name) if colon and kind not in ("", FLEET, NODES) else Scope("", text)


def scope_hook(wanted: type, value: Any) -> Scope:
    """Hook for msgspec's `dec_hook`: the scope in a stored or sent text. Raises TypeError for what is none."""
    if wanted is not Scope:
        raise NotImplementedError(f"no reader for {wanted}")
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no scope; write fleet, KIND:NAME (rack:r1, pool:train) or an id")
    return _read(value)


def text_hook(value: Any) -> str:
    """Hook for msgspec's `enc_hook`: the text of a scope. Raises NotImplementedError for every other type."""
    if isinstance(value, Scope):
        return value.text
    raise NotImplementedError(f"no text for {type(value)}")
