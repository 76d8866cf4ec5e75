"""How BMCs of eleven kinds of machine lay out what they know: systems, chassis, firmware, logs, resets and settings.

Names, places and what is missing follow what is known of each vendor; all values are the emulated machine's own. Each
row is one level of firmware: a real machine may differ.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from hashlib import blake2s
from typing import Literal

from msgspec import Struct

from hostler.core.state.model import Part
from hostler.sim.bmc import bios_shapes
from hostler.sim.bmc.document_pages import BOOTS, Pages, boot_of
from hostler.sim.bmc.emulated_machine import Machine
from hostler.sim.bmc.resource_parts import ROOT, Document, link
from hostler.sim.bmc.virtual_drives import DELL, HPE, LENOVO, NVIDIA, OPENBMC, SUPERMICRO, DriveShape, shown

_FEW = ("On", "ForceOff", "ForceRestart", "GracefulShutdown")
_MOST = ("On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "Nmi", "PowerCycle")


class Vendor(Struct, frozen=True):
    """One row. `system` is the machine's own, `listed` where its types of reset stand.

    `settings`: the end of the path at which boot settings wait, "" where the system takes them itself. `demands`: no
    change without an etag of the present state. `expands`: levels that are inlined; `drops`: what is inlined comes
    without Id, Name and etag. `fetches`: it takes SimpleUpdate; others take firmware by a push of their own only.
    `mains`: where its action stands that takes the mains off and back, and its type of reset; None for none.
    `drives`: its virtual drives, None where none are played. `boots`: boot targets that it takes.
    """

    name: str
    maker: str
    system: str
    managers: tuple[str, ...]
    lay_out: Callable[[Pages, "Vendor"], None]
    baseboard: str = ""
    resets: tuple[str, ...] = _MOST
    listed: Literal["inline", "info", "both"] = "inline"
    settings: str = ""
    etag: str = ""
    demands: bool = False
    expands: int = 1
    drops: bool = False
    fetches: bool = True
    mains: "Mains | None" = None
    drives: DriveShape | None = None
    boots: tuple[str, ...] = BOOTS

    @property
    def drives_at(self) -> str:
        """Path of what has the virtual drives, "" for none."""
        if self.drives is None:
            return ""
        return f"/{self.drives.at}/{self.system if self.drives.at == 'Systems' else self.managers[0]}"


class Mains(Struct, frozen=True):
    """An action that takes the mains off a machine and back: its resource, its name, and the type of reset it takes.

    HPE, Lenovo and Supermicro have it at the system, NVIDIA at the BMC's chassis (libredfish: hpe.rs, lenovo.rs,
    supermicro.rs, and captures of GH200 and GB200 in its tests/mockups).
    """

    resource: str
    action: str
    kind: str

    @property
    def target(self) -> str:
        """Path of the action."""
        return f"{ROOT}{self.resource}/Actions/Oem/{self.action}"

    @property
    def shown(self) -> Document:
        """The action as its resource shows it."""
        return {"Oem": {f"#{self.action.rpartition('/')[2]}": {"target": self.target}}}


def documents(machine: Machine, vendor: Vendor, now: datetime) -> dict[str, Document]:
    """All resources of the machine as this vendor's BMC shows them, by path behind /redfish/v1."""
    pages = Pages(machine, now)
    vendor.lay_out(pages, vendor)
    systems = [one for one in (vendor.system, vendor.baseboard) if one]
    pages.listing("/Systems", sorted(systems))
    pages.listing("/Managers", vendor.managers)
    places = ("Systems", "Chassis", "Managers", "UpdateService")
    root: Document = {"Vendor": vendor.maker, "RedfishVersion": "1.15.0"}
    levels = {"NoLinks": True, "Levels": True, "MaxLevels": vendor.expands} if vendor.expands else {"NoLinks": False}
    root |= {"ProtocolFeaturesSupported": {"ExpandQuery": levels}, "Tasks": link("/TaskService")}
    pages.add("/UpdateService", _updates(vendor))
    for path, doc in bios_shapes.jobs(machine).items():
        pages.add(path, doc)
        manager, _, _ = path.partition("/Jobs")
        pages.docs[manager]["Links"] = {"Oem": {"Dell": {"Jobs": link(f"{manager}/Jobs")}}}
    if vendor.drives is not None:
        pages.docs |= shown(machine, vendor.drives, vendor.drives_at)
        pages.docs[vendor.drives_at]["VirtualMedia"] = link(f"{vendor.drives_at}/VirtualMedia")
    if vendor.etag:
        pages.etags(vendor.etag)
    pages.docs[""] = root | {"@odata.id": f"{ROOT}/", "Id": "RootService"} | {one: link(f"/{one}") for one in places}
    return pages.docs


