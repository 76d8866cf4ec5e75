"""Looks at every BMC in its turn: power becomes present, readings are observed once they have repeated themselves."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from hostler.controller.inputs import NodeSeen
from hostler.core.state.bmc_certificate import CERTIFY
from hostler.core.state.durations import duration
from hostler.core.state.model import Node
from hostler.polling import drill_readings
from hostler.polling.bmc_readings import SENSORS, SYSTEM, BmcSession, Looks
from hostler.polling.bmc_schedule import MISSED, BmcSchedule, Pace
from hostler.ports import CertificateChangedError, ExcessError, LoginRefusedError, PortError, RefusedError
from hostler.runtime.runner import Cell

CHANGED = "bmc.certificate_changed"
ADD_NODES_S = 2.0
"""How often the fleet is asked who has a BMC."""


class BmcReader(Protocol):
    """Opens a look at one node. Raises PortError."""

    async def look(self, node: Node) -> BmcSession:
        """Open a session with the node's BMC."""


class PollLimits(Struct, frozen=True):
    """How many looks may be under way, and for how long.

    A look that lasts longer than `patience_s` gives its place among `quick` to the next one and goes on among `slow`;
    after `deadline_s` it has missed. So BMCs that hang never hold up those that answer.
    """

    quick: int = 64
    slow: int = 256
    patience_s: float = 2.0
    deadline_s: float = 20.0


