"""Redfish's sensors → values with units and limits, pure: heat, power, fans, supplies, leaks."""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from hostler.core.state.model import Facts
from hostler.drivers.redfish.tolerant_json import Document, child, name_of, number, objects, text
from hostler.drivers.redfish.wire import absent, called, slug

_UNITS = {
    "cel": "c",
    "rpm": "rpm",
    "w": "w",
    "v": "v",
    "a": "a",
    "%": "percent",
    "l/min": "l_per_min",
    "kpa": "kpa",
}


class SensorValue(Struct, frozen=True):
    """One sensor value; `name` ends in its unit ("gpu0_temp_c")."""

    name: str
    value: float | str


def named_apart(docs: list[Document]) -> list[Document]:
    """The same with names of their own: where members share one ("HpeServerPowerSupply"), each has its id behind it."""
    names = Counter(slug(called(doc)) for doc in docs)
    return [
        doc if names[slug(called(doc))] == 1 else doc | {"Name": f"{called(doc)} {text(doc, 'MemberId', 'Id')}"}
        for doc in docs
    ]


def thermal(doc: Document) -> tuple[SensorValue, ...]:
    """Temperatures (with their limits) and fans of the older Thermal resource."""
    found: list[SensorValue | None] = []
    for item in objects(doc, "Temperatures"):
        found += [
            _reading(item, number(item, "ReadingCelsius"), "Cel"),
            _threshold(item, number(item, "UpperThresholdCritical"), "limit"),
            _threshold(item, number(item, "UpperThresholdNonCritical"), "caution"),
        ]
    for item in objects(doc, "Fans"):
        found += [
            _reading(item, number(item, "Reading"), text(item, "ReadingUnits") or "RPM"),
            _health(item, "fan", "fan"),
        ]
    return (*(r for r in found if r), *redundancy(doc, "Redundancy", "cooling"))


def power(doc: Document) -> tuple[SensorValue, ...]:
    """Watts and volts of the older Power resource, and each supply's health as a word."""
    found = [_reading(item, number(item, "PowerConsumedWatts"), "W") for item in objects(doc, "PowerControl")]
    found += [_reading(item, number(item, "ReadingVolts"), "V") for item in objects(doc, "Voltages")]
    supplies = named_apart(list(objects(doc, "PowerSupplies")))
    found += [_reading(item, number(item, "PowerInputWatts", "LastPowerOutputWatts"), "W") for item in supplies]
    found += [_health(item, "PSU") for item in supplies]
    return (*(r for r in found if r), *redundancy(doc, "Redundancy", "power"))


def sensor(doc: Document) -> tuple[SensorValue, ...]:
    """One member of a Sensors collection; a temperature brings its thresholds ("gpu0_temp_limit_c", "…_caution_c")."""
    unit = text(doc, "ReadingUnits")
    reading = _reading(doc, number(doc, "Reading"), unit)
    found = [reading] if reading else []
    if unit.lower() != "cel":
        return tuple(found)
    for key, which in (("UpperCritical", "limit"), ("UpperCaution", "caution")):
        value = number(child(doc, "Thresholds", key), "Reading")
        if value is not None and (threshold := _threshold(doc, value, which)):
            found.append(threshold)
    return tuple(found)


def supply(doc: Document) -> tuple[SensorValue, ...]:
    """One power supply: its health as a word ("psu0_health": "ok")."""
    health = _health(doc, "psu")
    return (health,) if health else ()


def fan(doc: Document) -> tuple[SensorValue, ...]:
    """One fan of the ThermalSubsystem: its health as a word ("fan_3_health": "ok") and its speed."""
    speed = child(doc, "SpeedPercent")
    rpm, percent = number(speed, "SpeedRPM"), number(speed, "Reading")
    named = _reading(doc, rpm, "RPM") if rpm is not None else _reading(doc, percent, "%")
    return tuple(r for r in (named, _health(doc, "fan", "fan")) if r)


def redundancy(doc: Document, key: str, what: str) -> tuple[SensorValue, ...]:
    """Whether one may fail: the words of each group under `key` ("power_redundancy_health": "warning").

    A group that is switched off by choice (State Disabled, or type NotRedundant) tells nothing.
    """
    found: list[SensorValue] = []
    for number_, group in enumerate(objects(doc, key)):
        status = child(group, "Status")
        kind = text(group, "RedundancyType", "Mode").lower().replace(" ", "")
        health = text(status, "Health").lower()
        if not health or kind == "notredundant" or text(status, "State").lower() in {"disabled", "absent"}:
            continue
        found.append(SensorValue(f"{what}_redundancy{f'_{number_}' if number_ else ''}_health", health))
    return tuple(found)


def leak_detector(doc: Document) -> SensorValue | None:
    """One leak detector: its state (OK, Warning, Critical) in lower case."""
    state = text(doc, "DetectorState").lower()
    name = slug(name_of(doc) or text(doc, "Name"))
    if not state or state == "absent" or absent(doc) or not name:
        return None  # where no detector is, none says that all is dry
    return SensorValue(f"leak_{name.removeprefix('leak_')}", state)


def facts(readings: Iterable[SensorValue]) -> Facts:
    """Readings by name; of two with one name the later counts."""
    return {reading.name: reading.value for reading in readings}


def told_apart(readings: Iterable[SensorValue], chassis: str) -> list[SensorValue]:
    """The readings of one chassis, under names that no other chassis has: two boards may each have a "Temp 0"."""
    return [SensorValue(_named_for(reading.name, slug(chassis)), reading.value) for reading in readings]


_KEPT_FIRST = ("leak", "fan", "power_redundancy", "cooling_redundancy")
"""Prefixes of names that say what is being read."""


def _named_for(name: str, chassis: str) -> str:
    kept = next((first for first in _KEPT_FIRST if name.startswith(f"{first}_")), "")
    return f"{kept}_{chassis}_{name.removeprefix(f'{kept}_')}" if kept else f"{chassis}_{name}"


def _reading(doc: Document, value: float | None, unit: str) -> SensorValue | None:
    name = slug(called(doc))
    if value is None or not name or absent(doc):
        return None
    suffix = _UNITS.get(unit.lower(), slug(unit))
    ended = not suffix or name == suffix or name.endswith(f"_{suffix}")
    return SensorValue(name if ended else f"{name}_{suffix}", value)


def _threshold(doc: Document, value: float | None, which: str) -> SensorValue | None:
    reading = _reading(doc, value, "Cel")
    return SensorValue(f"{reading.name.removesuffix('_c')}_{which}_c", reading.value) if reading else None


def _health(doc: Document, fallback: str, prefix: str = "") -> SensorValue | None:
    """`prefix` begins the name, so that a fan called "Rear 3" is not taken for a power supply."""
    health = text(child(doc, "Status"), "Health").lower()
    name = slug(called(doc) or fallback)
    if prefix and not name.startswith(prefix):
        name = f"{prefix}_{name}"
    return SensorValue(f"{name}_health", health) if health and not absent(doc) else None
