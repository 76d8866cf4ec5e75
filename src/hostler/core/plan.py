"""One safe step forward for a node, or the blockers in its way. Asked again and again until there is nothing to do.

What does this node need *now*? A plan that runs is advanced (`advance`); else protection, then a remedy, then the
phase's own work. Every answer is a value: events to record (`Act`), a reasoned `Wait`, or `Rest`.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from hostler.core import events as e
from hostler.core.advance import Act, Answer, Rest, Wait, advance, change_phase, scaled
from hostler.core.configuration import REMEDIES, Pool
from hostler.core.fold import OWNER
from hostler.core.freeze import Frame, freeze
from hostler.core.model import (
    ActClass,
    Assignment,
    Blocker,
    Condition,
    Hold,
    HoldKind,
    Mode,
    Node,
    Phase,
    Severity,
    Ticket,
)
from hostler.core.phases import PHASES
from hostler.core.policy.guards import Request, blockers, mode_of, reopens, scopes, storm
from hostler.core.policy.response import Need, is_lemon, need_of
from hostler.core.recipes import RECIPES, Recipe
from hostler.core.scene import Scene


def next_step(scene: Scene, node: Node) -> Answer:
    """What to record next for this node, or what it waits for."""
    need = need_of(scene.fleet.policy, node, scene.now)
    if node.plan is not None:
        return advance(scene, node, node.plan, need)
    if need is not None and need.act_class is ActClass.protective:
        return _protect(scene, node, need)
    if node.settling:
        return _settling(node)
    if need is not None:
        return _remedy(scene, node, need)
    return _phase_work(scene, node)


def _record(scene: Scene, node: Node, recipe: Recipe, frame: Frame) -> e.Event:
    seen = scene.present.of(node.id)
    work = scene.present.workloads(node.id)
    evidence = tuple(c.evidence[-1] for c in node.conditions if c.id in frame.causes and c.evidence)
    facts = {
        "power": seen.power,
        "workloads": "unknown" if work is None else ",".join(w.id for w in work[:16]),
        "ready": str(seen.ready).lower(),
    }
    return e.PlanRecorded(freeze(scene, node, recipe, frame), evidence, facts)


def _protect(scene: Scene, node: Node, need: Need) -> Answer:
    dark = next((h for h in scene.fleet.holds_on([node.id]) if h.kind is HoldKind.power), None)
    if dark is not None:
        return Wait("power", (_held(dark),))
    hold = Hold(
        id=f"{node.id}-power",
        scope=node.id,
        kind=HoldKind.power,
        owner=OWNER,
        reason=f"protective power-off: {need.rule}; only a named person powers it on again",
        since=scene.now,
    )
    recipe = RECIPES["protective_power_off"]
    frame = Frame(ActClass.protective, need.causes, need.rule, need.part, need.remedy)
    return Act((e.HoldPlaced(hold), _record(scene, node, recipe, frame)))


def _held(hold: Hold) -> Blocker:
    return Blocker("hold", hold.id, f"{hold.owner} holds {hold.scope}: {hold.reason}", "the hold is released")


def _settling(node: Node) -> Wait:
    late = node.settling[0]
    text = f"{late.kind} was given up but may still land"
    return Wait(
        "settle",
        (Blocker("operation", late.id, text, "it is observed, or its settle time is over"),),
        until=late.deadline,
    )


def _remedy(scene: Scene, node: Node, need: Need) -> Answer:
    consent = next((t for t in scene.fleet.tickets.values() if t.node == node.id and t.kind == "consent"), None)
    if consent is not None and need.act_class is ActClass.pending and scene.present.workloads(node.id) != ():
        text = f"{consent.owner} is asked to consent (ticket {consent.id}): {consent.summary}"
        return Wait(need.remedy, (Blocker("person", consent.owner, text, "the ticket is closed or the work ends"),))
    if waiting := _tired(scene, node, need):
        return waiting
    nodes = _group(scene, node, need)
    wished = any(c.remedy for c in node.conditions if c.id in need.causes)
    request = Request(need.remedy, need.act_class, nodes, confirm=need.confirm, approved=wished)
    found = blockers(scene, request)
    if found:
        return Wait(need.remedy, found, until=reopens(scene, found))
    if not wished and (why := storm(scene, len(nodes))):
        return Act((e.BrakeLatched(why),))
    return Act(tuple(_remedy_plan(scene, member, need) for member in nodes))


BACK_OFF_S = 300.0
LAST_TRIES = 3


def _tired(scene: Scene, node: Node, need: Need) -> Answer | None:
    """The same remedy failed a moment ago: wait a little; the last rung failed again and again: a person decides."""
    tried = [a.at for a in node.attempts if a.remedy == need.remedy]
    if not tried or need.act_class is ActClass.protective:
        return None
    stuck = next((t for t in scene.fleet.tickets.values() if t.node == node.id and t.kind == "stuck"), None)
    if stuck is not None:
        blocker = Blocker("person", stuck.owner, f"{stuck.summary} (ticket {stuck.id})", "the ticket is closed")
        return Wait(need.remedy, (blocker,))
    lately = [at for at in tried if scene.now - at < timedelta(days=1)]
    if need.remedy == REMEDIES[-1] and len(lately) >= LAST_TRIES:
        summary = f"{need.remedy} failed {len(lately)} times in a day, {need.rule} still stands"
        ticket = Ticket(f"{node.id}-t{scene.fleet.cell.seq}", node.id, "stuck", summary, scene.now, owner="operator")
        return Act((e.TicketOpened(ticket),))
    rested = tried[-1] + timedelta(seconds=scaled(scene.fleet.policy, BACK_OFF_S))
    if rested > scene.now:
        blocker = Blocker("clock", need.remedy, f"{need.remedy} has just been tried", f"{rested:%H:%M:%S} UTC")
        return Wait(need.remedy, (blocker,), until=rested)
    return None


def _group(scene: Scene, node: Node, need: Need) -> tuple[Node, ...]:
    """The nodes of one act (a rack): all that carry a condition of the same group and have no plan yet."""
    if not need.group:
        return (node,)
    members = [scene.fleet.nodes[i] for i in scene.fleet.index.members("ailing")]
    return tuple(m for m in members if m.plan is None and any(c.group == need.group for c in m.conditions))


def _remedy_plan(scene: Scene, node: Node, need: Need) -> e.Event:
    own = need_of(scene.fleet.policy, node, scene.now) or need
    wished = any(c.remedy for c in node.conditions if c.id in own.causes)
    proposed = not wished and mode_of(scene, node.pool, own.remedy) is Mode.propose
    frame = Frame(own.act_class, own.causes, own.rule, own.part, own.remedy, own.group, proposed)
    return _record(scene, node, RECIPES[own.remedy], frame)


def _phase_work(scene: Scene, node: Node) -> Answer:
    row = PHASES[node.phase]
    if node.phase is Phase.production:
        return _in_production(scene, node)
    if node.phase is Phase.registered:
        return _enrol(scene, node)
    if row.limit_s is not None and row.on_limit and node.deadline is not None and node.deadline <= scene.now:
        return Act(change_phase(scene, node, row.on_limit, f"over the limit of {node.phase}"))
    if node.phase is Phase.triage and (answer := _triage(scene, node)):
        return answer
    if not row.recipe:
        return Wait(node.phase.value, (Blocker("person", "technician", row.waits_for, "that is done"),))
    return _bring_up(scene, node, RECIPES[row.recipe])


def _bring_up(scene: Scene, node: Node, recipe: Recipe) -> Answer:
    request = Request(recipe.name, ActClass.bring_up, (node,))
    found = blockers(scene, request)
    if found:
        return Wait(recipe.name, found, until=node.deadline)
    return Act((_record(scene, node, recipe, Frame(ActClass.bring_up)),))


def _enrol(scene: Scene, node: Node) -> Answer:
    if node.adopted:
        if node.inventory_at is not None:
            return Act(change_phase(scene, node, Phase.production, "adopted, its inventory seen"))
        text = "its inventory has not been seen yet"
        return Wait("adopt", (Blocker("observation", "inventory", text, "its agent or BMC reports it"),))
    if node.provisioner == "none":
        text = "no provisioner: somebody else powers it on"
        return Wait("bring_up", (Blocker("person", "operator", text, "it is adopted or given a provisioner"),))
    found = blockers(scene, Request("initializing", ActClass.bring_up, (node,)))
    if found:
        return Wait("bring_up", found)
    return Act(change_phase(scene, node, Phase.initializing, "bring-up begins"))


def hardware_faults(node: Node) -> tuple[Condition, ...]:
    """Conditions that only another reading can clear and that forbid service: missing parts, failed disks."""
    return tuple(
        c
        for c in node.conditions
        if c.clears == "observation" and c.severity >= Severity.critical and c.type not in _ABSENCE
    )


_ABSENCE = ("agent.lost", "bmc.unreachable", "host.failed", "power.off_unexpected")


def _triage(scene: Scene, node: Node) -> Answer | None:
    """Who acts next in triage: a technician (return for maintenance), the vendor (a lemon), or the recipe."""
    asked = next((c for c in node.conditions if c.type == "operator.maintenance"), None)
    if asked is not None:
        text = f"{asked.owner} took it out for maintenance"
        return Wait(
            "maintenance", (Blocker("person", "technician", text, "the work is ended (hostler node end-work)"),)
        )
    if is_lemon(scene.fleet.policy, node, scene.now):
        return Act(change_phase(scene, node, Phase.rma, "one visit to triage too many"))
    return None


def _in_production(scene: Scene, node: Node) -> Answer:
    if scene.fleet.holds.bare and OWNER not in node.cordons:
        return Rest()
    kept = [h for h in scene.fleet.holds_on(scopes(scene, node)) if h.kind in _CORDONING]
    if kept and OWNER not in node.cordons and node.assignment is not None:
        request = Request("cordon", ActClass.immediate, (node,), approved=True)
        found = blockers(scene, request)
        if found:
            return Wait("cordon", found)
        return Act((_record(scene, node, RECIPES["cordon"], Frame(ActClass.immediate, remedy="cordon")),))
    if kept:
        return Wait("cordoned", tuple(_held(hold) for hold in kept))
    if OWNER in node.cordons:
        gentle = bool(node.attempts) and node.attempts[-1].remedy == "cordon"
        recipe = RECIPES["uncordon" if gentle else "return_to_service"]
        return Act((_record(scene, node, recipe, Frame(ActClass.easing)),))
    return Rest()


_CORDONING = (HoldKind.cordon, HoldKind.physical_work, HoldKind.power)


def balance(scene: Scene, pool: Pool) -> tuple[e.Event, ...]:
    """Deliver spares to a pool below its target, in id order; one call delivers all that is missing and to be had."""
    missing = pool.target - scene.fleet.index.count(f"pool:{pool.name}")
    if missing <= 0:
        return ()
    found: list[e.Event] = []
    spares = [scene.fleet.nodes[i] for i in scene.fleet.spares(pool.sku)]
    for node in spares[: max(0, len(spares) - pool.budget.spares_floor)]:
        if missing == 0:
            break
        joined = Assignment(pool.name, pool.tenant, pool.cluster, scene.now)
        if node.profile is not pool.profile or node.provisioner == "none":
            continue
        if blockers(scene, Request("deliver", ActClass.bring_up, (node,))):
            continue
        missing -= 1
        found.append(e.NodeAssigned(node.id, joined))
        found.append(_record(scene, node, RECIPES["deliver"], Frame(ActClass.bring_up)))
    return tuple(found)


def wakes_at(scene: Scene, node: Node) -> datetime | None:
    """When the clock alone gives the node something to do: operation, step, phase limit, condition, rung. None: never.

    What is past already masks nothing that is to come.
    """
    if node.deadline is None and node.plan is None and not node.conditions and not node.settling:
        return None
    moments = [node.deadline] if node.deadline else []
    if node.operation is not None:
        moments.append(node.operation.deadline)
    moments.extend(operation.deadline for operation in node.settling)
    moments.extend(c.expires_at for c in node.conditions if c.expires_at)
    plan = node.plan
    if plan is not None and plan.step_since is not None and plan.index < len(plan.steps):
        moments.append(plan.step_since + timedelta(seconds=plan.steps[plan.index].deadline_s))
    if node.conditions and node.attempts:
        moments.extend(_rungs_reopen(scene, node))
    return min((at for at in moments if at > scene.now), default=None)


def _rungs_reopen(scene: Scene, node: Node) -> Iterator[datetime]:
    """When an attempt counts no longer, so that a gentler rung is open again."""
    for attempt in node.attempts:
        rung = scene.fleet.policy.rungs.get(attempt.remedy)
        if rung is not None:
            yield attempt.at + timedelta(seconds=rung.window_s)