def _updates(vendor: Vendor) -> Document:
    if not vendor.fetches:
        pushed = {"MultipartHttpPushUri": f"{ROOT}/UpdateService/update-multipart"}
        return {"FirmwareInventory": link("/UpdateService/FirmwareInventory"), **pushed}
    target = f"{ROOT}/UpdateService/Actions/UpdateService.SimpleUpdate"
    actions = {"#UpdateService.SimpleUpdate": {"target": target}}
    return {"FirmwareInventory": link("/UpdateService/FirmwareInventory"), "Actions": actions}


# what most have in common


def _system(pages: Pages, vendor: Vendor, body: Mapping[str, object]) -> str:
    """The machine's own system, with a BIOS, types of reset and perhaps a settings object."""
    machine, me = pages.machine, f"/Systems/{vendor.system}"
    reset: Document = {"target": f"{ROOT}{me}/Actions/ComputerSystem.Reset"}
    if vendor.listed != "info":
        reset["ResetType@Redfish.AllowableValues"] = list(vendor.resets)
    if vendor.listed != "inline":
        allowed = {"Name": "ResetType", "DataType": "String", "AllowableValues": list(vendor.resets)}
        reset["@Redfish.ActionInfo"] = ROOT + pages.add(f"{me}/ResetActionInfo", {"Parameters": [allowed]})
    health = machine.part_faults["system"].health if "system" in machine.part_faults else "OK"
    shown: Document = {
        "SystemType": "Physical",
        "SerialNumber": machine.hardware.serial,
        "Model": machine.hardware.model,
        "PowerState": machine.power,
        "BiosVersion": machine.firmware.get("BIOS", ""),
        "LocationIndicatorActive": machine.locate,
        "Status": {"State": "Enabled", "Health": health},
        "Boot": boot_of(machine, vendor.drives, vendor.boots),
        "Actions": {"#ComputerSystem.Reset": reset, **_mains(vendor, me)},
        "Bios": link(f"{me}/Bios"),
        "Links": {"ManagedBy": [link(f"/Managers/{vendor.managers[0]}")]},
    }
    for path, doc in bios_shapes.documents(machine, f"{me}/Bios").items():
        pages.add(path, doc)
    if vendor.settings:
        shown["@Redfish.Settings"] = {"SettingsObject": link(f"{me}/{vendor.settings}")}
        pages.add(f"{me}/{vendor.settings}", {"Boot": boot_of(machine, vendor.drives, vendor.boots)})
        boot: Document = {"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None"}
        shown["Boot"] = boot
    return pages.add(me, shown | dict(body))


def _mains(vendor: Vendor, resource: str) -> Document:
    """The action for the mains, where it is this resource's."""
    return vendor.mains.shown if vendor.mains is not None and vendor.mains.resource == resource else {}


def _managers(pages: Pages, vendor: Vendor, logs: Document | None = None) -> None:
    """The managers; the first is the BMC and may keep the log."""
    for number, name in enumerate(vendor.managers):
        me = f"/Managers/{name}"
        body: Document = {
            "FirmwareVersion": pages.machine.firmware.get("BMC", ""),
            "LastResetTime": pages.machine.manager_reset_at.isoformat(timespec="seconds"),
            "Status": {"State": "Enabled", "Health": "OK"},
            "Actions": {
                "#Manager.Reset": {
                    "target": f"{ROOT}{me}/Actions/Manager.Reset",
                    "ResetType@Redfish.AllowableValues": ["GracefulRestart", "ForceRestart"],
                }
            },
        }
        pages.add(me, body | ({"LogServices": logs} if logs and number == 0 else {}))


