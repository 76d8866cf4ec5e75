"""Nouns of a rack beside its nodes: a look at an asset through its own BMC, and the manifest that a SKU has of it."""

from datetime import datetime

from msgspec import Struct

Words = tuple[tuple[str, str], ...]
"""Name → word or version, as the BMC writes it, words in lower case."""

LISTED_MOST = 256
"""Supplies, detectors or components of one asset that are kept."""


class RackManifest(Struct, frozen=True, forbid_unknown_fields=True):
    """Contents of the rack that nodes of a SKU stand in; 0 and {} are not judged.

    `supplies_needed`: so many supplies of each power shelf carry the load, one more has to be well. `leak_detectors`:
    so many in the rack have to say that they are dry, beside those in its nodes. `switch_firmware`: component of a
    switch tray → version, as its BMC reports it; the rack's one bundle.
    """

    power_shelves: int = 0
    supplies_needed: int = 0
    leak_detectors: int = 0
    switch_trays: int = 0
    switch_firmware: dict[str, str] = {}


class AssetLook(Struct, frozen=True):
    """One look at an asset through its own BMC. `why`: why nothing was read, "" where something was.

    `health` is the BMC's word for the whole, which excuses no part of it. `gaps` are what could not be read, and why.
    """

    at: datetime
    why: str = ""
    serial: str = ""
    health: str = ""
    supplies: Words = ()
    leaks: Words = ()
    firmware: Words = ()
    gaps: tuple[str, ...] = ()

    @property
    def said(self) -> tuple[object, ...]:
        """All but the moment: what is recorded anew when it changes."""
        return (self.why, self.serial, self.health, self.supplies, self.leaks, self.firmware, self.gaps)
