"""Reads what changes while a machine runs: temperatures, fans, supplies, redundancy and leaks, in few requests."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from msgspec import Struct

from hostler.core.state.model import Facts
from hostler.drivers.redfish import resource_tree, wire, wire_sensors
from hostler.drivers.redfish.bulk_read import Survey
from hostler.drivers.redfish.client import BmcFailureError, RedfishClient
from hostler.drivers.redfish.sensor_layout import USES, ChassisLinks, SensorLayout
from hostler.drivers.redfish.tolerant_json import Document, WireError, child, document, inlined, link, name_of
from hostler.ports import RefusedError, UnreachableError

COOLING_LEVELS, POWER_LEVELS = 3, 2
"""How deep a subsystem is inlined: ThermalSubsystem → LeakDetection → LeakDetectors → each of them."""

MAX_APART = 1024
"""Chassis whose readings carry its name, of one BMC; one that names its chassis anew each time fills no memory."""

_T = TypeVar("_T")
_ReadValues = Callable[[Document], tuple[wire_sensors.SensorValue, ...]]


class SensorReadings(Struct, frozen=True):
    """Sensor name → value; `gaps` says what is missing and why."""

    facts: Facts
    gaps: tuple[str, ...]


async def sensors(client: RedfishClient, system: wire.System) -> SensorReadings:
    """Temperatures, fans, power and leak detectors of a system's chassis: newer resources first, else the older."""
    survey = Survey(client)
    found: Facts = {}
    layout = await _layout(survey, client, system)
    for place in layout.chassis:
        listed = await survey.many(place.sensors, "Sensors") if place.sensors else []
        modern = [reading for doc in listed for reading in wire_sensors.sensor(doc)]
        here = modern or list(await _older(survey, place.thermal, wire_sensors.thermal))
        here += await _power(survey, layout, place)
        here += await _cooling(survey, layout, place)
        apart = (system.path, place.name)
        if apart in client.apart or any(reading.name in found for reading in here):
            client.apart.add(apart)
            if len(client.apart) > MAX_APART:
                client.apart.clear()
            here = wire_sensors.told_apart(here, place.name)
        found |= wire_sensors.facts(here)
    if survey.broken:
        client.layouts.pop(system.path, None)
    return SensorReadings(found, tuple(survey.gaps))


async def _power(survey: Survey, layout: SensorLayout, place: ChassisLinks) -> list[wire_sensors.SensorValue]:
    """Supplies and their redundancy."""
    wanted = (place.supplies, place.power if place.power_told else "")
    whole = await _whole(survey, layout, place.power, POWER_LEVELS, needed=all(wanted))
    listed = await _members(survey, layout, (whole, "PowerSupplies"), place.supplies)
    supplies = [reading for doc in wire_sensors.named_apart(listed) for reading in wire_sensors.supply(doc)]
    found = supplies or list(await _older(survey, place.power_older, wire_sensors.power))
    if place.power_told:
        found += wire_sensors.redundancy(whole or await survey.one(place.power), "PowerSupplyRedundancy", "power")
    return found


async def _cooling(survey: Survey, layout: SensorLayout, place: ChassisLinks) -> list[wire_sensors.SensorValue]:
    """Fans, their redundancy, and leak detectors."""
    wanted = (place.fans, place.detectors, place.cooling if place.cooling_told else "")
    whole = await _whole(survey, layout, place.cooling, COOLING_LEVELS, needed=sum(map(bool, wanted)) > 1)
    fans = await _members(survey, layout, (whole, "Fans"), place.fans)
    found = [reading for doc in fans for reading in wire_sensors.fan(doc)]
    if place.cooling_told:
        found += wire_sensors.redundancy(whole or await survey.one(place.cooling), "FanRedundancy", "cooling")
    leaks = (child(whole, "LeakDetection"), "LeakDetectors") if whole else ({}, "LeakDetectors")
    detectors = await _members(survey, layout, leaks, place.detectors)
    return found + _kept(wire_sensors.leak_detector(doc) for doc in detectors)


