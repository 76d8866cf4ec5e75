"""Redacts answers for people whose token is narrowed to a pool or site: names of what lies elsewhere.

Those are of nodes, of pools, and of customers and clusters that only pools elsewhere have. Names are looked for in
every text, whatever noun it stands in: a new event or field needs no row, and what a person or a driver wrote is left
out where it names one of them. (Customers are shown by the kind of each field: `tenant_redaction`.)
"""

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.intents.bounds import within
from hostler.core.state.configuration import Pool
from hostler.core.state.fleet import Fleet
from hostler.core.state.intent import Bounds
from hostler.core.state.scopes import TEXTS

ELSEWHERE = "a node elsewhere"
"""In the place of a name, or of an id that is made of one."""
NOT_SHOWN = "told to those who see the whole cell"
"""In the place of a sentence with such a name."""
_WORDS = re.compile(r"[\w.-]*\w")
T = TypeVar("T")


class NarrowRedaction:
    """Redaction for one token. `also` are nodes that lay within its bounds when what is shown happened."""

    def __init__(self, fleet: Fleet, bounds: Bounds, also: frozenset[str] = frozenset()) -> None:
        self._nodes, self._retired, self._pools = fleet.nodes, fleet.retired, fleet.configuration.pools
        self._bounds = bounds
        self._also = also
        self._others = _elsewhere(self._pools, bounds.pool) if bounds.pool else frozenset()

    def over(self, value: T) -> T:
        """The value as they are shown it, of the same type."""
        shown: T = self._over(value)
        return shown

    def _over(self, value: Any) -> Any:
        if isinstance(value, Struct):
            fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
            changed = {name: shown for name, told in fields if (shown := self._over(told)) is not told}
            return replace(value, **changed) if changed else value
        if isinstance(value, tuple | list):
            shown = [self._over(one) for one in value if not (isinstance(one, str) and one and self._names(one))]
            same = len(shown) == len(value) and all(a is b for a, b in zip(shown, value, strict=True))
            return value if same else type(value)(shown)
        if isinstance(value, dict):
            return {key: self._over(one) for key, one in value.items() if not self._names(str(key))}
        text = str(value) if isinstance(value, str) or type(value) in TEXTS else ""
        if not text or isinstance(value, Enum) or not self._names(text):
            return value
        told = NOT_SHOWN if " " in text else ELSEWHERE
        return told if isinstance(value, str) else TEXTS[type(value)](told)

    def _names(self, text: str) -> bool:
        """Whether a node, pool, customer or cluster elsewhere is named in the text."""
        return self._hides(text) or any(map(self._hides, _WORDS.findall(text)))

    def _hides(self, name: str) -> bool:
        if (node := self._nodes.get(name)) is not None:
            return name not in self._also and not within(self._bounds, node)
        return name in self._others or (name in self._retired and name not in self._also)


def _elsewhere(pools: Mapping[str, Pool], own: str) -> frozenset[str]:
    """Names of the other pools, and of customers and clusters that are only theirs."""
    mine = pools.get(own)
    shared = {own, mine.tenant, mine.cluster} if mine is not None else {own}
    names = {name for pool in pools.values() for name in (pool.tenant, pool.cluster)} | pools.keys()
    return frozenset(names - shared - {""})
