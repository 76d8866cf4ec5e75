"""Judges observations of state: aspects of a GPU, of the GPUs' driver, and of the host."""

from msgspec.structs import replace

from hostler.core.diagnose import Finding
from hostler.core.diagnose.aspect import MISSING, UNKNOWN, UNSETTLED, WORD_CHARS, Aspect, names, number
from hostler.core.diagnose.findings import over, stands
from hostler.core.diagnose.gpu import DCGM_ASPECTS, GPU_ASPECTS
from hostler.core.diagnose.host import HOST_ASPECTS, MEMORY_PERCENT
from hostler.core.diagnose.line import printable
from hostler.core.state.configuration import Sku
from hostler.core.state.model import Facts, Node, Observation, Severity
from hostler.core.state.most_parts_seen import MEMORY, most_of
from hostler.core.tables.conditions import CONDITIONS

JOINS: dict[str, tuple[str, ...]] = {
    "gpu.ecc_counted": ("gpu.ecc_uncontained", "gpu.ecc_uncorrectable", "gpu.ecc_contained"),
    "gpu.nvlink_down": ("gpu.nvlink_error",),
}
"""Counter → conditions of the kernel log that name the same fault more exactly: the counter becomes their evidence."""


def judge_gpu_state(observation: Observation, node: Node, sku: Sku | None) -> list[Finding]:
    """One GPU where the facts name one ("pci", "gpu"), else the driver and how many GPUs it shows."""
    facts = observation.facts
    if "pci" not in facts and "gpu" not in facts:
        return _driver(facts, node, sku)
    part = part_of(facts, node)
    if not part:
        return [stands("observation.unreadable", "the state of a GPU names no GPU", "gpu_state")]
    found = [_placed(finding, part, node) for finding in judged(facts, GPU_ASPECTS)]
    return found + verified(facts, GPU_ASPECTS, part)


def judge_dcgm_state(observation: Observation, node: Node, _sku: Sku | None) -> list[Finding]:
    """One GPU as DCGM's exporter shows it: a second look at what NVML shows, and the only one where NVML is not read.

    What the exporter does not show is missed by nobody.
    """
    part = part_of(observation.facts, node)
    if not part:
        return [stands("observation.unreadable", "the state of a GPU names no GPU", "dcgm_state")]
    return [_placed(finding, part, node) for finding in judged(observation.facts, DCGM_ASPECTS)]


def judge_host_state(observation: Observation, node: Node, sku: Sku | None) -> list[Finding]:
    """The host as a whole; findings name the port, device, mount or unit themselves."""
    facts, below = _against_sku(observation.facts, node, sku)
    found = [*below, *(replace(finding, part=_serial(finding.part, node)) for finding in judged(facts, HOST_ASPECTS))]
    return found + verified(facts, HOST_ASPECTS, "host")


def _against_sku(facts: Facts, node: Node, sku: Sku | None) -> tuple[Facts, list[Finding]]:
    """The readings with the memory that there must be: the SKU's, or as much as the node has ever shown.

    A host that has never shown what its SKU names has lost nothing.
    """
    seen = number(facts, "memory_gib", 0.01, 2.0**20)
    if sku is None or not sku.memory_gib or seen is None or "memory" in names(facts, UNSETTLED):
        return facts, []
    most = max(most_of(node, MEMORY) or 0.0, seen)
    if most >= sku.memory_gib * MEMORY_PERCENT / 100:
        enough = over("inventory.below_sku", f"the host has shown {most:g} GiB of memory", "host")
        return {**facts, "memory_expected_gib": sku.memory_gib}, [enough]
    text = f"the host has never shown more than {most:g} GiB of memory, its SKU names {sku.memory_gib:g}"
    told: Facts = {"seen_gib": seen, "expected_gib": sku.memory_gib}
    return {**facts, "memory_expected_gib": most}, [stands("inventory.below_sku", text, "host", told)]


def _serial(place: str, node: Node) -> str:
    """The serial of what is at a PCI address or in a slot, as the inventory and the kernel log have it."""
    if place.startswith("slot:"):
        return dict(node.slots).get(place.removeprefix("slot:"), f"dev:{place.removeprefix('slot:')}")
    return dict(node.addresses).get(place, place) if place.startswith("pci:") else place


def judged(facts: Facts, aspects: dict[str, Aspect]) -> list[Finding]:
    """Judge the settled aspects."""
    unsettled = names(facts, UNSETTLED)
    return [_ranked(f) for name, row in aspects.items() if name not in unsettled for f in row.judge(facts).findings]


def _ranked(finding: Finding) -> Finding:
    return replace(finding, severity=max(finding.severity, CONDITIONS[finding.type].severity))


