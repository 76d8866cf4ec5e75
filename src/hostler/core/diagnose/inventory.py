"""Holds what a node was seen to consist of against what its SKU must contain."""

from collections import defaultdict
from collections.abc import Iterable

from hostler.core.diagnose import Finding
from hostler.core.diagnose.findings import over, stands
from hostler.core.diagnose.firmware import FIRMWARE_PREFIX, drift
from hostler.core.diagnose.serials import doubtful, identified, is_by_slot
from hostler.core.state.configuration import Sku
from hostler.core.state.device_firmware import written_parts
from hostler.core.state.firmware_updates import FirmwareUpdate
from hostler.core.state.model import BMC_ONLY, Facts, Node, Observation, Part, Severity
from hostler.core.state.most_parts_seen import shown
from hostler.core.tables.part_kinds import AGENT_KINDS, BMC_KINDS, ONLY_BMC_KINDS


def judge_inventory(observation: Observation, node: Node, sku: Sku | None) -> list[Finding]:
    """Missing, never seen, unexpected and mismatched parts, one finding per kind of part; firmware off its baseline.

    A fact "covers" (kinds, comma-separated) says what the observer looked at. Without it an agent has looked
    at all kinds that agents see, and a BMC at the kinds that it names.
    """
    if sku is None:
        text = f"SKU {node.sku!r} is not configured, so the node's parts cannot be judged"
        return [stands("inventory.mismatch", text, "sku")]
    seen = _by_kind(observation.parts)
    expected = sku.counts
    covered = _covered(observation, expected, seen) - seen_by_agent(observation.source, node)
    findings = [over("inventory.mismatch", f"SKU {sku.name} is known", "sku")]
    by_bmc = observation.source != "agent"
    for kind in sorted(covered & expected.keys()):
        parts = seen.get(kind, [])
        more_before = shown(node, kind, by_bmc=by_bmc) > len(parts)
        findings += _count(kind, expected[kind], parts, node, more_before=more_before)
    findings += _unseen(observation, node, expected.keys(), _covered(observation, expected, seen))
    findings += _unclear(observation, seen)
    if sku.gpu_model and seen.get("gpu"):
        findings.append(_model(sku.gpu_model, seen["gpu"]))
    return findings + _firmware(observation, seen, node, sku)


def _by_kind(parts: tuple[Part, ...]) -> dict[str, list[Part]]:
    """The parts of each kind: what is listed twice counts once, two that show one serial number stay two."""
    seen: dict[str, list[Part]] = defaultdict(list)
    for part in identified(parts, "here"):
        seen[part.kind].append(part)
    return seen


def _unseen(observation: Observation, node: Node, named: Iterable[str], covered: set[str]) -> list[Finding]:
    """Kinds that the SKU names and nobody lists in this boot, once everybody who might has told."""
    by_agent = observation.source == "agent"
    boot = observation.boot_id if by_agent else node.boot_id
    before = node.inventory_covers if node.inventory_boot == boot else ()
    known = frozenset(named) - (frozenset() if node.binding("bmc") else ONLY_BMC_KINDS)
    left = known - covered - {kind.removeprefix(BMC_ONLY) for kind in before}
    if not left:
        return [
            over(
                "inventory.unseen_kind", "every kind of part that the SKU names, and that can be listed here, is listed"
            )
        ]
    agent_comes = not by_agent and node.boot_id != "" and all(kind.startswith(BMC_ONLY) for kind in before)
    bmc_comes = by_agent and node.binding("bmc") != "" and not any(kind.startswith(BMC_ONLY) for kind in before)
    left -= (AGENT_KINDS if agent_comes else frozenset()) | (BMC_KINDS if bmc_comes else frozenset())
    if not left:
        return []
    kinds = ", ".join(sorted(left))
    text = f"the SKU names {kinds}, which no source of this node lists, so nobody knows whether they are there"
    return [stands("inventory.unseen_kind", text, "", {"kinds": kinds})]


