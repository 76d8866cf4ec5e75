"""Rounds of readings of a network's ports, joined at each cable and judged beside the loop.

Readings stay here, in memory; the controller is told which links fail a check, and which of those that did were read
without. After a start histories begin anew.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.controller.inputs import LinksSeen
from hostler.core.fabric.design import Cable, Design, DeviceKind, Port
from hostler.core.fabric.discovery import Discovery, FoundPort
from hostler.core.fabric.link_quality import LinkHistory, judge, seen
from hostler.core.fabric.path_blame import PathVerdict
from hostler.core.fabric.routes import NO_ROUTES, Routes, routes_of
from hostler.core.fabric.switch_blame import joined, links_heard
from hostler.core.policy.link_cases import links_of, resets
from hostler.core.state.fabrics import Fabric, RouteSource
from hostler.core.state.links import LinkCase, LinkCheck, LinkFault, LinkRound, PortReading, switch_key
from hostler.logs.structured import logger
from hostler.polling.pair_results import PairResults
from hostler.ports import LinkReadings, LinkSource
from hostler.runtime.runner import Cell

log = logger()

ROUND_S = 720.0
"""A round as often as a window of symbol errors of 4xNDR is long."""
HINTED_SHARE = 0.5
"""Share of a round's time after which a notice may have the next one begin: three without a fault end it."""
SLACK_S = 60.0
LOOK_S = 1.0
PAIRS_S = 20.0
"""Results between nodes that have come since the last round are judged so often; the ports are not read for it."""
PAIRS_SHARE = 0.05
"""Share of the time that judging them takes at most: large screens are judged less often."""


class BoundCables(Struct, frozen=True):
    """Cables of the design in force, its switches, and the names of found ports there, by the last look that concluded.

    `names`: by GUID and number. `routes`: ways between the hosts.
    """

    cables: tuple[Cable, ...]
    names: Mapping[FoundPort, Port]
    switches: frozenset[str] = frozenset()
    routes: Routes = NO_ROUTES


class LinkWatch:
    """Histories of one network's links. `take` is called with each round's readings, in a thread of its own."""

    def __init__(self) -> None:
        self._histories: dict[tuple[Port, Port], LinkHistory] = {}
        self.latest: dict[Port, PortReading] = {}

    def take(
        self, wiring: BoundCables, told: LinkReadings, open_links: Mapping[str, datetime | None], now: datetime
    ) -> tuple[list[LinkFault], list[str]]:
        """Faults of the links that were read, and the keys of open ones that were read and show none.

        `open_links`: keys of links with an open fault → when Hostler last reset a port of it, None for never.
        """
        self.latest = self._readings(wiring, told)
        faults: list[LinkFault] = []
        clean: list[str] = []
        kept: dict[tuple[Port, Port], LinkHistory] = {}
        for cable in wiring.cables:
            ports = (str(cable.a), str(cable.z))
            key = "|".join(ports)
            history = self._joined(cable, open_links.get(key), now)
            kept[cable.a, cable.z] = history
            if cable.a not in self.latest and cable.z not in self.latest:
                continue
            fault = judge(ports, history, now)
            if fault is not None:
                faults.append(fault)
            elif key in open_links:
                clean.append(key)
        self._histories = kept
        told_faults = joined(faults, wiring.cables, self.latest, wiring.switches.__contains__)
        return told_faults, [*clean, *self._sound_switches(wiring, told_faults, open_links)]

    def _sound_switches(self, wiring: BoundCables, faults: list[LinkFault], open_links: Collection[str]) -> list[str]:
        """Keys of switches with an open fault that none of their links shows any more, though links were read."""
        asked = [name for name in wiring.switches if switch_key(name) in open_links]
        blamed = {fault.switch for fault in faults}
        heard = links_heard(wiring.cables, self.latest, LinkCheck.down) if asked else {}
        return [switch_key(name) for name in sorted(asked) if name not in blamed and heard.get(name)]

    def _joined(self, cable: Cable, reset_at: datetime | None, now: datetime) -> LinkHistory:
        known = self._histories.get((cable.a, cable.z), _NEW)
        a, z = self.latest.get(cable.a), self.latest.get(cable.z)
        if a is None and z is None:
            return known
        return LinkHistory(
            seen(known.a, a, cable.rate, now, reset_at) if a is not None else known.a,
            seen(known.z, z, cable.rate, now, reset_at) if z is not None else known.z,
        )

    @staticmethod
    def _readings(wiring: BoundCables, told: LinkReadings) -> dict[Port, PortReading]:
        """By the design's names; what an agent says of its own port counts before what the network says of it."""
        found: dict[Port, PortReading] = {}
        if told.whole:
            found = dict.fromkeys(wiring.names.values(), _NONE)
        for at, reading in told.found.items():
            if (port := wiring.names.get(at)) is not None:
                found[port] = reading
        for name, reading in told.named.items():
            device, _, port_name = name.rpartition(":")
            found[Port(device, port_name)] = reading
        return found