def verified(facts: Facts, aspects: dict[str, Aspect], part: str) -> list[Finding]:
    """Find what could not be read: never so far, which proves nothing, or no more, which is to be looked into."""
    unsettled, gone = names(facts, UNSETTLED), names(facts, MISSING)
    unknown = [n for n, row in aspects.items() if n not in unsettled and row.judge(facts).mark == UNKNOWN]
    missing = [name for name in unknown if name in gone]
    never = [name for name in unknown if name not in gone and aspects[name].expected]
    found = [
        *_unknown("reading.missing", "is not readable any more", missing, part),
        *_unknown("reading.never_verified", "has never been readable", never, part),
    ]
    return [finding for finding in found if finding.standing or not unsettled]


def _unknown(condition: str, what: str, aspects: list[str], part: str) -> list[Finding]:
    if not aspects:
        return [over(condition, "everything that is expected could be read", part)]
    listed = ", ".join(aspects)
    return [stands(condition, f"{listed} {what}, so it is not known to be well", part, {"aspects": listed})]


def part_of(facts: Facts, node: Node) -> str:
    """The GPU's serial as the inventory has it, by address or slot; else its address or slot."""
    pci, gpu = facts.get("pci"), facts.get("gpu")
    address = f"pci:{pci}" if isinstance(pci, str) and pci else ""
    slot = gpu if isinstance(gpu, str) else ""
    by_address, by_slot = dict(node.addresses), dict(node.slots)
    found = by_address.get(address) or by_slot.get(address) or ("" if address else by_slot.get(slot))
    return found or printable((address or slot)[:WORD_CHARS])


def _placed(finding: Finding, part: str, node: Node) -> Finding:
    kind = finding.type
    if finding.standing:
        standing = {c.type for c in node.conditions if c.part == part}
        kind = next((graver for graver in JOINS.get(kind, ()) if graver in standing), kind)
    severity = finding.severity if kind == finding.type else CONDITIONS[kind].severity
    return Finding(kind, severity, finding.text, part, finding.standing, finding.facts)


def _driver(facts: Facts, node: Node, sku: Sku | None) -> list[Finding]:
    """NVML itself. A hang is a fault; a machine without GPUs and without NVML is not."""
    match facts.get("nvml"):
        case "hung":
            return [_hung(facts, node)]
        case "answers":
            answered = "NVML answers"
            found = [over("gpu.driver_unresponsive", answered), over("reading.missing", answered, "nvml")]
            return [*found, over("reading.never_verified", answered, "nvml"), *_count(facts, node, sku)]
        case "absent" | "crashed" as word:
            gone = facts.get("was_there") is True
            if not gone and not (number(facts, "gpus_on_pci") or (sku.counts.get("gpu") if sku else 0)):
                return []
            why = printable(str(facts.get("reason", ""))[:WORD_CHARS])
            text = f"NVML is {word}, so nobody knows how the GPUs are: {why}"
            return [stands("reading.missing" if gone else "reading.never_verified", text, "nvml", {"reason": why})]
        case word:
            text = f"the state of NVML could not be understood: {printable(str(word)[:WORD_CHARS])}"
            return [stands("observation.unreadable", text, "gpu_state")]


def _hung(facts: Facts, node: Node) -> Finding:
    call = printable(str(facts.get("call", ""))[:WORD_CHARS])
    told: Facts = {"call": call}
    if hung := part_of({"pci": facts.get("hung_pci")}, node):
        told["gpu"] = hung
    text = f"a call of the GPU driver does not return: {call or 'at its start'}"
    return stands("gpu.driver_unresponsive", text, "", told)


def _count(facts: Facts, node: Node, sku: Sku | None) -> list[Finding]:
    """How many GPUs the driver shows, against the PCI bus and what of the SKU's the node has ever shown.

    One that is known by address is named.
    """
    seen = number(facts, "gpus_in_nvml", 0, 1024)
    named = min(sku.counts.get("gpu", 0) if sku else 0, most_of(node, "gpu") or 0)
    wanted = max(named, number(facts, "gpus_on_pci", 0, 1024) or 0)
    if seen is None or not wanted:
        return []
    shown = names(facts, "pcis")
    parts = {address.removeprefix("pci:"): serial for address, serial in node.addresses if address.startswith("pci:")}
    here = [over("gpu.missing", "the driver shows the GPU", parts[pci]) for pci in shown if pci in parts]
    if seen >= wanted:
        return [*here, over("gpu.missing", f"the driver shows all {seen:g} GPUs", "gpu")]
    gone = [serial for pci, serial in sorted(parts.items()) if pci not in shown and serial.strip()]
    text = f"the driver shows {seen:g} of {wanted:g} GPUs"
    told: Facts = {"seen": seen, "expected": wanted}
    known = gone if len(gone) == wanted - seen else ["gpu"]
    return [*here, *(stands("gpu.missing", text, part, told, Severity.critical) for part in known)]
