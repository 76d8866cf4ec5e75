"""Judges a node's GPUs against what a gate expects: every one by name, every reading that decides.

The rules of single readings are those of the watch (`diagnose.gpu`). Here a reading that is missing has not passed.
"""

from collections.abc import Sequence

from hostler.core.diagnose.aspect import BETWEEN, GOOD, AspectReading, number
from hostler.core.diagnose.gate.readings import GateLook, GateReadings, SeenGpu
from hostler.core.diagnose.gpu import GPU_ASPECTS
from hostler.core.state.gate_expectation import Expected, ExpectedGpu
from hostler.core.state.model import Facts, Verdict

NEEDED = tuple(name for name, aspect in GPU_ASPECTS.items() if aspect.expected)
"""Readings that every GPU must give, unless its SKU says that the model has none."""
ALSO = ("recovery", "sram", "nvlinks", "fabric", "fabric_health")
"""Readings that decide where a GPU gives them; links and fabric must be given where the SKU speaks of them."""
GPU_READINGS = (*NEEDED, "nvlinks", "fabric")
"""Readings that a gate may wait for."""
SETTLING = tuple(name for name, aspect in GPU_ASPECTS.items() if aspect.raise_polls > 1)
"""Aspects that a driver which has just started may show wrongly for a while."""
_READING_OF = {"row_remap": ("remap", "retired_pages"), "thermal": ("temperature", "clock_events")}
_ALSO_OF = {"slowdown": ("clock_events",), "pcie": ("pcie_width", "pcie_width_max"), "lost": ("handle",)}


def look_at_gpus(expected: Expected, readings: GateReadings) -> list[GateLook]:
    """A look for every GPU that is expected or there, and one for their number."""
    if not expected.gpus and not expected.known and not readings.gpus and not readings.pci_gpus:
        return []
    if readings.nvml != "answers":
        return _unseen(expected, readings)
    left, found = list(readings.gpus), []
    for gpu in expected.known:
        seen = match(gpu, left)
        found.append((gpu, seen))
        if seen is not None:
            left.remove(seen)
    looks = [_look(gpu, seen, expected, readings) for gpu, seen in found if seen is not None]
    gone = [gpu for gpu, seen in found if seen is None]
    put_in = [_look(name_of(seen), seen, expected, readings) for seen in left]
    if gone and not expected.same and len(left) == len(gone):
        names = ", ".join(gpu.name for gpu in gone)
        put_in = [GateLook(one.name, one.verdict, f"in place of {names}: {one.found}") for one in put_in]
        gone, left = [], []
    looks += [_look(gpu, None, expected, readings) for gpu in gone]
    return [*looks, *put_in, _count(expected, readings, left)]


def is_settling(expected: Expected, readings: GateReadings) -> bool:
    """Whether a driver that has just started may show something else in a moment."""
    if readings.nvml != "answers":
        return readings.nvml in ("absent", "crashed", "busy")
    if len(readings.gpus) < max(expected.gpus, len(readings.pci_gpus or ())):
        return True
    prepared = [_prepared(seen, expected, readings) for seen in readings.gpus]
    return any(GPU_ASPECTS[name].judge(facts).mark.startswith("bad") for facts in prepared for name in SETTLING)


def match(gpu: ExpectedGpu, seen: Sequence[SeenGpu]) -> SeenGpu | None:
    """The GPU that bears these names: by serial or UUID; by its address only where neither can be compared."""
    for name in filter(None, (gpu.serial, gpu.uuid)):
        if (one := next((s for s in seen if name in (s.facts.get("serial"), s.facts.get("uuid"))), None)) is not None:
            return one
    here = next((s for s in seen if gpu.pci and s.pci == gpu.pci), None)
    if here is None or (gpu.serial and here.facts.get("serial")) or (gpu.uuid and here.facts.get("uuid")):
        return None
    return here


