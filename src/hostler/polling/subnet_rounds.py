"""Looks at the managers of all networks' subnets in turn; at their partitions, a long answer, less often.

With each look the notices are read that have come there (traps, UFM's events). Each is a hint to look at the network's
cables, counters or partitions sooner than planned, and nothing else.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from hostler.controller.inputs import SubnetSeen
from hostler.core.fabric.subnet import PARTITIONS
from hostler.core.fabric.subnet_notices import HintedLook, asked_by
from hostler.core.state.fabrics import Fabric
from hostler.core.state.subnets import SubnetNotice, SubnetReading
from hostler.logs.structured import logger
from hostler.ports import HeardNotices, SubnetSource
from hostler.runtime.runner import Cell

log = logger()

ROUND_S = 60.0
"""A look at the managers of a subnet as often: a fail-over of opensm with quick polling takes 3 s."""
CONFIRM_S = 600.0
"""Partitions that differ from the design are read again after so long."""
SLACK_S = 30.0
LOOK_S = 1.0
NOTICES_S = 25.0
"""Seconds that reading notices may take, beside the look itself."""
KEPT = 16
"""Notices of a network that are shown."""


class Hints(Struct, frozen=True):
    """Places to say that a network's cables, or its ports' counters, are to be looked at sooner."""

    cables: Callable[[str], None]
    counters: Callable[[str], None]


class SubnetRounds:
    """Volatile: after a start every subnet is looked at anew."""

    def __init__(self, cell: Cell, source: SubnetSource, hints: Hints, round_s: float = ROUND_S) -> None:
        self._cell = cell
        self._source = source
        self._hints = hints
        self._round_s = round_s
        self._next: dict[str, float] = {}
        self._partitions: dict[str, float] = {}
        self._read: dict[str, float] = {}
        self._looking: dict[str, asyncio.Task[None]] = {}
        self._heard: dict[str, deque[SubnetNotice]] = {}

    async def run(self) -> None:
        """Until cancelled; a look that hangs holds up no other network's."""
        self._next.clear()
        self._partitions.clear()
        self._read.clear()
        self._heard.clear()
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
        for kept in (self._next, self._partitions, self._read, self._heard):
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
        heard = await self._notices(fabric)
        partitions = now >= self._partitions.get(fabric.name, 0.0)
        try:
            async with asyncio.timeout(fabric.source.timeout_s + SLACK_S):
                told = await self._source.subnet(fabric, began, partitions=partitions)
        except TimeoutError:
            told = SubnetReading(fabric.name, began, why=("the look did not end in its time, and was left",))
        if partitions:
            self._read[fabric.name], self._partitions[fabric.name] = now, now + self._pause_s(fabric, told)
        kept = self._heard.get(fabric.name, ())
        told = replace(told, notices=tuple(kept), why=(*told.why, *filter(None, (heard.why,))))
        log.info("subnet_read", fabric=fabric.name, reason="; ".join(told.why), notices=len(heard.notices))
        self._cell.tell(SubnetSeen(told))

    async def _notices(self, fabric: Fabric) -> HeardNotices:
        """Notices that have come since the look before; the looks that they hint at are asked for."""
        try:
            async with asyncio.timeout(NOTICES_S):
                heard = await self._source.notices(fabric)
        except TimeoutError:
            heard = HeardNotices(why="notices: they were not read in their time")
        if heard.notices:
            self._heard.setdefault(fabric.name, deque(maxlen=KEPT)).extendleft(heard.notices)
        asked = asked_by(heard.notices)
        if HintedLook.cables in asked:
            self._hints.cables(fabric.name)
        if HintedLook.counters in asked:
            self._hints.counters(fabric.name)
        if HintedLook.partitions in asked and (read := self._read.get(fabric.name)) is not None:
            self._partitions[fabric.name] = min(self._partitions[fabric.name], read + CONFIRM_S)
        return heard

    def _pause_s(self, fabric: Fabric, told: SubnetReading) -> float:
        """Until the partitions are read again: soon where they could not be, or a finding may begin or end."""
        keys, wanted = told.facts.partitions, fabric.subnet_design.partitions
        stands = any(case.finding.kind == PARTITIONS for case in self._cell.view.cases_of(fabric.name))
        differs = bool(wanted) and keys is not None and {*keys} != {*wanted}
        return min(CONFIRM_S, fabric.period_s) if keys is None or stands or differs else fabric.period_s
