"""Writes down a SKU as one golden node shows it, and says in words where a node differs from its SKU."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from hostler.core.conditions.hardware_match import AspectVerdict, verdicts
from hostler.core.conditions.sku_match import Gap, gaps
from hostler.core.state import hardware as hw
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import RECOVERY, STAGED, Node, Part, Severity, Verdict
from hostler.core.tables.part_kinds import PART_KINDS

SENSORS_S = 900.0
"""How long a manifest that is made here has sensors watched."""
_INVENTORY = "inventory"


class SkuDraft(Struct, frozen=True):
    """A SKU as a document has it, and notes on what a person is to check or could not be known."""

    name: str
    sku: dict[str, Any]
    notes: tuple[str, ...]


class SkuDifference(Struct, frozen=True):
    """One place in which a node is not as its SKU, or one aspect that is: what was expected and found, what to do."""

    aspect: str
    verdict: str
    slot: str = ""
    expected: str = ""
    found: str = ""
    advice: str = ""


def not_golden(fleet: Fleet, node: Node) -> str:
    """Why no SKU can be made of the node, "" where one can."""
    if node.inventory_at is None or node.inventory_boot != node.boot_id:
        return f"{node.id} has told no inventory of its present boot: start it with its agent, and ask again"
    if not fleet.parts.of(node.id):
        return f"{node.id} shows no parts"
    return ""


def sku_from_node(fleet: Fleet, node: Node) -> SkuDraft:
    """The SKU of which the node is a whole example; only for one that `not_golden` has no word against."""
    parts = [part for part in fleet.parts.of(node.id) if part.kind in PART_KINDS]
    kinds = {kind: [part for part in parts if part.kind == kind] for kind in sorted({part.kind for part in parts})}
    hardware, notes = _hardware(node)
    models = {kind: found[0].model for kind, found in kinds.items() if _one_model(found)}
    sockets = sum(hardware.get("memory_gib", {}).values())
    sku: dict[str, Any] = {
        "gpus": len(kinds.get("gpu", ())),
        "gpu_model": models.pop("gpu", ""),
        "parts": {kind: len(found) for kind, found in kinds.items() if kind != "gpu"},
        "models": models,
        "slots": {kind: sorted(part.slot for part in found) for kind, found in kinds.items()},
        "memory_gib": sockets or round(node.memory_gib),
        "firmware": {n: v for n, v in node.versions if not n.startswith((STAGED, RECOVERY))},
        "hardware": hardware,
    }
    mixed = [kind for kind, found in kinds.items() if not _one_model(found)]
    told = [f"{kind}: several models, or none is shown; none is compared" for kind in mixed]
    ailing = [c.type for c in node.conditions if c.severity >= Severity.degraded]
    told += [f"{node.id} is no golden node while it shows {', '.join(sorted(set(ailing)))}"] if ailing else []
    kept = {name: value for name, value in sku.items() if value or name == "gpus"}
    return SkuDraft(node.sku or "new", kept, (*told, *notes))


def _one_model(found: list[Part]) -> bool:
    return len({part.model for part in found}) == 1 and found[0].model != ""


def _hardware(node: Node) -> tuple[dict[str, Any], list[str]]:
    """The hardware manifest that the node's readings make, and what they leave open."""
    fresh = {source for source, boot in node.hardware_boots if boot == node.boot_id}
    said = {n: v for n, v in (*node.hardware, *node.hardware_own) if n.partition("/")[0] in fresh}
    links = {n: v for n, v in _of(said, hw.PCIE).items() if hw.pcie_link(v) is not None}
    sockets = {n: _gib(v) for n, v in _of(said, hw.DIMM).items()}
    ports = {n: _template(node, v) for n, v in _of(said, hw.LLDP, hw.AGENT).items()}
    drives, serials = _of(said, hw.DRIVE), _of(said, hw.DMI, hw.AGENT)
    erased = {slot: word for slot, word in _of(said, hw.ERASE, hw.AGENT).items() if slot != hw.TPM}
    made: dict[str, Any] = {
        "schema": hw.SCHEMA,
        "pcie": links,
        "bios": _of(said, hw.BIOS, hw.BMC),
        "neighbours": ports,
        "memory_gib": sockets,
        "sensors_s": SENSORS_S,
        "drives": bool(drives) and all(word.lower() == "ok" for word in drives.values()),
        "serials": node.binding("serial") != "" and node.binding("serial") in serials.values(),
        "erasable": bool(erased) and not any(word.startswith(hw.CANNOT_ERASE) for word in erased.values()),
    }
    return {name: value for name, value in made.items() if value}, list(_notes(node, said, made))


