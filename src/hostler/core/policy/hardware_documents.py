"""Checks what a SKU's hardware manifest says: what no machine could ever be is refused before any is taken for it."""

from collections.abc import Iterator

from hostler.core.state.configuration import Sku
from hostler.core.state.durations import duration
from hostler.core.state.hardware import MAX_NAME, MAX_VALUE, SCHEMA, pcie_link

Found = tuple[tuple[str, ...], str, str]
"""Path in the document, what is wrong there, and what to write instead."""
SENSORS_MOST_S = 4 * 3600.0
"""A watch fits into Seatrial's limit of six hours."""


def hardware_problems(sku: Sku) -> Iterator[Found]:
    """Problems of the SKU's hardware manifest."""
    manifest = sku.hardware
    if manifest is None:
        return
    place = ("skus", sku.name, "hardware")
    if manifest.schema != SCHEMA:
        told = f"SKU {sku.name}, hardware: schema {manifest.schema} is not known"
        yield (*place, "schema"), told, f"write {SCHEMA}: make it anew with `hostler sku from-node NODE`"
    for slot, link in manifest.pcie.items():
        if pcie_link(link) is None:
            told = f"SKU {sku.name}, hardware: the link of {slot} is '{link}'"
            yield (*place, "pcie", slot), told, "write lanes and rate, such as x16 32 GT/s"
    for field, rows in (("bios", manifest.bios), ("neighbours", manifest.neighbours)):
        for name, value in rows.items():
            if not 0 < len(name) <= MAX_NAME or len(value) > MAX_VALUE:
                told = f"SKU {sku.name}, hardware: {field} '{name[:40]}' is longer than what is read"
                yield (*place, field, name), told, f"a name has {MAX_NAME} characters at most, a value {MAX_VALUE}"
    if manifest.sensors_s > SENSORS_MOST_S:
        told = f"SKU {sku.name}, hardware: sensors are watched for {duration(manifest.sensors_s)}"
        yield (*place, "sensors_s"), told, f"write {SENSORS_MOST_S:g} at most: Seatrial has six hours"
    if manifest.supplies_needed and manifest.supplies_needed >= sku.parts.get("psu", manifest.supplies_needed + 1):
        told = f"SKU {sku.name}, hardware: {manifest.supplies_needed} of {sku.parts['psu']} supplies carry the load"
        yield (*place, "supplies_needed"), told, "write fewer than parts.psu, or 0: no supply may fail there"
