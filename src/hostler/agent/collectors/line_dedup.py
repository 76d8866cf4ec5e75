"""Folding of bursts: the first line of its kind goes out at once, its repeats as one line with a count.

Memory is bounded however the log behaves. Lines are told apart by their text; when too many different ones come in
one window, by their text without addresses, process ids and names (never without the Xid code and the PCI address);
when even those are too many, they are only counted, and the count is reported.
"""

import re

from msgspec import Struct
from msgspec.structs import replace

from hostler.agent.local_observation import LocalObservation, agent_event
from hostler.core.state.model import Facts

_STAMP = re.compile(r"^\[[^\]]{0,40}\d[^\]]{0,40}\]\s*")
_VARIABLE = re.compile(
    r"[0ptnC](?:(?<=0)x[0-9a-fA-F]+|(?<=\b[pt])id[=:\s]'?\d+|(?<=\bn)ame=[^,]*|(?<=\bC)h(?:annel|ID)\s+[0-9a-fA-F]+)"
)
"""Addresses, process ids, names and channels. The letters in front are found three times as fast as the words are."""

_WORDS_COUNT = re.compile(r"\): 1(?:4[4-9]|50), ")
"""NVLink 5: the words behind these codes say what happened."""


class DedupLimits(Struct, frozen=True):
    """Numbers of different lines that one window tells apart exactly, and then by pattern."""

    exact: int
    patterns: int


KERNEL_LIMITS = DedupLimits(exact=128, patterns=512)
USERSPACE_LIMITS = DedupLimits(exact=32, patterns=64)


class _Fold(Struct):
    """One line of the window: how it was first seen, its bytes, and the repeats that are not sent yet."""

    first: LocalObservation
    last_s: float
    raw: bytes = b""
    repeats: int = 0


class LineDedup:
    """The lines of the current window of one provenance. Counts that leave it add up to the lines that entered."""

    def __init__(self, limits: DedupLimits) -> None:
        self._limits = limits
        self._exact: dict[str, _Fold] = {}
        self._patterns: dict[str, _Fold] = {}
        self._raw: dict[bytes, _Fold] = {}
        self._overflow = 0
        self._overflow_text = ""

    def repeats(self, raw: bytes, seen_s: float) -> bool:
        """Fold the line in, if its very bytes are known: the short way that a burst takes."""
        fold = self._raw.get(raw)
        if fold is None:
            return False
        fold.repeats += 1
        fold.last_s = seen_s
        return True

    def add(self, seen: LocalObservation, raw: bytes = b"") -> LocalObservation | None:
        """The sighting if it is the first of its kind and must go out now; None where it was folded.

        `raw` are the line's bytes, by which `repeats` will know it again.
        """
        if self._counted(seen.text, seen.seen_s):
            return None
        key = _unstamped(seen.text)
        table, name = (self._exact, key) if len(self._exact) < self._limits.exact else (self._patterns, _pattern(key))
        table[name] = fold = _Fold(seen, seen.seen_s, raw)
        if raw:
            self._raw[raw] = fold
        return seen

    def counts(self, text: str, seen_s: float) -> bool:
        """Fold or count the line in a flood, where nothing new finds room; False where there is some."""
        return self._is_full and self._counted(text, seen_s)

    @property
    def _is_full(self) -> bool:
        return len(self._exact) >= self._limits.exact and len(self._patterns) >= self._limits.patterns

    def _counted(self, text: str, seen_s: float) -> bool:
        """Count the line if it is known, exactly or by its pattern, or if there is no room for it."""
        key = _unstamped(text)
        fold = self._exact.get(key)
        if fold is None and len(self._exact) >= self._limits.exact:
            fold = self._patterns.get(_pattern(key))
        if fold is not None:
            fold.repeats, fold.last_s = fold.repeats + 1, seen_s
            return True
        if not self._is_full:
            return False
        self._overflow += 1
        self._overflow_text = text
        return True

    def recall(self, seen: LocalObservation, raw: bytes = b"") -> None:
        """Know the line as already sent, so that what follows it folds."""
        fold = self._exact.setdefault(_unstamped(seen.text), _Fold(seen, seen.seen_s, raw))
        if fold.raw:
            self._raw[fold.raw] = fold

    def close(self, now_s: float) -> list[LocalObservation]:
        """End the window: the repeats of every line, with their count. Lines that repeated stay known."""
        repeated = [fold for table in (self._exact, self._patterns) for fold in table.values() if fold.repeats]
        out = [replace(fold.first, count=fold.repeats, seen_s=fold.last_s) for fold in repeated]
        if self._overflow:
            facts: Facts = {"lost": self._overflow, "cause": "variety", "example": self._overflow_text[:200]}
            out.append(agent_event("kernel_log.overrun", now_s, "too many different lines to tell apart", facts))
        self._exact = _repeating(self._exact)
        self._patterns = _repeating(self._patterns)
        self._raw = {f.raw: f for table in (self._exact, self._patterns) for f in table.values() if f.raw}
        self._overflow = 0
        return out

    @property
    def empty(self) -> bool:
        """Tell whether nothing is known, so that no window needs to be open."""
        return not (self._exact or self._patterns or self._overflow)


def _unstamped(text: str) -> str:
    return _STAMP.sub("", text) if text.startswith("[") else text


def _pattern(text: str) -> str:
    return text if _WORDS_COUNT.search(text) else _VARIABLE.sub("*", text)


def _repeating(table: dict[str, _Fold]) -> dict[str, _Fold]:
    """Lines that stay known in the next window: at most half the table, so that a storm leaves room for new ones."""
    hot = [(name, _Fold(fold.first, fold.last_s, fold.raw)) for name, fold in table.items() if fold.repeats]
    return dict(hot[: (len(table) + 1) // 2])
