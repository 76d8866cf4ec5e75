"""Laying a plan down: a frozen copy of a recipe for one node, with everything that decided it."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.conditions import site_checks
from hostler.core.planning import cabling, dpu_logins, gate_requirements, port_reset, return_depth, without_bmc
from hostler.core.planning.firmware_plan import devices_to_verify, firmware_steps, to_verify
from hostler.core.planning.phase_after_triage import phase_after_triage
from hostler.core.planning.sanitise_order import sanitise_order
from hostler.core.policy.blast_radius import blast_radius
from hostler.core.state import events as e
from hostler.core.state import operations as op
from hostler.core.state.configuration import LAB_PHASE_FLOOR_S, Reset, Sku, scaled
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.hardware import bios_to_write
from hostler.core.state.model import ActClass, Node, Phase, Plan, Step
from hostler.core.state.scopes import ALONE, ActGroup
from hostler.core.tables.operations import OPERATIONS
from hostler.core.tables.phases import PHASES
from hostler.core.tables.recipes import Recipe, StepRow


class Frame(Struct, frozen=True):
    """Why a plan is laid down: the need it answers, and whether it waits for a person's yes."""

    act_class: ActClass
    causes: tuple[str, ...] = ()
    rule: str = ""
    part: str = ""
    remedy: str = ""
    group: ActGroup = ALONE
    proposed: bool = False


def record(context: DecisionContext, node: Node, recipe: Recipe, frame: Frame) -> e.PlanRecorded:
    """The recipe frozen for this node, with the evidence and the present facts that decided it."""
    seen = context.live.of(node.id)
    work = context.live.workloads(node)
    evidence = tuple(c.evidence[-1] for c in node.conditions if c.id in frame.causes and c.evidence)
    facts = {
        "power": seen.power,
        "workloads": "unknown" if work is None else ",".join(w.id for w in work[:16]),
        "ready": str(seen.ready).lower(),
    }
    return e.PlanRecorded(freeze(context, node, recipe, frame), evidence, facts)


def freeze(context: DecisionContext, node: Node, recipe: Recipe, frame: Frame) -> Plan:
    """A frozen copy of the recipe for this node: no table is read for it again."""
    parts = _confined(context, node, recipe, frame)
    steps = _asking_again(recipe, site_checks.convicting(node, frame.causes))
    laid = tuple(one for row in steps for one in _lay(context, node, row, parts))
    fitted = without_bmc.fitted(context, node, recipe, laid)
    plan = Plan(
        id=f"{node.id}-p{context.fleet.cell.seq}",
        node=node.id,
        name=recipe.name,
        act_class=frame.act_class,
        steps=tuple(step for step, _ in fitted.laid),
        undo=tuple(undo for _, undo in fitted.laid),
        causes=frame.causes,
        rule=frame.rule,
        config=context.fleet.configuration_of(node).sha256,
        radius=blast_radius(context.fleet, node.id),
        recorded_at=context.now,
        remedy=frame.remedy,
        to_phase=_to_phase(context, node, recipe),
        failed_phase=recipe.failed_phase.value if recipe.failed_phase else "",
        convicted_phase=recipe.convicted_phase.value if recipe.convicted_phase else "",
        limit=_limit(context, node, recipe),
        part=frame.part,
        pool=node.pool,
        boot_id=node.boot_id,
        group=frame.group,
        parts=parts,
        disruptive=recipe.disruptive,
        rules=fitted.rules,
        unproven=fitted.unproven,
        drill=_drill_of(node, frame),
        state="proposed" if frame.proposed else "running",
        step_since=context.now,
    )
    return gate_requirements.seeing(context.fleet, node, plan)


def _drill_of(node: Node, frame: Frame) -> str:
    """The drill that alone is why the plan is laid down, "" where a fault or a person is, too."""
    of = {c.drill for c in node.conditions if c.id in frame.causes}
    return of.pop() if len(of) == 1 else ""


def _limit(context: DecisionContext, node: Node, recipe: Recipe) -> datetime | None:
    """When the phase has had its time; work that begins late, since others held it, has the whole of it."""
    row = PHASES[node.phase]
    if node.deadline is None or row.limit_s is None or row.recipe != recipe.name:
        return node.deadline
    limit_s = scaled(context.fleet.configuration_of(node).policy, row.limit_s, LAB_PHASE_FLOOR_S)
    whole = min(timedelta(seconds=limit_s), node.deadline - node.phase_since)
    return max(node.deadline, context.now + whole)


def _to_phase(context: DecisionContext, node: Node, recipe: Recipe) -> str:
    """Phase of the node afterwards, "" where it stays; out of triage it goes on where it had got to."""
    if recipe.to_phase is None:
        return ""
    if node.phase is not Phase.triage or recipe.to_phase is not Phase.test:
        return recipe.to_phase.value
    sku = context.fleet.configuration_of(node).skus.get(node.sku)
    return phase_after_triage(node, sku).value


def _asking_again(recipe: Recipe, checks: tuple[str, ...]) -> Iterator[StepRow]:
    """The recipe's steps; behind a gate the site's checks that convicted the node, which nobody else can answer."""
    for row in recipe.steps:
        yield row
        if row.act == op.RunChecks("gate"):
            yield from (StepRow(op.RunChecks(name), site_checks.AGAIN_S) for name in checks)


