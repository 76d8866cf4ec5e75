"""What an emulated BMC shows: Redfish resources of one machine, by path."""

from collections.abc import Callable, Iterable
from datetime import datetime

import msgspec

from hostler.core.model import Part
from hostler.sim.bmc.machine import RESETS, Machine, Task

ROOT = "/redfish/v1"
Document = dict[str, object]

_PROCESSORS = {"gpu": "GPU", "cpu": "CPU", "dpu": "DPU"}
_UNITS = {"_c": "Cel", "_rpm": "RPM", "_w": "W", "_v": "V"}
_BOOT_TARGETS = ["None", "Pxe", "UefiHttp", "Hdd", "BiosSetup"]


def service_root(serves: str) -> Document:
    """The entry to a service; `serves` is its name."""
    places = {
        "Systems": "Systems",
        "Chassis": "Chassis",
        "Managers": "Managers",
        "UpdateService": "UpdateService",
    }
    return _resource("", "#ServiceRoot.v1_15_0.ServiceRoot", "RootService", f"Emulated BMC of {serves}") | {
        "RedfishVersion": "1.15.0",
        "ProtocolFeaturesSupported": {"ExpandQuery": {"NoLinks": True, "Levels": True, "MaxLevels": 1}},
        "Tasks": _link("/TaskService"),
        **{key: _link(f"/{place}") for key, place in places.items()},
    }


def collection(path: str, members: Iterable[str]) -> Document:
    """A collection at `path` with these ids as members."""
    found = [_link(f"{path}/{member}") for member in members]
    name = path.rpartition("/")[2]
    doc: Document = {
        "@odata.id": ROOT + path,
        "@odata.type": f"#{name}Collection.{name}Collection",
        "Name": name,
    }
    return doc | {"Members": found, "Members@odata.count": len(found)}


def task_service() -> Document:
    """Where tasks are kept."""
    doc = _resource("/TaskService", "#TaskService.v1_2_0.TaskService", "TaskService", "Tasks")
    return doc | {"Tasks": _link("/TaskService/Tasks"), "ServiceEnabled": True}


def update_service() -> Document:
    """Where updates are asked for."""
    doc = _resource("/UpdateService", "#UpdateService.v1_11_0.UpdateService", "UpdateService", "Updates")
    action = {"target": f"{ROOT}/UpdateService/Actions/UpdateService.SimpleUpdate"}
    return doc | {
        "ServiceEnabled": True,
        "FirmwareInventory": _link("/UpdateService/FirmwareInventory"),
        "Actions": {
            "#UpdateService.SimpleUpdate": action
            | {"TransferProtocol@Redfish.AllowableValues": ["HTTP", "HTTPS", "TFTP"]}
        },
    }


def firmware_ids(machine: Machine, prefix: str) -> list[str]:
    """Names of the firmware inventory's members: running versions, then staged ones."""
    return [prefix + name for name in (*machine.firmware, *(f"{name}_staged" for name in machine.firmware_staged))]


def firmware_item(machine: Machine, member: str, prefix: str) -> Document | None:
    """One member of the firmware inventory."""
    name = member.removeprefix(prefix)
    component = name.removesuffix("_staged")
    staged = component != name
    version = (machine.firmware_staged if staged else machine.firmware).get(component)
    if version is None:
        return None
    path, kind = f"/UpdateService/FirmwareInventory/{member}", "#SoftwareInventory.v1_10_0.SoftwareInventory"
    writing = any(task.component == component and task.state == "Running" for task in machine.tasks.values())
    state = "StandbySpare" if staged else "Updating" if writing else "Enabled"
    return _resource(path, kind, member, prefix + component) | {
        "Version": version,
        "Updateable": not staged,
        "Status": {"State": state, "Health": "OK"},
        "RelatedItem": [_link(f"/Systems/{machine.id}")],
    }


def task(item: Task, prefix: str) -> Document:
    """One task; its monitor shows the same."""
    target = f"{ROOT}/UpdateService/FirmwareInventory/{prefix}{item.component}"
    doc = _resource(f"/TaskService/Tasks/{item.id}", "#Task.v1_7_3.Task", item.id, f"Update of {item.component}")
    return doc | {
        "TaskState": item.state,
        "TaskStatus": item.status,
        "TaskMonitor": f"{ROOT}/TaskService/TaskMonitors/{item.id}",
        "StartTime": _moment(item.started),
        "Payload": {
            "HttpOperation": "POST",
            "TargetUri": f"{ROOT}/UpdateService/Actions/UpdateService.SimpleUpdate",
            "JsonBody": msgspec.json.encode({"ImageURI": item.image, "Targets": [target]}).decode(),
        },
        "Messages": [{"MessageId": "Update.1.0.Note", "Message": item.message}],
    }


