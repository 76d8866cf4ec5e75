"""Checks what a SKU says of firmware: what could never be reached is refused before any node is taken for it."""

import re
from collections.abc import Iterator
from itertools import pairwise

from hostler.core.state.configuration import Sku
from hostler.core.state.firmware_updates import ACTIVATIONS, CYCLES, PART_KINDS, FirmwareUpdate
from hostler.core.state.firmware_versions import OR, is_older
from hostler.core.state.input_problems import WrongEntry

NAMES_MOST, NAME_CHARS = 64, 128
"""Models and slots of a component that an agent writes: an order carries them, and its answer repeats them."""
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


def firmware_problems(sku: Sku) -> Iterator[WrongEntry]:
    """Problems of the SKU's baseline."""
    for name, version in sku.firmware.items():
        if OR in version or "," in name or "=" in name or not version:
            told = f"SKU {sku.name}, firmware: {name} {version!r} cannot be asked for"
            place = ("skus", sku.name, "firmware", name)
            yield WrongEntry(told, "write one version; others are listed under `allowed`", place)
    for name, how in sku.updates.items():
        place = ("skus", sku.name, "updates", name)
        yield from (wrong.below(place, f"SKU {sku.name}, updates: {name}") for wrong in update_problems(sku, name, how))


def update_problems(sku: Sku, name: str, how: FirmwareUpdate) -> Iterator[WrongEntry]:
    """Problems of how one component is brought to the version that the SKU's `firmware` has for it."""
    if name not in sku.firmware:
        yield WrongEntry("the baseline has no version for it", "add it to `firmware`")
    if name in sku.images:
        yield WrongEntry("its image is given twice", "keep the one in `updates`")
    if how.activate not in ACTIVATIONS:
        yield WrongEntry(f"no activation '{how.activate}'", f"write one of {', '.join(ACTIVATIONS)}")
    if how.power not in ("", "on", "off"):
        yield WrongEntry(f"no power state '{how.power}'", "write on, off, or leave it out")
    for version, image, sha256 in ((sku.firmware.get(name, ""), how.image, how.sha256), *_stages(how)):
        if image and not _SHA256.fullmatch(sha256):
            yield WrongEntry(
                f"the image of {version} has no sha256", "write its SHA-256 in 64 hex digits (sha256sum FILE)"
            )
        if image and not image.startswith(("http://", "https://")):
            yield WrongEntry(
                f"the image of {version} is behind no http or https URL", "write a URL that is verified before use"
            )
    yield from _by_agent(how) if how.via == "agent" else _by_bmc(how)
    yield from _order(sku, name, how)
    yield from _needs(sku, how)


def _by_bmc(how: FirmwareUpdate) -> Iterator[WrongEntry]:
    for field in ("tool", "models", "slots"):
        if getattr(how, field):
            yield WrongEntry(f"`{field}` is for what an agent writes", "add `via: agent`, or remove it")


def _by_agent(how: FirmwareUpdate) -> Iterator[WrongEntry]:
    if how.tool is None:
        yield WrongEntry("an agent has no tool for it", f"write `tool`: one of {', '.join(PART_KINDS)}")
    if not how.models or not all(model.strip() for model in how.models):
        yield WrongEntry("it names no models", "write `models` as the inventory has them: no others are written")
    for field in ("models", "slots"):
        names = getattr(how, field)
        if len(names) > NAMES_MOST or any(len(one) > NAME_CHARS for one in names):
            yield WrongEntry(
                f"`{field}` are {len(names)}, or one is too long", f"{NAMES_MOST} at most, {NAME_CHARS} characters each"
            )
    if not how.image:
        yield WrongEntry("an agent has no image for it", "write `image` and `sha256`")
    if how.activate not in CYCLES:
        yield WrongEntry(
            f"activation '{how.activate}' does not make it run", f"write one of {', '.join(CYCLES)}: all power is taken"
        )
    if how.power == "off" or how.push or how.targets:
        yield WrongEntry("`power: off`, `push` and `targets` are a BMC's", "remove them: an agent writes while it runs")


def _stages(how: FirmwareUpdate) -> Iterator[tuple[str, str, str]]:
    for stage in how.through:
        yield stage.version, stage.image, stage.sha256


def _order(sku: Sku, name: str, how: FirmwareUpdate) -> Iterator[WrongEntry]:
    way = [*(stage.version for stage in how.through), sku.firmware.get(name, "")]
    for before, after in pairwise(way):
        if not is_older(before, after):
            yield WrongEntry(f"`through` leads from {before} to {after}, which is not newer", "list them oldest first")


def _needs(sku: Sku, how: FirmwareUpdate) -> Iterator[WrongEntry]:
    for other, least in how.needs.items():
        if how.via == "agent" or sku.updates.get(other, FirmwareUpdate()).via == "agent":
            yield WrongEntry(f"it needs {other}, and a BMC alone can be asked that", "give it a later `order` instead")
            continue
        target, before = sku.firmware.get(other, ""), sku.updates.get(other, FirmwareUpdate())
        if not target or is_older(target, least) is not False:
            yield WrongEntry(
                f"it needs {other} {least}, and its baseline is {target or 'missing'}",
                f"raise the baseline of {other}",
            )
        elif before.order >= how.order:
            yield WrongEntry(f"it needs {other}, which is not written before it", f"give {other} a lower order")