def name_of(seen: SeenGpu) -> ExpectedGpu:
    """The names of a GPU that nobody expected by name."""
    serial, uuid = seen.facts.get("serial"), seen.facts.get("uuid")
    return ExpectedGpu("", str(serial or ""), str(uuid or ""), seen.pci)


def _unseen(expected: Expected, readings: GateReadings) -> list[GateLook]:
    """NVML tells nothing: a GPU that PCI misses, and one whose call hangs, have failed; nobody has seen the others."""
    why = f"NVML is {readings.nvml}: {readings.reason}"
    looks = []
    for gpu in expected.known:
        if gpu.pci and readings.pci is not None and gpu.pci not in readings.pci:
            looks.append(GateLook(f"gpu {gpu.name}", Verdict.failed, f"not on PCI at {gpu.pci}; {why}"))
        elif readings.nvml == "hung" and gpu.pci and readings.hung_at == gpu.pci and _is_faulted(gpu, expected):
            looks.append(
                GateLook(f"gpu {gpu.name}", Verdict.failed, f"a call about it does not return: {readings.reason}")
            )
        else:
            looks.append(GateLook(f"gpu {gpu.name}", Verdict.inconclusive, why))
    return looks or [GateLook("gpus", Verdict.inconclusive, f"{expected.gpus} expected; {why}")]


def _is_faulted(gpu: ExpectedGpu, expected: Expected) -> bool:
    return any(fault.gpu is not None and fault.gpu.name == gpu.name for fault in expected.faulted)


def _count(expected: Expected, readings: GateReadings, unexpected: list[SeenGpu]) -> GateLook:
    wanted, seen = max(expected.gpus, len(expected.known)), len(readings.gpus)
    on_pci = readings.pci_gpus
    shown = f"{seen} answer NVML, {'unknown' if on_pci is None else len(on_pci)} on PCI, {wanted or 'any'} expected"
    if on_pci is None:
        return GateLook("gpus", Verdict.inconclusive, f"{shown}: PCI could not be read")
    if seen < max(wanted, len(on_pci)):
        return GateLook("gpus", Verdict.failed, shown)
    if wanted and seen > wanted:
        names = ", ".join(name_of(gpu).name for gpu in unexpected)
        return GateLook("gpus", Verdict.inconclusive, f"{shown}; nobody expected {names}")
    return GateLook("gpus", Verdict.passed, shown)


def _look(gpu: ExpectedGpu, seen: SeenGpu | None, expected: Expected, readings: GateReadings) -> GateLook:
    name = f"gpu {gpu.name}"
    if seen is None:
        on_pci = readings.pci is not None and gpu.pci in readings.pci
        where = f"on PCI at {gpu.pci}, " if on_pci else f"not on PCI at {gpu.pci}, " if gpu.pci else ""
        there = next((s for s in readings.gpus if gpu.pci and s.pci == gpu.pci), None)
        other = f"; {name_of(there).name} is in its place" if there is not None else ""
        return GateLook(name, Verdict.failed, f"{where}and NVML does not show it{other}")
    into = expected.looks_into(gpu)
    bad, missing = _readings_of(seen, expected, readings) if into else ([], [])
    if gpu.uuid and (uuid := seen.facts.get("uuid")) and uuid != gpu.uuid:
        bad.append(f"its UUID is {uuid}, it was {gpu.uuid}")
    missing += [f"{what} not read" for what in ("serial", "uuid") if getattr(gpu, what) and not seen.facts.get(what)]
    if seen.pci and readings.pci is not None and seen.pci not in readings.pci:
        bad.append(f"NVML shows it at {seen.pci}, PCI does not")
    if bad:
        return GateLook(name, Verdict.failed, "; ".join(bad))
    if missing:
        return GateLook(name, Verdict.inconclusive, "; ".join(missing))
    return GateLook(
        name, Verdict.passed, _sound(seen) if into else f"{seen.pci}, it answers; others' work may run on it"
    )


