"""Looks at every BMC in its turn: power becomes present, readings are observed once they have repeated themselves."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.diagnose.debounce import Heard, forget, settle, told
from hostler.core.diagnose.sensors import subjects
from hostler.core.model import Node, Observation, Phase
from hostler.engine.intake import NodeSeen
from hostler.engine.ports import PortError, RefusedError
from hostler.engine.queues import BusyError
from hostler.engine.rota import MISSED, Pace, Rota
from hostler.engine.runner import Cell

ENLIST_S = 2.0
"""How often the fleet is asked who has a BMC."""

LOG_S = 900.0
"""How often a BMC's event log is read on."""

LOG_SOURCE = "bmc_log"

AFFIRM_S = 3600.0
"""What stands unchanged is told again after so long: it is then known to be so, and not merely unrevoked."""


class Sight(Protocol):
    """One look at a node's BMC, whose identity has been checked: its power ("on", "off", "unknown"), and more."""

    power: str

    async def sensors(self) -> Observation:
        """The readings, without a number yet. Raises PortError."""
        ...

    async def entries(self, cursor: str) -> tuple[tuple[Observation, ...], str]:
        """What the event log holds behind the cursor, and the new cursor. Raises PortError."""
        ...


class Eyes(Protocol):
    """Opens a look at one node. Raises PortError."""

    async def look(self, node: Node) -> Sight: ...


class Places(Struct, frozen=True):
    """How many looks may be under way, and for how long.

    A look that lasts longer than `patience_s` gives its place among `quick` to the next one and goes on among `slow`;
    after `deadline_s` it has missed. So BMCs that hang never hold up those that answer.
    """

    quick: int = 64
    slow: int = 256
    patience_s: float = 2.0
    deadline_s: float = 20.0


class Memory(Struct):
    """What is kept of one BMC between its looks: what was heard of its parts, and when it was read and told."""

    heard: dict[str, Heard] = {}
    number: int = 0
    read_at: float = float("-inf")
    affirmed_at: float = float("-inf")
    log_number: int = 0
    log_cursor: str | None = None
    log_at: float = float("-inf")