def _firmware(pages: Pages, named: Callable[[str, str], str], related: Callable[[str], str]) -> None:
    """The firmware inventory: what runs, and what waits for the next start; `related` is a path or ""."""
    members = []
    for component, version in pages.machine.firmware.items():
        writing = any(t.component == component and t.state == "Running" for t in pages.machine.tasks.values())
        body: Document = {"Version": version, "Updateable": True}
        body["Status"] = {"State": "Updating" if writing else "Enabled"}
        body |= {"RelatedItem": [link(related(component))]} if related(component) else {}
        members.append(named(component, version))
        pages.add(f"/UpdateService/FirmwareInventory/{members[-1]}", body, component)
    for component, version in pages.machine.firmware_staged.items():
        members.append(f"{component}_staged")
        body = {"Version": version, "Status": {"State": "StandbySpare"}}
        pages.add(f"/UpdateService/FirmwareInventory/{members[-1]}", body, component)
    pages.listing("/UpdateService/FirmwareInventory", members)


def _chassis(pages: Pages, name: str, body: Mapping[str, object]) -> str:
    known: Document = {"ChassisType": "Component", "Status": {"State": "Enabled", "Health": "OK"}}
    return pages.add(f"/Chassis/{name}", known | dict(body))


def _carriers(pages: Pages, named: Mapping[str, Part], *, mute: bool = False) -> list[str]:
    """A chassis for each part, with the sensors that are named for it; `mute`: none of them, though a list is there."""
    for name, part in named.items():
        me, prefix = f"/Chassis/{name}", f"{part.slot}_"
        sensors = [] if mute else [one for one in pages.machine.sensors if one.startswith(prefix)]
        body = pages.facts_of(part) | {"Sensors": pages.sensors(me, sensors)}
        _chassis(pages, name, body)
    return list(named)


def _others(pages: Pages, *kinds: str) -> list[str]:
    """Sensors that are of no part of these kinds."""
    prefixes = tuple(f"{part.slot}_" for kind in kinds for part in pages.parts(kind))
    return [name for name in pages.machine.sensors if not name.startswith(prefixes)]


def _plain_name(component: str, _version: str) -> str:
    return component


def _numbered(parts: Iterable[Part], form: str, first: int = 0) -> dict[str, Part]:
    return {form.format(number): part for number, part in enumerate(parts, first)}


# the rows


def _dell(pages: Pages, vendor: Vendor) -> None:
    me, place = f"/Systems/{vendor.system}", f"/Chassis/{vendor.system}"
    chassis = {"Chassis": [link(place)], "ManagedBy": [link(f"/Managers/{vendor.managers[0]}")]}
    named = _numbered(pages.parts("cpu"), "CPU.Socket.{}", 1) | _numbered(pages.parts("gpu"), "Video.Slot.{}-1", 31)
    lists = {"Processors": pages.processors(me, named), "Memory": pages.memory(me), "Storage": pages.drives(me)}
    _system(pages, vendor, {"SKU": pages.machine.hardware.serial, "Links": chassis, **lists})
    opened = "HardwareIntrusion" if "cover" in pages.machine.part_faults else "Normal"
    body = {"SerialNumber": f"CN{pages.machine.hardware.serial}", "PhysicalSecurity": {"IntrusionSensor": opened}}
    body |= {"Sensors": pages.sensors(place, pages.machine.sensors), "PowerSubsystem": pages.supplies(place)}
    _chassis(pages, vendor.system, body | {"NetworkAdapters": pages.adapters(place, pages.parts("nic"))})
    pages.listing("/Chassis", [vendor.system])
    _managers(pages, vendor, pages.log(f"/Managers/{vendor.managers[0]}", "Sel", "FaultList", "Lclog"))
    _firmware(pages, lambda component, version: f"Installed-159-{version}__{component}", lambda _: "")


