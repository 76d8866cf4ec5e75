"""How a frozen plan moves: one operation at a time, ended early only at a step boundary, through its undo tail."""

from datetime import datetime, timedelta

from msgspec import Struct

from hostler.core import events as e
from hostler.core.configuration import Policy, Pool
from hostler.core.model import (
    ActClass,
    Blocker,
    Condition,
    Evidence,
    HoldKind,
    Node,
    Operation,
    Outcome,
    Phase,
    Plan,
    Severity,
    Step,
    Ticket,
    WorkClass,
)
from hostler.core.operations import OPERATIONS, OperationRow
from hostler.core.phases import PHASES, edge
from hostler.core.policy.disturb import Act as Disturbance
from hostler.core.policy.disturb import may_disturb
from hostler.core.policy.guards import GUARDS, Request, blockers, scopes
from hostler.core.policy.response import Need, rank, rule_for
from hostler.core.scene import Scene


class Act(Struct, frozen=True):
    """Record these. Operations among them are sent after the commit."""

    events: tuple[e.Event, ...]


class Wait(Struct, frozen=True):
    """Nothing can be done now, because of these; at `until` the clock alone changes that."""

    what: str
    blockers: tuple[Blocker, ...]
    until: datetime | None = None


class Rest(Struct, frozen=True):
    """Nothing is to be done."""


Answer = Act | Wait | Rest
LAB_FLOOR_S = 15.0
"""No time limit is scaled below this (or its own length): replies over a network do not get faster in a lab."""


LAB_PHASE_FLOOR_S = 300.0
"""A phase has many steps: its limit in a lab is never below this."""


def scaled(policy: Policy, duration_s: float, floor_s: float = LAB_FLOOR_S) -> float:
    """A working time or limit under the policy's time scale, in seconds."""
    if policy.time_scale == 1.0:
        return duration_s
    return max(duration_s / policy.time_scale, min(duration_s, floor_s))


def advance(scene: Scene, node: Node, plan: Plan, need: Need | None) -> Answer:
    """The plan's next event, or what its current step waits for."""
    if plan.state == "proposed":
        return _proposed(node, plan, need)
    if node.operation is not None:
        return _outstanding(scene, node, plan, node.operation, need)
    if plan.state == "undoing":
        return _undo(scene, node, plan)
    early = _ends_early(scene, node, plan, need)
    if early is not None:
        return Act(early)
    if plan.index >= len(plan.steps):
        return Act(_complete(scene, node, plan))
    return _step(scene, node, plan)


def _proposed(node: Node, plan: Plan, need: Need | None) -> Answer:
    if need is None or (need.remedy != plan.remedy):
        return Act((e.PlanEnded(node.id, plan.id, "cancelled", "it is no longer needed"),))
    text = f"{plan.name} is proposed and waits for a yes (hostler plan approve {node.id})"
    return Wait(plan.name, (Blocker("approval", plan.id, text, "a person approves or rejects it"),))


def step_deadline(plan: Plan) -> datetime:
    """When the current step is given up."""
    assert plan.step_since is not None, "a running plan knows since when it stands at its step"
    return plan.step_since + timedelta(seconds=plan.steps[plan.index].deadline_s)


def _outstanding(scene: Scene, node: Node, plan: Plan, operation: Operation, need: Need | None) -> Answer:
    row = OPERATIONS[operation.kind]
    urgent = need is not None and need.act_class is ActClass.protective and plan.act_class is not need.act_class
    if urgent:
        gone = _give_up(node, operation, row, "revoked", scene.now)
        return Act((gone, e.PlanEnded(node.id, plan.id, "superseded", "protective power-off")))
    if row.interruptible and (why := _bring_up_fails(scene, node, plan)):
        return Act((_give_up(node, operation, row, "revoked", scene.now), *fail_plan(scene, node, plan, why)))
    if operation.deadline <= scene.now:
        gone = _give_up(node, operation, row, "timed_out", scene.now)
        return Act((gone, *fail_step(scene, node, plan, f"{operation.kind} did not finish in time")))
    text = f"{operation.kind} was asked for at {operation.started:%H:%M:%S} and has not been answered"
    return Wait(
        plan.name, (Blocker("operation", operation.id, text, "its outcome is known"),), until=operation.deadline
    )


