"""How a component is brought to its baseline: its image, what makes it run, and what has to come before."""

from typing import Literal

from msgspec import Struct

Via = Literal["bmc", "agent"]
DeviceTool = Literal["nvme", "flint", "fwupd"]
"""Programs by which an agent writes firmware: nvme-cli to NVMe drives, NVIDIA's flint (or mstflint) to adapters, fwupd
to whatever it has a plugin for."""
PART_KINDS: dict[DeviceTool, str] = {"nvme": "drive", "flint": "nic", "fwupd": "fwupd"}
"""Tool → the kind of parts that it writes to; fwupd's are in no inventory but its own."""

ACTIVATIONS = ("none", "bmc_reset", "dc_cycle", "ac_cycle", "outlet_cycle", "unplug")
"""Acts that make written firmware run, the deepest last: none, the BMC restarted, a power cycle, mains off and on by
the BMC, by the outlets of the rack's PDUs, and by a technician who pulls the cords."""

CYCLES = ("dc_cycle", "ac_cycle", "outlet_cycle", "unplug")
"""Activations that take the machine's power away, and so make run what an agent has written."""


TRAY_CYCLES = ("dc_cycle", "ac_cycle")
"""Power cycles of a switch tray, by its own BMC: a busbar that the whole rack shares feeds it."""


class FirmwareStage(Struct, frozen=True, forbid_unknown_fields=True):
    """A version that must run before the next one may be written, as its BMC reports it, and its image."""

    version: str
    image: str
    sha256: str


class FirmwareUpdate(Struct, frozen=True, forbid_unknown_fields=True):
    """How one component of a SKU is brought to its baseline.

    `image` is fetched by the BMC, or pushed to it where it takes pushes only or `push` says so; it is offered to no BMC
    unless its bytes have `sha256`. Components of the lowest `order` are written first; those of one order share the
    deepest of their activations (`activate`, one of ACTIVATIONS). `allowed`: versions that are left as they are.
    `through`: versions to be passed through, oldest first. `needs`: components that must run at least these versions
    before. `power`: on or off while it is written, "" for either. A version that is not known to be older is never
    written over a newer one, unless `downgrade`. `targets`: what the BMC is told to write, where it is not the
    component's own entry. `infiniband`: whether it is an InfiniBand adapter, None to tell by its name.

    `via` agent: the node's agent writes it with `tool`, to the parts of these `models` alone, as its inventory names
    them; where `slots` are named to those in them, each of which has to be there. Of fwupd the model is a GUID, the
    slot a DeviceId.
    """

    image: str = ""
    sha256: str = ""
    order: int = 0
    activate: str = "dc_cycle"
    allowed: tuple[str, ...] = ()
    through: tuple[FirmwareStage, ...] = ()
    needs: dict[str, str] = {}
    power: str = ""
    downgrade: bool = False
    push: bool = False
    targets: tuple[str, ...] = ()
    infiniband: bool | None = None
    via: Via = "bmc"
    tool: DeviceTool | None = None
    models: tuple[str, ...] = ()
    slots: tuple[str, ...] = ()
