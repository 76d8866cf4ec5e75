"""Parses what a switch tray's own system (NVOS) says of its images and actions. Pure.

Sources: NVIDIA's NVOS manual, installation management (`/nvue_v1/system/image`, `/system/image/files`, `/platform`);
the NVUE reference of Cumulus Linux (`nv show action`); NVIDIA's open nvfwupd for the shapes in which releases differ.
"""

import msgspec
from msgspec import Struct

from hostler.drivers.redfish.tolerant_json import Document, WireError, child, document, objects, printable, text

DEEPEST = 8
"""So many levels of a listing of files are looked through."""
_RUNNING = frozenset({"start", "running", "action_running", "action_start", "in_progress"})


class SystemImages(Struct, frozen=True):
    """Build ids of the image that runs and of the one that boots next, "" where NVOS does not tell."""

    current: str
    next: str


class NvosAction(Struct, frozen=True):
    """An action: `state` is running, done or failed. `handed_over`: it failed only as the switch began to restart."""

    state: str
    detail: str
    handed_over: bool = False


def system_images(raw: bytes) -> SystemImages:
    """Images of `/nvue_v1/system/image`. Raises WireError.

    A release names the partition ("1", "partition1"), another the build id; a partition is a text, or an object.
    """
    doc = document(raw, "system image")
    return SystemImages(_build(doc, text(doc, "current")), _build(doc, text(doc, "next")))


def _build(doc: Document, chosen: str) -> str:
    name = f"partition{chosen}" if chosen in ("1", "2") else chosen
    if name in ("partition1", "partition2"):
        return text(doc, name) or text(child(doc, name), "build-id")
    return name


def serial_number(raw: bytes) -> str:
    """The switch's serial number of `/nvue_v1/platform`, "" for none. Raises WireError."""
    return text(document(raw, "platform"), "serial-number").strip()


def lists_file(raw: bytes, name: str) -> bool:
    """Whether a listing of files holds this one, as a key or as a value. Raises WireError."""
    try:
        return _holds(msgspec.json.decode(raw), name, DEEPEST)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise WireError(f"the list of images is no JSON: {error}; restart the switch's nvued") from error


def _holds(value: object, name: str, depth: int) -> bool:
    if depth == 0:
        return False
    match value:
        case str():
            return value == name
        case list():
            return any(_holds(one, name, depth - 1) for one in value)
        case dict():
            return name in value or any(_holds(one, name, depth - 1) for one in value.values())
        case _:
            return False


def action_id(raw: bytes) -> str:
    """The number of the action that was begun, "" where the answer names none."""
    try:
        told = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ""
    named = told if isinstance(told, (str, int)) and not isinstance(told, bool) else ""
    return str(named) if str(named).isalnum() and len(str(named)) <= 40 else ""


def action(raw: bytes) -> NvosAction:
    """One action of `/nvue_v1/action/ID`; a state that is not known is running. Raises WireError."""
    return _action(document(raw, "action"))


def running_actions(raw: bytes) -> int:
    """How many actions of `/nvue_v1/action` are under way. Raises WireError."""
    doc = document(raw, "actions")
    told = [one for name in doc if text(one := child(doc, name), "state")]
    return sum(_action(one).state == "running" for one in told)


def _action(doc: Document) -> NvosAction:
    state = text(doc, "state").lower()
    issues = (text(one, "message") or text(child(one, "data"), "msg") for one in objects(doc, "issue"))
    said = "; ".join(filter(None, (text(doc, "status"), text(doc, "detail"), *issues)))
    if state in ("action_success", "success"):
        return NvosAction("done", printable(said, 300))
    if state in _RUNNING or not state.startswith("action_"):
        return NvosAction("running", printable(said, 300))
    share, low = text(doc, "percentage").rstrip("% "), said.lower()
    ended = share == "100" and "installing image" in low
    gone = any(word in low for word in ("disconnecting from nvos", "offline during reboot", "system is offline"))
    return NvosAction("failed", printable(said, 300), handed_over=ended or gone)
