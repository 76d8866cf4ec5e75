"""Redfish resources of one emulated machine, by path."""

from collections.abc import Callable, Iterable
from datetime import datetime

import msgspec

from hostler.core.state.model import Part
from hostler.sim.bmc import virtual_drives
from hostler.sim.bmc.emulated_machine import RESETS, EmulatedTask, Machine
from hostler.sim.bmc.power_and_cooling import OLDER, PLANT, PLANT_MEMBERS
from hostler.sim.bmc.resource_parts import ROOT, WELL, Document, collection, link, moment, resource, rolled_up, status

_PROCESSORS = {"gpu": "GPU", "cpu": "CPU", "dpu": "DPU"}
_BOOT_TARGETS = ["None", "Pxe", "UefiHttp", "Cd", "Hdd", "BiosSetup"]


def service_root(serves: str, expands: int) -> Document:
    """The entry to a service; `serves` is its name, `expands` how many levels of a document it inlines on request."""
    places = {
        "Systems": "Systems",
        "Chassis": "Chassis",
        "Managers": "Managers",
        "UpdateService": "UpdateService",
    }
    query = {"NoLinks": True, "Levels": True, "MaxLevels": expands} if expands else {"NoLinks": False}
    return resource("", "#ServiceRoot.v1_15_0.ServiceRoot", "RootService", f"Emulated BMC of {serves}") | {
        "RedfishVersion": "1.15.0",
        "ProtocolFeaturesSupported": {"ExpandQuery": query},
        "Tasks": link("/TaskService"),
        **{key: link(f"/{place}") for key, place in places.items()},
    }


def task_service() -> Document:
    """Path below which tasks are kept."""
    doc = resource("/TaskService", "#TaskService.v1_2_0.TaskService", "TaskService", "Tasks")
    return doc | {"Tasks": link("/TaskService/Tasks"), "ServiceEnabled": True}


def update_service() -> Document:
    """Path at which updates are asked for."""
    doc = resource("/UpdateService", "#UpdateService.v1_11_0.UpdateService", "UpdateService", "Updates")
    action = {"target": f"{ROOT}/UpdateService/Actions/UpdateService.SimpleUpdate"}
    return doc | {
        "MultipartHttpPushUri": f"{ROOT}/UpdateService/update-multipart",
        "ServiceEnabled": True,
        "FirmwareInventory": link("/UpdateService/FirmwareInventory"),
        "Actions": {
            "#UpdateService.SimpleUpdate": action
            | {"TransferProtocol@Redfish.AllowableValues": ["HTTP", "HTTPS", "TFTP"]}
        },
    }


def firmware_ids(machine: Machine, prefix: str) -> list[str]:
    """Names of the firmware inventory's members: running versions, then staged ones."""
    staged = [] if machine.quirks.unstaged else [f"{name}_staged" for name in machine.firmware_staged]
    spare = [f"{name}-Backup" for name in machine.quirks.recovery]
    return [prefix + name for name in (*(c for c in machine.firmware if c not in machine.hidden), *staged, *spare)]


def firmware_item(machine: Machine, member: str, prefix: str) -> Document | None:
    """One member of the firmware inventory."""
    name = member.removeprefix(prefix)
    component = name.removesuffix("_staged")
    staged = component != name
    if name.endswith("-Backup"):
        spare = machine.quirks.recovery.get(name.removesuffix("-Backup"))
        return _spare(member, spare) if spare is not None else None
    if component not in (machine.firmware_staged if staged else machine.firmware) or component in machine.hidden:
        return None
    version = machine.firmware_staged[component] if staged else machine.shown_version(component)
    path, kind = f"/UpdateService/FirmwareInventory/{member}", "#SoftwareInventory.v1_10_0.SoftwareInventory"
    writing = any(task.component == component and task.state == "Running" for task in machine.tasks.values())
    state = "StandbySpare" if staged else "Updating" if writing else "Enabled"
    return resource(path, kind, member, prefix + component) | {
        "Version": version,
        "Updateable": not staged,
        "Status": {"State": state, "Health": "OK"},
        "RelatedItem": [link(f"/Systems/{machine.id}")],
    }


def _spare(member: str, version: str) -> Document:
    """A spare image: it is enabled, and says by its name alone that it does not run."""
    path, kind = f"/UpdateService/FirmwareInventory/{member}", "#SoftwareInventory.v1_10_0.SoftwareInventory"
    return resource(path, kind, member, member) | {"Version": version, "Status": {"State": "Enabled"}}


