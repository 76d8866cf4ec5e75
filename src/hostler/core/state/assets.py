"""Assets: things with a place in the hall, and the names that the outside has for them."""

import re
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from hostler.core.state.bmc_certificate import BmcCertificate
from hostler.core.state.bmc_login import BmcLogin
from hostler.core.state.racks import AssetLook
from hostler.core.state.scopes import RACK, Scope

PROVIDER = "provider"
DPU_BMC = "dpu_bmc"
"""The binding that names the BMCs of all DPUs of the node by their Redfish addresses, with spaces between."""
BMC_CERTIFICATE, MAC = "bmc_certificate", "mac"
"""Bindings: the certificate (SHA-256, hex) by which a node's BMC is known; one address of a network adapter."""
OUTLET = "outlet"
"""The binding that names all outlets of PDUs that feed the node, with spaces between."""


_MAC_DIGITS = re.compile(r"[0-9a-f]{12}")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


def normal_mac(text: str) -> str:
    """The MAC address as nodes have it and boots show it: six pairs in small letters, with colons.

    Hyphens, dots and no separators are understood; what is no address stays as it is written, for whoever refuses it.
    """
    written = text.strip().lower()
    digits = written.translate(_SEPARATORS)
    if not _MAC_DIGITS.fullmatch(digits):
        return written
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2))


_SEPARATORS = str.maketrans("", "", ":-.")


def is_mac(text: str) -> bool:
    """Whether the text is a MAC address as `normal_mac` writes one."""
    return _MAC.fullmatch(text) is not None


class AssetKind(StrEnum):
    """Kind of an asset."""

    node = "node"
    switch_tray = "switch_tray"
    nvlink_domain = "nvlink_domain"
    power_shelf = "power_shelf"
    rack = "rack"
    dpu = "dpu"
    bmc = "bmc"
    switch = "switch"
    coolant_unit = "coolant_unit"
    pdu = "pdu"


class Position(Struct, frozen=True):
    """Place of an asset. `cell` owns it; `u` is the lowest rack unit, 0 where unknown."""

    cell: str
    site: str = ""
    row: str = ""
    rack: str = ""
    u: int = 0


class Binding(Struct, frozen=True):
    """A name that the outside has for an asset, and the interval in which it held.

    `kind` is one of serial, bmc, bmc_certificate, mac, kubernetes, slurm. Drivers check it before they act.
    """

    kind: str
    value: str
    since: datetime
    until: datetime | None = None


class Asset(Struct, frozen=True):
    """A thing with a position that is not a node: rack, NVLink domain, switch tray, power shelf, switch.

    Its own lifecycle is `asset_states.ASSET_TRANSITIONS`. `look`: what its own BMC showed last, None before.
    `bmc_certificate` and `bmc_login`: what came of renewals of its BMC's certificate and password. `dark`: a bring-up
    has switched it off, and not on again. `wet`: its detectors that were wet and have not said since that they are dry.
    """

    id: str
    kind: AssetKind
    position: Position
    bindings: tuple[Binding, ...] = ()
    domains: tuple[Scope, ...] = ()
    state: str = "in_service"
    look: AssetLook | None = None
    bmc_certificate: BmcCertificate | None = None
    bmc_login: BmcLogin | None = None
    dark: bool = False
    wet: tuple[str, ...] = ()

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Scopes whose holds and pauses reach it: its rack, its own, and the domains that it is in."""
        return (Scope(RACK, self.position.rack), Scope("", self.id), *self.domains)

    def binding(self, kind: str) -> str:
        """The current value of the binding of this kind, "" where there is none."""
        return next((b.value for b in self.bindings if b.kind == kind and b.until is None), "")