def _notes(node: Node, said: dict[str, str], made: dict[str, Any]) -> Iterator[str]:
    for name, why in sorted(said.items()):
        if f"/{hw.UNREAD}" in name:
            yield f"{name.partition(hw.UNREAD)[2]}: {why}"
    if not made["bios"] and node.assignment is not None:
        yield "bios: a node that serves keeps no BIOS attributes; take one that serves nobody"
    if made["bios"]:
        yield "bios: remove attributes that differ from machine to machine (asset tags, MAC addresses)"
    if made["neighbours"]:
        yield "neighbours: check the switches' ports; {rack}, {row}, {u}, {site} and {node} stand for the node's own"
    if not made["serials"]:
        yield "serials: DMI does not show the registered serial number, so it is not compared"
    if not made["erasable"]:
        yield "erasable: the agent cannot erase every drive (erase.SLOT says why), so no node is held against that"
    yield "supplies_needed: say how many supplies carry the load, so that redundancy is compared"


def _of(said: dict[str, str], prefix: str, *sources: str) -> dict[str, str]:
    """Readings of one kind by place: the agent's, of places that it does not read the BMC's."""
    found: dict[str, str] = {}
    for source in sources or (hw.AGENT, hw.BMC):
        mark = f"{source}/{prefix}"
        here = {n.removeprefix(mark): v for n, v in said.items() if n.startswith(mark)}
        found = found or here
    return dict(sorted(found.items()))


def _gib(text: str) -> float:
    size = text.removesuffix(" GiB")
    return float(size) if size != text else 0.0


def _template(node: Node, neighbour: str) -> str:
    for name, value in (("{rack}", node.position.rack), ("{node}", node.id)):
        neighbour = neighbour.replace(value, name) if len(value) > 1 else neighbour
    return neighbour


def sku_differences(context: DecisionContext, node: Node) -> tuple[SkuDifference, ...]:
    """Lists where the node is not what its SKU says, then the aspects in which it is."""
    missed = gaps(context.fleet, node)
    open_ = [_difference(_INVENTORY, gap, "") for gap in missed]
    found = verdicts(context.fleet, context.live.of(node.id), node, context.now)
    for one in found:
        open_ += [_difference(one.aspect, gap, one.advice) for gap in one.gaps]
    passed = [one for one in found if one.verdict is Verdict.passed]
    whole = [] if any(row.aspect == _INVENTORY for row in open_) else [_as_said(_INVENTORY, "parts and memory")]
    return (*open_, *whole, *(_passed(one) for one in passed))


def _difference(aspect: str, gap: Gap, advice: str) -> SkuDifference:
    place = gap.slot if aspect != _INVENTORY else f"{gap.kind} {gap.slot}".strip()
    verdict = Verdict.failed if gap.seen else Verdict.inconclusive
    return SkuDifference(aspect, verdict.value, place, gap.expected, gap.found, advice)


def _as_said(aspect: str, text: str) -> SkuDifference:
    return SkuDifference(aspect, Verdict.passed.value, found=f"{text} as the SKU says")


def _passed(one: AspectVerdict) -> SkuDifference:
    return SkuDifference(one.aspect, Verdict.passed.value, found=one.text)
