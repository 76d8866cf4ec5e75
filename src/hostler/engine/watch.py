"""Looks at every BMC in turn: power becomes present, and a sensor's story is observed once it has repeated itself."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from msgspec.structs import replace

from hostler.core.diagnose.judge import judge
from hostler.core.fleet import Fleet
from hostler.core.model import Node, Observation, Phase
from hostler.engine.intake import NodeSeen
from hostler.engine.ports import PortError
from hostler.engine.queues import BusyError
from hostler.engine.runner import Cell

AT_ONCE = 64
MISSED = 3
"""Polls in a row that a BMC must miss before it counts as unreachable."""

Story = tuple[tuple[str, str, bool], ...]


class Eyes(Protocol):
    """Power and sensors of one node, numbered from `sequence`. Raises PortError."""

    async def poll(self, node: Node, sequence: int) -> tuple[Observation, Observation]: ...


class Watch:
    """Polls all nodes that have a BMC, every `period_s`. Volatile: after a restart everything is looked at anew."""

    def __init__(self, cell: Cell, eyes: Eyes, clock: Callable[[], datetime], period_s: float = 10.0) -> None:
        self._cell = cell
        self._eyes = eyes
        self._clock = clock
        self._period_s = period_s
        self._missed: dict[str, int] = {}
        self._last: dict[str, Story] = {}
        self._told: dict[str, Story] = {}
        self._numbers: dict[str, int] = {}

    async def run(self) -> None:
        """Until cancelled."""
        for key, (_, sequence) in (await asyncio.to_thread(self._cell.journal.cursors)).items():
            node, _, source = key.rpartition("/")
            if source == "bmc":
                self._numbers[node] = sequence
        while True:
            await self.round()
            await asyncio.sleep(self._period_s)

    async def round(self) -> None:
        """Look at every BMC once."""
        limit = asyncio.Semaphore(AT_ONCE)
        view: Fleet = self._cell.view
        nodes = [node for node in view.nodes.values() if node.binding("bmc")]
        await asyncio.gather(*(self._look(node, limit) for node in nodes))

    async def _look(self, node: Node, limit: asyncio.Semaphore) -> None:
        async with limit:
            try:
                power, sensors = await self._eyes.poll(node, 1)
            except PortError:
                missed = self._missed[node.id] = self._missed.get(node.id, 0) + 1
                if missed == MISSED:
                    self._cell.tell(NodeSeen(node.id, power="unknown", bmc_unreachable=True))
                return
        self._missed[node.id] = 0
        self._cell.tell(NodeSeen(node.id, power=str(power.facts.get("power", "")), bmc_unreachable=False))
        await self._tell(node, sensors)

    async def _tell(self, node: Node, sensors: Observation) -> None:
        """Observe the sensors when what they say is new, and said twice."""
        sku = self._cell.view.configuration_of(node).skus.get(node.sku)
        if sku is None or node.phase is Phase.retired:
            return
        findings = judge(sensors, node, sku)
        story: Story = tuple(sorted((f.type, f.part, f.standing) for f in findings))
        repeated = self._last.get(node.id) == story
        self._last[node.id] = story
        if not repeated or self._told.get(node.id) == story:
            return
        number = self._numbers.get(node.id, 0) + 1
        seen = replace(sensors, sequence=number, received=self._clock())
        try:
            reply = await self._cell.observe(node.id, (seen,))
        except BusyError:
            return
        self._numbers[node.id] = reply.acknowledged
        self._told[node.id] = story
