"""Takes as many agents' posts at once as the controller keeps up with, and tells every other when its turn comes.

A fleet that posts all at once would fill the event loop with requests that wait, and everything else (an operator's
command, a GPU that falls off the bus) would wait behind them. Urgent posts have places of their own, one a sender.
"""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from litestar.datastructures import Headers
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from hostler.server.problems import Problem, ProblemError

PATH = "/v1/agent/observations"
AT_ONCE = 400
"""Posts under way at once: enough that commits are shared by thousands of observations."""
URGENT_AT_ONCE = 200
SOONEST_S, LATEST_S = 1.0, 120.0
SPACING_S = 1 / 500
"""What one post takes before anything has been measured."""
MEASURED_S = 1.0
"""For how long posts are counted that leave a full house. They leave in bursts, many with one commit, so that the time
from one to the next tells nothing."""
OTHER_TIMES_S = 5.0
"""Longer than this between two refusals, and the house was not full in between."""
SMOOTHING = 0.5
DRAINED_MAX = 64 * 1024
URGENT = "u=0"
"""The urgency (RFC 9218) with which an agent posts what may doom a job."""


class NotYetError(Exception):
    """There is no place; the sender's turn comes in `wait_s`."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"its turn comes in {wait_s:.0f} s")
        self.wait_s = wait_s


class Place(NamedTuple):
    """A post under way."""

    sender: str
    urgent: bool


class Admission:
    """Places for posts. `now` is monotonic, in seconds; who is refused is told how long until its turn.

    Turns are given out one after the other at the pace at which posts have been leaving, so that ten times too many
    senders come back one by one and not all together.
    """

    def __init__(self, at_once: int = AT_ONCE, urgent_at_once: int = URGENT_AT_ONCE) -> None:
        self._at_once = at_once
        self._urgent_at_once = urgent_at_once
        self._inside = 0
        self._urgent: set[str] = set()
        self._spacing_s = SPACING_S
        self._full_since = -math.inf
        self._left = 0
        self._turn = 0.0

    def enter(self, sender: str, *, urgent: bool, now: float) -> Place:
        """A place, to be given back by `leave`. Raises NotYetError."""
        if urgent and sender not in self._urgent and len(self._urgent) < self._urgent_at_once:
            self._urgent.add(sender)
            return Place(sender, urgent=True)
        if self._inside >= self._at_once:
            self._measure(now)
            self._turn = max(self._turn, now + SOONEST_S) + self._spacing_s
            raise NotYetError(min(self._turn - now, LATEST_S))
        self._inside += 1
        return Place(sender, urgent=False)

    def leave(self, place: Place) -> None:
        """The post was answered."""
        if place.urgent:
            self._urgent.discard(place.sender)
            return
        self._inside -= 1
        self._left += 1

    def _measure(self, now: float) -> None:
        """The house is full: at what pace have posts been leaving since it was seen full before?"""
        lasted_s = now - self._full_since
        if lasted_s < MEASURED_S:
            return
        if self._left and lasted_s < OTHER_TIMES_S:
            self._spacing_s += SMOOTHING * (lasted_s / self._left - self._spacing_s)
        self._full_since, self._left = now, 0


class AdmissionFence:
    """The middleware: stands before authentication, so that a refusal costs next to nothing."""

    def __init__(
        self, app: ASGIApp, admission: Admission | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._app = app
        self._admission = admission or Admission()
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP or scope.get("path") != PATH:
            await self._app(scope, receive, send)
            return
        headers = Headers.from_scope(scope)
        sender, urgent = headers.get("authorization", ""), headers.get("priority", "") == URGENT
        try:
            place = self._admission.enter(sender, urgent=urgent, now=self._clock())
        except NotYetError as not_yet:
            await _drain(receive)
            raise _refusal(not_yet.wait_s) from not_yet
        try:
            await self._app(scope, receive, send)
        finally:
            self._admission.leave(place)


async def _drain(receive: Receive) -> None:
    """Read a refused body, up to a limit, so that its connection can be used again."""
    size = 0
    while size <= DRAINED_MAX:
        message = await receive()
        if message["type"] != "http.request":
            return
        size += len(message["body"])
        if not message["more_body"]:
            return


def _refusal(wait_s: float) -> ProblemError:
    problem = Problem("busy", "more agents post than are taken at once; nothing was accepted", "send it again later")
    return ProblemError(503, problem, {"Retry-After": str(math.ceil(wait_s))})
