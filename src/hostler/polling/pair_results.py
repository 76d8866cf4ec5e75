"""Results of checks between nodes as agents report them, kept until rounds of readings have judged them.

They are in memory: the next check brings others, and what they say of a link is a record of its own.
"""

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.fabric.design import Cable
from hostler.core.fabric.path_blame import PairResult, PathVerdict, judge_pairs
from hostler.core.fabric.routes import NO_ROUTES, Routes

KEPT_FOR = timedelta(hours=24)
"""Older results say nothing of the network as it is now."""
MOST = 400_000
"""Results in memory: eight rails of 4,096 nodes, a dozen partners each. Beyond, the oldest go."""

NOTHING = PathVerdict()
NETWORKS = 32
"""Verdicts that are kept: one for each network."""


class _Judged(Struct, frozen=True):
    """A verdict, and what it was reached from: the results' count of changes, cables, devices' names, and ways."""

    changes: int
    cables: Sequence[Cable]
    names: dict[str, str]
    routes: Routes
    verdict: PathVerdict

    def stands(self, changes: int, cables: Sequence[Cable], names: dict[str, str], routes: Routes) -> bool:
        """Whether it would be the same from these."""
        same = self.cables is cables and self.routes is routes
        return same and (self.changes, self.names) == (changes, names)


class PairResults:
    """The last result from port to port; `added` counts all that came.

    `add` is called by the server's threads, `judged` by the rounds'. A verdict is reached anew only where results have
    come or have grown too old, or cables, names or ways are others.
    """

    def __init__(self) -> None:
        self._latest: dict[tuple[str, str], PairResult] = {}
        self._lock = threading.Lock()
        self._changes = 0
        self._judged: dict[int, _Judged] = {}
        self.added = 0

    def add(self, results: Sequence[PairResult]) -> None:
        """Take results; a later one from the same port to the same other replaces the earlier."""
        with self._lock:
            self._changes += bool(results)
            self.added += len(results)
            for result in results:
                key = result.a, result.z
                self._latest.pop(key, None)
                self._latest[key] = result
            while len(self._latest) > MOST:
                del self._latest[next(iter(self._latest))]

    def judged(
        self, cables: Sequence[Cable], called: Callable[[str], str], now: datetime, routes: Routes = NO_ROUTES
    ) -> PathVerdict:
        """The verdict of the last day's results on these cables. `called`: a device's name in the design."""
        with self._lock:
            fresh = {key: one for key, one in self._latest.items() if now - one.at <= KEPT_FOR}
            self._changes += len(fresh) != len(self._latest)
            self._latest, changes, known = fresh, self._changes, self._judged.get(id(cables))
            results = list(fresh.values())
        if not results:
            return NOTHING
        names = {device: called(device) for result in results for device in _devices(result)}
        if known is None or not known.stands(changes, cables, names, routes):
            told = judge_pairs(cables, [_named(one, names) for one in results], routes)
            known = _Judged(changes, cables, names, routes, told)
            with self._lock:
                self._judged.pop(id(cables), None)
                self._judged[id(cables)] = known
                while len(self._judged) > NETWORKS:
                    del self._judged[next(iter(self._judged))]
        return known.verdict


def _devices(result: PairResult) -> tuple[str, str]:
    return result.a.rpartition(":")[0], result.z.rpartition(":")[0]


def _named(result: PairResult, names: dict[str, str]) -> PairResult:
    """The result with its ports by the design's names of their devices."""
    a, z = (f"{names[device]}:{port}" for device, _, port in (t.rpartition(":") for t in (result.a, result.z)))
    return replace(result, a=a, z=z)
