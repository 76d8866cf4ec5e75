"""Mailboxes of agents: an order waits here until its agent fetches it, and its sender waits for the outcome.

Agents are never called: they ask. An order is handed out again until its outcome arrives, because agents act once
per operation and attempt. Nothing here survives a restart; the controller then observes what was under way.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.join_offer import JoinOffer
from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.tables.operations import OPERATIONS
from hostler.ports import UnreachableError

Mode = Literal["perform", "observe", "revoke"]

KINDS = frozenset(row.kind for row in OPERATIONS.values() if row.port == "agent")
ORDERS_MAX = 16
"""Orders that wait for one agent."""
REPEAT_S = 15.0
"""Time after which an order without an outcome is handed out again."""
OBSERVE_S = 30.0
"""Time for an agent to say whether an operation's effect is there."""
OVERDUE_S = 1.0


REVOKE_S = 4.0
"""Time for an agent to call an operation off; the operation settles all the same."""

_ANSWERED: dict[str, tuple[Mode, ...]] = {"not_done": ("observe",), "revoked": ("revoke",)}
"""Orders that a result answers, where it does not answer both performances and observations."""


class AgentOrder(Struct, frozen=True):
    """An operation for an agent, under the epoch of the controller that recorded it.

    `left_s`: until its deadline, when it was handed out; agents' clocks need not be right.
    """

    operation: Operation
    epoch: int
    mode: Mode = "perform"
    left_s: float | None = None


class _WaitingOrder:
    """An order in a mailbox, and who waits for its outcome."""

    def __init__(self, order: AgentOrder, outcome: "asyncio.Future[Outcome]") -> None:
        self.order = order
        self.outcome = outcome
        self.sent_s: float | None = None
        self.recalled = False


_Key = tuple[str, int, Mode]


class _Mailbox:
    """Orders that wait for one agent."""

    def __init__(self) -> None:
        self.orders: OrderedDict[_Key, _WaitingOrder] = OrderedDict()
        self.arrival = asyncio.Event()
        self.polls = 0
        self.users = 0


