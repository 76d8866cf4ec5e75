"""Redfish JSON → our nouns, pure. Names and meanings are those of DMTF's schema bundle 2024.4 (DSP8010)."""

import re
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.diagnose.serials import HOLDS_OTHERS, meaningful
from hostler.core.state.model import Facts, Part
from hostler.drivers.redfish.tolerant_json import (
    Document,
    WireError,
    child,
    document,
    link,
    links,
    name_of,
    number,
    objects,
    printable,
    strings,
    text,
    truth,
    word_of,
    worst,
)

_POWER = {
    "on": "on",
    "off": "off",
    "poweringon": "powering_on",
    "poweringoff": "powering_off",
    "paused": "paused",
}
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
_TASK_RUNNING = {"new", "starting", "running", "pending", "stopping", "suspended", "service", "cancelling"}
_TASK_FAILED = {"exception", "killed", "cancelled", "interrupted"}
_CARRIED = re.compile(r"(?:[HM]GX_)?(gpu|cpu|nvswitch)(?:_sxm)?_?\d{1,3}", re.IGNORECASE)
"""Names of chassis that are one part: HGX_GPU_SXM_3, HGX_CPU_0, MGX_NVSwitch_1; never HGX_ERoT_GPU_SXM_3."""
_GPU_DEVICE = re.compile(r"gpu[_-]?\d{1,3}", re.IGNORECASE)
_BASEBOARD = re.compile(r"[hm]gx_baseboard_\d{1,2}", re.IGNORECASE)
_COMPONENT = re.compile(r"(installed|current|previous|available|rollback)-[^_]*__(.+)", re.IGNORECASE)
"""Dell's names of firmware: whether it runs, its version, and what it is."""
_SUMMARIES = (("Status",), ("ProcessorSummary", "Status"), ("MemorySummary", "Status"))
_PROCESSORS = {"gpu": "gpu", "cpu": "cpu", "dpu": "dpu", "accelerator": "accelerator", "fpga": "fpga"}


class ServiceRoot(Struct, frozen=True):
    """Links to a BMC's collections, as it wrote them.

    `expand` is the query that inlines members, or ""; `levels` is how deep it inlines.
    """

    systems: str
    chassis: str = ""
    managers: str = ""
    update: str = ""
    tasks: str = ""
    version: str = ""
    expand: str = ""
    levels: int = 0


class BootOverride(Struct, frozen=True):
    """The boot override: `enabled` is Once, Continuous, Disabled or ""; `targets` are those the BMC allows."""

    enabled: str = ""
    target: str = ""
    targets: tuple[str, ...] = ()


class System(Struct, frozen=True):
    """One server as its BMC shows it. `power` is on, off, powering_on, powering_off, paused or "" (not shown).

    `locate` is None where it has no such light. `led` is the name of the property that drives it. `health` is the worst
    word of the system and of what it sums up (processors, memory), "" where it says none. `reset_info` is where the
    types of reset are listed, `settings` where changes wait for the next start, "" where there is no such thing.
    """

    path: str
    id: str = ""
    serial: str = ""
    uuid: str = ""
    manufacturer: str = ""
    model: str = ""
    bios: str = ""
    power: str = ""
    boot: BootOverride = BootOverride()
    reset_target: str = ""
    resets: tuple[str, ...] = ()
    reset_info: str = ""
    settings: str = ""
    locate: bool | None = None
    led: str = ""
    etag: str = ""
    health: str = ""
    chassis: tuple[str, ...] = ()
    managers: tuple[str, ...] = ()
    collections: dict[str, str] = {}

    @property
    def unread(self) -> bool:
        """Whether nothing is known of it but where it is."""
        return not (self.collections or self.reset_target or self.power or self.serial)

    @property
    def identity(self) -> str:
        """Identity of the machine: its serial number; its UUID only where it shows no serial number at all."""
        return self.serial or self.uuid