async def _whole(survey: Survey, layout: SensorLayout, path: str, levels: int, *, needed: bool) -> Document:
    """A subsystem with what is below it, in one request; empty where it is not needed or the BMC cannot give that.

    What was read whole to learn the layout is not read again.
    """
    client = survey.client
    if path in survey.wholes:
        return survey.wholes[path]
    if not needed or not layout.deep or not path or (await client.root()).levels < levels:
        return {}
    try:
        survey.wholes[path] = document(await client.get(f"{path}?$expand=.($levels={levels})"), path)
        return survey.wholes[path]
    except (BmcFailureError, WireError, RefusedError):
        layout.deep = False
        return {}
    except UnreachableError:
        layout.deep = False
        raise


async def _members(survey: Survey, layout: SensorLayout, whole: tuple[Document, str], path: str) -> list[Document]:
    """The members of a collection: inlined in what was read already, else read now."""
    doc, key = whole
    found = inlined(doc, key) if doc else None
    if found is not None:
        return found
    if doc and path:
        layout.deep = False
    return await survey.many(path, path.rstrip("/").rpartition("/")[2]) if path else []


async def _layout(survey: Survey, client: RedfishClient, system: wire.System) -> SensorLayout:
    """Layout of the readings: as learned before, else learned now. What could not be read whole is not remembered."""
    known = client.layouts.get(system.path)
    if known is not None and known.uses < USES:
        known.uses += 1
        return known
    learned = SensorLayout((), deep=known is None or known.deep or bool(known.chassis))
    try:
        machine = await resource_tree.learn(survey, system, at_once=learned.deep)
        docs = [await survey.one(path) for path in machine.chassis]
        found = [await _chassis_links(survey, learned, chassis) for chassis in docs]
    except UnreachableError:
        client.layouts[system.path] = SensorLayout((), USES, learned.deep)  # what silenced it is not asked again
        raise
    learned.chassis = tuple(one for one in found if any(one.places))
    if not survey.broken:
        client.layouts[system.path] = learned
    return learned


async def _chassis_links(survey: Survey, layout: SensorLayout, chassis: Document) -> ChassisLinks:
    """Chassis → PowerSubsystem and ThermalSubsystem → what they hold. Air-cooled machines detect no leaks: no gap."""
    power_path, cooling_path = link(chassis, "PowerSubsystem"), link(chassis, "ThermalSubsystem")
    power = await _subsystem(survey, layout, power_path, POWER_LEVELS)
    cooling = await _subsystem(survey, layout, cooling_path, COOLING_LEVELS)
    detection = child(cooling, "LeakDetection")
    if link(detection) and "LeakDetectors" not in detection:
        detection = await survey.one(link(detection))
    return ChassisLinks(
        name=name_of(chassis),
        sensors=await _filled(survey, link(chassis, "Sensors")),
        thermal=link(chassis, "Thermal"),
        power_older=link(chassis, "Power"),
        power=power_path,
        power_told="PowerSupplyRedundancy" in power,
        supplies=link(power, "PowerSupplies"),
        cooling=cooling_path,
        cooling_told="FanRedundancy" in cooling,
        fans=link(cooling, "Fans"),
        detectors=link(detection, "LeakDetectors"),
    )


async def _filled(survey: Survey, sensors: str) -> str:
    """A collection of sensors, "" where it is empty: many boards of a GPU machine have one with nothing in it."""
    return sensors if sensors and (await survey.many(sensors, "Sensors") or survey.broken) else ""


async def _subsystem(survey: Survey, layout: SensorLayout, path: str, levels: int) -> Document:
    """A subsystem of which the layout is learned, whole where that names every collection below it, else bare."""
    if not path:
        return {}
    whole = await _whole(survey, layout, path, levels, needed=True)
    if whole and all(link(whole, key) for key in _BELOW if key in whole):
        return whole
    survey.wholes.pop(path, None)
    return await survey.one(path)


_BELOW = ("PowerSupplies", "Fans", "LeakDetection")


async def _older(survey: Survey, reference: str, read: _ReadValues) -> tuple[wire_sensors.SensorValue, ...]:
    return read(await survey.one(reference)) if reference else ()


def _kept(found: Iterable[_T | None]) -> list[_T]:
    return [item for item in found if item is not None]
