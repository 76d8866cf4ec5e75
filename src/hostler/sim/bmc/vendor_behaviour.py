"""Plays one machine as a vendor's BMC: what it shows, and what it takes, refuses and asks for first."""

from collections.abc import Mapping
from datetime import datetime

from hostler.sim.bmc.emulated_machine import BmcRefusalError, Machine
from hostler.sim.bmc.resource_parts import ROOT, Document
from hostler.sim.bmc.vendors import SOFTWARE, VENDORS, Vendor, documents, software_id

_SHARED = ("/TaskService", "/AccountService")
"""Resources that every BMC shows in the same way."""


def vendor_of(machine: Machine | None) -> Vendor | None:
    """How the machine is shown, None for the plain way."""
    return VENDORS[machine.quirks.vendor] if machine and machine.quirks.vendor else None


def pages(machine: Machine, vendor: Vendor, now: datetime) -> dict[str, Document]:
    """All resources by path."""
    return {ROOT + path: doc for path, doc in documents(machine, vendor, now).items()}


def shows(path: str) -> bool:
    """Whether the vendor says what is at this path."""
    return path.startswith(ROOT) and not path.removeprefix(ROOT).startswith(_SHARED)


def admit(vendor: Vendor, shown: Document | None, asked: Mapping[str, str]) -> None:
    """Refuse a change of another state than the one there is (412), or of none named where that is demanded (428).

    Raises BmcRefusalError. A weak etag matches nothing; its strong form is what such BMCs compare.
    """
    if shown is None:
        raise BmcRefusalError(404, "The resource was not found.")
    named = next((value for name, value in asked.items() if name.lower() == "if-match"), "")
    live = str(shown.get("@odata.etag", "")).removeprefix("W/")
    if not named and vendor.demands:
        raise BmcRefusalError(428, "The request lacks the If-Match header.")
    if named and named not in {"*", live}:
        raise BmcRefusalError(412, "The etag does not match the resource's.")


def fetch(vendor: Vendor) -> None:
    """Refuse to fetch an image where such a machine's BMC takes pushed ones only."""
    if not vendor.fetches:
        raise BmcRefusalError(404, "The action UpdateService.SimpleUpdate is not supported.")


def component_at(machine: Machine, shown: Document | None, otherwise: str) -> str:
    """The component whose entry of the firmware inventory this is; `otherwise` where there is no entry."""
    if shown is None or shown["Name"] != SOFTWARE:
        return str(shown["Name"]) if shown else otherwise
    held = {software_id(name, version): name for name, version in machine.firmware.items()}
    return held.get(str(shown["Id"]), otherwise)


def meant(vendor: Vendor, within: str) -> str:
    """A change of a vendor's settings objects as the change that it is: "Systems:SD" is one of the system."""
    place, _, rest = within.partition(":")
    return f"{place}:" if vendor.settings and rest == vendor.settings else within


def takes_mains(vendor: Vendor, path: str) -> bool:
    """Whether a request at this path takes the mains off the machine and back."""
    return vendor.mains is not None and path == vendor.mains.target


def check(vendor: Vendor, path: str, body: Document) -> None:
    """Refuse what this vendor's BMC refuses. Raises BmcRefusalError (400)."""
    kind = body.get("ResetType")
    if vendor.mains is not None and path == vendor.mains.target and kind != vendor.mains.kind:
        raise BmcRefusalError(400, f"The value {kind!r} for ResetType is not in the list of acceptable values.")
    if path.endswith("/ComputerSystem.Reset") and kind not in vendor.resets:
        raise BmcRefusalError(400, f"The value {kind!r} for ResetType is not in the list of acceptable values.")
    if vendor.settings and "Boot" in body and not path.endswith(f"/{vendor.settings}"):
        raise BmcRefusalError(400, "The property Boot is read-only here: change it in the settings object.")
    boot = body.get("Boot")
    target = boot.get("BootSourceOverrideTarget") if isinstance(boot, dict) else None
    offered = (*vendor.boots, *([vendor.drives.boots_as] if vendor.drives else ()))
    if target is not None and target not in offered:
        raise BmcRefusalError(400, f"The value {target!r} for BootSourceOverrideTarget is not in the list.")
    if vendor.baseboard and f"/Systems/{vendor.baseboard}/" in f"{path}/":
        raise BmcRefusalError(400, "Nothing of a baseboard can be changed.")