def of_machine(machine: Machine, path: str, now: datetime) -> Document | None:
    """The resource of one machine at a path behind /redfish/v1, None where there is none."""
    place, _, rest = path.strip("/").partition("/")
    rest = rest.partition("/")[2]
    tables: dict[str, dict[str, _Show]] = {"Systems": _SYSTEM, "Chassis": _CHASSIS, "Managers": _MANAGER}
    table = tables.get(place, {})
    if rest in table:
        return table[rest](machine, now)
    parent, _, member = rest.rpartition("/")
    shown = _MEMBERS.get((place, parent))
    return shown(machine, member, now) if shown else None


_Show = Callable[[Machine, datetime], Document]
_ShowMember = Callable[[Machine, str, datetime], Document | None]


def _system(machine: Machine, _now: datetime) -> Document:
    me = f"/Systems/{machine.id}"
    collections = ("Processors", "Memory", "Storage", "EthernetInterfaces", "LogServices", "Bios")
    doc = _resource(me, "#ComputerSystem.v1_20_0.ComputerSystem", machine.id, "Server")
    doc |= {
        "SystemType": "Physical",
        "Manufacturer": machine.hardware.manufacturer,
        "Model": machine.hardware.model,
        "SerialNumber": machine.hardware.serial,
        "PowerState": machine.power,
        "BiosVersion": machine.firmware.get("BIOS", ""),
        "LocationIndicatorActive": machine.locate,
        "BootProgress": {"LastState": "OSRunning" if machine.booted else "None"},
        "Status": {"State": "Enabled", "Health": "OK"},
    }
    doc |= {key: _link(f"{me}/{key}") for key in collections}
    doc["Boot"] = {
        "BootSourceOverrideEnabled": machine.boot.enabled,
        "BootSourceOverrideTarget": machine.boot.target,
        "BootSourceOverrideTarget@Redfish.AllowableValues": _BOOT_TARGETS,
        "BootSourceOverrideMode": "UEFI",
        "HttpBootUri": machine.boot.uri,
    }
    doc["Links"] = {
        "Chassis": [_link(f"/Chassis/{machine.id}")],
        "ManagedBy": [_link(f"/Managers/{machine.id}")],
    }
    doc["Actions"] = _reset_action(me, "ComputerSystem.Reset", RESETS)
    return doc


def _manager(machine: Machine, now: datetime) -> Document:
    me = f"/Managers/{machine.id}"
    return _resource(me, "#Manager.v1_19_0.Manager", machine.id, "BMC") | {
        "ManagerType": "BMC",
        "FirmwareVersion": machine.firmware.get("BMC", ""),
        "DateTime": _moment(now),
        "LastResetTime": _moment(machine.manager_reset_at),
        "Status": {"State": "Enabled", "Health": "OK"},
        "Links": {"ManagerForServers": [_link(f"/Systems/{machine.id}")]},
        "Actions": _reset_action(me, "Manager.Reset", ("GracefulRestart", "ForceRestart")),
    }


def _chassis(machine: Machine, _now: datetime) -> Document:
    me = f"/Chassis/{machine.id}"
    return _resource(me, "#Chassis.v1_25_0.Chassis", machine.id, "Chassis") | {
        "ChassisType": "RackMount",
        "SerialNumber": machine.hardware.serial,
        "Model": machine.hardware.model,
        "PowerState": machine.power,
        "Sensors": _link(f"{me}/Sensors"),
        "Thermal": _link(f"{me}/Thermal"),
        "ThermalSubsystem": _link(f"{me}/ThermalSubsystem"),
        "PowerSubsystem": _link(f"{me}/PowerSubsystem"),
        "NetworkAdapters": _link(f"{me}/NetworkAdapters"),
        "Links": {
            "ComputerSystems": [_link(f"/Systems/{machine.id}")],
            "ManagedBy": [_link(f"/Managers/{machine.id}")],
        },
    }


def _thermal(machine: Machine, now: datetime) -> Document:
    doc = _resource(f"/Chassis/{machine.id}/Thermal", "#Thermal.v1_7_1.Thermal", "Thermal", "Thermal")
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
        {"MemberId": name, "Name": name, "Reading": machine.read_sensor(name, now), "ReadingUnits": "RPM"}
        for name in machine.sensors
        if name.endswith("_rpm")
    ]
    return doc | {"Temperatures": temperatures, "Fans": fans}


def _subsystem(machine: Machine, _now: datetime) -> Document:
    me = f"/Chassis/{machine.id}/ThermalSubsystem"
    doc = _resource(me, "#ThermalSubsystem.v1_3_0.ThermalSubsystem", "ThermalSubsystem", "Cooling")
    return doc | {"LeakDetection": _link(f"{me}/LeakDetection")}