def task(item: EmulatedTask, prefix: str) -> Document:
    """One task; its monitor shows the same."""
    target = f"{ROOT}/UpdateService/FirmwareInventory/{prefix}{item.component}"
    doc = resource(f"/TaskService/Tasks/{item.id}", "#Task.v1_7_3.Task", item.id, f"Update of {item.component}")
    return doc | {
        "TaskState": item.state,
        "TaskStatus": item.status,
        "TaskMonitor": f"{ROOT}/TaskService/TaskMonitors/{item.id}",
        "StartTime": moment(item.started),
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
    older = machine.quirks.older
    if place == "Systems" and rest.startswith(virtual_drives.PLACE):
        return virtual_drives.shown(machine, virtual_drives.PLAIN, f"/Systems/{machine.id}").get(path)
    table = (_OLDER_TABLES if older else _TABLES).get(place, {})
    if rest in table:
        return table[rest](machine, now)
    parent, _, member = rest.rpartition("/")
    shown = _MEMBERS.get((place, parent))
    if shown is None or (older and parent in PLANT_MEMBERS):
        return None
    return shown(machine, member, now)


_Show = Callable[[Machine, datetime], Document]
_ShowMember = Callable[[Machine, str, datetime], Document | None]


def _system(machine: Machine, _now: datetime) -> Document:
    me = f"/Systems/{machine.id}"
    collections = ("Processors", "Memory", "Storage", "EthernetInterfaces", "LogServices", "Bios")
    doc = resource(me, "#ComputerSystem.v1_20_0.ComputerSystem", machine.id, "Server")
    doc |= {
        "SystemType": "Physical",
        "Manufacturer": machine.hardware.manufacturer,
        "Model": machine.hardware.model,
        "SerialNumber": machine.hardware.serial,
        "PowerState": machine.power,
        "BiosVersion": machine.firmware.get("BIOS", ""),
        **_led(machine),
        "BootProgress": {"LastState": "OSRunning" if machine.booted else "None"},
        "Status": _own_word(machine),
        "ProcessorSummary": {"Status": _rollup(machine, *_PROCESSORS)},
        "MemorySummary": {"Status": _rollup(machine, "memory")},
    }
    doc |= {key: link(f"{me}/{key}") for key in (*collections, virtual_drives.PLACE)}
    doc["Boot"] = {
        "BootSourceOverrideEnabled": machine.boot.enabled,
        "BootSourceOverrideTarget": machine.boot.target,
        "BootSourceOverrideTarget@Redfish.AllowableValues": _BOOT_TARGETS,
        "BootSourceOverrideMode": "UEFI",
        "HttpBootUri": machine.boot.uri,
    }
    doc["Links"] = {
        "Chassis": [link(f"/Chassis/{machine.id}")],
        "ManagedBy": [link(f"/Managers/{machine.id}")],
    }
    mains = {"#OemSystemExtensions.Reset": {"target": f"{ROOT}{me}/Actions/Oem/OemSystemExtensions.Reset"}}
    doc["Actions"] = _reset_action(me, "ComputerSystem.Reset", RESETS) | {"Oem": mains}
    return doc


def _led(machine: Machine) -> Document:
    if machine.quirks.older:
        return {"IndicatorLED": "Lit" if machine.locate else "Off"}
    return {"LocationIndicatorActive": machine.locate}


def _own_word(machine: Machine) -> Document:
    """Health of the system: its own word, and the worst of its parts."""
    rollup = _rollup(machine, *_PROCESSORS, "memory", "drive")
    own = machine.part_faults.get("system")
    return rollup | {"Health": own.health} if own else rollup


def _rollup(machine: Machine, *kinds: str) -> Document:
    """The worst word among the parts of these kinds."""
    slots = {part.slot for part in machine.parts if part.kind in kinds}
    return rolled_up(part_fault.health for slot, part_fault in machine.part_faults.items() if slot in slots)


def _manager(machine: Machine, now: datetime) -> Document:
    me = f"/Managers/{machine.id}"
    return resource(me, "#Manager.v1_19_0.Manager", machine.id, "BMC") | {
        "ManagerType": "BMC",
        "FirmwareVersion": machine.firmware.get("BMC", ""),
        "DateTime": moment(now),
        "LastResetTime": moment(machine.manager_reset_at),
        "Status": {"State": "Enabled", "Health": "OK"},
        "Links": {"ManagerForServers": [link(f"/Systems/{machine.id}")]},
        "Actions": _reset_action(me, "Manager.Reset", ("GracefulRestart", "ForceRestart")),
    }


def _chassis(machine: Machine, _now: datetime) -> Document:
    me = f"/Chassis/{machine.id}"
    newer = () if machine.quirks.older else ("Sensors", "ThermalSubsystem", "PowerSubsystem")
    return resource(me, "#Chassis.v1_25_0.Chassis", machine.id, "Chassis") | {
        "ChassisType": "RackMount",
        "SerialNumber": machine.hardware.serial,
        "Model": machine.hardware.model,
        "PowerState": machine.power,
        "Status": _rollup(machine, "nic"),
        "PhysicalSecurity": {"IntrusionSensor": "HardwareIntrusion" if "cover" in machine.part_faults else "Normal"},
        **{place: link(f"{me}/{place}") for place in (*OLDER, *newer)},
        "NetworkAdapters": link(f"{me}/NetworkAdapters"),
        "Links": {
            "ComputerSystems": [link(f"/Systems/{machine.id}")],
            "ManagedBy": [link(f"/Managers/{machine.id}")],
        },
    }


def _storage(machine: Machine, _now: datetime) -> Document:
    me = f"/Systems/{machine.id}/Storage/1"
    drives = [link(f"{me}/Drives/{part.slot}") for part in machine.parts if part.kind == "drive"]
    return resource(me, "#Storage.v1_15_0.Storage", "1", "NVMe") | {
        "Drives": drives,
        "Status": _rollup(machine, "drive"),
    }


def _bios(machine: Machine, _now: datetime) -> Document:
    me = f"/Systems/{machine.id}/Bios"
    doc = resource(me, "#Bios.v1_2_1.Bios", "Bios", "BIOS settings")
    return doc | {
        "Attributes": dict(machine.bios),
        "@Redfish.Settings": {
            "@odata.type": "#Settings.v1_3_5.Settings",
            "SettingsObject": link(f"{me}/Settings"),
        },
    }


def _bios_settings(machine: Machine, _now: datetime) -> Document:
    doc = resource(f"/Systems/{machine.id}/Bios/Settings", "#Bios.v1_2_1.Bios", "Settings", "Pending settings")
    return doc | {"Attributes": dict(machine.bios_pending)}


def _log_service(machine: Machine, _now: datetime) -> Document:
    me = f"/Systems/{machine.id}/LogServices/SEL"
    doc = resource(me, "#LogService.v1_4_0.LogService", "SEL", "System event log")
    return doc | {"Entries": link(f"{me}/Entries")}


def _parts_of(place: str, name: str, kinds: Iterable[str]) -> _Show:
    wanted = frozenset(kinds)

    def show(machine: Machine, _now: datetime) -> Document:
        slots = [part.slot for part in machine.parts if part.kind in wanted]
        return collection(f"/{place}/{machine.id}/{name}", slots)

    return show


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
    "NetworkAdapters": _parts_of("Chassis", "NetworkAdapters", {"nic"}),
}
_MANAGER: dict[str, _Show] = {"": _manager}
_OLDER_TABLES = {"Systems": _SYSTEM, "Chassis": _CHASSIS | OLDER, "Managers": _MANAGER}
_TABLES = _OLDER_TABLES | {"Chassis": _CHASSIS | OLDER | PLANT}


