"""Sends what was recorded to whoever performs it, each behind the fence, and turns every answer into an outcome."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol

from hostler.controller.step_output import Send
from hostler.core.state.model import LASTING, Facts, Operation, Outcome
from hostler.core.tables.operations import OPERATIONS
from hostler.logs import traces
from hostler.logs.structured import bound, logger
from hostler.ports import (
    CertificateChangedError,
    ConflictError,
    JournalError,
    OperationDriver,
    RefusedError,
    UnreachableError,
)
from hostler.runtime.performers import Performers

log = logger()

AT_ONCE = 1_024
GRACE_S = 5.0


class Fence(Protocol):
    """The fence between a recorded operation and the outside."""

    async def passes(self, send: Send) -> bool:
        """Waits until this may be sent; False when it is out of date by then."""
        ...


async def untraced(_: Operation) -> traces.Earlier:
    """No operation has a trace."""
    return None


class Sender:
    """The drivers and what they are at. `replied` takes every outcome, `clock` says what is left of a deadline.

    `traced` gives the span of the intent that an operation is for, None where there is none.
    """

    def __init__(
        self,
        drivers: Performers,
        fence: Fence,
        replied: Callable[[Send, Outcome], None],
        clock: Callable[[], datetime],
        traced: Callable[[Operation], Awaitable[traces.Earlier]] = untraced,
    ) -> None:
        self._drivers = drivers
        self._fence = fence
        self._replied = replied
        self._clock = clock
        self._traced = traced
        self._limit = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, send: Send) -> None:
        """Begin to send; returns at once."""
        task = asyncio.create_task(self._dispatch(send))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Let go of everything that is out: its outcome is observed by whoever is active next."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _dispatch(self, send: Send) -> None:
        """Ask a driver, unless the operation is out of date by now; whatever it says becomes an input."""
        bound(operation=send.operation.id, node=send.node.id)
        async with self._limit:
            driver = self._drivers.get(send.operation.kind)
            if driver is None:
                why = f"no driver performs {send.operation.kind}"
                self._replied(send, _outcome(send.operation, "refused", why))
            elif send.how == "revoke":
                await self._revoke(driver, send)
            else:
                parent = await self._parent_of(send.operation)  # before the fence: nothing is waited for behind it
                if await self._fence.passes(send):
                    self._replied(send, await self._traced_ask(driver, send, parent))

    async def _traced_ask(self, driver: OperationDriver, send: Send, parent: traces.Earlier) -> Outcome:
        """Ask the driver, as a span of the intent's trace where it has one."""
        operation = send.operation
        told: traces.Facts = {
            "hostler.operation": operation.id,
            "hostler.kind": operation.kind,
            "hostler.plan": operation.plan,
            "hostler.node": send.node.id,
            "hostler.port": OPERATIONS[operation.kind].port,
            "hostler.attempt": operation.attempt,
        }
        with traces.after(parent, f"{send.how} {operation.kind}", told) as span:
            if name := traces.trace_id():
                bound(trace=name)
            outcome = await self._ask(driver, send)
            traces.tell(span, "hostler.outcome", outcome.result)
            if outcome.result in ("failed", "refused"):  # not "unknown": it may have worked
                traces.failed(span, outcome.result)
        return outcome

    async def _parent_of(self, operation: Operation) -> traces.Earlier:
        """The span that the operation's goes on with; a journal that does not answer costs the trace alone."""
        try:
            return await self._traced(operation)
        except JournalError as unread:
            log.info("trace_unknown", reason=str(unread))
            return None

    async def _ask(self, driver: OperationDriver, send: Send) -> Outcome:
        operation, node = send.operation, send.node
        left_s = (operation.deadline - self._clock()).total_seconds() + GRACE_S
        try:
            async with asyncio.timeout(max(GRACE_S, left_s)):
                if send.how == "observe":
                    said = await driver.observe(operation, node)
                else:
                    said = await driver.perform(operation, node)
        except (UnreachableError, ConflictError, RefusedError, TimeoutError) as error:
            return fate(send, error)
        except Exception as bug:  # the one place: a driver's bug must not stop the cell
            log.exception("driver_failed", kind=operation.kind)
            return _outcome(operation, "unknown", f"driver error: {type(bug).__name__}: {bug}")
        return said

    async def _revoke(self, driver: OperationDriver, send: Send) -> None:
        try:
            async with asyncio.timeout(GRACE_S):
                await driver.revoke(send.operation, send.node)
        except (UnreachableError, ConflictError, RefusedError, TimeoutError) as away:
            log.info("revoke_failed", kind=send.operation.kind, reason=str(away))


def fate(send: Send, error: Exception) -> Outcome:
    """Outcome of a driver's error: what it would not do is refused; of all else nobody knows what came."""
    asked, why = send.operation, str(error) or type(error).__name__
    if not isinstance(error, RefusedError) or send.how != "perform":
        return _outcome(asked, "unknown", why)
    lasts = isinstance(error, CertificateChangedError)  # a login that is locked out is let in again by itself
    facts: Facts = {LASTING: f"correct what is recorded: hostler node explain {send.node.id}"} if lasts else {}
    return Outcome(asked.id, asked.node, "refused", why[:500], facts, attempt=asked.attempt)


def _outcome(operation: Operation, result: str, detail: str) -> Outcome:
    return Outcome(operation.id, operation.node, result, detail[:500], attempt=operation.attempt)
