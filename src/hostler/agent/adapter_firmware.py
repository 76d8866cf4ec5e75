"""Firmware of a ConnectX adapter by NVIDIA's flint, or by mstflint, which takes the same words.

`query` prints "FW Version:" for what is in the flash and "FW Version(Running):" where another one runs; `burn` verifies
the image's PSID against the adapter's and ends with 1 where they differ ("-E- PSID mismatch"). An adapter that was
written and not reset refuses another burn: "The firmware image was already updated on flash, pending reset". Sources:
NVIDIA Firmware Tools (MFT) documentation, "flint - Firmware Burning Tool"; mstflint's flint/subcommands.cpp and
fw_comps_mgr.cpp.
"""

import re
from pathlib import Path
from shutil import which

from hostler.agent.collectors.kernel_files import children_of, text_of
from hostler.agent.device_state import DeviceState
from hostler.agent.host_commands import ActFailedError, FateUnknownError, NotPossibleError, act
from hostler.core.state.model import Part

ASK_S, BURN_S = 60.0, 900.0
TOOLS = ("flint", "mstflint")
_RUNNING = re.compile(r"^FW Version\(Running\):\s+(\S+)\s*$", re.MULTILINE)
_FLASH = re.compile(r"^FW Version:\s+(\S+)\s*$", re.MULTILINE)
_WRITTEN = re.compile(r"already updated on flash, pending reset")
_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def state(part: Part, root: Path) -> DeviceState:
    """The versions that flint reads from the adapter. Raises NotPossibleError where it reads nothing."""
    try:
        printed = act((_tool(), "-d", address(part, root), "query"), ASK_S)
    except (ActFailedError, FateUnknownError) as error:
        raise NotPossibleError(f"{part.slot} cannot be asked for its firmware: {error}") from error
    flash, running = _FLASH.search(printed), _RUNNING.search(printed)
    if flash is None:
        raise NotPossibleError(f"{part.slot}: flint names no version of its firmware")
    return DeviceState(running[1], flash[1]) if running else DeviceState(flash[1])


def write(part: Part, image: Path, root: Path) -> None:
    """Burn the image. Raises the errors of `host_commands`."""
    act((_tool(), "-d", address(part, root), "-i", str(image), "-y", "burn"), BURN_S, fine=_WRITTEN)


def address(part: Part, root: Path) -> str:
    """The PCI address of the part, which goes by its InfiniBand device, its interface, or its address."""
    for kind in ("infiniband", "net"):
        device = root / "sys/class" / kind / part.slot / "device"
        if device.exists():
            return device.resolve().name
    if _ADDRESS.fullmatch(part.slot) and (root / "sys/bus/pci/devices" / part.slot).exists():
        return part.slot
    raise NotPossibleError(f"{part.slot} ({part.serial}) is no adapter of this machine")


def why_spared(part: Part, root: Path) -> str:
    """Why the card may be an InfiniBand adapter, "" where each port of its functions says that it is Ethernet."""
    card = address(part, root).partition(".")[0]
    functions = [
        one
        for one in children_of(root / "sys/class/infiniband")
        if (one / "device").resolve().name.partition(".")[0] == card
    ]
    layers = {text_of(port / "link_layer") for one in functions for port in children_of(one / "ports")}
    if layers == {"Ethernet"}:
        return ""
    told = " and ".join(sorted(filter(None, layers))) or "nothing"
    return (
        f"{part.slot} ({part.serial}) shows {told} as the link layer of its ports, and an InfiniBand adapter is spared"
    )


def _tool() -> str:
    """Raises NotPossibleError where neither is installed."""
    found = next((name for name in TOOLS if which(name)), "")
    if not found:
        raise NotPossibleError(
            "neither flint nor mstflint is installed on this node (package mstflint, or NVIDIA's MFT)"
        )
    return found
