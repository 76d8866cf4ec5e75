"""Looks at what stands in racks beside nodes: power shelves, switch trays, coolant units, each in its turn.

Often where nodes of the rack wait for it or are in service, most often where it has leak detectors, else once an hour.
Volatile: after a start all are looked at anew.
"""

import asyncio
import heapq
from datetime import datetime
from typing import Protocol

from hostler.controller.inputs import RackSeen
from hostler.core.policy import rack_faults
from hostler.core.state.assets import Asset
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Phase
from hostler.core.state.racks import AssetLook
from hostler.runtime.runner import Cell

AWAITED_S, SELDOM_S = 120.0, 3600.0
"""How often an asset is looked at while nodes of its rack wait for it, and at any other time."""
WET_S, SERVING_S = 60.0, 600.0
"""How often one is looked at that nodes in service depend on: with leak detectors, and without."""
AGAIN_S = 4.0
"""A leak counts once it is seen again so much later, as a node's own."""
TICK_S = 1.0
DEADLINE_S = 60.0
AT_ONCE = 16
"""Assets that are looked at together."""
AWAITING = (Phase.registered, Phase.initializing, Phase.onboard)


class AssetReader(Protocol):
    """Looks at one asset."""

    async def look(self, asset: Asset, now: datetime) -> AssetLook:
        """Read its BMC, or say why it cannot be read."""
        ...


class RackRounds:
    """One look at a time of each asset; one that hangs holds up no other."""

    def __init__(self, cell: Cell, reader: AssetReader, tick_s: float = TICK_S) -> None:
        self._cell = cell
        self._reader = reader
        self._tick_s = tick_s
        self._next: dict[str, float] = {}
        self._weighed: dict[str, float] = {}
        self._due: set[str] = set()
        self._awaited: set[str] = set()

    async def run(self) -> None:
        """Until cancelled."""
        for kept in (self._next, self._weighed, self._due, self._awaited):
            kept.clear()
        while True:
            await self._round()
            await asyncio.sleep(self._tick_s)

    async def _round(self) -> None:
        """Look at those that are due, AT_ONCE at most: those first that nobody has looked at for longest."""
        fleet, now = self._cell.view, asyncio.get_running_loop().time()
        for name in self._weighed.keys() - set(fleet.assets):
            self._forget(name)
        awaited = awaited_racks(fleet)
        for asset in fleet.assets.values() if (new := awaited - self._awaited) else ():
            if asset.position.rack in new:
                self._weighed.pop(asset.id, None)
        self._awaited = awaited
        self._due.update(asset.id for asset in fleet.assets.values() if self._falls_due(fleet, asset, awaited, now))
        turn = heapq.nsmallest(AT_ONCE, self._due, key=lambda name: (self._next.get(name, -1.0), name))
        for name in turn:
            self._due.discard(name)
            self._next[name] = self._weighed[name] = now
        await asyncio.gather(*(self._look(fleet.assets[name]) for name in turn))

    def _forget(self, name: str) -> None:
        del self._weighed[name]
        self._next.pop(name, None)
        self._due.discard(name)

    def _falls_due(self, fleet: Fleet, asset: Asset, awaited: set[str], now: float) -> bool:
        """Whether the asset's time has come. Who depends on it is asked once in WET_S: a large cell has 90,000."""
        weighed = self._weighed.get(asset.id)
        if asset.id in self._due or (weighed is not None and now - weighed < WET_S):
            return False
        self._weighed[asset.id] = now
        if not asset.binding("bmc"):
            return False
        began = self._next.get(asset.id)
        return began is None or now - began >= period_of(fleet, asset, awaited)

    async def _look(self, asset: Asset) -> None:
        try:
            async with asyncio.timeout(DEADLINE_S):
                look = await self._reader.look(asset, self._cell.now())
                if is_wet(look):
                    await asyncio.sleep(AGAIN_S)
                    look = await self._reader.look(asset, self._cell.now())
        except TimeoutError:
            look = AssetLook(self._cell.now(), why=f"its BMC gave no whole answer within {DEADLINE_S:g} s")
        self._cell.tell(RackSeen(asset.id, look))


def is_wet(look: AssetLook) -> bool:
    """Whether a detector says that it is wet."""
    return any(word in rack_faults.WET for _, word in look.leaks)


def period_of(fleet: Fleet, asset: Asset, awaited: set[str]) -> float:
    """How often the asset is looked at."""
    period_s = AWAITED_S if asset.position.rack in awaited else SELDOM_S
    if any(node.phase is Phase.production for node in rack_faults.dependents(fleet, asset)):
        period_s = min(period_s, WET_S if asset.look is not None and asset.look.leaks else SERVING_S)
    return period_s


def awaited_racks(fleet: Fleet) -> set[str]:
    """Racks in which nodes are on their way to their first test, and those that are being brought up as one."""
    running = {rack.name for rack in fleet.racks.values() if rack.run is not None}
    names = (name for phase in AWAITING for name in fleet.index.members(f"phase:{phase.value}"))
    return ({fleet.nodes[name].position.rack for name in names} | running) - {""}