class FirmwareComponent(Struct, frozen=True):
    """One entry of the firmware inventory. `staged` versions are written but not running yet.

    `systems` are the systems it belongs to as linked by the BMC, empty where it does not say.
    """

    name: str
    version: str
    path: str
    staged: bool = False
    updating: bool = False
    systems: tuple[str, ...] = ()


class UpdateService(Struct, frozen=True):
    """Links to the firmware inventory and to where updates are asked for, "" where there is none."""

    inventory: str = ""
    simple_update: str = ""


class BmcTask(Struct, frozen=True):
    """A BMC's own account of long work: `state` is running, done, failed or "" (unreadable). Trust versions more.

    `targets` are the links of what is updated, empty where it does not say.
    """

    path: str
    state: str
    detail: str = ""
    percent: float | None = None
    targets: tuple[str, ...] = ()


class SensorValue(Struct, frozen=True):
    """One sensor value; `name` ends in its unit ("gpu0_temp_c")."""

    name: str
    value: float | str


class LogEntry(Struct, frozen=True):
    """One line of the system event log; `created` is the BMC's clock, for display only."""

    id: str
    created: str
    severity: str
    message: str
    sensor: str = ""


class Manager(Struct, frozen=True):
    """The BMC itself. `last_reset` is its own clock's moment of its last restart, "" where it does not say."""

    path: str
    reset_target: str = ""
    resets: tuple[str, ...] = ()
    reset_info: str = ""
    firmware: str = ""
    last_reset: str = ""
    logs: str = ""


def service_root(raw: bytes) -> ServiceRoot:
    """Raises WireError where there is no link to Systems: then nothing can be done with it."""
    doc = document(raw, "service root")
    systems = link(doc, "Systems")
    if not systems:
        raise WireError("the BMC's service root has no link to Systems; is this a Redfish service, and is it up?")
    expands = child(doc, "ProtocolFeaturesSupported", "ExpandQuery")
    offered = bool(truth(expands, "NoLinks") and truth(expands, "Levels"))
    return ServiceRoot(
        systems=systems,
        chassis=link(doc, "Chassis"),
        managers=link(doc, "Managers"),
        update=link(doc, "UpdateService"),
        tasks=link(doc, "Tasks"),
        version=text(doc, "RedfishVersion"),
        expand="$expand=.($levels=1)" if offered else "",
        levels=int(number(expands, "MaxLevels") or 1) if offered else 0,
    )


def members(raw: bytes) -> tuple[tuple[Document, ...], str]:
    """The members of a collection page (links or whole objects), and the link to the next page or ""."""
    doc = document(raw, "collection")
    following = doc.get("Members@odata.nextLink")
    return tuple(objects(doc, "Members")), following if isinstance(following, str) else ""


def system(raw: bytes, path: str) -> System:
    """One server, read at `path`."""
    doc = document(raw, "system")
    reset = child(doc, "Actions", "#ComputerSystem.Reset")
    led, locate = _locate(doc)
    return System(
        path=path,
        id=text(doc, "Id") or path.rstrip("/").rpartition("/")[2],
        serial=meaningful(text(doc, "SerialNumber")),
        uuid=meaningful(text(doc, "UUID")),
        manufacturer=text(doc, "Manufacturer"),
        model=text(doc, "Model"),
        bios=text(doc, "BiosVersion"),
        power=power_state(doc),
        boot=_boot(child(doc, "Boot")),
        reset_target=_target(reset),
        resets=strings(reset, "ResetType@Redfish.AllowableValues"),
        reset_info=_info(reset),
        settings=link(child(doc, "@Redfish.Settings"), "SettingsObject"),
        locate=locate,
        led=led,
        etag=text(doc, "@odata.etag"),
        health=worst(*(word_of(child(doc, *path)) for path in _SUMMARIES)),
        chassis=links(child(doc, "Links"), "Chassis"),
        managers=links(child(doc, "Links"), "ManagedBy"),
        collections={
            key: found
            for key in (
                "Processors",
                "Memory",
                "Storage",
                "NetworkInterfaces",
                "EthernetInterfaces",
                "LogServices",
                "Bios",
            )
            if (found := link(doc, key))
        },
    )


