"""Firmware of an NVMe drive by nvme-cli: what runs, what waits for a reset, and how another version is written.

`fw-download` hands the image over, `fw-commit` puts it into a slot that the drive chooses (0) and makes it run after
the next reset (action 1): nvme-cli's nvme-fw-download(1) and nvme-fw-commit(1); NVM Express base specification 2.0,
sections 5.12 and 5.13. Where the drive wants more than a controller's reset, nvme-cli ends with 1 and says "Success
activating firmware action:1 slot:0, but firmware requires conventional reset" (`fw_commit` in its nvme.c): a power
cycle is one.
"""

import re
from pathlib import Path

from hostler.agent import nvme_wire
from hostler.agent.block_devices import BlockDevice, devices
from hostler.agent.device_state import DeviceState
from hostler.agent.host_commands import ActFailedError, FateUnknownError, NotPossibleError, act
from hostler.core.state.model import Part

ASK_S, DOWNLOAD_S, COMMIT_S = 30.0, 600.0, 300.0
"""A drive may take its MTFA, some tens of seconds, and a slow one minutes, to verify what it was handed."""
_LATER = re.compile(r"^Success activating firmware action:1 .*but firmware requires .*reset", re.MULTILINE)


def state(part: Part, root: Path) -> DeviceState:
    """The versions that the drive itself tells. Raises NotPossibleError where none or another one answers."""
    device = _device(part, root)
    said = nvme_wire.firmware(_asked(device, "id-ctrl").encode())
    if said is None:
        raise NotPossibleError(f"{part.slot}: nvme's answer cannot be read; install nvme-cli 2.0 or later")
    if (said.serial, said.model) != (part.serial, part.model.strip()):
        raise NotPossibleError(
            f"{part.slot} says that it is {said.model} {said.serial}, not {part.model} {part.serial}; look at it"
        )
    if not said.can_write:
        raise NotPossibleError(f"{part.slot} ({part.serial}) takes no firmware: it has no slot that can be written")
    return DeviceState(said.runs, nvme_wire.next_firmware(_asked(device, "fw-log").encode()))


def write(part: Part, image: Path, root: Path) -> None:
    """Hand the image over and commit it. Raises the errors of `host_commands`."""
    controller = _device(part, root).controller
    act(("nvme", "fw-download", controller, f"--fw={image}"), DOWNLOAD_S)
    act(("nvme", "fw-commit", controller, "--slot=0", "--action=1"), COMMIT_S, fine=_LATER)


def _device(part: Part, root: Path) -> BlockDevice:
    found = next((one for one in devices(root) if one.name == part.slot and one.serial == part.serial), None)
    if found is None or not found.is_nvme:
        raise NotPossibleError(
            f"{part.slot} ({part.serial}) is no NVMe drive of this machine, or shows no serial number"
        )
    return found


def _asked(device: BlockDevice, what: str) -> str:
    try:
        return act(("nvme", what, device.controller, "-o", "json"), ASK_S)
    except (ActFailedError, FateUnknownError) as error:
        raise NotPossibleError(f"{device.name} cannot be asked for its {what}: {error}") from error