def _hpe(pages: Pages, vendor: Vendor) -> None:
    me, place = f"/Systems/{vendor.system}", "/Chassis/1"
    links = {"Chassis": [link(place)], "ManagedBy": [link("/Managers/1")]}
    named = _numbered(pages.parts("cpu"), "{}", 1) | _numbered(pages.parts("gpu"), "GPU{}", 1)
    lists = {"Processors": pages.processors(me, named), "Memory": pages.memory(me), "Storage": pages.drives(me)}
    _system(pages, vendor, {"Links": links, "LogServices": pages.log(me, "IML", "SL"), **lists})
    serial: Document = {"SerialNumber": pages.machine.hardware.serial}
    adapters = {"NetworkAdapters": pages.adapters(place, pages.parts("nic"))}
    _chassis(pages, "1", serial | pages.older(place) | adapters)
    pages.listing("/Chassis", ["1"])
    _managers(pages, vendor, pages.log("/Managers/1", "", "IEL"))
    numbers = {component: str(number) for number, component in enumerate(pages.machine.firmware, 1)}
    _firmware(pages, lambda component, _: numbers[component], lambda _: "")


def _lenovo(pages: Pages, vendor: Vendor) -> None:
    me, place = f"/Systems/{vendor.system}", "/Chassis/1"
    blank = [Part("", part.kind, "", part.slot) for part in pages.parts("gpu")]
    named = _numbered(pages.parts("cpu"), "CPU{}", 1) | _numbered(blank, "GPU{}", 1)
    links = {"Chassis": [link(place)], "ManagedBy": [link("/Managers/1")]}
    lists = {"Processors": pages.processors(me, named), "Memory": pages.memory(me), "Storage": pages.drives(me)}
    _system(pages, vendor, {"Links": links, "LogServices": pages.log(me, "", "SEL", "AuditLog"), **lists})
    body = {"SerialNumber": pages.machine.hardware.serial, "Sensors": pages.sensors(place, pages.machine.sensors)}
    body |= {"PowerSubsystem": pages.supplies(place), "NetworkAdapters": pages.adapters(place, pages.parts("nic"))}
    _chassis(pages, "1", body)
    pages.listing("/Chassis", ["1"])
    _managers(pages, vendor, pages.log("/Managers/1", "PlatformLog", "AuditLog"))
    _firmware(pages, _plain_name, lambda component: me if component == "BIOS" else "")


def _supermicro(pages: Pages, vendor: Vendor) -> None:
    """GPUs are PCIe devices of the chassis; what firmware is related to lies under the system."""
    me, place = f"/Systems/{vendor.system}", "/Chassis/1"
    links = {"Chassis": [link(place)], "ManagedBy": [link("/Managers/1")]}
    named = _numbered(pages.parts("cpu"), "{}", 1)
    lists = {"Processors": pages.processors(me, named), "Memory": pages.memory(me), "Storage": pages.drives(me)}
    _system(pages, vendor, {"Links": links, "LogServices": pages.log(me, "Log1"), **lists})
    gpus = _numbered(pages.parts("gpu"), "GPU{}", 1)
    for name, part in gpus.items():
        body = pages.facts_of(part) | {"FirmwareVersion": part.firmware, "Manufacturer": "NVIDIA"}
        pages.add(f"{place}/PCIeDevices/{name}", body)
    devices = {"PCIeDevices": pages.listing(f"{place}/PCIeDevices", gpus)}
    adapters = {"NetworkAdapters": pages.adapters(place, pages.parts("nic"))}
    serial: Document = {"SerialNumber": pages.machine.hardware.serial}
    _chassis(pages, "1", serial | pages.older(place) | devices | adapters)
    _chassis(pages, "UBB_1", {"SerialNumber": "N/A"})
    pages.listing("/Chassis", ["1", "UBB_1"])
    _managers(pages, vendor)
    under = {"BIOS": f"{me}/Bios", "GPU": f"{me}/Processors/GPU1", "BMC": "/Managers/1"}
    _firmware(pages, _plain_name, lambda component: under.get(component, me))