def hosts(systems: Iterable[System]) -> tuple[System, ...]:
    """Keep systems that are machines of their own: a baseboard of GPUs has no BIOS, and cannot be switched.

    Where none shows a BIOS, those that can be switched; where none of these either, all. One that could not be read may
    be a machine, unless it is named for a baseboard.
    """
    listed = tuple(systems)
    unknown = {system.path for system in listed if system.unread and not _BASEBOARD.fullmatch(system.id)}
    with_bios = {system.path for system in listed if "Bios" in system.collections}
    switched = {system.path for system in listed if system.reset_target}
    machines = with_bios or switched
    return tuple(system for system in listed if system.path in machines | unknown) if machines else listed


def unread(path: str) -> System:
    """A system of which nothing is known but where it is."""
    return System(path, id=path.rstrip("/").rpartition("/")[2])


def boot_of(doc: Document) -> BootOverride:
    """The boot override that a system or its settings object shows."""
    return _boot(child(doc, "Boot"))


def reset_types(raw: bytes) -> tuple[str, ...]:
    """The types of reset that an ActionInfo lists."""
    parameters = objects(document(raw, "action info"), "Parameters")
    found = (strings(one, "AllowableValues") for one in parameters if text(one, "Name") == "ResetType")
    return next(found, ())


def power_state(doc: Document) -> str:
    """on, off, powering_on, powering_off, paused; "" for anything else, which is unknown and never off."""
    return _POWER.get(text(doc, "PowerState").lower(), "")


def manager(raw: bytes, path: str) -> Manager:
    """The BMC itself, read at `path`."""
    doc = document(raw, "manager")
    reset = child(doc, "Actions", "#Manager.Reset")
    return Manager(
        path=path,
        reset_target=_target(reset),
        resets=strings(reset, "ResetType@Redfish.AllowableValues"),
        reset_info=_info(reset),
        firmware=text(doc, "FirmwareVersion"),
        last_reset=text(doc, "LastResetTime"),
        logs=link(doc, "LogServices"),
    )


def chassis_part(doc: Document) -> Part | None:
    """The machine's own chassis; None for an empty slot, as for all parts. A serial of "" says nothing."""
    return _part(doc, "chassis", ("Name", "Id"))


def carried_part(doc: Document) -> Part | None:
    """A chassis inside the machine's: a GPU, CPU or NVSwitch where it is named for one, else a board without kind."""
    return _part(doc, carried_kind(doc), ("Id", "Name"))


def carried_kind(doc: Document) -> str:
    """gpu, cpu or nvswitch; HOLDS_OTHERS for any other board."""
    found = _CARRIED.fullmatch(name_of(doc))
    return found[1].lower() if found else HOLDS_OTHERS


def processor_part(doc: Document) -> Part | None:
    """A CPU, GPU or DPU, by what the BMC calls its type."""
    return _part(doc, processor_kind(doc), ("Socket", "Id"), firmware=text(doc, "FirmwareVersion"))


def processor_kind(doc: Document) -> str:
    """cpu, gpu, dpu, accelerator or fpga; "processor" where the BMC calls it otherwise."""
    return _PROCESSORS.get(text(doc, "ProcessorType").lower(), "processor")


def device_part(doc: Document) -> Part | None:
    """A GPU that is listed as a PCIe device."""
    return _part(doc, "gpu", ("Id", "Name"), firmware=text(doc, "FirmwareVersion"))


def is_gpu(path: str) -> bool:
    """Whether a PCIe device's link is named for a GPU: what else is on the bus has lists of its own."""
    return _GPU_DEVICE.fullmatch(path.rstrip("/").rpartition("/")[2]) is not None


def memory_part(doc: Document) -> Part | None:
    """A memory module."""
    return _part(doc, "memory", ("DeviceLocator", "Id"), firmware=text(doc, "FirmwareRevision"))


