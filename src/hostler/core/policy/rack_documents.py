"""Checks what a SKU's rack manifest says: counts that no rack could have are refused."""

from collections.abc import Iterator

from hostler.core.state.configuration import Sku
from hostler.core.state.input_problems import WrongEntry
from hostler.core.state.racks import LISTED_MOST


def rack_problems(sku: Sku) -> Iterator[WrongEntry]:
    """Problems of the SKU's rack manifest."""
    rack = sku.rack
    if rack is None:
        return
    counts = {
        "power_shelves": rack.power_shelves,
        "supplies_needed": rack.supplies_needed,
        "leak_detectors": rack.leak_detectors,
        "switch_trays": rack.switch_trays,
    }
    for field, count in counts.items():
        if not 0 <= count <= LISTED_MOST:
            told = f"SKU {sku.name}, rack: {count} {field.replace('_', ' ')}"
            yield WrongEntry(told, f"write 0 (not judged) to {LISTED_MOST}", ("skus", sku.name, "rack", field))
