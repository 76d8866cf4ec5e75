"""From the controller's orders to outcomes: takes operations, lets the hands work, and reports until it was heard."""

import asyncio
import contextlib
import sqlite3
from collections import deque
from collections.abc import Callable
from functools import partial
from math import inf

from hostler.agent.boot_clock import boottime
from hostler.agent.controller_client import (
    ControllerClient,
    OperationOrder,
    RejectedError,
    UnavailableError,
    UnreadableOrder,
    backoff_s,
)
from hostler.agent.kubelet import KubeletJoinOffer
from hostler.agent.local_observation import LocalObservation, Rank, collector_failed, collector_started
from hostler.agent.node_operations import NodeOperations
from hostler.agent.operation_log import OperationLog
from hostler.agent.spool import Spool
from hostler.agent.spool_upload import Uploader
from hostler.core.state.model import Outcome

MAX_TRANSIENT = 256
"""Outcomes without a mark (refusals, observations) that wait to be sent; the controller asks again for lost ones."""
MAX_OUTCOMES = 50
MIN_POLL_S = 1.0
"""Shortest interval between polls after orders came: the controller repeats orders until it has their outcome."""
TOO_MUCH = frozenset({400, 413, 422})
"""Statuses by which the controller refuses what it was sent, and not who sent it, or when."""
FLUSH_S = 5.0
"""Time for which evidence waits for the spool to empty before its outcome is reported (power may go right after)."""


