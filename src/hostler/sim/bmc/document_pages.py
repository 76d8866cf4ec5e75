"""Collects the Redfish documents of one machine by path, in whatever layout a vendor has."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from hashlib import blake2s

import msgspec

from hostler.core.state.model import Part
from hostler.sim.bmc.emulated_machine import Machine, PartFault
from hostler.sim.bmc.power_and_cooling import identity
from hostler.sim.bmc.resource_parts import ROOT, WELL, Document, link, moment, status
from hostler.sim.bmc.virtual_drives import DriveShape

PROCESSORS = {"gpu": "GPU", "cpu": "CPU", "dpu": "DPU"}
BOOTS = ("None", "Pxe", "UefiHttp", "Hdd")
_UNITS = {"_c": "Cel", "_rpm": "RPM", "_w": "W", "_v": "V"}


class Pages:
    """Documents by path behind /redfish/v1; each call of a method adds some."""

    def __init__(self, machine: Machine, now: datetime) -> None:
        self.machine = machine
        self.now = now
        self.docs: dict[str, Document] = {}

    def add(self, path: str, body: Mapping[str, object] | None = None, name: str = "") -> str:
        """One resource; returns its path."""
        last = path.rpartition("/")[2]
        self.docs[path] = {"@odata.id": ROOT + path, "Id": last, "Name": name or last} | dict(body or {})
        return path

    def listing(self, path: str, members: Iterable[str]) -> Document:
        """A collection of these members; returns a link to it."""
        found = [link(f"{path}/{member}") for member in members]
        self.docs[path] = {"@odata.id": ROOT + path, "Name": path.rpartition("/")[2]}
        self.docs[path] |= {"Members": found, "Members@odata.count": len(found)}
        return link(path)

    def parts(self, kind: str) -> list[Part]:
        """The machine's parts of a kind, in their order."""
        return [part for part in self.machine.parts if part.kind == kind]

    def facts_of(self, part: Part) -> Document:
        """Facts that any resource shows of a part."""
        shown = {"SerialNumber": part.serial or None, "Model": part.model or None}
        return shown | {"Status": status(self.machine.part_faults.get(part.slot, WELL))}

    def processors(self, place: str, named: Mapping[str, Part]) -> Document:
        """Processors under a system, by the names that the vendor gives them."""
        for name, part in named.items():
            kind = {"ProcessorType": PROCESSORS[part.kind], "FirmwareVersion": part.firmware}
            self.add(f"{place}/Processors/{name}", self.facts_of(part) | kind)
        return self.listing(f"{place}/Processors", named)

    def memory(self, place: str) -> Document:
        """Memory modules under a system."""
        for part in self.parts("memory"):
            self.add(f"{place}/Memory/{part.slot}", self.facts_of(part) | {"DeviceLocator": part.slot})
        return self.listing(f"{place}/Memory", [part.slot for part in self.parts("memory")])

    def drives(self, place: str) -> Document:
        """One storage with its drives."""
        found = [
            self.add(f"{place}/Storage/NVMe/Drives/{part.slot}", self.facts_of(part) | {"Revision": part.firmware})
            for part in self.parts("drive")
        ]
        self.add(f"{place}/Storage/NVMe", {"Drives": [link(path) for path in found]})
        return self.listing(f"{place}/Storage", ["NVMe"])

    def adapters(self, place: str, parts: Iterable[Part]) -> Document:
        """Network adapters under a chassis."""
        listed = list(parts)
        for part in listed:
            firmware = {"Controllers": [{"FirmwarePackageVersion": part.firmware}]}
            self.add(f"{place}/NetworkAdapters/{part.slot}", self.facts_of(part) | firmware)
        return self.listing(f"{place}/NetworkAdapters", [part.slot for part in listed])

    def sensors(self, place: str, names: Iterable[str]) -> Document:
        """Sensors under a chassis, with their critical limits."""
        listed = list(names)
        for name in listed:
            suffix = next((one for one in _UNITS if name.endswith(one)), "")
            body: Document = {
                "Reading": self.machine.read_sensor(name, self.now),
                "ReadingUnits": _UNITS.get(suffix),
                "Status": {"State": "Enabled", "Health": "OK"},
            }
            if name in self.machine.hardware.limits_c:
                body["Thresholds"] = {"UpperCritical": {"Reading": self.machine.hardware.limits_c[name]}}
            self.add(f"{place}/Sensors/{name}", body, name.removesuffix(suffix))
        return self.listing(f"{place}/Sensors", listed)

    def leaks(self, place: str) -> Document:
        """A ThermalSubsystem with the machine's leak detectors."""
        detectors = f"{place}/ThermalSubsystem/LeakDetection/LeakDetectors"
        for name, word in self.machine.leaks.items():
            self.add(f"{detectors}/{name}", {"DetectorState": word, "LeakDetectorType": "Moisture"})
        listed = self.listing(detectors, self.machine.leaks)
        self.add(f"{place}/ThermalSubsystem/LeakDetection", {"LeakDetectors": listed})
        self.add(f"{place}/ThermalSubsystem", {"LeakDetection": link(f"{place}/ThermalSubsystem/LeakDetection")})
        return link(f"{place}/ThermalSubsystem")

    def supplies(self, place: str) -> Document:
        """A PowerSubsystem with the machine's supplies."""
        for name, word in self.machine.supplies.items():
            self.add(
                f"{place}/PowerSubsystem/PowerSupplies/{name}",
                {"Status": status(PartFault(word))} | identity(self.machine, name),
            )
        listed = self.listing(f"{place}/PowerSubsystem/PowerSupplies", self.machine.supplies)
        return link(self.add(f"{place}/PowerSubsystem", {"PowerSupplies": listed}))

    def older(self, place: str) -> Document:
        """Thermal and Power, as older BMCs have them; links to both."""
        values = {name: self.machine.read_sensor(name, self.now) for name in self.machine.sensors}
        temperatures = [
            {"MemberId": name, "Name": name.removesuffix("_c"), "ReadingCelsius": value}
            | {"UpperThresholdCritical": self.machine.hardware.limits_c.get(name)}
            for name, value in values.items()
            if name.endswith("_c")
        ]
        fans = [
            {"MemberId": name, "Name": name, "Reading": values.get(f"{name}_rpm"), "ReadingUnits": "RPM"}
            | {"Status": status(PartFault(word))}
            for name, word in self.machine.fans.items()
        ]
        supplies = [
            {"MemberId": name, "Name": name, "Status": status(PartFault(word))} | identity(self.machine, name)
            for name, word in self.machine.supplies.items()
        ]
        self.add(f"{place}/Thermal", {"Temperatures": temperatures, "Fans": fans})
        self.add(f"{place}/Power", {"PowerSupplies": supplies})
        return {"Thermal": link(f"{place}/Thermal"), "Power": link(f"{place}/Power")}

    def log(self, place: str, full: str, *empty: str) -> Document:
        """Log services under a system or manager: the empty ones first, and the one with the machine's entries."""
        for name in empty:
            self.add(
                f"{place}/LogServices/{name}", {"Entries": self.listing(f"{place}/LogServices/{name}/Entries", [])}
            )
        if full:
            entries = f"{place}/LogServices/{full}/Entries"
            for line in self.machine.log:
                body = {"Created": moment(line.created), "Severity": line.severity, "Message": line.message}
                self.add(f"{entries}/{line.id}", body)
            listed = self.listing(entries, [str(line.id) for line in self.machine.log])
            self.add(f"{place}/LogServices/{full}", {"Entries": listed})
        return self.listing(f"{place}/LogServices", [*empty, *([full] if full else [])])

    def etags(self, form: str) -> None:
        """Give every resource an etag: strong, weak, or one that says nothing."""
        for doc in self.docs.values():
            told = blake2s(msgspec.json.encode(doc), digest_size=4).hexdigest()
            doc["@odata.etag"] = {"strong": f'"{told}"', "weak": f'W/"{told}"'}.get(form, '""')


def boot_of(machine: Machine, drives: DriveShape | None = None, boots: tuple[str, ...] = BOOTS) -> Document:
    """The boot override as a system or its settings object shows it, with the targets that it takes."""
    cds = [drives.boots_as] if drives is not None else []
    return {
        "BootSourceOverrideEnabled": machine.boot.enabled,
        "BootSourceOverrideTarget": machine.boot.target,
        "BootSourceOverrideTarget@Redfish.AllowableValues": [*boots, *cds],
        "BootSourceOverrideMode": "UEFI",
    }
