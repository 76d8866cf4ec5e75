"""Redfish JSON → our nouns, pure. Names and meanings are those of DMTF's schema bundle 2024.4 (DSP8010)."""

import re
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache

from msgspec import Struct

from hostler.core.diagnose.serials import meaningful
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


_TASK_RUNNING = {"new", "starting", "running", "pending", "stopping", "suspended", "service", "cancelling"}


_TASK_FAILED = {"exception", "killed", "cancelled", "interrupted"}


_BASEBOARD = re.compile(r"[hm]gx_baseboard_\d{1,2}", re.IGNORECASE)


_SUMMARIES = (("Status",), ("ProcessorSummary", "Status"), ("MemorySummary", "Status"))


class ServiceRoot(Struct, frozen=True):
    """Links to a BMC's collections, as it wrote them.

    `expand` is the query that inlines members, or ""; `levels` is how deep it inlines.
    """

    systems: str
    chassis: str = ""
    managers: str = ""
    update: str = ""
    tasks: str = ""
    accounts: str = ""
    version: str = ""
    expand: str = ""
    levels: int = 0


class BootOverride(Struct, frozen=True):
    """The boot override: `enabled` is Once, Continuous, Disabled or ""; `targets` are those the BMC allows.

    `uri` is where UefiHttp boots from.
    """

    enabled: str = ""
    target: str = ""
    targets: tuple[str, ...] = ()
    uri: str = ""


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


class BmcTask(Struct, frozen=True):
    """A BMC's own account of long work: `state` is running, done, failed or "" (unreadable). Trust versions more.

    `targets` are the links of what is updated, empty where it does not say.
    """

    path: str
    state: str
    detail: str = ""
    percent: float | None = None
    targets: tuple[str, ...] = ()


class Manager(Struct, frozen=True):
    """The BMC itself. `last_reset` is its own clock's moment of its last restart, "" where it does not say.

    `jobs` is an iDRAC's queue: its BIOS settings apply by a job.
    """

    path: str
    reset_target: str = ""
    resets: tuple[str, ...] = ()
    reset_info: str = ""
    firmware: str = ""
    last_reset: str = ""
    logs: str = ""
    media: str = ""
    jobs: str = ""


def service_root(raw: bytes) -> ServiceRoot:
    """Raises WireError where it links neither systems nor equipment: then nothing can be done with it."""
    doc = document(raw, "service root")
    systems = link(doc, "Systems")
    if not (systems or link(doc, "PowerEquipment") or link(doc, "ThermalEquipment")):
        raise WireError("the BMC's service root has no link to Systems; is this a Redfish service, and is it up?")
    expands = child(doc, "ProtocolFeaturesSupported", "ExpandQuery")
    offered = bool(truth(expands, "NoLinks") and truth(expands, "Levels"))
    return ServiceRoot(
        systems=systems,
        chassis=link(doc, "Chassis"),
        managers=link(doc, "Managers"),
        update=link(doc, "UpdateService"),
        tasks=link(doc, "Tasks"),
        accounts=link(doc, "AccountService"),
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
        reset_target=target_of(reset),
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
                "VirtualMedia",
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
        reset_target=target_of(reset),
        resets=strings(reset, "ResetType@Redfish.AllowableValues"),
        reset_info=_info(reset),
        firmware=text(doc, "FirmwareVersion"),
        last_reset=text(doc, "LastResetTime"),
        logs=link(doc, "LogServices"),
        media=link(doc, "VirtualMedia"),
        jobs=link(child(doc, "Links", "Oem", "Dell"), "Jobs"),
    )


def absent(doc: Document) -> bool:
    """An empty slot: the BMC lists the place, and says that nothing is in it."""
    return text(child(doc, "Status"), "State").lower() == "absent"


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
        uri=text(doc, "HttpBootUri"),
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


def target_of(action: Document) -> str:
    """Path that the action is posted to, "" where it has none."""
    target = action.get("target")
    return target if isinstance(target, str) else ""


def called(doc: Document) -> str:
    """Name of the resource as it calls itself, else its id."""
    return text(doc, "Name", "Id", "MemberId") or name_of(doc)


@lru_cache(maxsize=8192)
def slug(name: str) -> str:
    """Name as one word of lower case, for the name of a fact; cached: BMCs of one model say the same names."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:64]