def _two_systems(pages: Pages, vendor: Vendor, gpus: Mapping[str, Part], lists: Mapping[str, object]) -> None:
    """A host, and a baseboard without BIOS, resets or boot; neither names its chassis."""
    _system(pages, vendor, {"Links": {"ManagedBy": [link(f"/Managers/{vendor.managers[0]}")]}, **lists})
    board = f"/Systems/{vendor.baseboard}"
    body: Document = {"SystemType": "Physical", "Status": {"State": "Enabled", "Health": "OK"}}
    body["Links"] = {"ManagedBy": [link(f"/Managers/{vendor.managers[1]}")]}
    pages.add(board, body | {"SerialNumber": "000000000000", "Processors": pages.processors(board, gpus)})


def _dgx(pages: Pages, vendor: Vendor) -> None:
    me, main = f"/Systems/{vendor.system}", "/Chassis/DGX"
    gpus = pages.parts("gpu")
    cpus = pages.processors(me, _numbered(pages.parts("cpu"), "CPU{}"))
    lists = {"Processors": cpus, "Memory": pages.memory(me), "Storage": pages.drives(me)}
    _two_systems(pages, vendor, _numbered(gpus, "GPU_SXM_{}", 1), lists)
    carriers = _carriers(pages, _numbered(gpus, "HGX_GPU_SXM_{}", 1))
    body: Document = {"SerialNumber": pages.machine.hardware.serial, "PowerSubsystem": pages.supplies(main)}
    body |= {"Sensors": pages.sensors(main, _others(pages, "gpu"))}
    _chassis(pages, "DGX", body | {"NetworkAdapters": pages.adapters(main, pages.parts("nic"))})
    _chassis(pages, "Midplane", {"SerialNumber": pages.machine.hardware.serial})
    _chassis(pages, "HGX_Chassis_0", {"SerialNumber": "000000000000"})
    _chassis(pages, "HGX_ERoT_BMC_0", {"SerialNumber": "0x11AA22BB33CC44DD"})
    pages.listing("/Chassis", ["DGX", "HGX_Chassis_0", "HGX_ERoT_BMC_0", "Midplane", *carriers])
    _managers(pages, vendor, pages.log("/Managers/BMC", "SEL"))
    under = {"GPU": "/Systems/HGX_Baseboard_0/Processors/GPU_SXM_1", "BIOS": f"{me}/Bios"}
    _firmware(pages, _plain_name, lambda component: under.get(component, ""))


def _grace(pages: Pages, vendor: Vendor, gpus: Mapping[str, Part], carriers: list[str], *more: str) -> None:
    """Layout shared by GH200, GB200 and GB300: logs and memory of the host, fans and leaks in Chassis_0."""
    me, main = f"/Systems/{vendor.system}", "/Chassis/Chassis_0"
    cpus = pages.processors(me, _numbered(pages.parts("cpu"), "CPU_{}"))
    log = pages.log(me, "EventLog", "SEL")
    lists = {"Processors": cpus, "Memory": pages.memory(me), "Storage": pages.drives(me), "LogServices": log}
    _two_systems(pages, vendor, gpus, lists)
    body: Document = {"SerialNumber": pages.machine.hardware.serial, "ThermalSubsystem": pages.leaks(main)}
    _chassis(pages, "Chassis_0", body | {"Sensors": pages.sensors(main, _others(pages, "gpu", "cpu"))})
    bmc = [_chassis(pages, "BMC_0", {"Actions": _mains(vendor, "/Chassis/BMC_0")})] if vendor.mains else []
    pages.listing("/Chassis", ["Chassis_0", *("BMC_0" for _ in bmc), *more, *carriers])
    _managers(pages, vendor)
    under = {"GPU": f"/Systems/{vendor.baseboard}/Processors/GPU_0", "BIOS": me}
    _firmware(pages, lambda c, _: "UEFI" if c == "BIOS" else f"HGX_FW_{c}_0", lambda c: under.get(c, ""))


