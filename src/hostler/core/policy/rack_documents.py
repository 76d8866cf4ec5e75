"""Checks what a SKU's rack manifest says: counts that no rack could have are refused."""

from collections.abc import Iterator

from hostler.core.policy.firmware_documents import update_problems
from hostler.core.state.configuration import Sku
from hostler.core.state.firmware_updates import TRAY_CYCLES
from hostler.core.state.input_problems import WrongEntry
from hostler.core.state.racks import LISTED_MOST, is_system


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
        "coolant_units": rack.coolant_units,
        "control_planes": rack.control_planes,
        "compute_trays": rack.compute_trays,
    }
    for field, count in counts.items():
        if not 0 <= count <= LISTED_MOST:
            told = f"SKU {sku.name}, rack: {count} {field.replace('_', ' ')}"
            yield WrongEntry(told, f"write 0 (not judged) to {LISTED_MOST}", ("skus", sku.name, "rack", field))
    versions = {**rack.shelf_firmware, **rack.coolant_firmware, **rack.switch_firmware}
    bundle = Sku(sku.name, gpus=0, firmware=versions, updates=rack.updates)
    for name, how in rack.updates.items():
        place = ("skus", sku.name, "rack", "updates", name)
        told = f"SKU {sku.name}, rack, updates: {name}"
        yield from (wrong.below(place, told) for wrong in update_problems(bundle, name, how))
        by_bmc = bool(how.needs or how.through or how.push or how.targets)
        if is_system(name) and (by_bmc or name not in rack.switch_firmware):
            text = f"{told}: a switch tray's own system is installed by its own API, and by nothing else"
            yield WrongEntry(text, "name it in switch_firmware; leave out needs, through, push and targets", place)
        if is_system(name) and how.activate == "bmc_reset":
            text = f"{told}: bmc_reset does not make it run, as a tray's own system runs beside its BMC"
            yield WrongEntry(text, f"write none, {' or '.join(TRAY_CYCLES)}", (*place, "activate"))
        if how.via == "agent":
            yield WrongEntry(f"{told}: no agent runs on a rack's asset", "remove `via`: its BMC writes it", place)
        if how.activate in ("outlet_cycle", "unplug"):
            text = f"{told}: {how.activate} is for nodes: nobody waits for the outlets or cords of a rack's asset"
            others = "none" if is_system(name) else "none, bmc_reset"
            yield WrongEntry(text, f"write {others}, {' or '.join(TRAY_CYCLES)}", (*place, "activate"))
        if name not in rack.switch_firmware and how.activate not in ("none", "bmc_reset"):
            text = f"{told}: {how.activate} of a power shelf or coolant unit takes power or coolant off the whole rack"
            yield WrongEntry(text, "write none or bmc_reset", (*place, "activate"))