def _unclear(observation: Observation, seen: dict[str, list[Part]]) -> list[Finding]:
    """Kinds whose parts are known by slot only. That no driver can read a processor's number, say, is not told."""
    doubts = doubtful(observation.parts)
    found: list[Finding] = []
    for kind in sorted(seen):
        if kind in _NUMBERED and kind in doubts:
            found.append(stands("inventory.serial_unclear", f"{kind}: {doubts[kind]}", kind, {"kind": kind}))
        elif kind in _NUMBERED and not any(is_by_slot(part.serial) for part in seen[kind]):
            found.append(over("inventory.serial_unclear", f"every {kind} shows a serial number of its own", kind))
    return found


_NUMBERED = frozenset({"gpu", "memory", "drive", "nic", "nvswitch", "dpu"})
"""Kinds of part that are tracked by serial number; a processor's no software can read, so its slot stands for it."""


def _covered(observation: Observation, expected: dict[str, int], seen: dict[str, list[Part]]) -> set[str]:
    covers = observation.facts.get("covers")
    if isinstance(covers, str):
        return {kind.strip() for kind in covers.split(",")}
    return set(expected) & AGENT_KINDS if observation.source == "agent" else set(seen)


def seen_by_agent(source: str, node: Node) -> frozenset[str]:
    """The kinds of which a BMC's list says nothing new: the node's agent has looked at them in this boot.

    It neither accuses anybody of what such a list lacks nor brings back what the agent misses.
    """
    if source == "agent" or node.inventory_boot != node.boot_id:
        return frozenset()
    return frozenset(kind for kind in node.inventory_covers if not kind.startswith(BMC_ONLY))


_MISSING, _BELOW, _BEYOND = "inventory.missing_part", "inventory.below_sku", "inventory.unexpected_part"


def _count(kind: str, expected: int, parts: list[Part], node: Node, *, more_before: bool) -> list[Finding]:
    """Fewer than the SKU names: missing where the node has shown more before, else its SKU may be what is wrong."""
    count = len(parts)
    text, facts = f"{count} of {expected} {kind} seen", Facts(kind=kind, expected=expected, seen=count)
    stand: Finding | None = None
    if count < expected and more_before:
        gone = _gone(kind, parts, node)
        text += f", missing from {', '.join(gone)}" if gone else ""
        severity = Severity.critical if kind == "gpu" else Severity.degraded
        stand = stands(_MISSING, text, kind, {**facts, "slots": ",".join(gone)}, severity)
    elif count < expected:
        text += ", and this node has never shown more: it or its SKU is wrong"
        stand = stands(_BELOW, text, kind, facts)
    elif count > expected:
        stand = stands(_BEYOND, text, kind, facts)
    others = [over(name, text, kind) for name in (_MISSING, _BELOW, _BEYOND) if stand is None or name != stand.type]
    return [*others, stand] if stand is not None else others


def _gone(kind: str, parts: list[Part], node: Node) -> list[str]:
    """The slots of record in which nothing is seen any more."""
    slots, serials = {part.slot for part in parts}, {part.serial for part in parts}
    return [
        slot
        for slot, serial in node.slots
        if slot.rstrip("0123456789") == kind and slot not in slots and serial not in serials
    ]


def _model(wanted: str, gpus: list[Part]) -> Finding:
    """A model matches when it contains the SKU's words: "NVIDIA H100 80GB HBM3" is an "H100"."""
    other = sorted({gpu.model for gpu in gpus if wanted.lower() not in gpu.model.lower()})
    if not other:
        return over("inventory.mismatch", f"every GPU is a {wanted}", "gpu")
    names = ", ".join(model or "of unknown model" for model in other)
    return stands("inventory.mismatch", f"a GPU is {names}, not {wanted}", "gpu", {"models": names})


def _firmware(observation: Observation, seen: dict[str, list[Part]], node: Node, sku: Sku) -> list[Finding]:
    """Versions of what has no serial number, else those of the parts of that kind."""
    findings: list[Finding] = []
    for name in sorted(sku.firmware):
        how, stated = sku.updates.get(name, FirmwareUpdate()), observation.facts.get(FIRMWARE_PREFIX + name)
        if how.tool is not None:  # what an agent writes it reads itself
            own = observation.parts if observation.source == "agent" else ()
            versions = [part.firmware for part in written_parts(own, how.tool, how.models, how.slots)]
        else:
            versions = [stated] if isinstance(stated, str) else [part.firmware for part in seen.get(name, [])]
        if finding := drift(sku, name, versions, node):
            findings.append(finding)
    return findings