def _give_up(node: Node, operation: Operation, row: OperationRow, result: str, now: datetime) -> e.Event:
    until = now + timedelta(seconds=row.settle_s) if row.settle_s else None
    return e.OperationFinished(node.id, operation.id, operation.kind, result, settle_until=until)


def _bring_up_fails(scene: Scene, node: Node, plan: Plan) -> str:
    """Why a phase's own work has failed already: over the limit, or a grave condition appeared; "" if it has not."""
    if not plan.failed_phase:
        return ""
    if node.deadline is not None and node.deadline <= scene.now:
        return f"over the limit of {node.phase}"
    if node.phase not in (Phase.seatrial, Phase.zap, Phase.test):
        return ""
    checking = plan.index < len(plan.steps) and plan.steps[plan.index].operation == "run_checks"
    grave = [
        c
        for c in node.conditions
        if c.severity >= Severity.critical
        and rule_for(scene.fleet.policy, c).remedy
        and (checking or c.type not in _AWAY)
    ]
    return f"{grave[0].type}: {grave[0].evidence[-1].text if grave[0].evidence else ''}" if grave else ""


_AWAY = ("agent.lost", "power.off_unexpected")
"""What a phase that powers its node off and on shows by itself; its waits for the agent have limits of their own."""


def _ends_early(scene: Scene, node: Node, plan: Plan, need: Need | None) -> tuple[e.Event, ...] | None:
    """The events that end the plan at this boundary, None where it goes on."""
    if why := _bring_up_fails(scene, node, plan):
        return fail_plan(scene, node, plan, why)
    if plan.act_class in (ActClass.protective, ActClass.easing) or not plan.disruptive:
        return None
    if need is not None and _is_graver(need, plan):
        return (e.PlanEnded(node.id, plan.id, "superseded", f"{need.remedy} is needed for {need.rule}"),)
    if plan.disturbed:
        return None
    standing = {c.id for c in node.conditions}
    if plan.causes and standing.isdisjoint(plan.causes):
        return (e.PlanUndoing(node.id, plan.id, "its cause is gone"),)
    request = Request(plan.remedy or plan.name, plan.act_class, (node,), approved=True)
    stops = [b for b in blockers(scene, request) if b.kind in ("hold", "pause", "brake")]
    if stops:
        return (e.PlanUndoing(node.id, plan.id, stops[0].text),)
    return None


def _is_graver(need: Need, plan: Plan) -> bool:
    between_off_and_on = (
        plan.disturbed and plan.index < len(plan.steps) and plan.steps[plan.index].operation == "power_on"
    )
    return rank(need.remedy) > rank(plan.remedy) and not between_off_and_on


def _step(scene: Scene, node: Node, plan: Plan) -> Answer:
    step = plan.steps[plan.index]
    row = OPERATIONS[step.operation]
    if "boot" in row.needs and plan.boot_id and node.boot_id != plan.boot_id:
        return Act((e.PlanAdvanced(node.id, plan.id, plan.index + 1),))
    if step.operation == "uncordon" and _cordoned_by_person(scene, node):
        return Act((e.PlanAdvanced(node.id, plan.id, plan.index + 1),))
    if stopped := _preconditions(scene, node, plan, row):
        return Wait(plan.name, stopped)
    if row.port == "present":
        return _PRESENT[step.operation](scene, node, plan)
    return Act((e.OperationStarted(start(scene, node, plan, step)),))


def start(scene: Scene, node: Node, plan: Plan, step: Step) -> Operation:
    """The operation of a step, meant for the boot the node is in now."""
    row = OPERATIONS[step.operation]
    return Operation(
        id=f"{node.id}-o{scene.fleet.cell.seq}",
        kind=step.operation,
        node=node.id,
        plan=plan.id,
        step=plan.index,
        started=scene.now,
        deadline=scene.now + timedelta(seconds=step.deadline_s),
        args=step.args,
        boot_id=node.boot_id if row.port == "agent" else plan.boot_id,
        disturbs=row.disrupts,
    )


