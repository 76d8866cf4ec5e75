"""Passive series of a BMC: fans' effort at their ambient and power, out of the sensors that are read with each look."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from hostler.core.state.bmc_certificate import ShownCertificate
from hostler.core.state.model import Facts, Node, Observation, Scalar
from hostler.core.state.passive_series import CONDITIONS, WINDOW_S, PassiveReading, PassiveWindows
from hostler.polling.bmc_poller import BmcReader
from hostler.polling.bmc_readings import BmcSession
from hostler.polling.bmc_schedule import share

_INLET = ("inlet", "ambient", "intake")
"""Words in the names of sensors of the air that a machine draws in."""
_FANS = {"_percent": "fan.effort_percent", "_rpm": "fan.speed_rpm"}
AIR = "inlet.temperature_c"
NODES_MOST = 200_000
"""Nodes of which windows are kept; the oldest goes for the next."""
_THRESHOLDS = ("_limit_c", "_caution_c")


class SeriesArchive(Protocol):
    """Destination of windows of series (`server.trend_archive`)."""

    def take(self, node: Node, source: str, told: tuple[PassiveReading, ...], received: datetime) -> None:
        """Keep a window."""
        ...

    def ambient(self, node: str, at: datetime, mean_c: float, sensor: str) -> None:
        """Keep a window's mean of the air that the node draws in."""
        ...


def samples(facts: Facts) -> tuple[PassiveReading, ...]:
    """One sample of each kind of fan reading: their mean, with the ambient and the machine's power where told.

    A fan in percent and one in revolutions are two series: a BMC that changes its unit begins another one.
    """
    sensor, ambient_c = inlet(facts)
    power = _number(facts.get("total_power_w"))
    at = {name: v for name, v in (("ambient_c", ambient_c), ("power_w", power)) if v is not None and _fits(name, v)}
    found = []
    for end, metric in _FANS.items():
        speeds = [v for name in sorted(facts) if "fan" in name and name.endswith(end) and (v := _number(facts[name]))]
        if speeds:
            stack = f"fans={len(speeds)} ambient={sensor}"
            found.append(PassiveReading(metric, "", sum(speeds) / len(speeds), stack, at))
    return tuple(found)


def inlet(facts: Facts) -> tuple[str, float | None]:
    """The sensor of the air that the machine draws in, and its reading; the coldest where there are several."""
    told = [
        (value, name)
        for name in facts
        if name.endswith("_c") and not name.endswith(_THRESHOLDS) and any(word in name for word in _INLET)
        if (value := _number(facts[name])) is not None and _fits("ambient_c", value)
    ]
    return (min(told)[1], min(told)[0]) if told else ("", None)


def _fits(name: str, value: float) -> bool:
    low, high = CONDITIONS[name]
    return low <= value <= high


def _number(value: Scalar) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


class SeriesReader:
    """Opens looks at BMCs (`BmcReader`) and keeps what their sensors say as passive series."""

    def __init__(self, reader: BmcReader, archive: SeriesArchive, clock: Callable[[], datetime]) -> None:
        self._reader = reader
        self._archive = archive
        self._clock = clock
        self._windows: dict[str, PassiveWindows] = {}

    async def look(self, node: Node) -> BmcSession:
        """Open a look whose sensors are kept. Raises PortError."""
        return _KeepingSession(await self._reader.look(node), node, self)

    def keep(self, node: Node, facts: Facts) -> None:
        """Take a look's sensors, and hand on the window that has ended with it."""
        now_s = asyncio.get_running_loop().time()
        windows = self._of(node.id)
        if (ended := windows.finished(now_s)) is not None:
            self._hand_on(node, ended[1])
        sensor, ambient_c = inlet(facts)
        if ambient_c is not None:
            windows.gauge(PassiveReading(AIR, sensor, ambient_c))
        for one in samples(facts):
            windows.gauge(one)

    def _hand_on(self, node: Node, told: tuple[PassiveReading, ...]) -> None:
        at = self._clock()
        for one in told:
            if one.metric == AIR:
                self._archive.ambient(node.id, at, one.value, one.part)
        self._archive.take(node, f"bmc/{int(at.timestamp() // (WINDOW_S / 2))}", told, at)

    def _of(self, node: str) -> PassiveWindows:
        if node not in self._windows:
            if len(self._windows) >= NODES_MOST:
                del self._windows[next(iter(self._windows))]
            self._windows[node] = PassiveWindows(share(f"{node}/series") * WINDOW_S)
        return self._windows[node]


class _KeepingSession:
    """A look at a BMC (`BmcSession`) whose sensors are handed on."""

    def __init__(self, session: BmcSession, node: Node, keeper: SeriesReader) -> None:
        self._session = session
        self._node = node
        self._keeper = keeper
        self.power, self.health, self.version = session.power, session.health, session.version

    async def sensors(self) -> Observation:
        """Read the sensors and keep them. Raises PortError."""
        seen = await self._session.sensors()
        self._keeper.keep(self._node, seen.facts)
        return seen

    async def parts(self) -> Observation:
        """Read the parts' words of health. Raises PortError."""
        return await self._session.parts()

    async def firmware(self) -> Observation:
        """Read the versions that run. Raises PortError."""
        return await self._session.firmware()

    async def inventory(self) -> Observation:
        """Read the parts of the node. Raises PortError."""
        return await self._session.inventory()

    async def certificate(self) -> ShownCertificate | None:
        """See which certificate is shown. Raises PortError."""
        return await self._session.certificate()

    async def entries(self, cursor: str) -> tuple[tuple[Observation, ...], str]:
        """Read on in the event log. Raises PortError."""
        return await self._session.entries(cursor)
