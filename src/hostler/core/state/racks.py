"""Nouns of a rack beside its nodes: a look at an asset through its own BMC, and the manifest that a SKU has of it."""

from datetime import datetime

from msgspec import Struct

from hostler.core.state.bmc_certificate import ShownCertificate
from hostler.core.state.firmware_updates import FirmwareUpdate
from hostler.core.state.firmware_versions import same_component

Words = tuple[tuple[str, str], ...]
"""Name → word or version, as the BMC writes it, words in lower case."""

LISTED_MOST = 256
"""Supplies, detectors or components of one asset that are kept."""

DRY, WET_WORD = "ok", "critical"
"""Words of a leak detector; of any other nobody knows what it means for now."""

IN_SERVICE, LEAKED, OFF = "in_service", "leaked", "off"
"""States of an asset in `asset_states.ASSET_TRANSITIONS`: one that has leaked is sound once a person says so."""

SYSTEM = "NVOS"
"""Name, among a switch tray's components, of its own operating system, read and written over the asset's `nvos`."""

CONFIGURED = "configured"
"""The control plane's word (`AssetLook.control_plane`) once a domain's NVLinks are routed."""


def is_system(component: str) -> bool:
    """Whether the component is a switch tray's own operating system."""
    return same_component(component, SYSTEM)


class RackManifest(Struct, frozen=True, forbid_unknown_fields=True):
    """Contents of the rack that nodes of a SKU stand in; 0, "" and {} are not judged.

    `supplies_needed`: so many supplies of each power shelf carry the load, one more has to be well. `leak_detectors`:
    so many in the rack have to say that they are dry, beside those in its nodes. `control_planes`: so many switch trays
    have to say that the fabric manager they run is configured. `compute_trays`: so many nodes have to have come through
    their tests. `bundle` names the rack's one set of versions: `shelf_firmware`, `coolant_firmware` and
    `switch_firmware` are component → version, as each BMC reports it, beside the `firmware` of the SKU itself;
    `updates` says how a component of these is brought there.
    """

    power_shelves: int = 0
    supplies_needed: int = 0
    leak_detectors: int = 0
    switch_trays: int = 0
    switch_firmware: dict[str, str] = {}
    coolant_units: int = 0
    control_planes: int = 0
    compute_trays: int = 0
    bundle: str = ""
    shelf_firmware: dict[str, str] = {}
    coolant_firmware: dict[str, str] = {}
    updates: dict[str, FirmwareUpdate] = {}


class AssetLook(Struct, frozen=True):
    """One look at an asset through its own BMC. `why`: why nothing was read, "" where something was.

    `health` is the BMC's word for the whole, which excuses no part of it. `gaps` are what could not be read, and why.
    `control_plane` is what a switch tray's system says of the fabric manager on it, "" where it was not asked.
    `certificate` is the one that the BMC shows, None over plain HTTP. `login_refused`: it turned the password away.
    """

    at: datetime
    why: str = ""
    serial: str = ""
    health: str = ""
    supplies: Words = ()
    leaks: Words = ()
    firmware: Words = ()
    gaps: tuple[str, ...] = ()
    control_plane: str = ""
    certificate: ShownCertificate | None = None
    login_refused: bool = False

    @property
    def said(self) -> tuple[object, ...]:
        """All but the moment: what is recorded anew when it changes."""
        shown = (self.serial, self.health, self.supplies, self.leaks, self.firmware, self.control_plane)
        return (self.why, *shown, self.gaps, self.certificate, self.login_refused)