def _component(schema: str, name: str) -> _ShowMember:
    def show(machine: Machine, slot: str, _now: datetime) -> Document | None:
        part = next((part for part in machine.parts if part.slot == slot), None)
        return _part(machine, part, schema, name) if part else None

    return show


def _part(machine: Machine, part: Part, schema: str, name: str) -> Document:
    doc = resource(name.format(machine=machine.id, slot=part.slot), schema, part.slot, part.slot) | {
        "SerialNumber": part.serial,
        "Model": part.model,
        "Status": status(machine.part_faults.get(part.slot, WELL)),
    }
    link_shown = _pcie(machine, part)
    match part.kind:
        case "gpu" | "cpu" | "dpu":
            doc |= {"SystemInterface": {"InterfaceType": "PCIe", "PCIe": link_shown}} if link_shown else {}
            return doc | {"ProcessorType": _PROCESSORS[part.kind], "FirmwareVersion": part.firmware}
        case "nic":
            shown = {"PCIeInterface": link_shown} if link_shown else {}
            return doc | {"Controllers": [{"FirmwarePackageVersion": part.firmware, **shown}]}
        case "memory" if part.slot in machine.hardware.modules_mib:
            return doc | {"DeviceLocator": part.slot, "CapacityMiB": machine.hardware.modules_mib[part.slot]}
        case "nic_port":
            return doc | {"MACAddress": part.serial, "PermanentMACAddress": part.serial}
        case _:
            return doc | {"Revision": part.firmware, "FirmwareRevision": part.firmware}


def _pcie(machine: Machine, part: Part) -> Document:
    """The PCIe interface of a part, empty where this BMC shows none."""
    if part.slot not in machine.hardware.links:
        return {}
    lanes, kind = machine.hardware.links[part.slot]
    return {"LanesInUse": lanes, "MaxLanes": 16, "PCIeType": kind, "MaxPCIeType": "Gen5"}


def _entry(machine: Machine, member: str, _now: datetime) -> Document | None:
    line = next((line for line in machine.log if str(line.id) == member), None)
    if line is None:
        return None
    me = f"/Systems/{machine.id}/LogServices/SEL/Entries/{member}"
    return resource(me, "#LogEntry.v1_15_0.LogEntry", member, f"Log entry {member}") | {
        "EntryType": "SEL",
        "Created": moment(line.created),
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
    **{("Chassis", place): shown for place, shown in PLANT_MEMBERS.items()},
    ("Chassis", "NetworkAdapters"): _component(
        "#NetworkAdapter.v1_11_0.NetworkAdapter", "/Chassis/{machine}/NetworkAdapters/{slot}"
    ),
}


def _reset_action(path: str, name: str, kinds: Iterable[str]) -> Document:
    target = f"{ROOT}{path}/Actions/{name}"
    return {f"#{name}": {"target": target, "ResetType@Redfish.AllowableValues": list(kinds)}}