def _confined(context: DecisionContext, node: Node, recipe: Recipe, frame: Frame) -> tuple[str, ...]:
    """The slots that the plan touches, where its model's GPUs are reset one by one and every cause names its GPU."""
    sku = context.fleet.configuration_of(node).skus.get(node.sku)
    if not any(row.act.kind == "gpu_reset" for row in recipe.steps) or sku is None or sku.reset.domain != "gpu":
        return ()
    slot_of = {name: slot for slot, serial in node.slots if slot.startswith("gpu") for name in (slot, serial)}
    named = [slot_of.get(c.part, "") for c in node.conditions if c.id in frame.causes]
    return tuple(sorted(dict.fromkeys(named))) if all(named) else ()


def _lay(context: DecisionContext, node: Node, row: StepRow, parts: tuple[str, ...]) -> list[tuple[Step, str]]:
    configuration = context.fleet.configuration_of(node)
    if not _concerns(node, row.act.kind, tokens=bool(configuration.policy.join_token_ttl_s)):
        return []
    deadline_s = scaled(configuration.policy, row.deadline_s)
    if row.act.kind == "drain" and (pool := configuration.pools.get(node.pool)):
        deadline_s = scaled(configuration.policy, pool.drain_deadline_s) * (2 if pool.evict_after_deadline else 1)
    sku = configuration.skus.get(node.sku)
    if row.each == "hardware" and sku is not None and sku.hardware is not None:
        deadline_s += scaled(configuration.policy, sku.hardware.sensors_s)
    if row.each == "firmware":
        laid = firmware_steps(node, sku) if sku else ()
        return [(Step(one.act, scaled(configuration.policy, one.deadline_s)), "") for one in laid]
    if row.each == "settings":
        settings = bios_to_write(node, sku.hardware) if sku is not None else {}
        return [(Step(replace(row.act, wanted=settings), deadline_s), "")] if settings else []
    if row.each == "depth":
        tested = return_depth.steps(context.fleet, node, replace(row, each=""))
        return [laid for one in tested for laid in _lay(context, node, one, parts)]
    if row.each == "hands":
        looked = return_depth.after_hands(context.fleet, node, row)
        return [laid for one in looked for laid in _lay(context, node, one, parts)]
    return [(Step(act, deadline_s, row.optional), row.undo) for act in _acts(context, node, row, parts)]


def _acts(context: DecisionContext, node: Node, row: StepRow, parts: tuple[str, ...]) -> list[op.AnyAct]:
    """The operations of the row on this node, with the arguments of its SKU, pool and networks."""
    configuration = context.fleet.configuration_of(node)
    sku = configuration.skus.get(node.sku)
    wanted = to_verify(node, sku) if sku and row.each == "baseline" else {}
    if row.each in _SEVERAL:
        return list(_SEVERAL[row.each](context, node))
    match row.act:
        case op.VerifyCabling():
            networks = sorted((fabric.name, device) for fabric, device in cabling.fabrics_of(context.fleet, node))
            return [op.VerifyCabling(*one) for one in networks]
        case op.VerifyHardware():
            return [row.act] if sku is not None and sku.hardware is not None else []
        case op.ResetBmc() if row.each == "baseline":
            return [op.ResetBmc(tuple(wanted))] if wanted else []
        case op.VerifyFirmware():
            devices = devices_to_verify(node, sku) if sku and row.each == "baseline" else {}
            return [op.VerifyFirmware(wanted), *([op.VerifyDeviceFirmware(devices)] if devices else [])]
        case op.ResetGpus() if sku is not None:
            return [_how_to_reset(sku.reset, node, parts)]
        case op.JoinCluster() | op.ConfirmJoin():
            return [replace(row.act, token_ttl_s=configuration.policy.join_token_ttl_s)]
        case act:
            return [_completed(context, node, act, sku)]


_SEVERAL: dict[str, Callable[[DecisionContext, Node], Iterable[op.AnyAct]]] = {
    "link": port_reset.acts,
    "login": dpu_logins.wipes,
}
"""Acts in the place of one row: as many as the node has of these."""


def _completed(context: DecisionContext, node: Node, act: op.AnyAct, sku: Sku | None) -> op.AnyAct:
    """The operation as this node needs it; no evidence is kept where a controller of the cell is too old for that."""
    if isinstance(act, op.Sanitise):
        return sanitise_order(context.fleet, node)
    if isinstance(act, op.CollectEvidence) and act.keep and not context.may_write("evidence_kept"):
        return op.CollectEvidence()
    return _under_rules(act, sku)


def _under_rules(act: op.AnyAct, sku: Sku | None) -> op.AnyAct:
    """The operation; of checks that the SKU has pass rules for, with these as they are now."""
    if not isinstance(act, op.RunChecks) or sku is None or act.profile not in sku.checks:
        return act
    return replace(act, rules=sku.checks[act.profile])


_OF_KUBELET = ("start_kubelet", "confirm_join", "stop_kubelet")


def _concerns(node: Node, kind: str, *, tokens: bool) -> bool:
    """Whether the step has anything to do: a spare is in no cluster, and a pool without one has no kubelets."""
    if kind in _OF_KUBELET:
        own = node.assignment is not None and bool(node.assignment.cluster)
        return own and (tokens or kind != "start_kubelet")
    return OPERATIONS[kind].port != "scheduler" or node.assignment is not None


def _how_to_reset(how: Reset, node: Node, parts: tuple[str, ...]) -> op.ResetGpus:
    """The reset of these slots; what is not said is the agent's to choose.

    A GPU is named by its PCI address where that is known: numbers shift when one of them has fallen off the bus.
    """
    serials = dict(node.slots)
    pci = {serial: name.removeprefix("pci:") for name, serial in node.addresses if name.startswith("pci:")}
    gpus = tuple(f"{pci[serials[slot]]}.0" if serials[slot] in pci else slot for slot in parts)
    return op.ResetGpus(gpus, how.clients, how.fabric, how.links)
