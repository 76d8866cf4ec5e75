"""Results of checks between nodes as agents report them, kept until rounds of readings have judged them.

They are in memory: the next check brings others, and what they say of a link is a record of its own.
"""

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from hostler.core.fabric.design import Cable
from hostler.core.fabric.path_blame import PairResult, PathVerdict, judge_pairs
from hostler.core.fabric.routes import NO_ROUTES, Routes

KEPT_FOR = timedelta(hours=24)
"""Older results say nothing of the network as it is now."""
MOST = 400_000
"""Results in memory: eight rails of 4,096 nodes, a dozen partners each. Beyond, the oldest go."""

NOTHING = PathVerdict()


class PairResults:
    """The last result from port to port. `add` is called by the server's threads, `judged` by the rounds'."""

    def __init__(self) -> None:
        self._latest: dict[tuple[str, str], PairResult] = {}
        self._lock = threading.Lock()

    def add(self, results: Sequence[PairResult]) -> None:
        """Take results; a later one from the same port to the same other replaces the earlier."""
        with self._lock:
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
            self._latest = {key: one for key, one in self._latest.items() if now - one.at <= KEPT_FOR}
            results = list(self._latest.values())
        if not results:
            return NOTHING
        return judge_pairs(cables, [_named(result, called) for result in results], routes)


def _named(result: PairResult, called: Callable[[str], str]) -> PairResult:
    """The result with its ports by the design's names of their devices."""
    a, z = (f"{called(device)}:{port}" for device, _, port in (t.rpartition(":") for t in (result.a, result.z)))
    return replace(result, a=a, z=z)
