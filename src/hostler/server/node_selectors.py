"""Selectors of nodes in the grammar that kubectl's users know: `phase=production,pool!=train,sku in (a, b),!pool`."""

import re
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from hostler.core.state.model import Node, Phase, Profile, Severity
from hostler.server.problems import ProblemError, refuse

TERMS_MAX, VALUES_MAX = 20, 100
SELECTOR_MAX = 2_000
"""Bounds of one selector: terms, values of a term, characters."""

_TERM = re.compile(
    r"\s*(?P<absent>!?)\s*(?P<key>[a-z_]+)\s*"
    r"(?:(?P<sign>!=|==?)\s*(?P<value>[^,()]*)|\b(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?\s*(?P<end>,|$)"
)


def _tags(node: Node) -> Iterable[str]:
    for name, value in node.tags:
        yield name
        yield f"{name}={value}"


READERS: Mapping[str, Callable[[Node], Iterable[str]]] = {
    "phase": lambda node: (node.phase,),
    "pool": lambda node: (node.pool,),
    "site": lambda node: (node.position.site,),
    "row": lambda node: (node.position.row,),
    "rack": lambda node: (node.position.rack,),
    "sku": lambda node: (node.sku,),
    "profile": lambda node: (node.profile,),
    "severity": lambda node: (max(c.severity for c in node.conditions).name,) if node.conditions else (),
    "condition": lambda node: (c.type for c in node.conditions),
    "domain": lambda node: map(str, node.domains),
    "tag": _tags,
    "node": lambda node: (node.id, *(b.value for b in node.bindings if b.until is None)),
}
"""Key → what a node has under it; a node without any has no such value. `node` is its id, host names and serials."""

_CLOSED: Mapping[str, tuple[str, ...]] = {
    "phase": tuple(Phase),
    "profile": tuple(Profile),
    "severity": tuple(s.name for s in Severity),
}
_INDEXED: Mapping[str, str] = {"phase": "phase:", "pool": "pool:", "rack": "member:rack:"}


class Term(Struct, frozen=True):
    """One condition of a selector. No `values` means any value at all."""

    key: str
    values: frozenset[str]
    negative: bool = False

    def matches(self, node: Node) -> bool:
        """Tell whether the node is selected by this term."""
        return self.takes(value for value in READERS[self.key](node) if value)

    def takes(self, found: Iterable[str]) -> bool:
        """Tell whether something that has these values under the term's key is selected."""
        return any(not self.values or value in self.values for value in found) is not self.negative

    @property
    def index_key(self) -> str:
        """The index entry that holds at least every node of this term, "" where none does."""
        if self.negative or len(self.values) != 1 or self.key not in _INDEXED:
            return "ailing" if self.key == "condition" and not self.negative else ""
        return _INDEXED[self.key] + next(iter(self.values))


def terms_of(selector: str) -> tuple[Term, ...]:
    """The terms of a selector, all of which a node has to meet. Raises ProblemError (400) on anything else."""
    if len(selector) > SELECTOR_MAX:
        raise _refused(selector[:50], f"write at most {SELECTOR_MAX} characters")
    found: list[Term] = []
    rest = selector
    while rest.strip():
        match = _TERM.match(rest)
        if match is None or (match["end"] and not rest[match.end() :].strip()):
            raise _refused(rest, "write KEY=VALUE, KEY!=VALUE, KEY in (A, B), KEY notin (A, B), KEY or !KEY")
        found.append(_term(match))
        rest = rest[match.end() :]
    if len(found) > TERMS_MAX:
        raise _refused(selector, f"write at most {TERMS_MAX} terms")
    return tuple(found)


def _term(match: re.Match[str]) -> Term:
    key, text = match["key"], match[0].strip().rstrip(",")
    given = match["values"] if match["set"] else match["value"]
    values = [one.strip() for one in (given or "").split(",")] if given is not None else []
    if key not in READERS:
        raise _refused(text, f"select by {', '.join(READERS)}")
    if given is not None and (match["absent"] or not all(values) or len(values) > VALUES_MAX):
        raise _refused(text, f"give 1 to {VALUES_MAX} values, none of them empty; `!{key}` selects nodes without one")
    if unknown := [one for one in values if key in _CLOSED and one not in _CLOSED[key]]:
        raise _refused(text, f"'{unknown[0]}' is no {key}; use {', '.join(_CLOSED[key])}")
    return Term(key, frozenset(values), bool(match["absent"]) or match["sign"] == "!=" or match["set"] == "notin")


def _refused(text: str, instead: str) -> ProblemError:
    return refuse(400, "selector", f"selector '{text.strip()[:100]}' is not understood", instead)