_NEW = LinkHistory()
_NONE = PortReading(link_downed=0, symbol_errors=0)
"""Reading of a port that a whole page does not print: it has counted nothing."""


class LinkRounds:
    """Reads the ports of all networks in turn. `wiring` gives what the last look at a network bound, None for none."""

    def __init__(
        self,
        cell: Cell,
        source: LinkSource,
        looks: "Mapping[str, BoundCables]",
        pairs: PairResults | None = None,
        round_s: float = ROUND_S,
    ) -> None:
        self._cell = cell
        self._source = source
        self._looks = looks
        self._pairs = pairs or PairResults()
        self._round_s = round_s
        self._watches: dict[str, LinkWatch] = {}
        self._next: dict[str, float] = {}
        self._last: dict[str, LinkRound] = {}
        self._judged, self._pairs_due = 0, 0.0
        self._hinted: set[str] = set()

    def hint(self, name: str) -> None:
        """Note that something tells of errors in this network: its ports are read soon."""
        self._hinted.add(name)

    async def run(self) -> None:
        """Until cancelled. Histories begin anew with each term."""
        self._watches.clear()
        self._next.clear()
        self._last.clear()
        self._hinted.clear()
        while True:
            now = asyncio.get_running_loop().time()
            looked = [fabric for fabric in list(self._cell.view.fabrics.values()) if fabric.name in self._looks]
            due = [fabric for fabric in looked if now >= self._due(fabric.name)]
            for fabric in due:
                self._next[fabric.name] = now + self._round_s
                self._hinted.discard(fabric.name)
            await asyncio.gather(*(self._round(fabric) for fabric in due))
            await self._new_pairs([fabric for fabric in looked if fabric not in due], now)
            await asyncio.sleep(min(LOOK_S, self._round_s))

    def _due(self, name: str) -> float:
        """When a network's ports are read next, by the loop's clock."""
        sooner_s = self._round_s * (1 - HINTED_SHARE) if name in self._hinted else 0.0
        return self._next.get(name, 0.0) - sooner_s

    async def _new_pairs(self, fabrics: list[Fabric], now: float) -> None:
        """Judge results that have come since; what they clear waits for the next round, which reads the ports too."""
        if self._pairs.added == self._judged or now < self._pairs_due:
            return
        self._judged = self._pairs.added
        for fabric in fabrics:
            last = self._last.get(fabric.name)
            if last is None:
                continue
            cases = links_of(self._cell.view, fabric.name)
            own = [case.fault for case in cases if case.fault.check is not LinkCheck.slow]
            paths = await self._paths(fabric, self._cell.now())
            slow = [fault for fault in with_paths(cases, own, [], paths)[0] if fault not in own]
            self._cell.tell(LinksSeen(replace(last, faults=tuple(slow), clean=(), undecided=paths.undecided)))
        ended = asyncio.get_running_loop().time()
        self._pairs_due = ended + max(PAIRS_S, (ended - now) / PAIRS_SHARE)

    async def _paths(self, fabric: Fabric, now: datetime) -> PathVerdict:
        """The verdict of the results between nodes on this network."""
        wiring, called = self._looks[fabric.name], self._called(fabric)
        paths = await asyncio.to_thread(self._pairs.judged, wiring.cables, called, now, wiring.routes)
        if wiring.routes.why and fabric.source.routes:
            unknown = f"ways between nodes are not known: {wiring.routes.why}"
            paths = replace(paths, undecided=(*paths.undecided, unknown))
        if paths.undecided:
            log.info("pairs_undecided", fabric=fabric.name, reason="; ".join(paths.undecided))
        return paths

    def _called(self, fabric: Fabric) -> Callable[[str], str]:
        """Name of a node in the network's design: its own, or one that it is also known by."""
        fleet = self._cell.view
        by_node = {node.id: name for name in fabric.hosts if (node := fleet.resolve(name)) is not None}
        return lambda device: by_node.get(device, device)

    async def _round(self, fabric: Fabric) -> None:
        began = self._cell.now()
        try:
            async with asyncio.timeout(fabric.source.timeout_s + SLACK_S):
                told = await self._source.read(fabric)
        except TimeoutError:
            told = LinkReadings(why="the ports were not read in their time")
        watch = self._watches.setdefault(fabric.name, LinkWatch())
        standing = resets(self._cell.view, fabric.name)
        wiring = self._looks[fabric.name]
        faults, clean = await asyncio.to_thread(watch.take, wiring, told, standing, began)
        paths = await self._paths(fabric, began)
        faults, clean = with_paths(links_of(self._cell.view, fabric.name), faults, clean, paths)
        log.info("links_read", fabric=fabric.name, ports=len(watch.latest), faults=len(faults), reason=told.why)
        readings = {str(port): reading for port, reading in watch.latest.items()}
        name, ports = fabric.name, len(readings)
        seen = LinkRound(name, began, ports, tuple(faults), tuple(clean), told.why, readings, paths.undecided)
        self._last[name] = seen
        self._cell.tell(LinksSeen(seen))