class AgentMailboxes:
    """`ports.Hand` for the agents' operations. `epoch` gives the running controller's.

    `may_send`: whether orders may be handed out at this moment; an agent that asks while they may not goes on waiting.
    `offered` gives what lets a node's kubelet into its cluster now.
    """

    kinds = KINDS

    def __init__(
        self,
        epoch: Callable[[], int],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        may_send: Callable[[], bool] = lambda: True,
        offered: Callable[[str], JoinOffer | None] = lambda _node: None,
    ) -> None:
        self._epoch = epoch
        self._may_send = may_send
        self._clock = clock
        self._offered = offered
        self._boxes: dict[str, _Mailbox] = {}
        self._closed = False

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Have the node's agent perform it. Raises UnreachableError when its deadline passes without an outcome."""
        left_s = (operation.deadline - self._clock()).total_seconds()
        return await self._ask(AgentOrder(operation, self._epoch(), "perform"), node.id, max(left_s, OVERDUE_S))

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Have the node's agent say whether it was done. Raises UnreachableError where it does not answer."""
        return await self._ask(AgentOrder(operation, self._epoch(), "observe"), node.id, OBSERVE_S)

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Take an order back.

        One that its agent never fetched is refused, and so certain not to land; another is called off by the agent
        where that helps.
        """
        box = self._boxes.get(node.id)
        waiting = box.orders.get((operation.id, operation.attempt, "perform")) if box else None
        if waiting is not None:
            waiting.recalled = True
        if waiting is None or waiting.sent_s is not None:
            await self._ask(AgentOrder(operation, self._epoch(), "revoke"), node.id, REVOKE_S)
            return
        if not waiting.outcome.done():
            detail = "taken back before the agent had it"
            waiting.outcome.set_result(Outcome(operation.id, node.id, "refused", detail, attempt=operation.attempt))

    async def collect(self, node: str, wait_s: float) -> tuple[AgentOrder, ...]:
        """The orders that wait for this agent, at once or as soon as there is one, () after `wait_s`.

        A later poll of the same node ends an earlier one: no agent can hold many open.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + wait_s
        with self._mailbox(node) as box:
            box.polls += 1
            mine = box.polls
            box.arrival.set()
            while True:
                if ready := self._due(box, loop.time()):
                    return ready
                left = min(end - loop.time(), self._repeats_in(box, loop.time()))
                if end <= loop.time() or box.polls != mine or self._closed:
                    return ()
                box.arrival.clear()
                try:
                    async with asyncio.timeout(max(left, 0.01)):
                        await box.arrival.wait()
                except TimeoutError:
                    continue

    def joining(self, node: str) -> JoinOffer | None:
        """Join offer for the node's kubelet, None without one; only the node's own agent may ask."""
        return self._offered(node) if self._may_send() else None

    def answer(self, outcome: Outcome) -> bool:
        """Take an agent's outcome; whether somebody waited for it here.

        What says that nothing happened answers an observation only: a performance goes on.
        """
        box = self._boxes.get(outcome.node)
        modes = _ANSWERED.get(outcome.result, ("perform", "observe"))
        taken = False
        for mode in modes:
            waiting = box.orders.get((outcome.operation, outcome.attempt, mode)) if box else None
            if waiting is not None and not waiting.outcome.done():
                waiting.outcome.set_result(outcome)
                taken = True
        return taken

    @property
    def waiting(self) -> int:
        """Nodes for which an order or an agent waits here."""
        return len(self._boxes)

    def send_away(self) -> None:
        """Answer every agent that waits with nothing: orders for it are given elsewhere now, it shall ask again."""
        for box in self._boxes.values():
            box.polls += 1
            box.arrival.set()

    def close(self) -> None:
        """End every poll, so that the server can stop."""
        self._closed = True
        self.send_away()

    async def _ask(self, order: AgentOrder, node: str, timeout_s: float) -> Outcome:
        key = (order.operation.id, order.operation.attempt, order.mode)
        with self._mailbox(node) as box:
            if len(box.orders) >= ORDERS_MAX and key not in box.orders:
                raise UnreachableError(
                    f"{len(box.orders)} orders wait for the agent of {node} already; see that it runs there"
                )
            waiting = _WaitingOrder(order, asyncio.get_running_loop().create_future())
            box.orders[key] = waiting
            box.arrival.set()
            try:
                async with asyncio.timeout(timeout_s):
                    return await waiting.outcome
            except TimeoutError as late:
                had = "has not answered" if waiting.sent_s is not None else "never asked for it"
                raise UnreachableError(f"the agent of {node} {had}; see that it runs there") from late
            finally:
                if box.orders.get(key) is waiting:
                    del box.orders[key]

    @contextmanager
    def _mailbox(self, node: str) -> Iterator[_Mailbox]:
        """The node's mailbox, which is there while somebody waits at it: for an order, or for an outcome."""
        box = self._boxes.setdefault(node, _Mailbox())
        box.users += 1
        try:
            yield box
        finally:
            box.users -= 1
            if not box.users:
                del self._boxes[node]

    def _due(self, box: _Mailbox, now_s: float) -> tuple[AgentOrder, ...]:
        """Orders never sent, or sent so long ago that they may have been lost on the way."""
        found: list[AgentOrder] = []
        if not self._may_send():
            return ()
        for waiting in box.orders.values():
            due = waiting.sent_s is None or now_s - waiting.sent_s >= REPEAT_S
            if due and not waiting.recalled and not waiting.outcome.done():
                waiting.sent_s = now_s
                found.append(self._dated(waiting.order))
        return tuple(found)

    def _dated(self, order: AgentOrder) -> AgentOrder:
        if order.mode != "perform":
            return order
        return replace(order, left_s=max(0.0, (order.operation.deadline - self._clock()).total_seconds()))

    def _repeats_in(self, box: _Mailbox, now_s: float) -> float:
        if not self._may_send():
            return OVERDUE_S
        sent = [w.sent_s for w in box.orders.values() if w.sent_s is not None and not w.recalled]
        return max(0.0, min(sent, default=now_s) + REPEAT_S - now_s)