def drive_part(doc: Document) -> Part | None:
    """A drive."""
    return _part(doc, "drive", ("Id", "Name"), firmware=text(doc, "Revision", "FirmwareVersion"))


def supply_part(doc: Document) -> Part | None:
    """A power supply, in the slot by which its readings are named."""
    return _part(doc, "psu", ("Name", "Id", "MemberId"), firmware=text(doc, "FirmwareVersion"))


def named_apart(docs: list[Document]) -> list[Document]:
    """The same with names of their own: where members share one ("HpeServerPowerSupply"), each has its id behind it."""
    names = Counter(_slug(_called(doc)) for doc in docs)
    return [
        doc if names[_slug(_called(doc))] == 1 else doc | {"Name": f"{_called(doc)} {text(doc, 'MemberId', 'Id')}"}
        for doc in docs
    ]


def adapter_part(doc: Document) -> Part | None:
    """A network adapter, with the firmware of its first controller."""
    controllers = tuple(objects(doc, "Controllers"))
    firmware = text(controllers[0], "FirmwarePackageVersion") if controllers else ""
    return _part(doc, "nic", ("Id", "Name"), firmware=firmware)


def ethernet_part(doc: Document) -> Part | None:
    """A network interface, known by its permanent MAC address as it has no serial number."""
    told = (meaningful(text(doc, key)).lower() for key in ("PermanentMACAddress", "MACAddress"))
    mac = next((one for one in told if one), "")
    return Part(serial=mac, kind="nic_port", slot=text(doc, "Id")) if mac and not absent(doc) else None


def absent(doc: Document) -> bool:
    """An empty slot: the BMC lists the place, and says that nothing is in it."""
    return text(child(doc, "Status"), "State").lower() == "absent"


def slot_of(doc: Document) -> str:
    """How a member calls itself, for saying which one it is."""
    return name_of(doc) or text(doc, "Name", "@odata.id") or "?"


def update_service(raw: bytes) -> UpdateService:
    """Paths at which firmware is listed and updates are requested."""
    doc = document(raw, "update service")
    return UpdateService(
        inventory=link(doc, "FirmwareInventory"),
        simple_update=_target(child(doc, "Actions", "#UpdateService.SimpleUpdate")),
    )


def is_staged(doc: Document) -> bool:
    """Whether a firmware inventory member is written and does not run yet."""
    return text(child(doc, "Status"), "State").lower().startswith("standby")


def component(doc: Document) -> FirmwareComponent | None:
    """One firmware inventory member; None where it names no version (an empty slot, a key not filled in yet)."""
    version, state = meaningful(text(doc, "Version")), text(child(doc, "Status"), "State").lower()
    staged = is_staged(doc)
    name = _component_name(doc, staged=staged)
    if not version or not name or state == "absent":
        return None
    return FirmwareComponent(
        name=name,
        version=version,
        path=link(doc),
        staged=staged,
        updating=state == "updating",
        systems=tuple(found for found in links(doc, "RelatedItem") if "/Systems/" in found),
    )


def components_of(
    system: System, components: Iterable[FirmwareComponent], others: tuple[str, ...]
) -> tuple[FirmwareComponent, ...]:
    """Keep the components of one system where a service shows many.

    `others`: systems that are machines of their own.

    What is related to others only is left out, "<system>." is cut off names. What lies under a system belongs to it,
    and a baseboard of GPUs to the machine that it is in.
    """
    kept: list[FirmwareComponent] = []
    names: dict[str, str] = {}
    for one in components:
        if one.systems and all(any(_within(place, other) for other in others) for place in one.systems):
            continue
        name = one.name.removeprefix(f"{system.id}.")
        if not one.staged and names.setdefault(name, one.version) != one.version:
            name = f"{name}_{one.path.rstrip('/').rpartition('/')[2]}"
        kept.append(replace(one, name=name))
    return tuple(kept)


def _within(place: str, system: str) -> bool:
    return f"{place.rstrip('/')}/".startswith(f"{system.rstrip('/')}/")


