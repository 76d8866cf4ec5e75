"""Firmware of whatever fwupd has a plugin for, such as retimers: by `fwupdmgr`, one device at a time.

`get-devices --json` (fwupd 1.9.5 and later) lists devices with DeviceId, Guid, Version and Flags; `install FILE
DEVICE-ID` writes that device alone. It ends with 0, with 2 where there was nothing to do, and with 1 where it failed:
fwupdmgr(1). fwupd itself verifies that the archive is meant for the device, and signed by whom it trusts.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from hostler.agent.device_state import DeviceState
from hostler.agent.host_commands import ActFailedError, FateUnknownError, NotPossibleError, act
from hostler.core.state.firmware_updates import PART_KINDS
from hostler.core.state.input_problems import UNREADABLE
from hostler.core.state.model import Part

ASK_S, INSTALL_S = 60.0, 1800.0
_VENDOR_OF_ADAPTERS = "15B3"


def parts() -> tuple[Part, ...]:
    """Devices as parts: slot and serial are fwupd's DeviceId, the model is a GUID; one for each GUID of a device."""
    return tuple(
        Part(_text(device, "DeviceId"), PART_KINDS["fwupd"], guid, _text(device, "DeviceId"), _text(device, "Version"))
        for device in _devices()
        for guid in _listed(device, "Guid")
    )


def state(part: Part, _root: Path) -> DeviceState:
    """The version that fwupd reads from the device. Raises NotPossibleError where it cannot be written."""
    device = _device(part)
    if "updatable" not in _listed(device, "Flags"):
        raise NotPossibleError(
            f"{part.slot} ({_text(device, 'Name')}) takes no firmware: fwupd does not call it updatable"
        )
    if not _text(device, "Version"):
        raise NotPossibleError(f"{part.slot} ({_text(device, 'Name')}): fwupd names no version of its firmware")
    return DeviceState(_text(device, "Version"))


def write(part: Part, image: Path, _root: Path) -> None:
    """Install the image on this device. Raises the errors of `host_commands`."""
    act(("fwupdmgr", "install", str(image), part.slot, "--assume-yes", "--no-reboot-check"), INSTALL_S)


def why_spared(part: Part, _root: Path) -> str:
    """Why the device may be an InfiniBand adapter: it is of the vendor that makes them; "" where it is not."""
    is_one = _VENDOR_OF_ADAPTERS in msgspec.json.encode(_device(part)).decode().upper()
    return f"{part.slot} is of the vendor 15b3, and an InfiniBand adapter is spared" if is_one else ""


def _device(part: Part) -> dict[str, Any]:
    found = next((one for one in _devices() if _text(one, "DeviceId") == part.slot), None)
    if found is None:
        raise NotPossibleError(f"fwupd lists {part.slot} no more")
    return found


def _devices() -> Iterator[dict[str, Any]]:
    """Raises NotPossibleError where fwupd does not answer."""
    try:
        said = msgspec.json.decode(act(("fwupdmgr", "get-devices", "--json"), ASK_S))
    except (ActFailedError, FateUnknownError) as error:
        raise NotPossibleError(f"fwupd cannot be asked: {error}") from error
    except UNREADABLE as error:
        raise NotPossibleError(f"fwupd's answer cannot be read; install fwupd 1.9.5 or later: {error}") from error
    listed = said.get("Devices") if isinstance(said, dict) else None
    yield from (one for one in listed or () if isinstance(one, dict) and _text(one, "DeviceId"))


def _text(device: dict[str, Any], name: str) -> str:
    value = device.get(name)
    return value[:128] if isinstance(value, str) else ""


def _listed(device: dict[str, Any], name: str) -> list[str]:
    value = device.get(name)
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
