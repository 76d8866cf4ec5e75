"""Takes as many agents' posts at once as the controller keeps up with, and tells every other when its turn comes.

A fleet that posts all at once would fill the event loop with requests that wait, and everything else (an operator's
command, a GPU that falls off the bus) would wait behind them. Urgent posts have places of their own, one a sender.

A sender is the identity that its token was recognised as. A post takes its place when its body has come whole, so that
a stalled one keeps nobody out, and one sender has no more than SENDER_MAX under way.
"""

import math
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from litestar.datastructures import Headers
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from hostler.core.state.durations import duration
from hostler.core.state.verbs.facts import Permission
from hostler.server.auth import authenticate, demand
from hostler.server.problems import ProblemError, problem_details, refuse
from hostler.server.refused_agents import Refusals

PATH = "/v1/agent/observations"
AT_ONCE = 400
"""Posts under way at once: enough that commits are shared by thousands of observations."""
URGENT_AT_ONCE = 200
SOONEST_S, LATEST_S = 1.0, 120.0
SPACING_S = 1 / 500
"""Assumed duration of one post before any has been measured."""
MEASURED_S = 1.0
"""For how long posts are counted that leave a full house. They leave in bursts, many with one commit, so that the time
from one to the next tells nothing."""
OTHER_TIMES_S = 5.0
"""Longer than this between two refusals, and the house was not full in between."""
SMOOTHING = 0.5
SENDER_MAX = 2
"""Posts of one sender under way at once, stalled bodies among them: an ordinary one and an urgent one."""
BODY_MAX = 1024 * 1024
URGENT = "u=0"
"""The urgency (RFC 9218) with which an agent posts what may doom a job."""


class NotYetError(Exception):
    """There is no place; the sender's turn comes in `wait_s`."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"try again in {duration(wait_s)}")
        self.wait_s = wait_s


class AdmittedPost(NamedTuple):
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
        self._under_way: Counter[str] = Counter()
        self._spacing_s = SPACING_S
        self._full_since = -math.inf
        self._left = 0
        self._turn = 0.0

    def begin(self, sender: str) -> None:
        """A post of the sender begins, to be told of by `end`. Raises NotYetError where SENDER_MAX are under way."""
        if self._under_way[sender] >= SENDER_MAX:
            raise NotYetError(SOONEST_S)
        self._under_way[sender] += 1

    def end(self, sender: str) -> None:
        """A post of the sender is over, whatever came of it."""
        self._under_way[sender] -= 1
        if not self._under_way[sender]:
            del self._under_way[sender]

    def enter(self, sender: str, *, urgent: bool, now: float) -> AdmittedPost:
        """A place, to be given back by `leave`. Raises NotYetError."""
        if urgent and sender not in self._urgent and len(self._urgent) < self._urgent_at_once:
            self._urgent.add(sender)
            return AdmittedPost(sender, urgent=True)
        if self._inside >= self._at_once:
            self._measure(now)
            self._turn = max(self._turn, now + SOONEST_S) + self._spacing_s
            raise NotYetError(min(self._turn - now, LATEST_S))
        self._inside += 1
        return AdmittedPost(sender, urgent=False)

    def leave(self, place: AdmittedPost) -> None:
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
    """The middleware: stands behind authentication and before everything that costs more."""

    def __init__(self, app: ASGIApp, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP or scope.get("path") != PATH:
            await self._app(scope, receive, send)
            return
        headers = Headers.from_scope(scope)
        app_state = scope["litestar_app"].state["app_state"]
        admission: Admission = app_state.admission
        who = await authenticate(scope, app_state.tokens)
        demand(who, Permission.report)
        watched = _WatchedPost(app_state.refusals, who.grant.node, send, self._clock)
        try:
            admission.begin(who.token)
        except NotYetError as not_yet:
            watched.refused("more posts at once than it may have under way")
            raise _refusal(not_yet.wait_s, Connection="close") from not_yet
        try:
            body = await whole(receive, BODY_MAX)
            if body is not None:
                await self._admit(AdmittedPost(who.token, headers.get("priority", "") == URGENT), body, scope, watched)
        finally:
            admission.end(who.token)

    async def _admit(self, asked: AdmittedPost, body: "ReceivedBody", scope: Scope, watched: "_WatchedPost") -> None:
        admission: Admission = scope["litestar_app"].state["app_state"].admission
        try:
            place = admission.enter(asked.sender, urgent=asked.urgent, now=self._clock())
        except NotYetError as not_yet:
            watched.refused("more agents post than are taken at once")
            raise _refusal(not_yet.wait_s) from not_yet
        try:
            await self._app(scope, body.receive, watched.send)
        finally:
            admission.leave(place)


class ReceivedBody:
    """A request's body that has come whole, to be read by the application as if it came now."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def receive(self) -> Any:
        """Give the application the stored body, and then nothing until the sender leaves."""
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


async def whole(receive: Receive, most: int) -> ReceivedBody | None:
    """The body once it has come whole; None where its sender has gone. Raises ProblemError (413)."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message["body"])
        size += len(message["body"])
        if size > most:
            raise refuse(413, "too_large", f"a body of more than {most} bytes", "send it in pieces")
        if not message["more_body"]:
            return ReceivedBody(parts[0] if len(parts) == 1 else b"".join(parts), receive)


class _WatchedPost:
    """Notes whether the node's post is taken, by the status of its answer."""

    def __init__(self, refusals: Refusals, node: str, send: Send, clock: Callable[[], float]) -> None:
        self._refusals = refusals
        self._node = node
        self._send = send
        self._clock = clock

    def refused(self, why: str) -> None:
        self._refusals.refused(self._node, why, self._clock())

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            status = message["status"]
            if status >= 400:
                self.refused(f"answered with status {status}")
            else:
                self._refusals.taken(self._node)
        await self._send(message)


def _refusal(wait_s: float, **headers: str) -> ProblemError:
    what = "more is posted than is taken at once; nothing was accepted"
    problem = problem_details(503, "busy", what, "send it again later")
    return ProblemError(problem, {"Retry-After": str(math.ceil(wait_s)), **headers})
