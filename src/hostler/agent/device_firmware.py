"""Writes firmware to the parts of this machine that an order names by model and slot, and to no other.

Each part is asked first what it runs: one that runs a good version, or has the wanted one waiting for a reset, is left
alone, so that an order may be given twice. Nothing is written before all parts have answered and the image is verified.
"""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct

from hostler.agent import adapter_firmware, fwupd_firmware, nvme_firmware
from hostler.agent.device_state import DeviceState
from hostler.agent.drive_erasure import at_work_on_gpus
from hostler.agent.firmware_image import ImageLimits, fetched
from hostler.agent.host_commands import ActFailedError, FateUnknownError, NotPossibleError
from hostler.core.state.device_firmware import written_parts
from hostler.core.state.firmware_updates import DeviceTool
from hostler.core.state.firmware_versions import downgrade, is_older
from hostler.core.state.model import Facts, Part
from hostler.core.state.operations import VerifyDeviceFirmware, WriteDeviceFirmware


class DeviceFirmwareRules(Struct, frozen=True):
    """The folder of an image meanwhile, the file system that shows this machine, and limits of fetching.

    After `limit_s` no further part is begun; the step's own time is an hour and a half.
    """

    folder: Path
    root: Path = Path("/")
    limits: ImageLimits = ImageLimits()
    limit_s: float = 3600.0


class DeviceWay(Struct, frozen=True):
    """How one tool asks a part and writes it; `why_spared` says why it may be an InfiniBand adapter, "" for none."""

    state: Callable[[Part, Path], DeviceState]
    write: Callable[[Part, Path, Path], None]
    why_spared: Callable[[Part, Path], str]


WAYS: dict[DeviceTool, DeviceWay] = {
    "nvme": DeviceWay(nvme_firmware.state, nvme_firmware.write, lambda _part, _root: ""),
    "flint": DeviceWay(adapter_firmware.state, adapter_firmware.write, adapter_firmware.why_spared),
    "fwupd": DeviceWay(fwupd_firmware.state, fwupd_firmware.write, fwupd_firmware.why_spared),
}


def shown(tools: Iterable[DeviceTool], inventory: tuple[Part, ...]) -> tuple[Part, ...]:
    """The inventory's parts, and fwupd's where it is to write or read one. Raises NotPossibleError."""
    return (*inventory, *fwupd_firmware.parts()) if "fwupd" in tools else inventory


def write(order: WriteDeviceFirmware, parts: Iterable[Part], rules: DeviceFirmwareRules) -> str:
    """Write the version to each part that does not run a good one; one sentence on it.

    Raises NotPossibleError (nothing was written, or a part cannot be asked), ActFailedError, FateUnknownError.
    """
    until = time.monotonic() + rules.limit_s
    if at_work := at_work_on_gpus(rules.root):
        raise NotPossibleError(f"nothing was written: {at_work}")
    chosen, way = named(parts, order.tool, order.models, order.slots), WAYS[order.tool]
    if order.spares_infiniband:
        _spare_infiniband(way, chosen, rules.root)
    due = [part for part in chosen if _is_due(order, part, way.state(part, rules.root))]
    told = f"{order.component}: {len(chosen)} of {', '.join(order.models)}"
    if not due:
        return f"{told}, none needs {order.version}"
    with fetched(order.image, order.sha256, rules.folder, rules.limits) as image:
        for number, part in enumerate(due):
            if number and time.monotonic() >= until:
                done = f"{number} of {len(due)} were written within {rules.limit_s:.0f} s"
                raise NotPossibleError(f"{done}; the others follow once it is asked again")
            _written(way, part, image, rules.root, f"{number} of {len(due)} were written before it")
    return f"{told}, {order.version} was written to {', '.join(part.slot for part in due)}; it runs after a reset"


def named(parts: Iterable[Part], tool: DeviceTool, models: tuple[str, ...], slots: tuple[str, ...]) -> tuple[Part, ...]:
    """The parts that are named. Raises NotPossibleError where there is none, or one of the slots has none."""
    found = written_parts(parts, tool, models, slots)
    if missing := sorted(set(slots) - {part.slot for part in found}):
        raise NotPossibleError(f"nothing was done: {', '.join(missing)} shows none of {', '.join(models)}")
    if not found:
        raise NotPossibleError(f"nothing was done: this machine shows none of {', '.join(models)}")
    return found


def _spare_infiniband(way: DeviceWay, chosen: Iterable[Part], root: Path) -> None:
    spared = [why for part in chosen if (why := way.why_spared(part, root))]
    if spared:
        raise NotPossibleError(f"nothing was written: {'; '.join(spared[:4])}")


def _is_due(order: WriteDeviceFirmware, part: Part, seen: DeviceState) -> bool:
    """Whether the part is to be written. Raises ActFailedError where that would take it back to an older version."""
    if seen.runs in (order.version, *order.good) or seen.waits == order.version:
        return False
    if order.at_least and is_older(seen.runs, order.at_least) is False:
        return False
    if why := downgrade(seen.runs, order.version, allowed=order.downgrade):
        raise ActFailedError(f"{part.slot} ({part.serial}): {why}; nothing was written")
    return True


def _written(way: DeviceWay, part: Part, image: Path, root: Path, before: str) -> None:
    try:
        way.write(part, image, root)
    except (ActFailedError, FateUnknownError, NotPossibleError) as error:
        raise type(error)(f"{part.slot} ({part.serial}) was not written: {error}; {before}"[:900]) from error


class DevicesRead(Struct, frozen=True):
    """Versions by component as the inventory shows them, and what is wrong with them, "" for nothing."""

    facts: Facts
    wrong: str = ""


def read(order: VerifyDeviceFirmware, parts: Iterable[Part]) -> DevicesRead:
    """Hold the inventory against the versions that are wanted. Raises NotPossibleError where it shows none."""
    shown, facts, wrong = tuple(parts), dict[str, str](), list[str]()
    for name, wanted in order.wanted.items():
        found = named(shown, wanted.tool, wanted.models, wanted.slots)
        if mute := [part.slot for part in found if not part.firmware]:
            raise NotPossibleError(f"{name}: the inventory shows no version of {', '.join(mute)}")
        off = [part for part in found if part.firmware not in wanted.good]
        runs = {part.firmware for part in off} or {max((p.firmware for p in found), key=wanted.good.index)}
        facts[name] = ",".join(sorted(runs))
        if off:
            said = ", ".join(f"{part.slot} ({part.serial}) runs {part.firmware}" for part in off[:8])
            wrong.append(f"{name}: {said}, wanted {' or '.join(wanted.good)}")
    return DevicesRead(dict(facts), "; ".join(wrong)[:900])