def _component_name(doc: Document, *, staged: bool) -> str:
    """Name the component of a version: the Id, unless that is a mere number, or says the version too as Dell's do."""
    name = name_of(doc)
    if found := _COMPONENT.fullmatch(name):
        return found[2] if found[1].lower() in {"installed", "current"} else ""
    if staged or name.isdigit():
        return text(doc, "Name") or name
    return name


def versions(components: Iterable[FirmwareComponent]) -> dict[str, str]:
    """Component → running version."""
    return {c.name: c.version for c in components if not c.staged}


def same_component(one: str, other: str) -> bool:
    """Vendors differ in case and separators of one name ("BIOS", "bios"; "HGX_FW_GPU_0", "hgx-fw-gpu-0")."""
    return _plain(one) == _plain(other)


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
    name = _slug(name_of(doc) or text(doc, "Name"))
    if not state or state == "absent" or absent(doc) or not name:
        return None  # where no detector is, none says that all is dry
    return SensorValue(f"leak_{name.removeprefix('leak_')}", state)


def facts(readings: Iterable[SensorValue]) -> Facts:
    """Readings by name; of two with one name the later counts."""
    return {reading.name: reading.value for reading in readings}


def told_apart(readings: Iterable[SensorValue], chassis: str) -> list[SensorValue]:
    """The readings of one chassis, under names that no other chassis has: two boards may each have a "Temp 0"."""
    return [SensorValue(_named_for(reading.name, _slug(chassis)), reading.value) for reading in readings]


_KEPT_FIRST = ("leak", "fan", "power_redundancy", "cooling_redundancy")
"""Prefixes of names that say what is being read."""


def _named_for(name: str, chassis: str) -> str:
    kept = next((first for first in _KEPT_FIRST if name.startswith(f"{first}_")), "")
    return f"{kept}_{chassis}_{name.removeprefix(f'{kept}_')}" if kept else f"{chassis}_{name}"


def log_entry(doc: Document) -> LogEntry | None:
    """One log entry; None where it says nothing or cannot be told from others."""
    message = text(doc, "Message", "MessageId", "Name")
    identity = name_of(doc)
    if not identity or not message:
        return None
    return LogEntry(
        identity,
        text(doc, "Created"),
        text(doc, "Severity", "EntryCode").lower(),
        message,
        text(doc, "SensorType"),
    )


def after(entries: Iterable[LogEntry], cursor: str) -> tuple[tuple[LogEntry, ...], str]:
    """The entries behind the cursor, oldest first, and the new cursor.

    A cursor is the last entry's id and creation moment. Where that entry is gone, the log was cleared (its ids begin
    anew) or has wrapped, and all entries are new: seeing one twice is better than losing one.
    """
    ordered = sorted(entries, key=_log_order)
    if not ordered:
        return (), cursor
    known = [_mark(entry) for entry in ordered]
    start = known.index(cursor) + 1 if cursor in known else 0
    return tuple(ordered[start:]), known[-1]


def task(raw: bytes, path: str) -> BmcTask:
    """A task, read at `path`."""
    return task_of(document(raw, "task"), path)


def task_of(doc: Document, path: str) -> BmcTask:
    """A task's account of itself. A task that completed in bad health has failed."""
    state, health = text(doc, "TaskState").lower(), text(doc, "TaskStatus").lower()
    known = "running" if state in _TASK_RUNNING else "failed" if state in _TASK_FAILED else ""
    if state == "completed":
        known = "failed" if health == "critical" else "done"
    messages = "; ".join(found for item in objects(doc, "Messages") if (found := text(item, "Message", "MessageId")))
    return BmcTask(link(doc) or path, known, printable(messages), number(doc, "PercentComplete"), _targets(doc))