def with_paths(
    cases: Iterable[LinkCase], faults: Sequence[LinkFault], clean: Sequence[str], paths: PathVerdict
) -> tuple[list[LinkFault], list[str]]:
    """The round with what pairs of nodes say: a link that fails a check of its own is told by that, and not as slow.

    A case that stands because pairs were slow is over when pairs are fast, however little its ports have counted.
    """
    known = {key for fault in faults for key in (fault.key, *fault.links)}
    slow = [fault for fault in paths.faults if fault.key not in known]
    stands = {case.fault.key for case in cases if case.fault.check is LinkCheck.slow}
    over = [key for key in sorted(stands & paths.fast) if key not in known]
    told = {fault.key for fault in slow}
    return [*faults, *slow], [*(key for key in clean if key not in stands and key not in told), *over]


def wiring_of(
    design: Design, names: Mapping[str, Port], seen: Discovery, asked: RouteSource = RouteSource.none
) -> BoundCables:
    """The wiring of a design whose devices were bound by these names (`binding.names_of`), as the discovery saw it."""
    ports: dict[FoundPort, Port] = {}
    for at in (port for link in seen.links for port in (link.a, link.z)):
        bound = names.get(at.guid)
        if bound is not None:
            ports[at] = bound if bound.port else Port(bound.device, str(at.number))
    own = {FoundPort(guid, at.number): ports[at] for guid, at in seen.also.items() if at in ports}
    switches = frozenset(d.name for d in design.devices.values() if d.kind is DeviceKind.switch)
    all_names = {**ports, **own}
    return BoundCables(design.cables, all_names, switches, routes_of(design, all_names, seen, asked))
