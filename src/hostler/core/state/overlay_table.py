"""A table under an overlay: reading sees what the current step has changed, a commit makes it part of the base."""

from collections.abc import Iterator
from typing import Generic, TypeVar

V = TypeVar("V")


class Table(Generic[V]):
    """A dict with an overlay. Keys come in the order of a plain dict, whenever what was put has been merged.

    `back` are keys of the base that were deleted and put again in the overlay: they have gone to the end. `_grown` is
    how many keys the overlay adds: each record of a long step asks how many there are.
    """

    def __init__(self, base: dict[str, V] | None = None) -> None:
        self.base: dict[str, V] = base if base is not None else {}
        self.over: dict[str, V | None] = {}
        self.back: dict[str, None] = {}
        self._grown = 0

    def get(self, key: str) -> V | None:
        """The value under the key, None where there is none."""
        if key in self.over:
            return self.over[key]
        return self.base.get(key)

    def __getitem__(self, key: str) -> V:
        if key not in self.over:
            return self.base[key]
        value = self.over[key]
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def __iter__(self) -> Iterator[str]:
        return self._overlaid() if self.over else iter(self.base)

    def _overlaid(self) -> Iterator[str]:
        over, back = self.over, self.back
        yield from (key for key in self.base if key not in back and (key not in over or over[key] is not None))
        yield from (key for key, value in over.items() if value is not None and (key not in self.base or key in back))

    def __len__(self) -> int:
        return len(self.base) + self._grown

    @property
    def bare(self) -> bool:
        """Certainly empty; told without counting."""
        return not self.base and not self.over

    def values(self) -> Iterator[V]:
        """All values, in the order of their keys."""
        return (self[key] for key in self)

    def put(self, key: str, value: V | None) -> None:
        """Set the key, or delete it with None."""
        self._grown += (value is not None) - (self.get(key) is not None)
        if value is not None and self.over.get(key, value) is None:
            del self.over[key]
            if key in self.base:
                self.back[key] = None
        self.over[key] = value

    def merge(self) -> None:
        """Make what the step has changed permanent."""
        for key in self.back:
            self.base.pop(key, None)
        for key, value in self.over.items():
            if value is None:
                self.base.pop(key, None)
            else:
                self.base[key] = value
        self.over.clear()
        self.back.clear()
        self._grown = 0

    def drop(self) -> None:
        """Forget what the step has changed."""
        self.over.clear()
        self.back.clear()
        self._grown = 0
