"""Holds what a node was seen to consist of against what its SKU must contain."""

from collections import defaultdict

from hostler.core.configuration import Sku
from hostler.core.diagnose import Finding
from hostler.core.diagnose.findings import over, stands
from hostler.core.diagnose.firmware import FIRMWARE_PREFIX, drift
from hostler.core.model import Facts, Node, Observation, Part, Severity


def judge_inventory(observation: Observation, node: Node, sku: Sku | None) -> list[Finding]:
    """Missing, unexpected and mismatched parts, one finding per kind of part; firmware off its baseline.

    A fact "covers" (kinds, comma-separated) says what the observer looked at. Without it an agent has looked
    at everything, and a BMC at the kinds that it names.
    """
    if sku is None:
        text = f"SKU {node.sku!r} is not configured, so the node's parts cannot be judged"
        return [stands("inventory.mismatch", text, "sku")]
    seen = _by_kind(observation.parts)
    expected = {**({"gpu": sku.gpus} if sku.gpus else {}), **sku.parts}
    covered = _covered(observation, expected, seen)
    findings = [over("inventory.mismatch", f"SKU {sku.name} is known", "sku")]
    for kind in sorted(covered & expected.keys()):
        findings += _count(kind, expected[kind], seen.get(kind, []), node)
    if sku.gpu_model and seen.get("gpu"):
        findings.append(_model(sku.gpu_model, seen["gpu"]))
    return findings + _firmware(observation, seen, node, sku)


def _by_kind(parts: tuple[Part, ...]) -> dict[str, list[Part]]:
    """The parts of each kind; a serial seen twice counts once."""
    seen: dict[str, list[Part]] = defaultdict(list)
    serials: set[str] = set()
    for part in parts:
        if part.serial and part.serial in serials:
            continue
        serials.add(part.serial)
        seen[part.kind].append(part)
    return seen


def _covered(observation: Observation, expected: dict[str, int], seen: dict[str, list[Part]]) -> set[str]:
    covers = observation.facts.get("covers")
    if isinstance(covers, str):
        return {kind.strip() for kind in covers.split(",")}
    return set(expected) if observation.source == "agent" else set(seen)


def _count(kind: str, expected: int, parts: list[Part], node: Node) -> list[Finding]:
    missing, unexpected = "inventory.missing_part", "inventory.unexpected_part"
    count = len(parts)
    text = f"{count} of {expected} {kind} seen"
    if count < expected:
        slots = {part.slot for part in parts}
        serials = {part.serial for part in parts}
        gone = [
            slot
            for slot, serial in node.slots
            if slot.rstrip("0123456789") == kind and slot not in slots and serial not in serials
        ]
        severity = Severity.critical if kind == "gpu" else Severity.degraded
        facts: Facts = {"kind": kind, "expected": expected, "seen": count, "slots": ",".join(gone)}
        text += f", missing from {', '.join(gone)}" if gone else ""
        return [stands(missing, text, kind, facts, severity), over(unexpected, text, kind)]
    if count > expected:
        surplus: Facts = {"kind": kind, "expected": expected, "seen": count}
        return [over(missing, text, kind), stands(unexpected, text, kind, surplus)]
    return [over(missing, text, kind), over(unexpected, text, kind)]


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
    for name, baseline in sorted(sku.firmware.items()):
        stated = observation.facts.get(FIRMWARE_PREFIX + name)
        versions = [stated] if isinstance(stated, str) else [part.firmware for part in seen.get(name, [])]
        if finding := drift(name, baseline, versions, node):
            findings.append(finding)
    return findings
