"""A chassis's power and cooling: sensors, supplies, fans, their redundancy, leak detectors, and the older resources."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from hostler.sim.bmc.emulated_machine import Machine, PartFault
from hostler.sim.bmc.resource_parts import Document, collection, link, resource, rolled_up, status

SUPPLY_MODEL = "3000 W"
_UNITS = {"_c": "Cel", "_rpm": "RPM", "_w": "W", "_v": "V"}


def thermal(machine: Machine, now: datetime) -> Document:
    """Temperatures, fans and their redundancy as older BMCs show them."""
    doc = resource(f"/Chassis/{machine.id}/Thermal", "#Thermal.v1_7_1.Thermal", "Thermal", "Thermal")
    temperatures = [
        {
            "MemberId": name,
            "Name": name.removesuffix("_c"),
            "ReadingCelsius": machine.read_sensor(name, now),
            "UpperThresholdCritical": machine.hardware.limits_c.get(name),
        }
        for name in machine.sensors
        if name.endswith("_c")
    ]
    fans = [
        {
            "MemberId": name,
            "Name": name,
            "Reading": _speed(machine, name, now),
            "ReadingUnits": "RPM",
            "Status": status(PartFault(word)),
        }
        for name, word in machine.fans.items()
    ]
    group = _older_group(machine.fans, machine.hardware.fans_needed)
    return doc | {"Temperatures": temperatures, "Fans": fans, "Redundancy": [group]}


def power(machine: Machine, _now: datetime) -> Document:
    """Supplies and their redundancy as older BMCs show them."""
    doc = resource(f"/Chassis/{machine.id}/Power", "#Power.v1_7_1.Power", "Power", "Power")
    control = [{"MemberId": "0", "Name": "total_power", "PowerConsumedWatts": machine.sensors.get("total_power_w")}]
    supplies = [
        {"MemberId": name, "Name": name, "Status": status(PartFault(word))} | identity(machine, name)
        for name, word in machine.supplies.items()
    ]
    group = _older_group(machine.supplies, machine.hardware.supplies_needed)
    return doc | {"PowerControl": control, "PowerSupplies": supplies, "Redundancy": [group]}


def cooling(machine: Machine, _now: datetime) -> Document:
    """The ThermalSubsystem: fans, whether one of them may fail, and detectors of leaks."""
    me = f"/Chassis/{machine.id}/ThermalSubsystem"
    doc = resource(me, "#ThermalSubsystem.v1_3_0.ThermalSubsystem", "ThermalSubsystem", "Cooling")
    return doc | {
        "Fans": link(f"{me}/Fans"),
        "FanRedundancy": [_group(f"{me}/Fans", machine.fans, machine.hardware.fans_needed)],
        "LeakDetection": link(f"{me}/LeakDetection"),
        "Status": rolled_up((*machine.fans.values(), *machine.leaks.values())),
    }


def supply_system(machine: Machine, _now: datetime) -> Document:
    """The PowerSubsystem: supplies, and whether one of them may fail."""
    me = f"/Chassis/{machine.id}/PowerSubsystem"
    doc = resource(me, "#PowerSubsystem.v1_1_2.PowerSubsystem", "PowerSubsystem", "Power")
    return doc | {
        "PowerSupplies": link(f"{me}/PowerSupplies"),
        "PowerSupplyRedundancy": [_group(f"{me}/PowerSupplies", machine.supplies, machine.hardware.supplies_needed)],
        "Status": rolled_up(machine.supplies.values()),
    }


def leak_detection(machine: Machine, _now: datetime) -> Document:
    """Path of the leak detectors."""
    me = f"/Chassis/{machine.id}/ThermalSubsystem/LeakDetection"
    doc = resource(me, "#LeakDetection.v1_0_1.LeakDetection", "LeakDetection", "Leaks")
    return doc | {"LeakDetectors": link(f"{me}/LeakDetectors")}


def _listed(place: str, names: Callable[[Machine], Iterable[str]]) -> Callable[[Machine, datetime], Document]:
    def show(machine: Machine, _now: datetime) -> Document:
        return collection(f"/Chassis/{machine.id}/{place}", names(machine))

    return show


def sensor(machine: Machine, name: str, now: datetime) -> Document | None:
    """One sensor, with its critical limit where it has one."""
    if name not in machine.sensors:
        return None
    suffix = next((suffix for suffix in _UNITS if name.endswith(suffix)), "")
    me = f"/Chassis/{machine.id}/Sensors/{name}"
    doc = resource(me, "#Sensor.v1_7_0.Sensor", name, name.removesuffix(suffix)) | {
        "Reading": machine.read_sensor(name, now),
        "ReadingUnits": _UNITS.get(suffix),
        "Status": {"State": "Enabled", "Health": "OK"},
    }
    if name in machine.hardware.limits_c:
        doc["Thresholds"] = {"UpperCritical": {"Reading": machine.hardware.limits_c[name]}}
    return doc


def fan(machine: Machine, name: str, now: datetime) -> Document | None:
    """One fan, with its speed where it is measured."""
    if name not in machine.fans:
        return None
    me = f"/Chassis/{machine.id}/ThermalSubsystem/Fans/{name}"
    doc = resource(me, "#Fan.v1_5_0.Fan", name, name) | {"Status": status(PartFault(machine.fans[name]))}
    speed = _speed(machine, name, now)
    return doc | {"SpeedPercent": {"SpeedRPM": speed}} if speed is not None else doc


def supply(machine: Machine, name: str, _now: datetime) -> Document | None:
    """One power supply."""
    if name not in machine.supplies:
        return None
    me = f"/Chassis/{machine.id}/PowerSubsystem/PowerSupplies/{name}"
    doc = resource(me, "#PowerSupply.v1_6_0.PowerSupply", name, name)
    return doc | {"Status": status(PartFault(machine.supplies[name]))} | identity(machine, name)


def identity(machine: Machine, name: str) -> Document:
    """Identity that a supply shows of itself."""
    return {"SerialNumber": f"{machine.hardware.serial}-{name.upper()}", "Model": SUPPLY_MODEL}


def detector(machine: Machine, name: str, _now: datetime) -> Document | None:
    """One leak detector."""
    if name not in machine.leaks:
        return None
    me = f"/Chassis/{machine.id}/ThermalSubsystem/LeakDetection/LeakDetectors/{name}"
    doc = resource(me, "#LeakDetector.v1_1_0.LeakDetector", name, name)
    return doc | {"DetectorState": machine.leaks[name], "LeakDetectorType": "Moisture"}


def _speed(machine: Machine, name: str, now: datetime) -> float | None:
    return machine.read_sensor(f"{name}_rpm", now) if f"{name}_rpm" in machine.sensors else None


def redundancy(words: Iterable[str], needed: int) -> Document:
    """Redundancy: one may fail: OK. None may: Warning. Fewer are well than are needed: Critical."""
    spare = sum(word == "OK" for word in words) - needed
    return {"State": "Enabled", "Health": "OK" if spare > 0 else "Warning" if spare == 0 else "Critical"}


def _group(path: str, members: Mapping[str, str], needed: int) -> Document:
    return {
        "RedundancyType": "NPlusM",
        "MinNeededInGroup": needed,
        "MaxSupportedInGroup": len(members),
        "RedundancyGroup": [link(f"{path}/{name}") for name in members],
        "Status": redundancy(members.values(), needed),
    }


def _older_group(members: Mapping[str, str], needed: int) -> Document:
    return {
        "Mode": "N+m",
        "MinNumNeeded": needed,
        "MaxNumSupported": len(members),
        "RedundancySet": [{"MemberId": name} for name in members],
        "Status": redundancy(members.values(), needed),
    }


PLANT: dict[str, Callable[[Machine, datetime], Document]] = {
    "Sensors": _listed("Sensors", lambda machine: machine.sensors),
    "PowerSubsystem": supply_system,
    "PowerSubsystem/PowerSupplies": _listed("PowerSubsystem/PowerSupplies", lambda machine: machine.supplies),
    "ThermalSubsystem": cooling,
    "ThermalSubsystem/Fans": _listed("ThermalSubsystem/Fans", lambda machine: machine.fans),
    "ThermalSubsystem/LeakDetection": leak_detection,
    "ThermalSubsystem/LeakDetection/LeakDetectors": _listed(
        "ThermalSubsystem/LeakDetection/LeakDetectors", lambda machine: machine.leaks
    ),
}
"""Path behind a chassis → document."""

OLDER: dict[str, Callable[[Machine, datetime], Document]] = {"Thermal": thermal, "Power": power}
"""Resources of an older BMC; a newer one has both."""

PLANT_MEMBERS: dict[str, Callable[[Machine, str, datetime], Document | None]] = {
    "Sensors": sensor,
    "PowerSubsystem/PowerSupplies": supply,
    "ThermalSubsystem/Fans": fan,
    "ThermalSubsystem/LeakDetection/LeakDetectors": detector,
}
"""Collection behind a chassis → one of its members by id."""