def _power(machine: Machine, _now: datetime) -> Document:
    me = f"/Chassis/{machine.id}/PowerSubsystem"
    doc = _resource(me, "#PowerSubsystem.v1_1_2.PowerSubsystem", "PowerSubsystem", "Power")
    return doc | {"PowerSupplies": _link(f"{me}/PowerSupplies")}


def _supplies(machine: Machine, _now: datetime) -> Document:
    return collection(f"/Chassis/{machine.id}/PowerSubsystem/PowerSupplies", machine.supplies)


def _leak_detection(machine: Machine, _now: datetime) -> Document:
    me = f"/Chassis/{machine.id}/ThermalSubsystem/LeakDetection"
    doc = _resource(me, "#LeakDetection.v1_0_1.LeakDetection", "LeakDetection", "Leaks")
    return doc | {"LeakDetectors": _link(f"{me}/LeakDetectors")}


def _storage(machine: Machine, _now: datetime) -> Document:
    me = f"/Systems/{machine.id}/Storage/1"
    drives = [_link(f"{me}/Drives/{part.slot}") for part in machine.parts if part.kind == "drive"]
    return _resource(me, "#Storage.v1_15_0.Storage", "1", "NVMe") | {"Drives": drives}


def _bios(machine: Machine, _now: datetime) -> Document:
    me = f"/Systems/{machine.id}/Bios"
    doc = _resource(me, "#Bios.v1_2_1.Bios", "Bios", "BIOS settings")
    return doc | {
        "Attributes": dict(machine.bios),
        "@Redfish.Settings": {
            "@odata.type": "#Settings.v1_3_5.Settings",
            "SettingsObject": _link(f"{me}/Settings"),
        },
    }


def _bios_settings(machine: Machine, _now: datetime) -> Document:
    doc = _resource(f"/Systems/{machine.id}/Bios/Settings", "#Bios.v1_2_1.Bios", "Settings", "Pending settings")
    return doc | {"Attributes": dict(machine.bios_pending)}


def _log_service(machine: Machine, _now: datetime) -> Document:
    me = f"/Systems/{machine.id}/LogServices/SEL"
    doc = _resource(me, "#LogService.v1_4_0.LogService", "SEL", "System event log")
    return doc | {"Entries": _link(f"{me}/Entries")}


def _parts_of(place: str, name: str, kinds: Iterable[str]) -> _Show:
    wanted = frozenset(kinds)

    def show(machine: Machine, _now: datetime) -> Document:
        slots = [part.slot for part in machine.parts if part.kind in wanted]
        return collection(f"/{place}/{machine.id}/{name}", slots)

    return show


def _sensors(machine: Machine, _now: datetime) -> Document:
    return collection(f"/Chassis/{machine.id}/Sensors", machine.sensors)


def _detectors(machine: Machine, _now: datetime) -> Document:
    return collection(f"/Chassis/{machine.id}/ThermalSubsystem/LeakDetection/LeakDetectors", machine.leaks)


def _log_services(machine: Machine, _now: datetime) -> Document:
    return collection(f"/Systems/{machine.id}/LogServices", ["SEL"])


def _storages(machine: Machine, _now: datetime) -> Document:
    return collection(f"/Systems/{machine.id}/Storage", ["1"])


def _entries(machine: Machine, _now: datetime) -> Document:
    return collection(f"/Systems/{machine.id}/LogServices/SEL/Entries", [str(line.id) for line in machine.log])


_SYSTEM: dict[str, _Show] = {
    "": _system,
    "Processors": _parts_of("Systems", "Processors", _PROCESSORS),
    "Memory": _parts_of("Systems", "Memory", {"memory"}),
    "EthernetInterfaces": _parts_of("Systems", "EthernetInterfaces", {"nic_port"}),
    "Storage": _storages,
    "Storage/1": _storage,
    "Bios": _bios,
    "Bios/Settings": _bios_settings,
    "LogServices": _log_services,
    "LogServices/SEL": _log_service,
    "LogServices/SEL/Entries": _entries,
}
_CHASSIS: dict[str, _Show] = {
    "": _chassis,
    "Sensors": _sensors,
    "Thermal": _thermal,
    "PowerSubsystem": _power,
    "PowerSubsystem/PowerSupplies": _supplies,
    "ThermalSubsystem": _subsystem,
    "ThermalSubsystem/LeakDetection": _leak_detection,
    "ThermalSubsystem/LeakDetection/LeakDetectors": _detectors,
    "NetworkAdapters": _parts_of("Chassis", "NetworkAdapters", {"nic"}),
}
_MANAGER: dict[str, _Show] = {"": _manager}


def _component(schema: str, name: str) -> _ShowMember:
    def show(machine: Machine, slot: str, _now: datetime) -> Document | None:
        part = next((part for part in machine.parts if part.slot == slot), None)
        return _part(machine, part, schema, name) if part else None

    return show