def _gh200(pages: Pages, vendor: Vendor) -> None:
    """A GPU shows the number of the module that it is on; there are no network adapters."""
    gpus = pages.parts("gpu")
    carriers = _carriers(pages, _numbered(gpus, "HGX_GPU_{}") | _numbered(pages.parts("cpu"), "HGX_CPU_{}"))
    modules = [f"HGX_ProcessorModule_{number}" for number, _ in enumerate(gpus)]
    for module, gpu in zip(modules, gpus, strict=True):
        _chassis(pages, module, {"SerialNumber": gpu.serial})
    _grace(pages, vendor, _numbered(gpus, "GPU_{}"), carriers, *modules)


def _gb200(pages: Pages, vendor: Vendor) -> None:
    """GPUs show no number of their own and no sensors; drives that are not there have some."""
    gpus = [Part("", part.kind, part.model, part.slot) for part in pages.parts("gpu")]
    cards = _numbered(pages.parts("nic"), "Riser_Slot{}_BlueField_3_Card", 1)
    named = _numbered(pages.parts("cpu"), "HGX_CPU_{}")
    carriers = [*_carriers(pages, _numbered(gpus, "HGX_GPU_{}"), mute=True), *_carriers(pages, named)]
    for name, part in cards.items():
        me = f"/Chassis/{name}"
        _chassis(pages, name, {"SerialNumber": part.serial, "NetworkAdapters": pages.adapters(me, [part])})
    _chassis(pages, "HGX_Chassis_0", {"SerialNumber": "N/A"})
    gone = pages.add("/Chassis/PDB_0/Sensors/NVMe_9_Temp", {"Reading": None, "Status": {"State": "Absent"}})
    sensors = pages.sensors("/Chassis/PDB_0", [one for one in pages.machine.sensors if one.startswith("gpu")])
    pages.docs["/Chassis/PDB_0/Sensors"]["Members"] = [*_members(pages, "/Chassis/PDB_0/Sensors"), link(gone)]
    _chassis(pages, "PDB_0", {"SerialNumber": f"P{pages.machine.hardware.serial}", "Sensors": sensors})
    _grace(pages, vendor, _numbered(gpus, "GPU_{}"), carriers, "HGX_Chassis_0", "PDB_0", *cards)


def _members(pages: Pages, path: str) -> list[object]:
    held = pages.docs[path]["Members"]
    return list(held) if isinstance(held, list) else []


def _gb300(pages: Pages, vendor: Vendor) -> None:
    """Two GPUs of a board show one number; models are blanks, numbers are padded."""
    pairs = [
        Part(f"B{pages.machine.hardware.serial}-{number // 2}", part.kind, " ", part.slot)
        for number, part in enumerate(pages.parts("gpu"))
    ]
    carriers = _carriers(pages, _numbered(pairs, "HGX_GPU_{}") | _numbered(pages.parts("cpu"), "HGX_CPU_{}"))
    for number, part in enumerate(pages.parts("nic")):
        me = f"/Chassis/IO_Board_{number}"
        padded = Part(f"  {part.serial}   ", part.kind, part.model, part.slot, part.firmware)
        _chassis(pages, f"IO_Board_{number}", {"NetworkAdapters": pages.adapters(me, [padded])})
    boards = [f"IO_Board_{number}" for number, _ in enumerate(pages.parts("nic"))]
    _grace(pages, vendor, _numbered(pairs, "GPU_{}"), carriers, *boards)


