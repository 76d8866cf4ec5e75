"""Context shared by all inhabitants of a world: time, chance, the way to the controller, and the ledger."""

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from hostler.controller.inputs import Input, Replied
from hostler.controller.step_output import Reply
from hostler.core.state.model import Operation, Outcome
from hostler.sim.world.ledger import Ledger
from hostler.sim.world.message_faults import Calm, Troubles
from hostler.sim.world.virtual_clock import VirtualClock

Span = tuple[float, float]
"""Least and most, in seconds."""

TOKENS_KEPT = 100_000
LEAK_LASTS = timedelta(minutes=30)


class Site:
    """The ground that hosts, schedulers and people stand on.

    `inbox` is what the controller has not been given yet, `ill` the nodes in which something is broken. `silence_s` is
    after how long an agent counts as lost. `skew` is how far the controllers' wall clock is ahead of true time, `ahead`
    how far controller time is. `coolant`: when the coolant unit of a rack showed itself wet last.
    """

    def __init__(self, clock: VirtualClock, seed: int, silence_s: float, troubles: Troubles | None = None) -> None:
        self.clock = clock
        self.seed = seed
        self.chance = random.Random(seed)
        self.silence_s = silence_s
        self.troubles: Troubles = troubles or Calm()
        self.inbox: list[Input] = []
        self.ledger = Ledger()
        self.ill: dict[str, None] = {}
        self.seq = 0
        self.epoch = 0
        self.skew = self.ahead = timedelta(0)
        self.coolant: datetime | None = None
        self.asked = 0
        self._token = 0
        self._due: dict[str, datetime] = {}
        self._waiting: dict[int, Callable[[Reply], None]] = {}

    @property
    def leaks(self) -> bool:
        """Whether the coolant unit has leaked lately: what protects from that may be on its way still."""
        return self.coolant is not None and self.clock.now - self.coolant < LEAK_LASTS

    @property
    def wall(self) -> datetime:
        """Reading of the controllers' wall clock."""
        return self.clock.now + self.skew

    @property
    def recorded(self) -> datetime:
        """Present moment as the journal tells it."""
        return self.clock.now + self.ahead

    def draw(self, span: Span) -> float:
        """A number of the span, drawn from the site's stream."""
        return self.chance.uniform(*span)

    def stream(self, name: str) -> random.Random:
        """Chance of somebody's own: what happens to others does not change what it brings."""
        return random.Random(f"{self.seed}/{name}")

    def tell(self, one: Input) -> None:
        """Give the controller something to know in its next step."""
        self.inbox.append(one)

    def token(self, answered: Callable[[Reply], None]) -> int:
        """A token for an input whose answer is awaited. Answers that never come are forgotten in order."""
        self._token += 1
        self._waiting[self._token] = answered
        if len(self._waiting) > TOKENS_KEPT:
            del self._waiting[next(iter(self._waiting))]
        return self._token

    def answer(self, reply: Reply) -> None:
        """Give the controller's reply to whoever asked."""
        answered = self._waiting.pop(reply.token, None)
        if answered is not None:
            answered(reply)

    def expects(self, operation: Operation) -> None:
        """An answer about this operation is due by its deadline."""
        self._due[operation.node] = operation.deadline

    def reply(self, outcome: Outcome, after_s: float) -> None:
        """A driver's answer on its way to the controller; it may be lost, doubled or late (`message_faults`)."""
        now = self.recorded
        due = self._due.get(outcome.node, now)
        for delay_s, said in self.troubles.replies(outcome, after_s, (due - now).total_seconds()):
            self.clock.after(delay_s, partial(self._arrives, said))

    def _arrives(self, outcome: Outcome) -> None:
        self.ledger.answers.setdefault((outcome.operation, outcome.attempt), []).append(outcome.result)
        self.tell(Replied(outcome))
