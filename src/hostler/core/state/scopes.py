"""Scopes: what an intent, hold, pause, window, incident or failure domain is about, read from its text in one place.

People write and records hold "rack:r1", "pool:train", "fleet" or an id. Text is read once, where it comes in
(`Scope.of`, and `scope_hook` for stored events and the API); state and decisions hold the Scope.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

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
    A comparison with a text is false, and mypy refuses it.
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

    if not TYPE_CHECKING:  # where a class declares it, mypy lets it be compared with anything

        def __eq__(self, other: object) -> bool:
            return self.text == other.text if isinstance(other, Scope) else NotImplemented

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


class ActGroup:
    """An act on many nodes, to which their conditions and plans belong; false where a node is acted on alone.

    `scope` is the failure domain that the act takes whole, None of nodes that each go their own way. `name` tells acts
    on one scope apart. It is written "rack:r1/i-12", or the name alone. Groups are ordered by their text.
    """

    __slots__ = ("scope", "text")

    def __init__(self, scope: Scope | None, name: str) -> None:
        self.scope: Final = scope
        self.text: Final = f"{scope}/{name}" if scope is not None else name

    @staticmethod
    def of(text: str) -> "ActGroup":
        """The group that a stored text means."""
        return _read_group(text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"ActGroup.of({self.text!r})"

    def __bool__(self) -> bool:
        return bool(self.text)

    def __hash__(self) -> int:
        return hash(self.text)

    if not TYPE_CHECKING:  # as of a scope

        def __eq__(self, other: object) -> bool:
            return self.text == other.text if isinstance(other, ActGroup) else NotImplemented

    def __lt__(self, other: "ActGroup") -> bool:
        return self.text < other.text


ALONE = ActGroup(None, "")


def alone() -> ActGroup:
    """The default of a field: msgspec writes a default itself into a schema, and has no words for this one."""
    return ALONE


@lru_cache(maxsize=READ_MOST)
def _read_group(text: str) -> ActGroup:
    domain, slash, name = text.partition("/")
    scope = Scope.of(domain)
    return ActGroup(scope, name) if slash and scope.is_domain else ActGroup(None, text)


TEXTS: dict[type, Callable[[str], Any]] = {Scope: Scope.of, ActGroup: ActGroup.of}
"""Types that are sent and stored as their text, with their readers."""
_WRITE = {
    Scope: "is no scope; write fleet, KIND:NAME (rack:r1, pool:train) or an id",
    ActGroup: "is no group of an act; write KIND:NAME/ACT (rack:r1/i-12), or an id",
}


def scope_hook(wanted: type, value: Any) -> Any:
    """Hook for msgspec's `dec_hook`: the scope or group in a stored or sent text. Raises TypeError for what is none."""
    if wanted not in TEXTS:
        raise NotImplementedError(f"no reader for {wanted}")
    if not isinstance(value, str):
        raise TypeError(f"{value!r} {_WRITE[wanted]}")
    return TEXTS[wanted](value)


def text_hook(value: Any) -> str:
    """Hook for msgspec's `enc_hook`: the text of a scope or group. Raises NotImplementedError for every other type."""
    if type(value) in TEXTS:
        return str(value)
    raise NotImplementedError(f"no text for {type(value)}")
