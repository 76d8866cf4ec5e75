"""Lists a page at a time: selectors, cursors that are the last key seen, and sorted keys that are kept, not made."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Annotated, Generic, TypeVar

from litestar.di import NamedDependency
from litestar.params import FromQuery, QueryParameter
from msgspec import Struct

from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node, Phase
from hostler.core.state.overlay_table import Table
from hostler.server.node_selectors import SELECTOR_MAX, Term, terms_of

T = TypeVar("T")
V = TypeVar("V")

LIMIT_MAX = 1_000
LOOKED_MAX = 20_000
"""Nodes looked at for one page; a page may be short while it still has a cursor."""
FEW = 5_000
"""An index entry with no more members than this is sorted anew for each page; a larger one is found by walking."""

Name = Annotated[str, QueryParameter(max_length=200)]
Selector = Annotated[
    str,
    QueryParameter(
        max_length=SELECTOR_MAX,
        description="nodes by KEY=VALUE, KEY!=VALUE, KEY in (A, B), KEY notin (A, B), KEY, !KEY, with commas between",
    ),
]
Limit = Annotated[int, QueryParameter(ge=1, le=LIMIT_MAX)]


class Page(Struct, Generic[T], frozen=True):
    """One page. Go on with `cursor` until it is "" (a page may be shorter than asked for before that).

    `seq` is the record that the page is of: `GET /v1/events` with that as Last-Event-ID goes on without a gap.
    Of a list read page by page that is the first page's. `archived` says, on the last page of a history, where what
    came before is.
    """

    items: tuple[T, ...]
    cursor: str = ""
    archived: str = ""
    seq: int = 0

    def of(self, items: Iterable[V]) -> "Page[V]":
        """The same page with other items: what is shown of them."""
        return Page(tuple(items), self.cursor, self.archived, self.seq)


class Selection(Struct, frozen=True):
    """Selection of nodes for a list; empty fields select everything.

    `q` is looked for in ids, names and serials; `tag` is a tag's name, or "name=value"; `terms` are a selector's.
    `seq` is the record that the fleet stood at when this was asked for, which the answer carries: what comes after it
    may or may not be in the list, and is in the stream.
    """

    phase: Phase | None = None
    pool: str = ""
    rack: str = ""
    sku: str = ""
    condition: str = ""
    q: str = ""
    cursor: str = ""
    limit: int = 100
    tag: str = ""
    seq: int = 0
    terms: tuple[Term, ...] = ()

    @property
    def searches(self) -> bool:
        """Whether it asks for what not everybody is shown of a node."""
        return bool(self.q or self.tag or self.terms)

    def takes_condition(self, kind: str) -> bool:
        """Tell whether a condition of this type is among those asked for, on a node that is selected."""
        named = (term for term in self.terms if term.key == "condition" and term.values and not term.negative)
        return self.condition in ("", kind) and all(kind in term.values for term in named)

    def matches(self, node: Node) -> bool:
        """Tell whether the node is selected."""
        return (
            (self.phase is None or node.phase is self.phase)
            and (not self.pool or node.pool == self.pool)
            and (not self.rack or node.position.rack == self.rack)
            and (not self.sku or node.sku == self.sku)
            and (not self.condition or any(c.type == self.condition for c in node.conditions))
            and (not self.q or _found(node, self.q.lower()))
            and (not self.tag or _tagged(node, self.tag))
            and all(term.matches(node) for term in self.terms)
        )

    def takes_racks(self, racks: Collection[str]) -> bool:
        """Tell whether what stands in these racks, and is no node, is selected: by its racks or by nothing at all."""
        asks_of_nodes = self.phase is not None or any((self.pool, self.sku, self.condition, self.q, self.tag))
        by_rack = self.rack in ("", *racks) and all(t.key == "rack" and t.takes(racks) for t in self.terms)
        return by_rack and not asks_of_nodes

    def index_keys(self) -> Iterator[str]:
        """Index entries that hold at least every selected node."""
        if self.phase is not None:
            yield f"phase:{self.phase}"
        if self.pool:
            yield f"pool:{self.pool}"
        if self.rack:
            yield f"member:rack:{self.rack}"
        if self.condition:
            yield "ailing"
        yield from filter(None, (term.index_key for term in self.terms))


def selection(  # noqa: PLR0913 - one argument per parameter of the URL
    stands: NamedDependency[int],
    phase: FromQuery[Phase | None] = None,
    pool: Name = "",
    rack: Name = "",
    sku: Name = "",
    condition: Name = "",
    q: Name = "",
    tag: Name = "",
    selector: Selector = "",
    cursor: Name = "",
    limit: Limit = 100,
) -> Selection:
    """The selectors of a request's URL. Raises ProblemError (400)."""
    return Selection(phase, pool, rack, sku, condition, q, cursor, limit, tag, stands, terms_of(selector))


def _tagged(node: Node, wanted: str) -> bool:
    name, given, value = wanted.partition("=")
    return any(name == key and (not given or value == has) for key, has in node.tags)


def _found(node: Node, wanted: str) -> bool:
    return wanted in node.id.lower() or any(wanted in b.value.lower() for b in node.bindings if b.until is None)


class Roster(Generic[V]):
    """A table's keys, sorted, made again only when a key came or went.

    Ids are never used again, so the number of keys and the last one together tell whether the set is the same.
    """

    def __init__(self) -> None:
        self._sign: tuple[int, str] = (0, "")
        self._keys: list[str] = []

    def of(self, table: Table[V]) -> list[str]:
        """The table's keys, sorted."""
        sign = (len(table.base), next(reversed(table.base), ""))
        if sign != self._sign:
            self._keys, self._sign = sorted(table.base), sign
        return self._keys


class Nodes:
    """The fleet's nodes in id order, by selection, without a walk over all of them where an index knows better."""

    def __init__(self) -> None:
        self._roster: Roster[Node] = Roster()

    def ids(self, fleet: Fleet, wanted: Selection) -> list[str]:
        """Sorted ids among which every selected node is."""
        counts = sorted((fleet.index.count(key), key) for key in wanted.index_keys())
        if counts and counts[0][0] <= FEW:
            return fleet.index.members(counts[0][1])
        return self._roster.of(fleet.nodes)

    def page(self, fleet: Fleet, wanted: Selection, keep: Callable[[Node], bool], show: Callable[[Node], T]) -> Page[T]:
        """One page of what `show` makes of the selected nodes that `keep` keeps."""
        each = paged(self.ids(fleet, wanted), wanted, lambda i: _one(fleet.nodes.get(i), wanted, keep))
        return each.of(show(node) for node in each.items)


def _one(node: Node | None, wanted: Selection, keep: Callable[[Node], bool]) -> tuple[Node, ...]:
    return (node,) if node is not None and wanted.matches(node) and keep(node) else ()


def paged(keys: list[str], wanted: Selection, items: Callable[[str], Iterable[T]]) -> Page[T]:
    """One page over sorted keys, of which each gives any number of items; all items of a key go on one page."""
    start = bisect_right(keys, wanted.cursor) if wanted.cursor else 0
    found: list[T] = []
    end = min(start + LOOKED_MAX, len(keys))
    for place in range(start, end):
        found.extend(items(keys[place]))
        if len(found) >= wanted.limit:
            end = place + 1
            break
    return Page(tuple(found), keys[end - 1] if end < len(keys) else "", seq=wanted.seq)


def listed(items: Iterable[tuple[str, T]], wanted: Selection) -> Page[T]:
    """One page over a small table: (key, item) in any order."""
    by_key = dict(items)
    return paged(sorted(by_key), wanted, lambda key: (by_key[key],))