class Operator:
    """The agent's office for operations. One act at a time; observations are answered meanwhile."""

    def __init__(
        self,
        operations: NodeOperations,
        log_of_operations: OperationLog,
        spool: Spool,
        uploader: Uploader,
        controller: ControllerClient,
    ) -> None:
        self._performers = operations
        self._operation_log = log_of_operations
        self._spool = spool
        self._uploader = uploader
        self._controller = controller
        self._transient: deque[Outcome] = deque(maxlen=MAX_TRANSIENT)
        self._heard = asyncio.Event()
        self._acts: set[asyncio.Task[None]] = set()

    async def take_orders(self, draw: Callable[[], float]) -> None:
        """Ask for operations for ever, once it is known what was begun before."""
        self._transient.extend(await self._settled(draw))
        self._heard.set()
        attempt = 0
        while True:
            asked = boottime()
            try:
                orders = await self._controller.operations()
                attempt = 0
            except (UnavailableError, RejectedError) as error:
                retry_after_s = error.retry_after_s if isinstance(error, UnavailableError) else None
                await asyncio.sleep(backoff_s(attempt, retry_after_s, draw()))
                attempt += 1
                continue
            for order in orders:
                self._begin(order, asked)
            if orders:
                await asyncio.sleep(MIN_POLL_S)

    async def _settled(self, draw: Callable[[], float]) -> list[Outcome]:
        """Report earlier operations as far as their outcome is known.

        While the disk refuses no order is taken, and the controller is told.
        """
        attempt = 0
        while True:
            try:
                found = await asyncio.to_thread(self._performers.settle)
            except sqlite3.Error as error:
                if not attempt:
                    why = f"the disk refuses the marks of acts, and no order is taken until it does not: {error}"
                    await self._note(collector_failed("marks", self._spool.now_s(), why))
                await asyncio.sleep(backoff_s(attempt, None, draw()))
                attempt += 1
                continue
            if attempt:
                await self._note(collector_started("marks", self._spool.now_s()))
            return found

    async def report(self, draw: Callable[[], float]) -> None:
        """Send outcomes for ever."""
        attempt = 0
        while True:
            try:
                await self.report_all()
                attempt = 0
                await self._heard.wait()
            except (UnavailableError, RejectedError, sqlite3.Error):
                await asyncio.sleep(backoff_s(attempt, None, draw()))
                attempt += 1

    async def report_all(self) -> None:
        """Send the outcomes that there are. Raises what the controller or the disk raised."""
        self._heard.clear()
        while self._transient:
            batch = [self._transient[index] for index in range(min(MAX_OUTCOMES, len(self._transient)))]
            await self._deliver(batch)
            for _ in batch:
                self._transient.popleft()
        while batch := await asyncio.to_thread(self._operation_log.unsent, MAX_OUTCOMES):
            await self._deliver(self._performers.own(batch))
            await asyncio.to_thread(self._sent, batch)

    async def _deliver(self, outcomes: list[Outcome]) -> None:
        """Send them. One that the controller does not take as it is goes bare, so that it cannot stop all others."""
        if not outcomes:
            return
        try:
            await self._controller.outcomes(outcomes)
        except RejectedError as error:
            if error.status not in TOO_MUCH:
                raise
            if len(outcomes) == 1:
                await self._controller.outcomes([_bare(outcomes[0], error)])
                return
            for one in outcomes:
                await self._deliver([one])

    def _sent(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            self._operation_log.sent(outcome)

    def _begin(self, order: OperationOrder | UnreadableOrder, asked: float) -> None:
        work = self._refuse(order) if isinstance(order, UnreadableOrder) else self._handle(order, asked)
        act = asyncio.create_task(work)
        self._acts.add(act)
        act.add_done_callback(self._acts.discard)

    async def _refuse(self, order: UnreadableOrder) -> None:
        with contextlib.suppress(sqlite3.Error):  # silence, and the controller asks again
            await self._post(await asyncio.to_thread(self._performers.refuse, order))

    async def _handle(self, order: OperationOrder, asked: float) -> None:
        begin_by = inf if order.left_s is None else asked + order.left_s
        modes = {"observe": self._performers.observe, "revoke": self._performers.revoke}
        try:
            offer = await self._fetched(order)
        except UnavailableError:
            return  # silence: it is asked for again, or given up
        ask = modes.get(order.mode, partial(self._performers.perform, begin_by=begin_by, offer=offer))
        try:
            outcome = await asyncio.to_thread(ask, order.operation, order.epoch)
        except sqlite3.Error:
            return  # the marks cannot be read: silence, and the controller asks again
        if order.operation.kind == "run_checks":
            await self._note_verdict(outcome)
        if order.operation.kind == "collect_evidence" and order.mode == "perform":
            await self._flush()
        await self._post(outcome)

    async def _fetched(self, order: OperationOrder) -> KubeletJoinOffer | None:
        """Fetch what no order carries: the secret by which this node's kubelet joins. None where there is none."""
        if order.operation.kind != "start_kubelet" or order.mode != "perform":
            return None
        try:
            return await self._controller.joining()
        except RejectedError:
            return None

    async def _post(self, outcome: Outcome) -> None:
        """A marked outcome is sent from its mark (again, if it was sent before); any other from memory."""
        if not await asyncio.to_thread(self._operation_log.resend, outcome):
            self._transient.append(outcome)
        self._heard.set()

    async def _note_verdict(self, outcome: Outcome) -> None:
        if "verdict" not in outcome.facts:
            return
        seen_s = self._spool.now_s()
        facts = {name: outcome.facts[name] for name in ("profile", "verdict")}
        verdict = LocalObservation(
            "verdict", seen_s, Rank.urgent, outcome.detail, facts={**facts, "operation": outcome.operation}
        )
        await self._note(verdict)

    async def _note(self, seen: LocalObservation) -> None:
        await asyncio.to_thread(self._spool.append, [seen])
        self._uploader.wake()

    async def _flush(self) -> None:
        try:
            async with asyncio.timeout(FLUSH_S):
                await self._uploader.drained()
        except TimeoutError:
            return


def _bare(outcome: Outcome, error: RejectedError) -> Outcome:
    """The outcome without what the controller refused. Done without its answer is nobody's answer, so it is refused."""
    result = "refused" if outcome.result == "done" else outcome.result
    detail = f"it ended with '{outcome.result}', and the controller did not take its answer: {error}"
    return Outcome(outcome.operation, outcome.node, result, detail, attempt=outcome.attempt)