class Watch:
    """Looks at all nodes that have a BMC. Volatile: after a restart everything is looked at anew.

    An object's `run` ends only when it is cancelled; every look that it began ends with it.
    """

    def __init__(
        self,
        cell: Cell,
        eyes: Eyes,
        clock: Callable[[], datetime],
        pace: Pace = Pace(),  # noqa: B008 - frozen
        places: Places = Places(),  # noqa: B008 - frozen
    ) -> None:
        self._cell = cell
        self._eyes = eyes
        self._clock = clock
        self._places = places
        self._rota = Rota(pace)
        self._memories: dict[str, Memory] = {}
        self._quick = self._slow = 0
        self._freed = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        for key, (_, sequence) in (await asyncio.to_thread(self._cell.journal.cursors)).items():
            node, _, source = key.rpartition("/")
            if source == "bmc":
                self._memories.setdefault(node, Memory()).number = sequence
            elif source == LOG_SOURCE:
                self._memories.setdefault(node, Memory()).log_number = sequence
        now = asyncio.get_running_loop().time
        async with asyncio.TaskGroup() as looks:
            enlisted = -ENLIST_S
            while True:
                if now() - enlisted >= ENLIST_S:
                    self._enlist(now())
                    enlisted = now()
                self._begin(looks, now())
                await self._until(min(enlisted + ENLIST_S, self._next(now())))

    def _enlist(self, now: float) -> None:
        """Whoever has a BMC is looked at; what was kept of nodes that are gone is let go."""
        nodes = [node.id for node in self._cell.view.nodes.values() if node.binding("bmc")]
        self._rota.enlist(nodes, now)
        if len(self._memories) > 2 * len(nodes) + 1024:
            known = self._cell.view.nodes
            self._memories = {node: kept for node, kept in self._memories.items() if node in known}

    def _begin(self, looks: asyncio.TaskGroup, now: float) -> None:
        """Look at whoever is due, as far as there is room."""
        while self._quick < self._places.quick and (node_id := self._rota.take(now)) is not None:
            slowly = self._rota.misses(node_id) > 0
            if slowly and self._slow >= self._places.slow:
                self._rota.later(node_id, now)
                continue
            self._occupy(slow=slowly)
            looks.create_task(self._turn(node_id, slowly=slowly))

    def _next(self, now: float) -> float:
        """When to look up again: at the next turn, or when a place is free."""
        due = self._rota.next_due()
        return now + ENLIST_S if due is None or self._quick >= self._places.quick else due

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
                self._missed(node_id, f"no answer within {self._places.deadline_s:g} s")
            else:
                self._rota.later(node_id, asyncio.get_running_loop().time())
        finally:
            self._occupy(slow=slowly, by=-1)
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _look(self, node_id: str) -> None:
        """Power first: it is known even where the readings fail."""
        node = self._cell.view.nodes.get(node_id)
        if node is None:
            return
        try:
            sight = await self._eyes.look(node)
        except RefusedError as error:
            self._refused(node, str(error))
            return
        except PortError as error:
            self._missed(node_id, str(error))
            return
        self._cell.tell(NodeSeen(node_id, power=sight.power, bmc_unreachable=False, bmc_refuses=""))
        memory = self._memories.setdefault(node_id, Memory())
        now = asyncio.get_running_loop().time()
        worked_on = node.plan is not None and node.plan.disturbed
        if worked_on and now - memory.read_at < self._rota.period_s:
            self._seen(node_id, close=True)
            return
        try:
            sensors = await sight.sensors()
        except PortError:
            self._seen(node_id, close=worked_on)
            return
        memory.read_at = now
        if now - memory.log_at >= LOG_S:
            memory.log_at = now
            await self._read_on(node, sight, memory)
        self._seen(node_id, close=await self._tell(node, sensors, memory) or worked_on)

    def _seen(self, node_id: str, *, close: bool) -> None:
        self._rota.seen(node_id, asyncio.get_running_loop().time(), close=close)

    def _missed(self, node_id: str, why: str) -> None:
        """Unreachable once it has missed several looks in a row; told again with each look, as a restart may forget."""
        node = self._cell.view.nodes.get(node_id)
        awaited = node is not None and node.plan is not None and node.plan.name == "bmc_reset"
        missed = self._rota.missed(node_id, asyncio.get_running_loop().time(), awaited=awaited)
        if missed >= MISSED:
            self._cell.tell(NodeSeen(node_id, power="unknown", bmc_unreachable=True, bmc_says=why))

    def _refused(self, node: Node, why: str) -> None:
        """It answers, and not to us or not as this node: nothing it says is the node's, and no reset would mend it."""
        self._seen(node.id, close=False)
        self._cell.tell(NodeSeen(node.id, power="unknown", bmc_unreachable=False, bmc_refuses=why))

    async def _tell(self, node: Node, sensors: Observation, memory: Memory) -> bool:
        """Observe what is new of the sensors and has repeated itself. Whether something still waits for that."""
        sku = self._cell.view.configuration_of(node).skus.get(node.sku)
        if sku is None or node.phase is Phase.retired:
            return False
        now = asyncio.get_running_loop().time()
        if now - memory.affirmed_at >= AFFIRM_S:
            forget(memory.heard)
            memory.affirmed_at = now
        settled = settle(memory.heard, sensors, subjects(sensors, node, sku))
        if not settled.news:
            return settled.open
        seen = replace(settled.observation, sequence=memory.number + 1, received=self._clock())
        try:
            reply = await self._cell.observe(node.id, (seen,))
        except BusyError:
            return True
        memory.number = reply.acknowledged
        told(memory.heard)
        return settled.open

    async def _read_on(self, node: Node, sight: Sight, memory: Memory) -> None:
        """Observe what came into the event log since the last reading; what it held before the first one is history."""
        if memory.log_cursor is None and memory.log_number:
            memory.log_cursor = await asyncio.to_thread(self._cursor_of, node.id, memory.log_number)
        try:
            entries, cursor = await sight.entries(memory.log_cursor or "")
        except PortError:
            return
        if memory.log_cursor is None and entries:
            entries = (replace(entries[-1], text="", facts={"severity": "ok", "cursor": cursor}),)
        received = self._clock()
        numbered = tuple(
            replace(entry, sequence=memory.log_number + number, received=received)
            for number, entry in enumerate(entries, 1)
        )
        try:
            if numbered:
                memory.log_number = (await self._cell.observe(node.id, numbered)).acknowledged
        except BusyError:
            memory.log_at = float("-inf")
            return
        memory.log_cursor = cursor

    def _cursor_of(self, node: str, sequence: int) -> str | None:
        """Where the log was read to, as the last entry that was observed says."""
        last = self._cell.journal.observation(f"{node}/{LOG_SOURCE}/{sequence}")
        return str(last.facts.get("cursor", "")) if last is not None else None