def _readings_of(seen: SeenGpu, expected: Expected, readings: GateReadings) -> tuple[list[str], list[str]]:
    """List the readings that are bad, and those that are missing."""
    facts = _prepared(seen, expected, readings)
    needed = {*NEEDED, *(("nvlinks",) if expected.links else ()), *(("fabric",) if expected.fabric else ())}
    bad, missing = [], []
    for aspect in (*NEEDED, *ALSO):
        said = GPU_ASPECTS[aspect].judge(facts)
        if said.mark.startswith("bad"):
            bad.append(said.findings[0].text)
        elif (
            said.mark != GOOD
            and aspect in needed
            and aspect not in expected.without
            and not _meant(aspect, said, facts)
        ):
            missing.append(f"{aspect} not read{_why(aspect, seen)}")
    if expected.links > (there := _links_there(readings)) and "nvlinks_active" in facts:
        missing.append(f"the SKU names {expected.links} NVLinks, no GPU of this node has more than {there}")
    if readings.ecc_unknown and any("uncorrectable memory errors" in text for text in bad):
        missing.append("uncorrectable errors are counted, and not known since when")
        bad = [text for text in bad if "uncorrectable memory errors" not in text]
    return bad, missing


def _prepared(seen: SeenGpu, expected: Expected, readings: GateReadings) -> Facts:
    """The readings with what they are held against: links expected, errors counted since the remedy."""
    facts: Facts = {**seen.facts, "lost": seen.lost}
    if "handle" in seen.absent and not seen.lost:
        del facts["lost"]
    most = max((n for gpu in readings.gpus if type(n := gpu.facts.get("nvlinks_active")) is int), default=0)
    if "nvlinks_active" in facts:
        facts["nvlinks_expected"] = expected.links if 0 < expected.links <= _links_there(readings) else most
    if before := readings.ecc_before.get(str(facts.get("uuid")), 0):
        total = number(facts, "ecc_uncorrectable")
        facts = {name: value for name, value in facts.items() if name not in _PLACES}
        facts |= {"ecc_uncorrectable": max(0.0, total - before)} if total is not None else {}
    return facts


def _links_there(readings: GateReadings) -> int:
    """How many NVLinks the best of the node's GPUs has, active or down: of more than these its SKU says too many."""
    counts = [
        active + sum(1 for link in str(gpu.facts.get("nvlinks_down") or "").split(",") if link)
        for gpu in readings.gpus
        if type(active := gpu.facts.get("nvlinks_active")) is int
    ]
    return max(counts, default=0)


_PLACES = ("ecc_uncorrectable", "ecc_dram_uncorrectable", "ecc_sram_uncorrectable")


def _meant(aspect: str, said: AspectReading, facts: Facts) -> bool:
    """Whether a state is meant: links have nothing to say in MIG mode, an idle PCIe link trains down."""
    if said.mark != BETWEEN:
        return False
    if aspect == "nvlinks":
        return facts.get("mig_mode") is True
    generations = (number(facts, f"pcie_generation{which}", 1, 16) for which in ("", "_max"))
    return aspect == "pcie" and None not in generations


def _why(aspect: str, seen: SeenGpu) -> str:
    calls = (aspect, *_READING_OF.get(aspect, ()), *_ALSO_OF.get(aspect, ()))
    why = [seen.absent[call] for call in calls if call in seen.absent]
    return f" ({why[0]})" if why else ""


def _sound(seen: SeenGpu) -> str:
    """Sum up the readings of a sound GPU, for people."""
    facts = seen.facts
    width, gen, best = (facts.get(f"pcie_{name}") for name in ("width", "generation", "generation_max"))
    links = f", {facts['nvlinks_active']} NVLinks" if "nvlinks_active" in facts else ""
    fabric = f", fabric {facts['fabric_state']}" if "fabric_state" in facts else ""
    idle = "" if gen == best else " (idle)"
    return f"{seen.pci}, PCIe x{width} generation {gen} of {best}{idle}{links}{fabric}, {facts.get('temperature_c')} °C"