def error_text(raw: bytes) -> str:
    """The BMC's own words out of an error body: extended messages with their remedies, else the start of it."""
    try:
        error = child(document(raw), "error")
    except WireError:
        return printable(raw[:200].decode("utf-8", "replace"))
    said = [
        " ".join(filter(None, (text(item, "Message", "MessageId"), text(item, "Resolution"))))
        for item in objects(error, "@Message.ExtendedInfo")
    ]
    return printable("; ".join(dict.fromkeys(s for s in said if s)) or text(error, "message", "code"), 400)


def moment(written: str) -> datetime | None:
    """An aware moment that a BMC wrote, None where it is unreadable or names no zone."""
    try:
        value = datetime.fromisoformat(written)
    except ValueError:
        return None
    return value if value.tzinfo else None


def _boot(doc: Document) -> BootOverride:
    return BootOverride(
        enabled=text(doc, "BootSourceOverrideEnabled"),
        target=text(doc, "BootSourceOverrideTarget"),
        targets=strings(doc, "BootSourceOverrideTarget@Redfish.AllowableValues"),
    )


def _locate(doc: Document) -> tuple[str, bool | None]:
    active = truth(doc, "LocationIndicatorActive")
    if active is not None:
        return "LocationIndicatorActive", active
    led = text(doc, "IndicatorLED").lower()
    return ("IndicatorLED", led in {"lit", "blinking"}) if led in {"lit", "blinking", "off"} else ("", None)


def _targets(doc: Document) -> tuple[str, ...]:
    """Targets of an update, from the request that the task quotes."""
    quoted = child(doc, "Payload").get("JsonBody")
    try:
        return strings(document(quoted.encode()), "Targets") if isinstance(quoted, str) else ()
    except (WireError, UnicodeEncodeError):
        return ()


def _info(action: Document) -> str:
    found = action.get("@Redfish.ActionInfo")
    return found if isinstance(found, str) else ""


def _target(action: Document) -> str:
    target = action.get("target")
    return target if isinstance(target, str) else ""


def _part(doc: Document, kind: str, slots: tuple[str, ...], firmware: str = "") -> Part | None:
    if len(doc) <= 1 or absent(doc):
        return None
    return Part(
        serial=meaningful(text(doc, "SerialNumber")),
        kind=kind,
        model=meaningful(text(doc, "Model")) or meaningful(text(doc, "PartNumber")),
        slot=text(doc, *slots) or name_of(doc),
        firmware=meaningful(firmware),
    )


def _reading(doc: Document, value: float | None, unit: str) -> SensorValue | None:
    name = _slug(_called(doc))
    if value is None or not name or absent(doc):
        return None
    suffix = _UNITS.get(unit.lower(), _slug(unit))
    ended = not suffix or name == suffix or name.endswith(f"_{suffix}")
    return SensorValue(name if ended else f"{name}_{suffix}", value)


def _threshold(doc: Document, value: float | None, which: str) -> SensorValue | None:
    reading = _reading(doc, value, "Cel")
    return SensorValue(f"{reading.name.removesuffix('_c')}_{which}_c", reading.value) if reading else None


def _health(doc: Document, fallback: str, prefix: str = "") -> SensorValue | None:
    """`prefix` begins the name, so that a fan called "Rear 3" is not taken for a power supply."""
    health = text(child(doc, "Status"), "Health").lower()
    name = _slug(_called(doc) or fallback)
    if prefix and not name.startswith(prefix):
        name = f"{prefix}_{name}"
    return SensorValue(f"{name}_health", health) if health and not absent(doc) else None


def _called(doc: Document) -> str:
    return text(doc, "Name", "Id", "MemberId") or name_of(doc)


@lru_cache(maxsize=8192)
def _slug(name: str) -> str:
    """BMCs of one model say the same names again and again."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:64]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _mark(entry: LogEntry) -> str:
    return f"{entry.id}@{entry.created}"


def _log_order(entry: LogEntry) -> tuple[int, str, str]:
    """By number first: the BMC's clock starts again at 1970 after a reset."""
    numbered = entry.id.isascii() and entry.id.isdigit() and len(entry.id) < 20
    return int(entry.id) if numbered else 0, entry.created, entry.id
