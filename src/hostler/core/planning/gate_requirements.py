"""Requirements of a gate, and whether a gate's answer says that it saw them. Pure.

An expectation is frozen into the step when its plan is laid down: from then on nobody chooses what is looked at. A
gate that says passed without saying what it saw has not passed.
"""

import re
from collections.abc import Iterable

from msgspec.structs import replace

from hostler.core.diagnose.gate.faults import NOBODY
from hostler.core.diagnose.gate.readings import GPUS_SEEN, LOOK
from hostler.core.state import pass_rules
from hostler.core.state.fleet import Fleet
from hostler.core.state.gate_expectation import (
    MAX_FAULTS,
    MAX_GPUS,
    Expected,
    ExpectedGpu,
    Faulted,
    bounded,
)
from hostler.core.state.model import Condition, Facts, Node, Operation, Outcome, Plan, Scalar, Step, Verdict
from hostler.core.state.most_parts_seen import MEMORY, due, most_of
from hostler.core.state.operations import RunChecks
from hostler.core.state.plan_rules import Answers, PlanRules
from hostler.core.tables.conditions import CONDITIONS

PROFILES = ("gate", "seatrial")
"""Profiles of checks that look at what they let through."""

_AGENTS_SLOT = re.compile(r"gpu\d{1,3}|pci:.+")
"""How an agent names a GPU's slot; under a BMC's own names nothing that NVML shows would be found."""


def readers_of(condition: str, part: str = "") -> tuple[str, ...]:
    """The readers that must each see the condition gone: those of its row.

    What has none and is ended by its own observer needs none, for that observer still says whether it stands; of the
    rest nobody here can say that it is gone. A request convicts nothing.
    """
    kind = CONDITIONS.get(condition)
    if kind is None:
        return () if condition.startswith("operator.") else (NOBODY,)
    if kind.gate is None:
        return () if kind.clears == "observation" else (NOBODY,)
    return tuple(r for r in kind.gate if r != "pci" or condition != "inventory.missing_part" or part == "gpu")


def expectation(
    fleet: Fleet, node: Node, rules: PlanRules, causes: Iterable[str], only: tuple[str, ...] = ()
) -> Expected:
    """Requirements of this plan's gate, from the node's record, its SKU and what the plan was laid down for.

    `only`: the slots that the plan is confined to.
    """
    sku = fleet.configuration_of(node).skus.get(node.sku)
    parts = due(node, sku.counts) if sku else {}
    known = _gpus(node, fleet)
    named = frozenset(causes)
    returns = rules.answers is Answers.earlier_boots
    # of a drill nothing is to be seen gone, and its part may not exist: all that the SKU names is looked at
    shown = [c for c in node.conditions if not c.drill]
    convicted = [c for c in shown if c.id in named or (returns and c.clears == "remedy")]
    looked = sorted(convicted, key=lambda c: (-c.severity, c.id))[:MAX_FAULTS]
    return Expected(
        gpus=max(parts.get("gpu", 0), len(known)),
        known=known,
        same=not rules.hands,
        links=sku.reset.links if sku else 0,
        fabric=bool(sku and sku.reset.fabric),
        without=sku.without if sku else (),
        parts=parts,
        memory_gib=min(sku.memory_gib, most_of(node, MEMORY) or sku.memory_gib) if sku else 0.0,
        faulted=tuple(fault for c in looked if (fault := _faulted(c, known)).readers),
        only=only,
    )


def seeing(fleet: Fleet, node: Node, plan: Plan) -> Plan:
    """The plan with what its gates are to see in their steps; what a step says already is not changed."""
    if not any(_is_blind(step) for step in plan.steps):
        return plan
    expects = bounded(expectation(fleet, node, plan.rules, plan.causes, plan.parts))
    steps = (replace(s, act=replace(s.act, expects=expects)) if _is_blind(s) else s for s in plan.steps)
    return replace(plan, steps=tuple(steps))


def _is_blind(step: Step) -> bool:
    return isinstance(step.act, RunChecks) and step.act.profile in PROFILES and step.act.expects is None


def as_seen(operation: Operation, outcome: Outcome) -> Outcome:
    """The outcome, inconclusive where it says passed and does not say that it saw what it was to see."""
    if not isinstance(operation.act, RunChecks) or outcome.facts.get("verdict") != Verdict.passed.value:
        return outcome
    if not (why := unstated(operation.act, outcome.facts)):
        return outcome
    facts: Facts = {**outcome.facts, "verdict": Verdict.inconclusive.value}
    return replace(outcome, facts=facts, detail=f"{why}; its own word: {outcome.detail or 'passed'}"[:500])


def unstated(checks: RunChecks, facts: Facts) -> str:
    """Requirement that a passed answer does not say it saw, "" where it says all that its order expects."""
    for name, rules in pass_rules.named(checks.profile, checks.rules).items():
        if facts.get(name) != rules:
            return f"it does not say that it went by the pass rules {rules}: upgrade its agent and hostler-check"
    if checks.profile not in PROFILES:
        return ""
    if (expected := checks.expects) is None:
        return "its order names nothing to see: it is of an older version, or names more than an agent reads"
    wanted = [f"gone {fault.name}" for fault in expected.faulted]
    if expected.same:
        wanted += [f"gpu {gpu.name}" for gpu in expected.known]
    blind = [name for name in wanted if not _passed(facts.get(f"{LOOK}{name}"))]
    seen = facts.get(GPUS_SEEN)
    if expected.gpus and (type(seen) is not int or seen < expected.gpus):
        blind.append(f"{expected.gpus} GPUs (it saw {seen if type(seen) is int else 'none'})")
    return f"it does not say that it saw {', '.join(blind)}" if blind else ""


def _passed(said: Scalar) -> bool:
    return isinstance(said, str) and said.partition(":")[0] == Verdict.passed.value


def _gpus(node: Node, fleet: Fleet) -> tuple[ExpectedGpu, ...]:
    """The GPUs of record under all their names, where the node's own agent has named them.

    A serial that was made up for want of one says no more than its address does.
    """
    names: dict[str, dict[str, str]] = {}
    for address, serial in node.addresses:
        kind, _, name = address.partition(":")
        names.setdefault(serial, {})[kind] = name
    found = []
    for slot, serial in node.slots:
        if not _AGENTS_SLOT.fullmatch(slot):
            continue
        part = fleet.parts.get(serial)
        if slot.startswith("pci:") if part is None else part.kind != "gpu":
            continue
        made_up = serial.startswith("pci:") or "@" in serial
        known = names.get(serial, {})
        uuid = known.get("uuid", "") or (serial if serial.startswith("GPU-") else "")
        pci = known.get("pci", "") or (slot.removeprefix("pci:") if slot.startswith("pci:") else "")
        found.append(ExpectedGpu(slot, "" if made_up or serial == uuid else serial, uuid, pci))
    return tuple(found[:MAX_GPUS])


def _faulted(condition: Condition, known: tuple[ExpectedGpu, ...]) -> Faulted:
    part = condition.part
    names = (part, part.removeprefix("pci:"))
    gpu = next((g for g in known if part and any(n in (g.slot, g.serial, g.uuid, g.pci) for n in names)), None)
    if gpu is None and condition.type.startswith("gpu.") and part not in ("", "gpu", "nvml"):
        address = part.removeprefix("pci:") if part.startswith("pci:") else ""
        gpu = ExpectedGpu("", "" if address else part, "", address)
    return Faulted(condition.type, part, readers_of(condition.type, part), gpu)
