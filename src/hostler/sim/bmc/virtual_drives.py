"""Virtual drives of an emulated BMC in the shapes of several vendors, and the ways in which such drives misbehave.

Shapes, after OpenStack's sushy (`resources/manager/virtual_media.py`), a Dell's drives as its own scripts list them
(dell/iDRAC-Redfish-Scripting, issue 58) and Supermicro's as ansible-collections/community.general, issue 6969 has them.
OpenBMC's and NVIDIA's: `redfish-core/lib/virtual_media.hpp` of openbmc/bmcweb and NVIDIA/bmcweb; the names of a GB300's
are those of a capture in spyroot/redfish_ctl, and a GB200's USB1 and USB2.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from hostler.sim.bmc.emulated_machine import BmcRefusalError, Machine
from hostler.sim.bmc.resource_parts import ROOT, Document, link

_CD, _STICK, _EITHER = ("CD", "DVD"), ("Floppy", "USBStick"), ("CD", "USBStick")
PLACE = "VirtualMedia"


class DriveShape(Struct, frozen=True):
    """Drives by their kinds of media, at the system or at the BMC, and how they are asked.

    `patched`: there are no actions. `insists` are words that a request must hold, `refuses` those that it must not;
    `boots_as` is the boot target. `keeps_name`: a drive shows the address of what was ejected. `proxies` are filled by
    browsers alone: they have no InsertMedia. `schemes` are those by which it fetches, () for any; `via` is how a
    medium is shown to be connected.
    """

    at: Literal["Systems", "Managers"]
    drives: dict[str, tuple[str, ...]]
    patched: bool = False
    insists: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    boots_as: str = "Cd"
    keeps_name: bool = False
    proxies: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    via: str = "URI"


PLAIN = DriveShape("Systems", {"CD1": _CD, "USB1": _STICK})
DELL = DriveShape("Managers", {"RemovableDisk": ("USBStick",), "CD": _CD})
HPE = DriveShape("Managers", {"1": _STICK, "2": _CD})
LENOVO = DriveShape("Managers", {"EXT1": _CD, "EXT2": _CD}, patched=True)
SUPERMICRO = DriveShape(
    "Managers",
    {"VirtualMedia1": _CD},
    insists=("TransferProtocolType", "TransferMethod"),
    refuses=("Inserted", "WriteProtected"),
    boots_as="UsbCd",
    keeps_name=True,
)
OPENBMC = DriveShape(
    "Managers",
    {"Slot_0": _EITHER, "Slot_2": _EITHER},
    proxies=("Slot_0",),
    schemes=("https", "smb"),
    via="Applet",
)
NVIDIA = replace(OPENBMC, drives={"Slot_0": _EITHER, "USB1": _EITHER, "USB2": _EITHER})


def shown(machine: Machine, shape: DriveShape, owner: str) -> dict[str, Document]:
    """The drives' documents by path, under a system or a BMC at `owner`."""
    place = f"{owner}/{PLACE}"
    listed: Document = {"@odata.id": ROOT + place, "Name": PLACE, "Members@odata.count": len(shape.drives)}
    listed["Members"] = [link(f"{place}/{name}") for name in shape.drives]
    return {place: listed, **{f"{place}/{name}": _drive(machine, shape, place, name) for name in shape.drives}}


def _drive(machine: Machine, shape: DriveShape, place: str, name: str) -> Document:
    me, held = f"{place}/{name}", machine.media.get(name, "")
    left = machine.ejected.get(name, "") if shape.keeps_name else ""
    acts = (_EJECT,) if name in shape.proxies else _ACTIONS
    actions = {} if shape.patched else {"Actions": {f"#{act}": _target(me, act) for act in acts}}
    return {
        "@odata.id": ROOT + me,
        "@odata.type": "#VirtualMedia.v1_6_0.VirtualMedia",
        "Id": name,
        "Name": f"Virtual drive {name}",
        "MediaTypes": list(shape.drives[name]),
        "Image": held or left or None,
        "ImageName": (held or left).rpartition("/")[2] or None,
        "Inserted": bool(held or left),
        "ConnectedVia": shape.via if held else "NotConnected",
        "WriteProtected": True,
        **actions,
    }


def _target(drive: str, action: str) -> Document:
    return {"target": f"{ROOT}{drive}/Actions/{action}"}


_INSERT, _EJECT = "VirtualMedia.InsertMedia", "VirtualMedia.EjectMedia"
_ACTIONS = (_INSERT, _EJECT)


class DriveRequest(Struct, frozen=True):
    """A request to a drive; `within` is the path behind its system or BMC."""

    method: str
    within: str
    body: Mapping[str, object]


def medium_asked(machine: Machine, shape: DriveShape, asked: DriveRequest, now: datetime) -> tuple[str, str] | None:
    """Do what is asked of a drive; the drive and the address from which its medium is fetched now, None for none.

    Raises BmcRefusalError.
    """
    method, body = asked.method, asked.body
    name, _, act = asked.within.removeprefix(f"{PLACE}/").partition("/")
    if name not in shape.drives:
        raise BmcRefusalError(404, f"The resource {name} was not found.")
    if shape.patched:
        ejects = _patched(method, act, body)
    elif method != "POST" or act not in {f"Actions/{action}" for action in _ACTIONS}:
        raise BmcRefusalError(405, f"{method} is not allowed at {name}.")
    else:
        ejects = act.endswith(_EJECT)
    if ejects:
        machine.eject(name, now)
        return None
    if name in shape.proxies:
        raise BmcRefusalError(404, f"The requested resource of type InsertMedia named {name} was not found.")
    _check(machine, shape, body)
    image = str(body["Image"])
    return (name, image) if machine.insert(name, image, now) else None


def _patched(method: str, act: str, body: Mapping[str, object]) -> bool:
    """Whether the change of a drive without actions empties it."""
    if method != "PATCH" or act:
        raise BmcRefusalError(405, "This drive has no actions: change it.")
    if body.get("Image") is None and body.get("Inserted") is False:
        return True
    if body.get("Inserted") is not True:
        raise BmcRefusalError(400, "The property Inserted is required for a change of Image.")
    return False


def _check(machine: Machine, shape: DriveShape, body: Mapping[str, object]) -> None:
    if "no_licence" in machine.quirks.drives:
        raise BmcRefusalError(403, "This feature needs the license SFT-DCMS-SINGLE, which is not installed.")
    if not isinstance(body.get("Image"), str):
        raise BmcRefusalError(400, "The property Image is required.")
    if shape.schemes and str(body["Image"]).partition("://")[0] not in shape.schemes:
        raise BmcRefusalError(400, f"The resource at {body['Image']} is in a format not recognized by the service.")
    for word in shape.insists:
        if word not in body:
            raise BmcRefusalError(400, f"The action VirtualMedia.InsertMedia requires the parameter {word}.")
    for word in shape.refuses:
        if word in body:
            raise BmcRefusalError(400, f"The parameter {word} for the action InsertMedia is not known.")