def _part(machine: Machine, part: Part, schema: str, name: str) -> Document:
    doc = _resource(name.format(machine=machine.id, slot=part.slot), schema, part.slot, part.slot) | {
        "SerialNumber": part.serial,
        "Model": part.model,
        "Status": {"State": "Enabled", "Health": "OK"},
    }
    match part.kind:
        case "gpu" | "cpu" | "dpu":
            return doc | {"ProcessorType": _PROCESSORS[part.kind], "FirmwareVersion": part.firmware}
        case "nic":
            return doc | {"Controllers": [{"FirmwarePackageVersion": part.firmware}]}
        case "nic_port":
            return doc | {"MACAddress": part.serial, "PermanentMACAddress": part.serial}
        case _:
            return doc | {"Revision": part.firmware, "FirmwareRevision": part.firmware}


def _sensor(machine: Machine, name: str, now: datetime) -> Document | None:
    if name not in machine.sensors:
        return None
    suffix = next((suffix for suffix in _UNITS if name.endswith(suffix)), "")
    me = f"/Chassis/{machine.id}/Sensors/{name}"
    doc = _resource(me, "#Sensor.v1_7_0.Sensor", name, name.removesuffix(suffix)) | {
        "Reading": machine.read_sensor(name, now),
        "ReadingUnits": _UNITS.get(suffix),
        "Status": {"State": "Enabled", "Health": "OK"},
    }
    if name in machine.hardware.limits_c:
        doc["Thresholds"] = {"UpperCritical": {"Reading": machine.hardware.limits_c[name]}}
    return doc


def _detector(machine: Machine, name: str, _now: datetime) -> Document | None:
    if name not in machine.leaks:
        return None
    me = f"/Chassis/{machine.id}/ThermalSubsystem/LeakDetection/LeakDetectors/{name}"
    doc = _resource(me, "#LeakDetector.v1_1_0.LeakDetector", name, name)
    return doc | {"DetectorState": machine.leaks[name], "LeakDetectorType": "Moisture"}


def _supply(machine: Machine, name: str, _now: datetime) -> Document | None:
    if name not in machine.supplies:
        return None
    me = f"/Chassis/{machine.id}/PowerSubsystem/PowerSupplies/{name}"
    doc = _resource(me, "#PowerSupply.v1_6_0.PowerSupply", name, name)
    return doc | {"Status": {"State": "Enabled", "Health": machine.supplies[name]}}


def _entry(machine: Machine, member: str, _now: datetime) -> Document | None:
    line = next((line for line in machine.log if str(line.id) == member), None)
    if line is None:
        return None
    me = f"/Systems/{machine.id}/LogServices/SEL/Entries/{member}"
    return _resource(me, "#LogEntry.v1_15_0.LogEntry", member, f"Log entry {member}") | {
        "EntryType": "SEL",
        "Created": _moment(line.created),
        "Severity": line.severity,
        "Message": line.message,
    }


_PROCESSOR = _component("#Processor.v1_18_0.Processor", "/Systems/{machine}/Processors/{slot}")
_MEMBERS: dict[tuple[str, str], _ShowMember] = {
    ("Systems", "Processors"): _PROCESSOR,
    ("Systems", "Memory"): _component("#Memory.v1_18_0.Memory", "/Systems/{machine}/Memory/{slot}"),
    ("Systems", "EthernetInterfaces"): _component(
        "#EthernetInterface.v1_10_0.EthernetInterface", "/Systems/{machine}/EthernetInterfaces/{slot}"
    ),
    ("Systems", "Storage/1/Drives"): _component("#Drive.v1_18_0.Drive", "/Systems/{machine}/Storage/1/Drives/{slot}"),
    ("Systems", "LogServices/SEL/Entries"): _entry,
    ("Chassis", "NetworkAdapters"): _component(
        "#NetworkAdapter.v1_11_0.NetworkAdapter", "/Chassis/{machine}/NetworkAdapters/{slot}"
    ),
    ("Chassis", "Sensors"): _sensor,
    ("Chassis", "PowerSubsystem/PowerSupplies"): _supply,
    ("Chassis", "ThermalSubsystem/LeakDetection/LeakDetectors"): _detector,
}


def _resource(path: str, schema: str, identity: str, name: str) -> Document:
    return {
        "@odata.id": (ROOT + path) if path else ROOT + "/",
        "@odata.type": schema,
        "Id": identity,
        "Name": name,
    }


def _link(path: str) -> Document:
    return {"@odata.id": ROOT + path}


def _reset_action(path: str, name: str, kinds: Iterable[str]) -> Document:
    target = f"{ROOT}{path}/Actions/{name}"
    return {f"#{name}": {"target": target, "ResetType@Redfish.AllowableValues": list(kinds)}}


def _moment(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")