def _preconditions(scene: Scene, node: Node, plan: Plan, row: OperationRow) -> tuple[Blocker, ...]:
    found: list[Blocker] = []
    if "drained" in row.needs and plan.act_class is not ActClass.protective:
        found.extend(_undrained(scene, node, plan))
    if "power" in row.needs or ("power_off" in row.needs and plan.act_class is not ActClass.protective):
        found.extend(_dark(scene, node, "power" in row.needs))
    if plan.act_class is ActClass.bring_up and GUARDS["pause"][ActClass.bring_up]:
        request = Request(plan.name, plan.act_class, (node,), approved=True)
        found.extend(b for b in blockers(scene, request) if b.kind in ("hold", "pause", "brake"))
    if row.port == "bmc":
        found.extend(
            Blocker("operation", o.id, f"{o.kind} may still land", "its settle time is over")
            for o in node.settling
            if OPERATIONS[o.kind].port == "bmc" and plan.act_class is not ActClass.protective
        )
    return tuple(found)


def _undrained(scene: Scene, node: Node, plan: Plan) -> list[Blocker]:
    pool = scene.fleet.configuration.pools.get(node.pool)
    consents = may_disturb(node, scene.present, _disturbance(scene, node, plan), pool, scene.now)
    if isinstance(consents, Blocker):
        return [consents]
    return [
        c.blocker or Blocker("workload", c.workload.id, f"{c.workload.id} still runs here", "it has been evicted")
        for c in consents
        if c.workload.work_class is not WorkClass.infrastructure
    ]


def _dark(scene: Scene, node: Node, powers_on: bool) -> list[Blocker]:
    kinds = (HoldKind.physical_work, HoldKind.power) if powers_on else (HoldKind.physical_work,)
    return [
        Blocker("hold", h.id, f"{h.owner} holds {h.scope}: {h.reason}", "the hold is released")
        for h in scene.fleet.holds_on(scopes(scene, node))
        if h.kind in kinds
    ]


def _disturbance(scene: Scene, node: Node, plan: Plan) -> Disturbance:
    condition = next((c for c in node.conditions if c.id in plan.causes and c.type == plan.rule), None)
    dooms = rule_for(scene.fleet.policy, condition).dooms if condition else "none"
    return Disturbance(plan.act_class, plan.part, dooms, plan.recorded_at)


def _drain(scene: Scene, node: Node, plan: Plan) -> Answer:
    pool = scene.fleet.configuration.pools.get(node.pool)
    consents = may_disturb(node, scene.present, _disturbance(scene, node, plan), pool, scene.now)
    if isinstance(consents, Blocker):
        return _overdue(scene, node, plan, (consents,), pool)
    work = [c for c in consents if c.workload.work_class is not WorkClass.infrastructure]
    if not work:
        return Act((e.PlanAdvanced(node.id, plan.id, plan.index + 1),))
    allowed = [c.workload.id for c in work if c.allowed]
    if allowed:
        left = (step_deadline(plan) - scene.now).total_seconds()
        step = Step("evict", max(60.0, min(left, 600.0)), {"workloads": ",".join(allowed[:64])})
        return Act((e.OperationStarted(start(scene, node, plan, step)),))
    return _overdue(scene, node, plan, tuple(c.blocker for c in work if c.blocker), pool)


def _overdue(scene: Scene, node: Node, plan: Plan, stopped: tuple[Blocker, ...], pool: Pool | None) -> Answer:
    """Waiting for work to end; past the deadline it becomes a named person's decision, never an eviction."""
    deadline = step_deadline(plan)
    if scene.now < deadline:
        until = deadline
        if pool is not None and pool.evict_after_deadline:
            until = plan.recorded_at + timedelta(seconds=scaled(scene.fleet.policy, pool.drain_deadline_s))
        return Wait(plan.name, stopped, until=until if until > scene.now else deadline)
    owner = (pool.owner if pool else "") or "the pool's owner"
    ticket = Ticket(
        id=f"{node.id}-t{scene.fleet.cell.seq}",
        node=node.id,
        kind="consent",
        summary=f"{plan.name} is needed ({plan.rule}) and waits for {stopped[0].text}",
        opened=scene.now,
        owner=owner,
        account=pool.tenant if pool else "",
    )
    why = f"the drain deadline has passed; {owner} is asked (ticket {ticket.id})"
    return Act((e.TicketOpened(ticket), e.PlanUndoing(node.id, plan.id, why)))


