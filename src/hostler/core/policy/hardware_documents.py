"""Checks what a SKU's hardware manifest says: what no machine could ever be is refused before any is taken for it."""

from collections.abc import Iterator

from hostler.core.state.configuration import Sku
from hostler.core.state.durations import duration
from hostler.core.state.hardware import MAX_NAME, MAX_VALUE, SCHEMA, pcie_link
from hostler.core.state.input_problems import WrongEntry

SENSORS_MOST_S = 4 * 3600.0
"""A watch fits into Seatrial's limit of six hours."""


def hardware_problems(sku: Sku) -> Iterator[WrongEntry]:
    """Problems of the SKU's hardware manifest."""
    manifest = sku.hardware
    if manifest is None:
        return
    place = ("skus", sku.name, "hardware")
    if manifest.schema != SCHEMA:
        told = f"SKU {sku.name}, hardware: schema {manifest.schema} is not known"
        yield WrongEntry(told, f"write {SCHEMA}: make it anew with `hostler sku from-node NODE`", (*place, "schema"))
    for slot, link in manifest.pcie.items():
        if pcie_link(link) is None:
            told = f"SKU {sku.name}, hardware: '{link}' of {slot} is no PCIe link"
            yield WrongEntry(told, "write lanes and rate, such as x16 32 GT/s", (*place, "pcie", slot))
    for field, rows in (("bios", manifest.bios), ("neighbours", manifest.neighbours)):
        for name, value in rows.items():
            if not 0 < len(name) <= MAX_NAME or len(value) > MAX_VALUE:
                told = f"SKU {sku.name}, hardware: {field} '{name[:40]}' is longer than what is read"
                yield WrongEntry(
                    told, f"a name has {MAX_NAME} characters at most, a value {MAX_VALUE}", (*place, field, name)
                )
    if manifest.sensors_s > SENSORS_MOST_S:
        told = f"SKU {sku.name}, hardware: {duration(manifest.sensors_s)} are too long to watch sensors"
        yield WrongEntry(told, f"write {SENSORS_MOST_S:g} at most: Seatrial has six hours", (*place, "sensors_s"))
    if manifest.supplies_needed and manifest.supplies_needed >= sku.parts.get("psu", manifest.supplies_needed + 1):
        told = (
            f"SKU {sku.name}, hardware: {manifest.supplies_needed} supplies needed of {sku.parts['psu']} leave no spare"
        )
        yield WrongEntry(
            told, "write fewer than parts.psu, or 0: no supply may fail there", (*place, "supplies_needed")
        )
