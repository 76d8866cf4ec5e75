"""Debounces readings: a change of a subject's readings is reported once it has lasted.

Volatile readings stay on the node. A record goes out when an aspect's mark has been another one for as many polls as
its row asks for, once a day in full, and when an aspect that could be read cannot be read any more. An aspect that
comes and goes is believed to be well ever more slowly.
"""

from collections.abc import Mapping

from msgspec import Struct

from hostler.core.diagnose.aspect import BETWEEN, GOOD, MISSING, UNKNOWN, UNSETTLED, Aspect
from hostler.core.state.model import Facts

UNKNOWN_POLLS = 3
FULL_S = 86_400.0
CALM_S = 3_600.0
"""An aspect that turned bad again within this time takes twice as long to be over."""
SLOWEST = 16
PATIENCE_POLLS = 30
"""Polls for which a change waits for other aspects of the subject that are about to change."""


class DebounceMemory(Struct):
    """State that outlives the agent's process: the marks reported, and the aspects that were readable once."""

    told: dict[str, str] = {}
    known: list[str] = []
    full_s: float = -FULL_S


class StateChange(Struct, frozen=True):
    """A change to report: the facts with what is unsettled and missing, and whether something turned bad."""

    facts: Facts
    changed: tuple[str, ...]
    graver: bool


class StateDebounce:
    """Follows one subject. `phase_s` shifts its daily record, so that the parts of a node do not speak at once."""

    def __init__(self, aspects: Mapping[str, Aspect], kept: DebounceMemory, phase_s: float = 0.0) -> None:
        self._aspects = aspects
        self.kept = kept
        self._phase_s = phase_s
        self._pending: dict[str, tuple[str, int]] = {}
        self._news: dict[str, bool] = {}
        self._waited = 0
        self._raised: dict[str, tuple[float, int]] = {}

    def take(self, facts: Facts, now_s: float, only: tuple[str, ...] = ()) -> StateChange | None:
        """Take one poll. `only`: aspects that can be judged now, where the rest says nothing; () means all."""
        names = only or tuple(self._aspects)
        for name in names:
            self._poll(name, self._aspects[name].judge(facts).mark, now_s)
        full = now_s - self.kept.full_s >= FULL_S + (self._phase_s if self.kept.full_s >= 0 else 0.0)
        if not self._news and not full:
            return None
        self._waited += 1
        graver = any(self._news.values())
        if self._pending.keys() & set(names) and not graver and self._waited < PATIENCE_POLLS:
            return None
        return self._record(facts, names, now_s, graver=graver)

    def _poll(self, name: str, mark: str, now_s: float) -> None:
        told = self.kept.told.get(name, BETWEEN)
        if mark == BETWEEN:
            mark = told
        if mark not in (UNKNOWN, BETWEEN) and name not in self.kept.known:
            self.kept.known.append(name)
        if mark == told:
            self._pending.pop(name, None)
            return
        before, polls = self._pending.get(name, ("", 0))
        polls = polls + 1 if _alike(before, mark) else 1
        self._pending[name] = (mark, polls)
        if polls < self._needed(name, mark, now_s):
            return
        del self._pending[name]
        self.kept.told[name] = mark
        bad = _is_bad(mark)
        if bad:
            since_s, times = self._raised.get(name, (now_s, 0))
            self._raised[name] = (now_s, times + 1 if now_s - since_s < CALM_S else 1)
        self._news[name] = bad

    def _needed(self, name: str, mark: str, now_s: float) -> int:
        row = self._aspects[name]
        if mark == UNKNOWN:
            return UNKNOWN_POLLS
        if mark != GOOD:
            return row.raise_polls
        since_s, times = self._raised.get(name, (0.0, 0))
        flaps = times - 1 if times and now_s - since_s < CALM_S else 0
        return row.clear_polls * min(SLOWEST, 1 << max(0, flaps))

    def _record(self, facts: Facts, names: tuple[str, ...], now_s: float, *, graver: bool) -> StateChange:
        unsettled = [n for n in self._aspects if n in self._pending or n not in names]
        missing = [n for n in self.kept.known if self.kept.told.get(n) == UNKNOWN]
        changed = tuple(f"{name}: {self.kept.told[name]}" for name in sorted(self._news))
        self._news, self._waited = {}, 0
        self.kept.full_s = now_s
        told = {**facts, UNSETTLED: ",".join(unsettled), MISSING: ",".join(missing)}
        return StateChange(
            {name: value for name, value in told.items() if value not in ("", None) or name == "lost"}, changed, graver
        )


def _is_bad(mark: str) -> bool:
    return mark not in (BETWEEN, UNKNOWN, GOOD)


def _alike(one: str, other: str) -> bool:
    """Tell whether two polls agree: bad is bad, however bad."""
    return one == other or (_is_bad(one) and _is_bad(other) and one != "")
