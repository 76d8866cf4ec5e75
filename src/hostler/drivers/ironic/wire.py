"""Ironic's JSON → what it says of a machine, and what its provision state means for whoever wants to act on it. Pure.

States are those of Ironic's state machine (ironic.common.states, release 39); one that is not known here is waited for.
"""

from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from hostler.core.state.input_problems import UNREADABLE

TEXT_MAX = 300
ERROR_MAX = 340
"""Both checksums of an image that is another fit in."""
POWER = {"power on": "on", "power off": "off"}
FREE = frozenset({"manageable", "available", "active"})
"""States in which Ironic lets somebody set power and the next boot, and does neither itself."""
NEW = "enroll"
FAILED = {
    "inspect failed": "manage",
    "clean failed": "manage",
    "deploy failed": "undeploy",
    "error": "undeploy",
    "rescue failed": "unrescue",
    "unrescue failed": "unrescue",
    "service failed": "abort",
    "adopt failed": "manage",
}
"""Failed state → the command of `baremetal node` that leads out of it."""


MARK = "hostler"
"""The key of our mark in a node's `extra`."""


class IronicWireError(Exception):
    """An answer that is no node of Ironic's."""


class IronicNode(Struct, frozen=True):
    """A machine as Ironic shows it. `power` is on, off or "" (unknown); `reservation` the conductor that has it locked.

    `bmc` is its place behind a BMC (`bmc_place`), "" where Ironic enters it by another way than Redfish. `changed_at`
    is when its provision state last changed; `mark` names the operation of ours that was begun last, and when that
    state had changed before it. `image` is the source and checksum of the image that it is to have, or has.
    """

    uuid: str
    name: str
    driver: str
    provision: str
    target: str = ""
    power: str = ""
    target_power: str = ""
    reservation: str = ""
    maintenance: str = ""
    fault: str = ""
    last_error: str = ""
    bmc: str = ""
    changed_at: str = ""
    mark: tuple[str, str] = ("", "")
    image: tuple[str, str] = ("", "")
    properties: dict[str, str] = {}


def node(body: bytes) -> IronicNode:
    """A node's answer. Raises IronicWireError."""
    try:
        said = msgspec.json.decode(body)
    except UNREADABLE as error:
        raise IronicWireError(f"Ironic's answer cannot be read: {error}") from error
    if not isinstance(said, dict) or not _text(said, "uuid") or not _text(said, "provision_state"):
        raise IronicWireError("Ironic's answer is no node: it has no uuid or no provision_state")
    info = said.get("driver_info")
    instance = _object(said, "instance_info")
    source = _text(instance, "image_source")
    reason = _text(said, "maintenance_reason") or "no reason was given"
    return IronicNode(
        uuid=_text(said, "uuid"),
        name=_text(said, "name"),
        driver=_text(said, "driver"),
        provision=_text(said, "provision_state"),
        target=_text(said, "target_provision_state"),
        power=POWER.get(_text(said, "power_state"), ""),
        target_power=_text(said, "target_power_state"),
        reservation=_text(said, "reservation"),
        maintenance=reason if said.get("maintenance") is True else "",
        fault=_text(said, "fault"),
        last_error=_text(said, "last_error", ERROR_MAX),
        bmc=_bmc(info) if isinstance(info, dict) else "",
        changed_at=_text(said, "provision_updated_at"),
        mark=_pair(_object(_object(said, "extra"), MARK), "operation", "before"),
        image=(source, _text(instance, "image_checksum") or _text(instance, "image_os_hash_value")),
        properties={name: str(value)[:100] for name, value in _told(_object(said, "properties"))},
    )


def _told(properties: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(name[:64], value) for name, value in list(properties.items())[:32] if isinstance(value, str | int)]


def _pair(said: dict[str, Any], one: str, other: str) -> tuple[str, str]:
    return _text(said, one), _text(said, other)


def _object(said: dict[str, Any], name: str) -> dict[str, Any]:
    value = said.get(name)
    return value if isinstance(value, dict) else {}


def _bmc(info: dict[str, Any]) -> str:
    return bmc_place(_text(info, "redfish_address").rstrip("/") + _text(info, "redfish_system_id"))


def bmc_place(address: str) -> str:
    """Host, port and system of a BMC's address, with or without its scheme; "" for none."""
    try:
        found = urlsplit(address if "://" in address else f"https://{address}")
    except ValueError:
        return ""
    host = found.netloc.rpartition("@")[2].lower()
    return f"{host}{found.path.rstrip('/')}" if host else ""


def is_same(one: str, other: str) -> bool:
    """Whether two places are one machine: a place that names no system is its BMC's only one."""
    bare = "/" not in one or "/" not in other
    return bool(one) and (one.partition("/")[0] == other.partition("/")[0] if bare else one == other)


def boot_device(body: bytes) -> tuple[str, bool | None]:
    """The boot device, and whether it is kept; ("", None) where Ironic does not say."""
    try:
        said = msgspec.json.decode(body)
    except UNREADABLE:
        return "", None
    kept = said.get("persistent") if isinstance(said, dict) else None
    return (_text(said, "boot_device") if isinstance(said, dict) else "", kept if isinstance(kept, bool) else None)


def last_fault(body: bytes, since: str) -> str:
    """The newest error of a node's history that came later than `since`, "" for none."""
    try:
        said = msgspec.json.decode(body)
    except UNREADABLE:
        return ""
    listed = said.get("history") if isinstance(said, dict) else None
    events = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    faults = [one for one in events if _text(one, "severity") == "ERROR" and _text(one, "created_at") > since]
    newest = max(faults, key=lambda one: _text(one, "created_at"), default={})
    return _text(newest, "event", ERROR_MAX)


def fault_of(body: bytes) -> str:
    """The words of a refusal: Ironic wraps its fault as JSON inside JSON."""
    try:
        said: Any = msgspec.json.decode(body)
        inner = said.get("error_message") if isinstance(said, dict) else None
        if isinstance(inner, str) and inner.startswith("{"):
            inner = msgspec.json.decode(inner)
        text = inner.get("faultstring") if isinstance(inner, dict) else inner
    except UNREADABLE:
        text = ""
    return " ".join(str(text or "it gives no reason").split())[:TEXT_MAX]


def _text(said: dict[str, Any], name: str, longest: int = TEXT_MAX) -> str:
    value = said.get(name)
    return " ".join(value.split())[:longest] if isinstance(value, str) else ""