def _wait_boot(scene: Scene, node: Node, plan: Plan) -> Answer:
    booted = node.boot_id != plan.boot_id or not plan.boot_id or node.test_mode
    return _wait_heard(scene, node, plan, done=booted)


def _wait_agent(scene: Scene, node: Node, plan: Plan) -> Answer:
    return _wait_heard(scene, node, plan, done=True)


def _wait_heard(scene: Scene, node: Node, plan: Plan, *, done: bool) -> Answer:
    if done and scene.present.of(node.id).heard:
        return Act((e.PlanAdvanced(node.id, plan.id, plan.index + 1),))
    if scene.now >= step_deadline(plan):
        return Act(fail_step(scene, node, plan, "the agent was not heard in time"))
    blocker = Blocker("boot", node.id, "the node boots: its agent has not been heard", "the agent reports")
    return Wait(plan.name, (blocker,), until=step_deadline(plan))


_PRESENT = {"drain": _drain, "wait_boot": _wait_boot, "wait_agent": _wait_agent}


def undo_tail(plan: Plan) -> tuple[Step, ...]:
    """The easings that take back what was reached, last first."""
    return tuple(Step(name, 60.0) for name in reversed(plan.undo[: plan.reached + 1]) if name)


def _undo(scene: Scene, node: Node, plan: Plan) -> Answer:
    tail = undo_tail(plan)
    if plan.index >= len(tail):
        return Act((e.PlanEnded(node.id, plan.id, plan.result, plan.reason),))
    step = tail[plan.index]
    if step.operation == "uncordon" and _cordoned_by_person(scene, node):
        return Act((e.PlanAdvanced(node.id, plan.id, plan.index + 1),))
    return Act((e.OperationStarted(start(scene, node, plan, step)),))


def _cordoned_by_person(scene: Scene, node: Node) -> bool:
    """A person keeps new work away too: our cordon stays until theirs is lifted."""
    kinds = (HoldKind.cordon, HoldKind.physical_work)
    return any(h.kind in kinds for h in scene.fleet.holds_on(scopes(scene, node)))


def conclude(scene: Scene, node: Node, operation: Operation, outcome: Outcome) -> tuple[e.Event, ...]:
    """What a known outcome (done, failed, refused) of the outstanding operation means for its plan."""
    finished = e.OperationFinished(
        node.id, operation.id, operation.kind, outcome.result, outcome.detail[:500], outcome.facts
    )
    plan = node.plan
    if plan is None or plan.id != operation.plan:
        return (finished,)
    if outcome.result == "done":
        again = operation.kind == "evict" and plan.state == "running"
        moved = () if again else (e.PlanAdvanced(node.id, plan.id, plan.index + 1),)
        return (finished, *moved)
    return (finished, *fail_step(scene, node, plan, f"{operation.kind}: {outcome.detail or outcome.result}"))


def fail_step(scene: Scene, node: Node, plan: Plan, why: str) -> tuple[e.Event, ...]:
    """An optional step (or a step of the undo tail) is passed over; any other ends the plan."""
    if plan.state == "undoing" or plan.steps[plan.index].optional:
        return (e.PlanAdvanced(node.id, plan.id, plan.index + 1),)
    return fail_plan(scene, node, plan, why)


