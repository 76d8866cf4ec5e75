"""Boots over the network: what a node was given last, strangers, and the site's boot configuration."""

from datetime import datetime
from typing import Any

from msgspec import Struct, field

LOCAL_DISK, HOLD = "local-disk", "hold"
"""Answers that may be configured in the place of an image's name."""

LOADER = "loader"
"""Kind of a boot that has come as far as its boot loader, which the machine's UEFI fetched by HTTP."""


PCRS = 8
"""Registers of firmware, its settings, boot loader and Secure Boot (TCG PC Client Platform Firmware Profile, 3.3.4)."""


class BootRecord(Struct, frozen=True):
    """Answer to a node's last boot over the network, and how far that boot has come.

    `plan` is the plan whose recorded power-on opened the boot window, "" for a boot outside any. `kind` is loader,
    image, local-disk or hold; `identity` is "bmc" where the machine showed the secret that its BMC was given, "mac"
    where it showed no more than its MAC address. `seeded`: when cloud-init's data were given, `home`: when the node
    phoned home.
    `refused` counts refusals, the last at `refused_at`. `agent` is the SHA-256 of the key with which the boot's agent
    enrolled, `tpm` that of the TPM's endorsement key that it proved, each "" for none. `pcrs` are the values (SHA-256,
    hex) of the TPM's registers 0 to 7 as it quoted them in this boot, () where it sent no quote.
    """

    plan: str
    at: datetime
    kind: str = ""
    image: str = ""
    identity: str = ""
    reason: str = ""
    address: str = ""
    seeded: datetime | None = None
    home: datetime | None = None
    refused: int = 0
    refused_at: datetime | None = None
    agent: str = ""
    tpm: str = ""
    pcrs: tuple[str, ...] = ()


class Stranger(Struct, frozen=True):
    """A machine that asked for a boot and is not expected: no node has its MAC address. It was booted into nothing.

    One without a MAC address stands for all machines of the boot network that showed no secret and said too much:
    `count` of their requests were not recorded, `why` says so.
    """

    mac: str
    serial: str
    address: str
    at: datetime
    count: int = 1
    why: str = ""


class BootImage(Struct, frozen=True, forbid_unknown_fields=True):
    """Image to boot: paths in the image folder, the sha256 of each, and the kernel's arguments."""

    kernel: str
    initrd: tuple[str, ...] = ()
    sha256: dict[str, str] = {}
    arch: str = "x86_64"
    args: str = ""
    name: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of the kernel and its initial file systems."""
        return (self.kernel, *self.initrd)


class BootLoader(Struct, frozen=True, forbid_unknown_fields=True):
    """The EFI binary that UEFI HTTP boot fetches for one architecture: its path in the image folder, and its sha256."""

    file: str
    sha256: str


class BootAgent(Struct, frozen=True, forbid_unknown_fields=True):
    """The node agent that each boot installs and that enrols by itself.

    `package` is a Debian package in the image folder, with its `sha256`; `server` names the controllers as nodes reach
    them, `ca` their authority as PEM, `options` further options of the agent's unit. `tpm_authorities` are those of the
    makers of the nodes' TPMs, PEM: with them an agent enrols only where a TPM with their certificate proves itself.
    """

    package: str
    sha256: str
    server: str
    ca: str
    options: str = ""
    tpm_authorities: str = ""


class BootMedia(Struct, frozen=True, forbid_unknown_fields=True):
    """Boot media for machines whose BMC keeps no HTTP boot address: an ISO image for each architecture.

    Each is a path in the image folder, with its sha256 (`hostler boot medium` makes it); the script of each boot goes
    where it has room for it. `url` is where BMCs reach the boot listener, "" for where nodes do.
    """

    files: dict[str, BootLoader]
    url: str = ""


class CloudInitLayer(Struct, frozen=True, forbid_unknown_fields=True):
    """One layer (the site, a SKU, a pool, a node) of cloud-init's data; `network` is netplan, version 2."""

    user_data: dict[str, Any] = {}
    vendor_data: dict[str, Any] = {}
    meta_data: dict[str, Any] = {}
    network: dict[str, Any] = {}


class CloudInitLayers(Struct, frozen=True, forbid_unknown_fields=True):
    """Layers of cloud-init's data; a later one wins: site, SKU, pool, node."""

    site: CloudInitLayer = field(default_factory=CloudInitLayer)
    skus: dict[str, CloudInitLayer] = {}
    pools: dict[str, CloudInitLayer] = {}
    nodes: dict[str, CloudInitLayer] = {}


class BootConfiguration(Struct, frozen=True, forbid_unknown_fields=True):
    """How nodes boot over the network.

    `url` is where nodes reach the boot listener. `images` is the catalogue; the names production, burn_in, firmware and
    inspection are given by phase (`core.boot.answer`), unless `phases` or, for production, `pools` name another image,
    "local-disk" or "hold". `loaders` are boot loaders for UEFI HTTP boot, by architecture. `mac_only` lets machines
    boot that show no more than a MAC address. `cluster` is the Kubernetes cluster that nodes enter at their first boot,
    "" for none. `agent` is what each boot installs to be heard, None for an image that brings its own agent and token.
    `media` go into virtual drives where a BMC keeps no HTTP boot address, None for none.
    """

    url: str
    images: dict[str, BootImage] = {}
    loaders: dict[str, BootLoader] = {}
    phases: dict[str, str] = {}
    pools: dict[str, str] = {}
    mac_only: bool = False
    cluster: str = ""
    cloud_init: CloudInitLayers = field(default_factory=CloudInitLayers)
    agent: BootAgent | None = None
    media: BootMedia | None = None
