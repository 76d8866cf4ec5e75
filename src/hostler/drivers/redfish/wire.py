"""Redfish JSON → our nouns, pure. Names and meanings are those of DMTF's schema bundle 2024.4 (DSP8010)."""

import re
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache

from msgspec import Struct

from hostler.core.model import Facts, Part
from hostler.drivers.redfish.reading import (
    Document,
    WireError,
    child,
    document,
    link,
    links,
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
_SUMMARIES = (("Status",), ("ProcessorSummary", "Status"), ("MemorySummary", "Status"))
_PROCESSORS = {"gpu": "gpu", "cpu": "cpu", "dpu": "dpu", "accelerator": "accelerator", "fpga": "fpga"}


class ServiceRoot(Struct, frozen=True):
    """Where a BMC keeps its collections, as links it wrote.

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


class Boot(Struct, frozen=True):
    """The boot override: `enabled` is Once, Continuous, Disabled or ""; `targets` are those the BMC allows."""

    enabled: str = ""
    target: str = ""
    targets: tuple[str, ...] = ()


class System(Struct, frozen=True):
    """One server as its BMC shows it. `power` is on, off, powering_on, powering_off, paused or "" (not shown).

    `locate` is None where it has no such light. `led` is the name of the property that drives it. `health` is the worst
    word of the system and of what it sums up (processors, memory), "" where it says none.
    """

    path: str
    id: str = ""
    serial: str = ""
    uuid: str = ""
    manufacturer: str = ""
    model: str = ""
    bios: str = ""
    power: str = ""
    boot: Boot = Boot()
    reset_target: str = ""
    resets: tuple[str, ...] = ()
    locate: bool | None = None
    led: str = ""
    etag: str = ""
    health: str = ""
    chassis: tuple[str, ...] = ()
    managers: tuple[str, ...] = ()
    collections: dict[str, str] = {}

    @property
    def identity(self) -> str:
        """What the machine is known by: its serial number; its UUID only where it shows no serial number at all."""
        return self.serial or self.uuid


class Component(Struct, frozen=True):
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


class Task(Struct, frozen=True):
    """A BMC's own account of long work: `state` is running, done, failed or "" (unreadable). Trust versions more.

    `targets` are the links of what is updated, empty where it does not say.
    """

    path: str
    state: str
    detail: str = ""
    percent: float | None = None
    targets: tuple[str, ...] = ()


class Reading(Struct, frozen=True):
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
        id=text(doc, "Id"),
        serial=text(doc, "SerialNumber"),
        uuid=text(doc, "UUID"),
        manufacturer=text(doc, "Manufacturer"),
        model=text(doc, "Model"),
        bios=text(doc, "BiosVersion"),
        power=power_state(doc),
        boot=_boot(child(doc, "Boot")),
        reset_target=_target(reset),
        resets=strings(reset, "ResetType@Redfish.AllowableValues"),
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
            )
            if (found := link(doc, key))
        },
    )


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
        firmware=text(doc, "FirmwareVersion"),
        last_reset=text(doc, "LastResetTime"),
        logs=link(doc, "LogServices"),
    )


def chassis_part(doc: Document) -> Part | None:
    """A chassis; None without a serial number, as for all parts."""
    return _part(doc, "chassis", ("Name", "Id"))


def processor_part(doc: Document) -> Part | None:
    """A CPU, GPU or DPU, by what the BMC calls its type."""
    return _part(doc, processor_kind(doc), ("Socket", "Id"), firmware=text(doc, "FirmwareVersion"))


def processor_kind(doc: Document) -> str:
    """cpu, gpu, dpu, accelerator or fpga; "processor" where the BMC calls it otherwise."""
    return _PROCESSORS.get(text(doc, "ProcessorType").lower(), "processor")


def memory_part(doc: Document) -> Part | None:
    """A memory module."""
    return _part(doc, "memory", ("DeviceLocator", "Id"), firmware=text(doc, "FirmwareRevision"))


def drive_part(doc: Document) -> Part | None:
    """A drive."""
    return _part(doc, "drive", ("Id", "Name"), firmware=text(doc, "Revision", "FirmwareVersion"))


def adapter_part(doc: Document) -> Part | None:
    """A network adapter, with the firmware of its first controller."""
    controllers = tuple(objects(doc, "Controllers"))
    firmware = text(controllers[0], "FirmwarePackageVersion") if controllers else ""
    return _part(doc, "nic", ("Id", "Name"), firmware=firmware)


def ethernet_part(doc: Document) -> Part | None:
    """A network interface, known by its permanent MAC address as it has no serial number."""
    mac = text(doc, "PermanentMACAddress", "MACAddress").lower()
    return Part(serial=mac, kind="nic_port", slot=text(doc, "Id")) if mac and not absent(doc) else None


def absent(doc: Document) -> bool:
    """An empty slot: the BMC lists the place, and says that nothing is in it."""
    return text(child(doc, "Status"), "State").lower() == "absent"


def slot_of(doc: Document) -> str:
    """How a member calls itself, for saying which one it is."""
    return text(doc, "Id", "Name", "@odata.id") or "?"


def update_service(raw: bytes) -> UpdateService:
    """Where firmware is listed and updates are asked for."""
    doc = document(raw, "update service")
    return UpdateService(
        inventory=link(doc, "FirmwareInventory"),
        simple_update=_target(child(doc, "Actions", "#UpdateService.SimpleUpdate")),
    )


def component(doc: Document) -> Component | None:
    """One firmware inventory member; None where it names no version (an empty slot, a key not filled in yet)."""
    version, state = text(doc, "Version"), text(child(doc, "Status"), "State").lower()
    staged = state.startswith("standby")
    name = text(doc, "Name", "Id") if staged else text(doc, "Id", "Name")
    if not version or not name or state == "absent":
        return None
    return Component(
        name=name,
        version=version,
        path=link(doc),
        staged=staged,
        updating=state == "updating",
        systems=tuple(found for found in links(doc, "RelatedItem") if "/Systems/" in found),
    )


def components_of(system: System, components: Iterable[Component]) -> tuple[Component, ...]:
    """Those of one system where a service shows many: others' are left out, "<system>." is cut off their names."""
    mine = (c for c in components if not c.systems or system.path in {s.rstrip("/") for s in c.systems})
    return tuple(
        Component(c.name.removeprefix(f"{system.id}."), c.version, c.path, c.staged, c.updating, c.systems)
        for c in mine
    )


def versions(components: Iterable[Component]) -> dict[str, str]:
    """Component → running version."""
    return {c.name: c.version for c in components if not c.staged}


def same_component(one: str, other: str) -> bool:
    """Vendors differ in case and separators of one name ("BIOS", "bios"; "HGX_FW_GPU_0", "hgx-fw-gpu-0")."""
    return _plain(one) == _plain(other)


def thermal(doc: Document) -> tuple[Reading, ...]:
    """Temperatures (with their limits) and fans of the older Thermal resource."""
    found: list[Reading | None] = []
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


def power(doc: Document) -> tuple[Reading, ...]:
    """Watts and volts of the older Power resource, and each supply's health as a word."""
    found = [_reading(item, number(item, "PowerConsumedWatts"), "W") for item in objects(doc, "PowerControl")]
    found += [_reading(item, number(item, "ReadingVolts"), "V") for item in objects(doc, "Voltages")]
    found += [
        _reading(item, number(item, "PowerInputWatts", "LastPowerOutputWatts"), "W")
        for item in objects(doc, "PowerSupplies")
    ]
    found += [_health(item, "PSU") for item in objects(doc, "PowerSupplies")]
    return (*(r for r in found if r), *redundancy(doc, "Redundancy", "power"))


def sensor(doc: Document) -> tuple[Reading, ...]:
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


def supply(doc: Document) -> tuple[Reading, ...]:
    """One power supply: its health as a word ("psu0_health": "ok")."""
    health = _health(doc, "psu")
    return (health,) if health else ()


def fan(doc: Document) -> tuple[Reading, ...]:
    """One fan of the ThermalSubsystem: its health as a word ("fan_3_health": "ok") and its speed."""
    speed = child(doc, "SpeedPercent")
    rpm, percent = number(speed, "SpeedRPM"), number(speed, "Reading")
    named = _reading(doc, rpm, "RPM") if rpm is not None else _reading(doc, percent, "%")
    return tuple(r for r in (named, _health(doc, "fan", "fan")) if r)


def redundancy(doc: Document, key: str, what: str) -> tuple[Reading, ...]:
    """Whether one may fail: the words of each group under `key` ("power_redundancy_health": "warning").

    A group that is switched off by choice (State Disabled, or type NotRedundant) tells nothing.
    """
    found: list[Reading] = []
    for number_, group in enumerate(objects(doc, key)):
        status = child(group, "Status")
        kind = text(group, "RedundancyType", "Mode").lower().replace(" ", "")
        health = text(status, "Health").lower()
        if not health or kind == "notredundant" or text(status, "State").lower() in {"disabled", "absent"}:
            continue
        found.append(Reading(f"{what}_redundancy{f'_{number_}' if number_ else ''}_health", health))
    return tuple(found)


def leak_detector(doc: Document) -> Reading | None:
    """One leak detector: its state (OK, Warning, Critical) in lower case."""
    state = text(doc, "DetectorState").lower()
    name = _slug(text(doc, "Id", "Name"))
    return Reading(f"leak_{name.removeprefix('leak_')}", state) if state and name else None


def facts(readings: Iterable[Reading]) -> Facts:
    """Readings by name; of two with one name the later counts."""
    return {reading.name: reading.value for reading in readings}


def log_entry(doc: Document) -> LogEntry | None:
    """One log entry; None where it says nothing or cannot be told from others."""
    message = text(doc, "Message", "MessageId", "Name")
    identity = text(doc, "Id", "@odata.id")
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


def task(raw: bytes, path: str) -> Task:
    """A task, read at `path`."""
    return task_of(document(raw, "task"), path)


def task_of(doc: Document, path: str) -> Task:
    """A task's account of itself. A task that completed in bad health has failed."""
    state, health = text(doc, "TaskState").lower(), text(doc, "TaskStatus").lower()
    known = "running" if state in _TASK_RUNNING else "failed" if state in _TASK_FAILED else ""
    if state == "completed":
        known = "failed" if health == "critical" else "done"
    messages = "; ".join(found for item in objects(doc, "Messages") if (found := text(item, "Message", "MessageId")))
    return Task(link(doc) or path, known, printable(messages), number(doc, "PercentComplete"), _targets(doc))


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


def _boot(doc: Document) -> Boot:
    return Boot(
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
    """What an update was asked for, out of the request that the task quotes."""
    quoted = child(doc, "Payload").get("JsonBody")
    try:
        return strings(document(quoted.encode()), "Targets") if isinstance(quoted, str) else ()
    except (WireError, UnicodeEncodeError):
        return ()


def _target(action: Document) -> str:
    target = action.get("target")
    return target if isinstance(target, str) else ""


def _part(doc: Document, kind: str, slots: tuple[str, ...], firmware: str = "") -> Part | None:
    serial = text(doc, "SerialNumber")
    if not serial or absent(doc):
        return None
    return Part(
        serial=serial,
        kind=kind,
        model=text(doc, "Model", "PartNumber"),
        slot=text(doc, *slots),
        firmware=firmware,
    )


def _reading(doc: Document, value: float | None, unit: str) -> Reading | None:
    name = _slug(text(doc, "Name", "Id", "MemberId"))
    if value is None or not name or absent(doc):
        return None
    suffix = _UNITS.get(unit.lower(), _slug(unit))
    ended = not suffix or name == suffix or name.endswith(f"_{suffix}")
    return Reading(name if ended else f"{name}_{suffix}", value)


def _threshold(doc: Document, value: float | None, which: str) -> Reading | None:
    reading = _reading(doc, value, "Cel")
    return Reading(f"{reading.name.removesuffix('_c')}_{which}_c", reading.value) if reading else None


def _health(doc: Document, fallback: str, prefix: str = "") -> Reading | None:
    """`prefix` begins the name, so that a fan called "Rear 3" is not taken for a power supply."""
    health = text(child(doc, "Status"), "Health").lower()
    name = _slug(text(doc, "Name", "Id", "MemberId") or fallback)
    if prefix and not name.startswith(prefix):
        name = f"{prefix}_{name}"
    return Reading(f"{name}_health", health) if health and not absent(doc) else None


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