def _bluefield(pages: Pages, vendor: Vendor) -> None:
    me, place = f"/Systems/{vendor.system}", "/Chassis/Card1"
    dpu = Part(f"{pages.machine.hardware.serial}   ", "dpu", "BlueField-3", "dpu0")
    lists = {"Processors": pages.processors(me, {"CPU_0": dpu}), "LogServices": pages.log(me, "SEL")}
    _system(pages, vendor, {"UUID": "", "SerialNumber": dpu.serial, **lists})
    pages.docs[f"{me}/Memory"] = {"@odata.id": f"{ROOT}{me}/Memory", "Members": None, "Members@odata.count": 0}
    _chassis(pages, "Card1", {"SerialNumber": dpu.serial} | pages.older(place))
    _chassis(pages, "Bluefield_ERoT", {"SerialNumber": ""})
    pages.listing("/Chassis", ["Bluefield_ERoT", "Card1"])
    _managers(pages, vendor)
    _firmware(pages, lambda component, _: f"DPU_{component}", lambda _: "")


def _nvswitch(pages: Pages, vendor: Vendor) -> None:
    """Two switches show one number; the CPLD's is a placeholder, and the leak detectors are the BMC's."""
    _system(pages, vendor, {"LogServices": pages.log(f"/Systems/{vendor.system}", "SEL", "EventLog")})
    serial = f"S{pages.machine.hardware.serial}"
    switches = _numbered([Part(serial, "nvswitch", "NVSwitch", f"switch{n}") for n in range(2)], "MGX_NVSwitch_{}")
    carriers = _carriers(pages, switches)
    main = "/Chassis/MGX_BMC_0"
    body: Document = {"SerialNumber": pages.machine.hardware.serial, "ThermalSubsystem": pages.leaks(main)}
    _chassis(pages, "MGX_BMC_0", body | {"Sensors": pages.sensors(main, pages.machine.sensors)})
    _chassis(pages, "CPLD_0", {"SerialNumber": "To be filled by O.E.M."})
    _chassis(pages, "MGX_ERoT_BMC_0", {"SerialNumber": ""})
    pages.listing("/Chassis", ["CPLD_0", "MGX_BMC_0", "MGX_ERoT_BMC_0", *carriers])
    _managers(pages, vendor)
    _firmware(pages, lambda component, _: f"MGX_FW_{component}_0", lambda _: "")


SOFTWARE = "Software Inventory"
"""The name that OpenBMC's bmcweb gives every entry of its firmware inventory (`update_service.hpp`)."""
_PURPOSES = {"BMC": ("BMC image", "/Managers/bmc"), "BIOS": ("Host image", "/Systems/system/Bios")}


def software_id(component: str, version: str) -> str:
    """The Id of an image in an OpenBMC's inventory: of the BMC's and the host's it is made of the version."""
    made = blake2s(f"{component} {version}".encode(), digest_size=4).hexdigest()
    return made if component in _PURPOSES else component


def _openbmc(pages: Pages, vendor: Vendor) -> None:
    """Names are lower case; images are told apart by their description alone, and a new version has a new Id."""
    me, place, machine = f"/Systems/{vendor.system}", "/Chassis/chassis", pages.machine
    links = {"Chassis": [link(place)], "ManagedBy": [link("/Managers/bmc")]}
    cpus = pages.processors(me, _numbered(pages.parts("cpu"), "cpu{}") | _numbered(pages.parts("gpu"), "gpu{}"))
    lists = {"Processors": cpus, "Memory": pages.memory(me), "Storage": pages.drives(me)}
    _system(pages, vendor, {"Links": links, "LogServices": pages.log(me, "EventLog", "PostCodes"), **lists})
    body: Document = {"SerialNumber": machine.hardware.serial, "PowerSubsystem": pages.supplies(place)}
    body |= {"Sensors": pages.sensors(place, machine.sensors)}
    _chassis(pages, "chassis", body | {"NetworkAdapters": pages.adapters(place, pages.parts("nic"))})
    pages.listing("/Chassis", ["chassis"])
    _managers(pages, vendor)
    inventory, runs = "/UpdateService/FirmwareInventory", machine.firmware.items()
    writing = [task for task in machine.tasks.values() if task.state == "Running" and task.version]
    images = [(task.component, task.version, "Updating") for task in writing]
    images += [(name, version, "Enabled") for name, version in runs]
    images += [(name, version, "StandbySpare") for name, version in machine.firmware_staged.items()]
    for name, version, state in images:
        described, related = _PURPOSES.get(name, ("Other image", ""))
        shown: Document = {"Version": version, "Updateable": True, "Description": described}
        shown["Status"] = {"State": state, "HealthRollup": "OK"}
        shown |= {"RelatedItem": [link(related)]} if related else {}
        pages.add(f"{inventory}/{_image(name, version, state)}", shown, SOFTWARE)
    pages.listing(inventory, [_image(*one) for one in images])


