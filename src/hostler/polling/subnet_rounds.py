"""Looks at the managers of all networks' subnets in turn; at their partitions, a long answer, less often."""

import asyncio

from hostler.controller.inputs import SubnetSeen
from hostler.core.fabric.subnet import PARTITIONS
from hostler.core.state.fabrics import Fabric
from hostler.core.state.subnets import SubnetReading
from hostler.logs.structured import logger
from hostler.ports import SubnetSource
from hostler.runtime.runner import Cell

log = logger()

ROUND_S = 60.0
"""A look at the managers of a subnet as often: a fail-over of opensm with quick polling takes 3 s."""
CONFIRM_S = 600.0
"""Partitions that differ from the design are read again after so long."""
SLACK_S = 30.0
LOOK_S = 1.0


class SubnetRounds:
    """Volatile: after a start every subnet is looked at anew."""

    def __init__(self, cell: Cell, source: SubnetSource, round_s: float = ROUND_S) -> None:
        self._cell = cell
        self._source = source
        self._round_s = round_s
        self._next: dict[str, float] = {}
        self._partitions: dict[str, float] = {}
        self._looking: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Until cancelled; a look that hangs holds up no other network's."""
        self._next.clear()
        self._partitions.clear()
        try:
            while True:
                self._begin(asyncio.get_running_loop().time())
                await asyncio.sleep(min(LOOK_S, self._round_s))
        finally:
            for look in self._looking.values():
                look.cancel()
            await asyncio.gather(*self._looking.values(), return_exceptions=True)
            self._looking.clear()

    def _begin(self, now: float) -> None:
        for name in [name for name, look in self._looking.items() if look.done()]:
            self._end(name, self._looking.pop(name))
        fabrics = self._cell.view.fabrics
        for kept in (self._next, self._partitions):
            for name in kept.keys() - set(fabrics):
                del kept[name]
        for fabric in list(fabrics.values()):
            if fabric.name not in self._looking and now >= self._next.get(fabric.name, 0.0):
                self._next[fabric.name] = now + self._round_s
                self._looking[fabric.name] = asyncio.create_task(self._look(fabric, now))

    def _end(self, name: str, look: asyncio.Task[None]) -> None:
        if not look.cancelled() and (broken := look.exception()) is not None:
            log.error("subnet_look_broke", fabric=name, reason=repr(broken))

    async def _look(self, fabric: Fabric, now: float) -> None:
        began = self._cell.now()
        partitions = now >= self._partitions.get(fabric.name, 0.0)
        try:
            async with asyncio.timeout(fabric.source.timeout_s + SLACK_S):
                told = await self._source.subnet(fabric, began, partitions=partitions)
        except TimeoutError:
            told = SubnetReading(fabric.name, began, why=("the look did not end in its time, and was left",))
        if partitions:
            self._partitions[fabric.name] = now + self._pause_s(fabric, told)
        log.info("subnet_read", fabric=fabric.name, reason="; ".join(told.why))
        self._cell.tell(SubnetSeen(told))

    def _pause_s(self, fabric: Fabric, told: SubnetReading) -> float:
        """Until the partitions are read again: soon where they could not be, or a finding may begin or end."""
        keys, wanted = told.facts.partitions, fabric.subnet_design.partitions
        stands = any(case.finding.kind == PARTITIONS for case in self._cell.view.cases_of(fabric.name))
        differs = bool(wanted) and keys is not None and {*keys} != {*wanted}
        return min(CONFIRM_S, fabric.period_s) if keys is None or stands or differs else fabric.period_s
