"""Redfish's firmware inventory and update service → ours, pure."""

import re
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.diagnose.serials import meaningful
from hostler.drivers.redfish.tolerant_json import Document, child, document, link, links, name_of, strings, text
from hostler.drivers.redfish.wire import System, target_of

_COMPONENT = re.compile(r"(installed|current|previous|available|rollback)-[^_]*__(.+)", re.IGNORECASE)
"""Dell's names of firmware: whether it runs, its version, and what it is."""


_UNNAMED = "Software Inventory"
"""Name of every entry in the firmware inventory of OpenBMC's bmcweb (`redfish-core/lib/update_service.hpp`)."""
_PURPOSES = {"BMC image": "BMC", "Host image": "BIOS"}


class FirmwareComponent(Struct, frozen=True):
    """One entry of the firmware inventory. `staged` versions do not run yet; one that is `updating` is half written.

    `recovery`: what a spare image of the component holds, which never counts as what it runs.

    `systems` are the systems it belongs to as linked by the BMC, empty where it does not say.
    """

    name: str
    version: str
    path: str
    staged: bool = False
    updating: bool = False
    systems: tuple[str, ...] = ()
    recovery: bool = False

    @property
    def runs(self) -> bool:
        """Whether it is the version that the component runs."""
        return not self.staged and not self.recovery


class UpdateService(Struct, frozen=True):
    """Links to the firmware inventory and to where updates are asked for, "" where there is none.

    `push` takes an image itself. `protocols` are the schemes of URLs that the BMC fetches, empty where it does not say.
    """

    inventory: str = ""
    simple_update: str = ""
    push: str = ""
    protocols: tuple[str, ...] = ()


def update_service(raw: bytes) -> UpdateService:
    """Paths at which firmware is listed and updates are requested."""
    doc = document(raw, "update service")
    action = child(doc, "Actions", "#UpdateService.SimpleUpdate")
    return UpdateService(
        inventory=link(doc, "FirmwareInventory"),
        simple_update=target_of(action),
        push=text(doc, "MultipartHttpPushUri"),
        protocols=strings(action, "TransferProtocol@Redfish.AllowableValues"),
    )


def is_staged(doc: Document) -> bool:
    """Whether a firmware inventory member is written and does not run yet."""
    return text(child(doc, "Status"), "State").lower().startswith("standby")


def component(doc: Document) -> FirmwareComponent | None:
    """One firmware inventory member; None where it names no version (an empty slot, a key not filled in yet)."""
    version, state = meaningful(text(doc, "Version")), text(child(doc, "Status"), "State").lower()
    staged = is_staged(doc)
    name, role = image_role(_component_name(doc, staged=staged))
    staged = staged or role == "staged" or (state == "updating" and text(doc, "Name") == _UNNAMED)
    if not version or not name or state == "absent":
        return None
    return FirmwareComponent(
        name=name,
        version=version,
        path=link(doc),
        staged=staged,
        updating=state == "updating",
        systems=tuple(found for found in links(doc, "RelatedItem") if "/Systems/" in found),
        recovery=role == "recovery",
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
        if one.runs and names.setdefault(name, one.version) != one.version:
            name = f"{name}_{one.path.rstrip('/').rpartition('/')[2]}"
        kept.append(replace(one, name=name))
    return tuple(kept)


def _within(place: str, system: str) -> bool:
    return f"{place.rstrip('/')}/".startswith(f"{system.rstrip('/')}/")


def _component_name(doc: Document, *, staged: bool) -> str:
    """Name the component of a version: the Id, unless that is a mere number, or says the version too as Dell's do.

    OpenBMC's Ids are made of the version, and all its entries have one Name: what an image is for is its description.
    """
    name = name_of(doc)
    if text(doc, "Name") == _UNNAMED:
        return _PURPOSES.get(text(doc, "Description"), name)
    if found := _COMPONENT.fullmatch(name):
        return found[2] if found[1].lower() in {"installed", "current"} else ""
    if staged or name.isdigit():
        return text(doc, "Name") or name
    return name


def versions(components: Iterable[FirmwareComponent]) -> dict[str, str]:
    """Component → running version."""
    return {c.name: c.version for c in components if c.runs}


_SPARE, _WAITING = "backup|golden|recovery|fallback", "staging|pending"
_ROLES = tuple(
    (role, re.compile(f"^({words})[-_ ]|[-_ ]({words})$", re.IGNORECASE))
    for role, words in (("recovery", _SPARE), ("staged", _WAITING))
)


def image_role(name: str) -> tuple[str, str]:
    """Component and role of an entry that is named for its image ("BMC-Backup", "Golden_BIOS", "Staging_BMC").

    The role is recovery, staged, or "" for what runs.
    """
    for role, marked in _ROLES:
        if component := marked.sub("", name) if marked.search(name) else "":
            return component, role
    return name, ""