def _image(name: str, version: str, state: str) -> str:
    known = software_id(name, version)
    return f"{known}_pending" if known == name and state != "Enabled" else known  # one image, in two places


_HGX = "HGX_Baseboard_0"
_BOTH = ("BMC_0", "HGX_BMC_0")
_AUX = Mains("/Chassis/BMC_0", "NvidiaChassis.AuxPowerReset", "AuxPowerCycle")
_HPE_RESETS = ("On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "PushPowerButton", "GracefulRestart")
_OPENBMC_RESETS = (*_MOST, "ForceOn")
VENDORS: dict[str, Vendor] = {
    vendor.name: vendor
    for vendor in (
        Vendor("dell", "Dell", "System.Embedded.1", ("iDRAC.Embedded.1",), _dell, drives=DELL),
        Vendor(
            "hpe",
            "HPE",
            "1",
            ("1",),
            _hpe,
            resets=_HPE_RESETS,
            etag="weak",
            expands=0,
            mains=Mains("/Systems/1", "Hpe/HpeComputerSystemExt.SystemReset", "AuxCycle"),
            drives=HPE,
        ),
        Vendor(
            "lenovo",
            "Lenovo",
            "1",
            ("1",),
            _lenovo,
            listed="both",
            settings="Pending",
            etag="strong",
            mains=Mains("/Systems/1", "LenovoComputerSystem.SystemReset", "ACPowerCycle"),
            drives=LENOVO,
        ),
        Vendor(
            "supermicro",
            "",
            "1",
            ("1",),
            _supermicro,
            listed="info",
            etag="strong",
            demands=True,
            mains=Mains("/Systems/1", "OemSystemExtensions.Reset", "ACCycle"),
            drives=SUPERMICRO,
        ),
        Vendor(
            "dgx_h100",
            "AMI",
            "DGX",
            ("BMC", "HGX_BMC_0", "HGX_FabricManager_0"),
            _dgx,
            baseboard=_HGX,
            resets=_FEW,
            listed="info",
            settings="SD",
            etag="weak",
            demands=True,
            drops=True,
        ),
        Vendor(
            "gh200",
            "NVIDIA",
            "System_0",
            _BOTH,
            _gh200,
            baseboard=_HGX,
            listed="info",
            settings="Settings",
            etag="strong",
            fetches=False,
            mains=_AUX,
        ),
        Vendor(
            "gb200",
            "NVIDIA",
            "System_0",
            _BOTH,
            _gb200,
            baseboard=_HGX,
            listed="info",
            settings="Settings",
            etag="strong",
            expands=6,
            fetches=False,
            mains=_AUX,
            drives=NVIDIA,
        ),
        Vendor(
            "gb300",
            "AMI",
            "System_0",
            _BOTH,
            _gb300,
            baseboard=_HGX,
            listed="info",
            etag="none",
            drops=True,
            drives=NVIDIA,
        ),
        Vendor("bluefield3", "Nvidia", "Bluefield", ("Bluefield_BMC",), _bluefield, listed="info", settings="Settings"),
        Vendor("nvswitch", "NVIDIA", "System_0", ("BMC_0",), _nvswitch, listed="info", expands=0, fetches=False),
        Vendor(
            "openbmc",
            "OpenBMC",
            "system",
            ("bmc",),
            _openbmc,
            resets=_OPENBMC_RESETS,
            listed="info",
            expands=6,
            fetches=False,
            boots=("None", "Pxe", "Hdd"),
            drives=OPENBMC,
        ),
    )
}
"""Name → how its BMC shows a machine."""