def fail_plan(scene: Scene, node: Node, plan: Plan, why: str) -> tuple[e.Event, ...]:
    """The plan has failed: its phase says where the node goes; a remedy leaves the next rung to the ladder.

    Before anybody was disturbed the undo tail runs; afterwards the node stays out of service.
    """
    if plan.failed_phase:
        ended = e.PlanEnded(node.id, plan.id, "failed", why)
        return (ended, *change_phase(scene, node, Phase(plan.failed_phase), why))
    if plan.name in ("deliver", "return_to_service"):
        released = (e.NodeReleased(node.id, scene.now, why),) if plan.name == "deliver" else ()
        return (
            e.PlanEnded(node.id, plan.id, "failed", why),
            *released,
            e.ConditionRaised(_failed_remedy(node, plan, why, scene.now)),
        )
    if plan.disruptive and not plan.disturbed:
        return (e.PlanUndoing(node.id, plan.id, why, "failed"),)
    return (e.PlanEnded(node.id, plan.id, "failed", why),)


def _failed_remedy(node: Node, plan: Plan, why: str, now: datetime) -> Condition:
    return Condition(
        id=f"{node.id}/remedy.failed",
        type="remedy.failed",
        node=node.id,
        severity=Severity.critical,
        since=now,
        last_seen=now,
        clears="remedy",
        owner="hostler",
        evidence=(Evidence(now, "hostler", f"{plan.name} failed: {why}"),),
    )


def _complete(scene: Scene, node: Node, plan: Plan) -> tuple[e.Event, ...]:
    """The plan is done: its causes are answered, and the node stands where the recipe says."""
    found: list[e.Event] = [e.PlanEnded(node.id, plan.id, "done", "")]
    answered = _answered(node, plan)
    found.extend(e.ConditionCleared(node.id, c.id, "remedy", f"{plan.name} done") for c in answered)
    if plan.name == "release":
        found.append(e.NodeReleased(node.id, scene.now, plan.rule or "released"))
    if plan.to_phase:
        after = Phase(plan.to_phase)
        left = [c for c in node.conditions if c not in answered]
        if plan.name == "examine" and any(c.clears == "observation" and c.severity >= Severity.critical for c in left):
            after = Phase.rma
        found.extend(change_phase(scene, node, after, f"{plan.name} done"))
    return tuple(found)


def _answered(node: Node, plan: Plan) -> list[Condition]:
    """Conditions that the plan answers: its causes; for a node that passed examination, all that a remedy clears.

    What leaves the cluster takes its conditions along: triage still has to find their cause.
    """
    if plan.to_phase == Phase.triage.value or plan.name in ("protective_power_off", "cordon", "uncordon", "deliver"):
        return []
    if plan.name == "examine":
        return [c for c in node.conditions if c.clears == "remedy"]
    fresh = plan.boot_id
    return [
        c
        for c in node.conditions
        if c.id in plan.causes and c.clears == "remedy" and (not fresh or c.boot_id in ("", fresh))
    ]


def change_phase(scene: Scene, node: Node, after: Phase, why: str) -> tuple[e.Event, ...]:
    """The move along an edge of the graph, with what follows from it: limit, release, ticket."""
    assert edge(node.phase, after), f"no edge from {node.phase} to {after}"
    limit_s = PHASES[after].limit_s
    deadline = (
        scene.now + timedelta(seconds=scaled(scene.fleet.policy, limit_s, LAB_PHASE_FLOOR_S)) if limit_s else None
    )
    found: list[e.Event] = []
    if node.phase is Phase.production and node.assignment is not None:
        found.append(e.NodeReleased(node.id, scene.now, why))
    found.append(e.PhaseChanged(node.id, node.phase, after, why, deadline))
    if after is Phase.rma:
        found.append(e.TicketOpened(_rma_ticket(scene, node, why)))
    return tuple(found)


def _rma_ticket(scene: Scene, node: Node, why: str) -> Ticket:
    worst = max(node.conditions, key=lambda c: (c.severity, c.id), default=None)
    part = scene.fleet.parts.get(worst.part) if worst else None
    return Ticket(
        id=f"{node.id}-t{scene.fleet.cell.seq}",
        node=node.id,
        kind="rma",
        summary=f"return {node.id} to the vendor: {why}",
        opened=scene.now,
        hardware=part.serial if part else node.binding("serial"),
        component=part.kind if part else "node",
        fault=worst.type if worst else why,
        action="return for repair or replacement",
        handover=node.handover,
        owner="technician",
    )