class BmcPoller:
    """Looks at all nodes that have a BMC. Volatile: after a restart everything is looked at anew.

    An object's `run` ends only when it is cancelled; every look that it began ends with it.
    """

    def __init__(
        self,
        cell: Cell,
        reader: BmcReader,
        clock: Callable[[], datetime],
        pace: Pace = Pace(),  # noqa: B008 - frozen
        places: PollLimits = PollLimits(),  # noqa: B008 - frozen
    ) -> None:
        self._cell = cell
        self._reader = reader
        self._places = places
        self._schedule = BmcSchedule(pace)
        self._looks = Looks(cell, clock)
        self._clock = clock
        self._quick = self._slow = 0
        self._freed = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        self._looks.told_before(await asyncio.to_thread(self._cell.journal.cursors))
        now = asyncio.get_running_loop().time
        async with asyncio.TaskGroup() as looks:
            enlisted = -ADD_NODES_S
            while True:
                if now() - enlisted >= ADD_NODES_S:
                    self._add_nodes(now())
                    enlisted = now()
                self._begin(looks, now())
                await self._until(min(enlisted + ADD_NODES_S, self._next(now())))

    def _add_nodes(self, now: float) -> None:
        """Take the nodes that have a BMC; what was kept of nodes that are gone is let go."""
        nodes = self._cell.view.index.members("bmc")
        self._schedule.add_nodes(nodes, now)
        self._looks.forget(len(nodes))

    def _begin(self, looks: asyncio.TaskGroup, now: float) -> None:
        """Look at whoever is due, as far as there is room."""
        while self._quick < self._places.quick and (node_id := self._schedule.take(now)) is not None:
            slowly = self._schedule.misses(node_id) > 0
            if slowly and self._slow >= self._places.slow:
                self._schedule.later(node_id, now)
                continue
            self._occupy(slow=slowly)
            looks.create_task(self._turn(node_id, slowly=slowly))

    def _next(self, now: float) -> float:
        """When to look up again: at the next turn, or when a place is free."""
        due = self._schedule.next_due()
        return now + ADD_NODES_S if due is None or self._quick >= self._places.quick else due

    async def _until(self, moment: float) -> None:
        """Until this moment, or a place is freed."""
        self._freed.clear()
        try:
            async with asyncio.timeout_at(moment):
                await self._freed.wait()
        except TimeoutError:
            return

    def _occupy(self, *, slow: bool, by: int = 1) -> None:
        if slow:
            self._slow += by
        else:
            self._quick += by
        if by < 0:
            self._freed.set()

    async def _turn(self, node_id: str, *, slowly: bool) -> None:
        """One look, in whichever place, with its deadline."""
        work = asyncio.ensure_future(self._look(node_id))
        try:
            if not slowly:
                await asyncio.wait((work,), timeout=self._places.patience_s)
                if not work.done() and self._slow < self._places.slow:
                    self._occupy(slow=False, by=-1)
                    self._occupy(slow=True)
                    slowly = True
            if slowly:
                await asyncio.wait((work,), timeout=self._places.deadline_s)
            if work.done():
                work.result()
            elif slowly:
                self._missed(node_id, f"no answer within {duration(self._places.deadline_s)}")
            else:
                self._schedule.later(node_id, asyncio.get_running_loop().time())
        finally:
            self._occupy(slow=slowly, by=-1)
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _look(self, node_id: str) -> None:
        """Power first: it is known even where the readings fail."""
        node = self._cell.view.nodes.get(node_id)
        if node is None:
            return
        if drill_readings.keeps_silent(node, self._clock()):
            self._missed(node_id, "a drill keeps it from being asked")
            return
        try:
            reader = await self._reader.look(node)
        except RefusedError as error:
            self._refused(node, error)
            return
        except ExcessError as error:
            self._cell.tell(NodeSeen(node_id, power="unknown", bmc_unreachable=False))
            self._exceeded(node, SYSTEM, str(error))
            return
        except PortError as error:
            self._missed(node_id, str(error))
            return
        self._cell.tell(
            NodeSeen(
                node_id,
                power=reader.power,
                bmc_unreachable=False,
                bmc_refuses="",
                bmc_login_refused=False,
                bmc_certificate="" if any(one.type == CHANGED for one in node.conditions) else None,
            )
        )
        self._looks.within(node, SYSTEM)
        worked_on = node.plan is not None and node.plan.disturbed
        if worked_on and not self._looks.due(node, asyncio.get_running_loop().time()):
            self._seen(node_id, close=True)
            return
        try:
            waits = await self._looks.read(node, reader, self._schedule.period_s)
        except ExcessError as error:
            self._exceeded(node, SENSORS.name, str(error))
            return
        except PortError:
            waits = False
        self._seen(node_id, close=waits or worked_on)

    def _seen(self, node_id: str, *, close: bool) -> None:
        self._schedule.seen(node_id, asyncio.get_running_loop().time(), close=close)

    def _missed(self, node_id: str, why: str) -> None:
        """Unreachable once it has missed several looks in a row; told again with each look, as a restart may forget."""
        node = self._cell.view.nodes.get(node_id)
        plan = node.plan if node is not None else None
        aside = node.aside.kind if node is not None and node.aside is not None else ""
        awaited = plan is not None and any(step.operation == "wait_bmc" for step in plan.steps)
        awaited = awaited or aside == CERTIFY  # a BMC may restart to show its new certificate
        missed = self._schedule.missed(node_id, asyncio.get_running_loop().time(), awaited=awaited)
        if missed >= MISSED:
            self._cell.tell(NodeSeen(node_id, power="unknown", bmc_unreachable=True, bmc_says=why))

    def _exceeded(self, node: Node, what: str, why: str) -> None:
        """Tell that it shows more than is read of it, which costs as much each time: the BMC is asked seldom."""
        self._schedule.exceeded(node.id, asyncio.get_running_loop().time())
        self._looks.exceeded(node, what, why)

    def _refused(self, node: Node, error: RefusedError) -> None:
        """Tell that it answers not to us, or not as this node: nothing it says is the node's, no reset mends it."""
        self._seen(node.id, close=False)
        self._cell.tell(
            NodeSeen(
                node.id,
                power="unknown",
                bmc_unreachable=False,
                bmc_refuses=str(error),
                bmc_login_refused=True if isinstance(error, LoginRefusedError) else None,
                bmc_certificate=str(error) if isinstance(error, CertificateChangedError) else None,
            )
        )
