"""Bounded queues of inputs, in which outcomes, intents and easing never stand behind observations.

Observations are taken fairly over nodes: whoever sends a thousand at once waits until others have had a thousand. What
may doom a job goes before other observations, and in a small batch, which is decided and durable soon.
"""

import heapq
from collections import deque
from collections.abc import Generator, Iterator

from hostler.controller.inputs import Input, IntentAsked, Observed, Replied, WorkSeen
from hostler.core.state.durations import duration
from hostler.core.state.verbs.every import VERBS

OBSERVATIONS_MAX = 100_000
INTENTS_MAX = 1_000
BATCH_OBSERVATIONS = 1_000
BATCH_URGENT = 200
BATCH_OTHERS = 100
"""So many observations a batch has with urgent ones in it, unless these alone are more; and so many others at least."""
BATCH_INTENTS = 64

_EASING_VERBS = frozenset(verb for verb, kind in VERBS.items() if kind.facts.easing)


class BusyError(Exception):
    """The controller has as much to decide as it takes on; nothing was accepted. Come back after `retry_after_s`."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"busy: try again in {duration(retry_after_s)}")
        self.retry_after_s = retry_after_s


class StandbyError(BusyError):
    """A controller that does not decide; the one at `address` does ("" where none is known to)."""

    def __init__(self, address: str, retry_after_s: float = 1.0) -> None:
        super().__init__(retry_after_s)
        self.address = address


class FairQueue:
    """Observations in an order that serves every node alike; a node's own stay in theirs.

    Start-time fair queuing: Goyal, Vin and Cheng, "Start-time Fair Queueing", SIGCOMM 1996.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Observed]] = []
        self._through: dict[str, int] = {}
        self._served = 0
        self._came = 0

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, one: Observed) -> None:
        """Queue the observations of one sender."""
        start = max(self._served, self._through.get(one.node, 0))
        self._through[one.node] = start + max(1, len(one.observations))
        self._came += 1
        heapq.heappush(self._heap, (start, self._came, one))

    def take(self) -> Observed:
        """The next."""
        self._served, _, one = heapq.heappop(self._heap)
        if not self._heap:
            self._through.clear()
            self._served = 0
        return one


class Queues:
    """Inputs by urgency. Outcomes are bounded by the operations that are out, so they are always taken."""

    def __init__(self) -> None:
        self._outcomes: deque[Input] = deque()
        self._easing: deque[IntentAsked] = deque()
        self._intents: deque[IntentAsked] = deque()
        self._volatile: deque[Input] = deque()
        self._urgent = FairQueue()
        self._news = FairQueue()
        self._bulk = FairQueue()
        self.observations = 0

    def __len__(self) -> int:
        return len(self._outcomes) + len(self._easing) + len(self._intents) + len(self._volatile) + self.observations

    def put(self, one: Input) -> None:
        """Queue an input. Raises BusyError when its queue is full."""
        match one:
            case Observed(observations=observations):
                if self.observations + len(observations) > OBSERVATIONS_MAX:
                    raise BusyError(1.0 + self.observations / OBSERVATIONS_MAX)
                self.observations += len(observations)
                news = any(o.kind != "inventory" for o in observations)
                (self._urgent if one.urgent else self._news if news else self._bulk).put(one)
            case IntentAsked(intent=intent):
                queue = self._easing if intent.verb in _EASING_VERBS else self._intents
                if len(queue) >= INTENTS_MAX:
                    raise BusyError(1.0)
                queue.append(one)
            case Replied() | WorkSeen():  # a cordon's outcome stands behind who came before it
                self._outcomes.append(one)
            case _:
                self._volatile.append(one)

    def drop_observations(self) -> list[Observed]:
        """Take all observations out: they are not decided, and who sent them has to be told."""
        dropped = [queue.take() for queue in (self._urgent, self._news, self._bulk) for _ in range(len(queue))]
        self.observations = 0
        return dropped

    def take(self) -> list[Input]:
        """The next batch: every outcome and easing, some intents, then observations up to the batch's size."""
        return list(self._take())

    def _take(self) -> Iterator[Input]:
        yield from _drain(self._outcomes, len(self._outcomes))
        yield from _drain(self._easing, BATCH_INTENTS)
        yield from _drain(self._volatile, len(self._volatile))
        yield from _drain(self._intents, BATCH_INTENTS)
        urgent = yield from self._observations(self._urgent, BATCH_OBSERVATIONS)
        room = max(BATCH_URGENT - urgent, BATCH_OTHERS) if urgent else BATCH_OBSERVATIONS
        room -= yield from self._observations(self._news, room)
        yield from self._observations(self._bulk, room)

    def _observations(self, queue: FairQueue, most: int) -> Generator[Observed, None, int]:
        """Posts of the queue until they hold `most` observations; how many these were."""
        taken = 0
        while queue and taken < most:
            one = queue.take()
            self.observations -= len(one.observations)
            taken += max(1, len(one.observations))
            yield one
        return taken


def _drain(queue: "deque[Input] | deque[IntentAsked]", most: int) -> Iterator[Input]:
    for _ in range(min(most, len(queue))):
        yield queue.popleft()
