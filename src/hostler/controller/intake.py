"""Meaning of inputs: observations to conditions, replies to plans, heartbeats to silence. Events out, nothing sent."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.conditions import recurrence, unanswered_checks
from hostler.core.conditions.inventory_changes import of_inventory
from hostler.core.conditions.lifecycle import as_history, stand
from hostler.core.conditions.merge import take_in
from hostler.core.conditions.staleness import BMC_TOO_LARGE
from hostler.core.diagnose import Finding, memory_errors, switch_errors
from hostler.core.diagnose.findings import over, stands
from hostler.core.diagnose.judge import judge
from hostler.core.diagnose.recurrence_windows import with_work
from hostler.core.planning import gate_requirements
from hostler.core.planning.idle_checks import PROFILE
from hostler.core.planning.outcomes import conclude
from hostler.core.state import events as e
from hostler.core.state.configuration import Configuration
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import OFF, ON, Fellow, LiveNode, LiveState
from hostler.core.state.model import (
    OWNER,
    CheckResult,
    Evidence,
    Hold,
    HoldKind,
    Intent,
    Node,
    Observation,
    Operation,
    Outcome,
    Phase,
    Severity,
    Verdict,
    WorkClass,
    Workload,
)
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.operations import IDLE_CHECK, OPERATIONS
from hostler.core.tables.verdicts import ENDS, StepEnd, verdict_of
from hostler.ports import WorkloadView

MAX_AGE_S = 604_800.0
LATE = timedelta(hours=1)
"""The longest that an observation waits to be decided on; one that seems older bears a wrong clock's stamp."""
ATTEMPTS = 3


class Observed(Struct, frozen=True):
    """Observations of one sender, in the order of its spool. `token` is answered after the commit.

    `urgent`: their sender says that they hold what may doom a job.
    """

    token: int
    node: str
    observations: tuple[Observation, ...]
    urgent: bool = False


class IntentAsked(Struct, frozen=True):
    """An intent, with a whole checked configuration where its verb is activate."""

    token: int
    intent: Intent
    configuration: Configuration | None = None
    documents: dict[str, str] = {}


class Replied(Struct, frozen=True):
    """A driver's answer."""

    outcome: Outcome


class AgentHeard(Struct, frozen=True):
    """The agent was heard for the first time, again after silence, with a new boot id, or with other checks.

    `profiles` are the check profiles that it says it has; None: it does not say.
    """

    node: str
    boot_id: str
    profiles: tuple[str, ...] | None = None


class AgentSilent(Struct, frozen=True):
    """The agent has not been heard for longer than the policy allows."""

    node: str
    since: datetime


class WorkSeen(Struct, frozen=True):
    """The work that one cluster's schedulers show now; `cluster` "" is where there is none.

    `whole`: these are all nodes that they know, and they are synced. `lost`: why what they told counts no more.
    """

    views: tuple[WorkloadView, ...]
    whole: bool = False
    cluster: str = ""
    lost: str = ""


class NodeSeen(Struct, frozen=True):
    """Volatile readings of one node: power ("on", "off", "unknown"), the scheduler's readiness.

    `boot_id` is the scheduler's ("": none is shown, None: not looked at).
    `bmc_refuses` is why its BMC answers and cannot be used ("" where it can, None: not looked at), `bmc_says` why it
    counts as unreachable. `bmc_exceeds` is what of it was asked for ("sensors"), and why that is more than is read ("":
    it is not); None: not looked at.
    """

    node: str
    power: str = ""
    ready: bool | None = None
    bmc_unreachable: bool | None = None
    bmc_refuses: str | None = None
    bmc_says: str = ""
    bmc_exceeds: tuple[str, str] | None = None
    boot_id: str | None = None


class Tick(Struct, frozen=True):
    """Time has passed."""


class AgentRefused(Struct, frozen=True):
    """An agent's word that is refused, and why; "" once it is taken again.

    `condition`: agent.outdated, its protocol is understood no more; agent.refused, its posts are not taken.
    """

    node: str
    text: str
    condition: str = "agent.outdated"


class AgentAhead(Struct, frozen=True):
    """The node's agent was told once that more was read than is known of: the journal is a copy from before."""

    node: str
    read: int
    acknowledged: int


class ClockSeen(Struct, frozen=True):
    """News of the clocks, an input of the controller.

    `unattended_s`: the process was held up, or confirmed time was caught up with. `leap_s`: the wall clock moved so
    much further than the monotonic one (less than 0: back). `agrees`: the clocks agree again after a doubt.
    """

    unattended_s: float = 0.0
    leap_s: float = 0.0
    wall: datetime | None = None
    agrees: bool = False

    def __bool__(self) -> bool:
        return bool(self.unattended_s or self.leap_s or self.agrees)


class FellowsSeen(Struct, frozen=True):
    """The controllers of the cell that are alive, this one among them."""

    fellows: tuple[Fellow, ...]


Input = (
    Observed
    | IntentAsked
    | Replied
    | AgentHeard
    | AgentSilent
    | WorkSeen
    | NodeSeen
    | Tick
    | AgentRefused
    | AgentAhead
    | ClockSeen
    | FellowsSeen
)


class Caused(Struct, frozen=True):
    """An event to record with its cause."""

    event: e.Event
    cause: str


def unread(seen: tuple[Observation, ...], read: tuple[str, int]) -> Iterator[Observation]:
    """The observations behind (spool, sequence), in order; a gap ends it, for its sender resends from the answer."""
    spool, sequence = read
    for observation in seen:
        fresh = observation.spool != spool
        if not fresh and observation.sequence <= sequence:
            continue
        if not fresh and observation.sequence != sequence + 1:
            return
        spool, sequence = observation.spool, observation.sequence
        yield observation


def received_at(observation: Observation, now: datetime) -> Observation:
    """The observation with a moment of arrival that controller time bears out; a server's clock may be another's."""
    received = observation.received
    assert received is not None, "the server stamps every observation"
    if now - LATE <= received <= now:
        return observation
    return replace(observation, received=now)


def of_observation(
    fleet: Fleet, node: Node, observation: Observation, workloads: tuple[Workload, ...] | None = None
) -> Iterator[Caused]:
    """Everything recorded because of one observation. `workloads` run on the node now, None where nobody says."""
    received = observation.received
    assert received is not None, "the server stamps every observation"
    at = received - timedelta(seconds=min(max(observation.age_s, 0.0), MAX_AGE_S))
    if observation.kind == "inventory":
        yield from (Caused(event, observation.id) for event in of_inventory(fleet, node, observation, at))
    sku = fleet.configuration_of(node).skus.get(node.sku)
    findings = switch_errors.join(node, with_work(node, judge(observation, node, sku), workloads), at)
    for finding in memory_errors.join(node, findings, at):
        if (alone := memory_errors.superseded(node, finding, at)) is not None:
            one = f"one fault with {finding.type}: {finding.text}"
            yield Caused(e.ConditionCleared(node.id, alone.id, "observation", one), observation.id)
            node = fleet.nodes.get(node.id) or node
        path = "bmc" if observation.source == "bmc" else observation.kind
        evidence = Evidence(at, observation.source, finding.text, observation.id, finding.facts, path)
        event = stand(node, finding, evidence, observation.boot_id, observation.count)
        if event is not None:
            yield Caused(event, observation.id)
            node = fleet.nodes.get(node.id) or node
        raised = isinstance(event, e.ConditionRaised)
        for taken in take_in(node, event.condition) if isinstance(event, e.ConditionRaised) else ():
            yield Caused(taken, observation.id)
            node = fleet.nodes.get(node.id) or node
        if observation.kind == "part_health" and not raised:
            continue  # a BMC's word is a state: told once more, it has not happened once more
        for counted in recurrence.count(fleet, node, finding, at, raised=raised):
            yield Caused(counted, observation.id)
            node = fleet.nodes.get(node.id) or node


def see_devices(present: LiveState, seen: Observation) -> bool:
    """Take over which pod has which GPUs, as the node's agent says; whether it said anything of it."""
    if seen.kind != "devices":
        return False
    told = ((name.removeprefix("pod:"), str(ids)) for name, ids in seen.facts.items() if name.startswith("pod:"))
    present.entry(seen.node).devices = {uid: tuple(ids.split(",")) for uid, ids in told if ids}
    return True


def of_boot(node: Node, boot_id: str, now: datetime) -> Iterator[e.Event]:
    """Another boot: what a remedy was to clear in the boots before is history, unless a remedy is at it.

    What a part keeps over restarts, and is returned for, stands as before.
    """
    if not boot_id or boot_id == node.boot_id:
        return
    yield e.BootObserved(node.id, boot_id)
    answered = node.plan.causes if node.plan else ()
    for condition in node.conditions:
        if condition.clears != "remedy" or condition.boot_id in ("", boot_id) or condition.id in answered:
            continue
        kept = (row := CONDITIONS.get(condition.type)) is not None and row.returned
        yield e.ConditionUpdated(replace(condition, boot_id=boot_id) if kept else as_history(condition, now))


_SILENCE_MATTERS = frozenset({Phase.onboard, Phase.seatrial, Phase.zap, Phase.test, Phase.production})


def of_silence(scene: DecisionContext, node: Node, since: datetime) -> e.Event | None:
    """agent.lost, unless the node is meant to be away: in the middle of a plan that restarts it, or held dark.

    Who stands at a check that nobody has answered is meant to be up again.
    """
    if any(h.kind in (HoldKind.power, HoldKind.physical_work) for h in scene.fleet.holds_on([node.id])):
        return None
    away = node.plan is not None and node.plan.disturbed and not unanswered_checks.is_open(node, node.plan)
    if away or node.phase not in _SILENCE_MATTERS:
        return None
    if node.operation is not None and OPERATIONS[node.operation.kind].port == "bmc":
        return None
    text = f"the agent has not been heard since {since:%H:%M:%S} UTC"
    finding = Finding("agent.lost", CONDITIONS["agent.lost"].severity, text)
    return stand(node, finding, Evidence(scene.now, "hostler", text), "")


def of_return(node: Node, now: datetime) -> e.Event | None:
    """agent.lost is over."""
    finding = Finding("agent.lost", Severity.info, "the agent is heard again", standing=False)
    return stand(node, finding, Evidence(now, "agent", finding.text), "")


def of_refusal(node: Node, one: AgentRefused, now: datetime) -> tuple[e.Event, ...]:
    """Its condition comes with what is refused and goes with the first that is taken."""
    said = one.text or "what the agent says is taken again"
    finding = Finding(one.condition, CONDITIONS[one.condition].severity, said, standing=bool(one.text))
    event = stand(node, finding, Evidence(now, "hostler", said), "")
    return (event,) if event else ()


def see_work(present: LiveState, seen: WorkSeen, now: datetime) -> list[str]:
    """Take over what a cluster's schedulers show; the nodes whose work changed."""
    touched = [view.node for view in seen.views if _see(present.entry(view.node), seen.cluster, view, now)]
    if seen.whole or seen.lost:
        present.clusters[seen.cluster] = seen.lost
    if seen.lost:
        present.whole_since.pop(seen.cluster, None)
        for here in present.nodes.values():
            if seen.cluster in here.workloads:
                here.idle_since = None
                here.ready = None  # what a scheduler believed when it was last heard is no witness
    elif seen.whole:
        present.whole_since.setdefault(seen.cluster, now)
    return touched


def _see(here: LiveNode, cluster: str, view: WorkloadView, now: datetime) -> bool:
    """Whether it shows anything new. Who shows that our cordon was lifted does not lag behind it."""
    is_open = view.cordoned is False and not view.overridden
    before = (here.workloads.get(cluster), here.cordoned_by_other, cluster in here.open, here.idle_since is not None)
    is_news = (cluster in here.listed) is not view.listed
    if view.listed:
        here.listed[cluster] = None
    else:
        _unlist(here, cluster)
    here.workloads[cluster] = view.workloads
    here.cordoned_by_other = view.cordoned_by_other
    if is_open:
        here.open[cluster] = None
    else:
        here.open.pop(cluster, None)
    idle = all(w.work_class is WorkClass.infrastructure for told in here.workloads.values() for w in told)
    here.idle_since = (here.idle_since or now) if idle else None
    return is_news or before != (view.workloads, view.cordoned_by_other, is_open, idle)


def _unlist(here: LiveNode, cluster: str) -> None:
    """Forget what a cluster believed of a node that it lists no more: it is no witness."""
    here.listed.pop(cluster, None)
    if not here.listed:
        here.ready = None


def of_override(fleet: Fleet, seen: WorkSeen, now: datetime) -> Iterator[e.HoldPlaced]:
    """A person lifted our cordon by the scheduler's own means: that is recorded as a hold, not fought."""
    for view in seen.views:
        node = fleet.nodes.get(view.node) if view.overridden else None
        if node is None or not (_is_cordoned_in(node, seen.cluster) or node.left_cluster == seen.cluster):
            continue
        if any(one.kind in ("cordon", "uncordon", "cordon_uninvited") for one in node.under_way):
            continue  # what is shown may be from before it
        if not any(h.kind is HoldKind.override for h in fleet.holds_on([node.id])):
            reason = f"lifted our cordon in cluster {seen.cluster}"
            identity = f"h{fleet.cell.seq}-{node.id}"
            yield e.HoldPlaced(Hold(identity, node.id, HoldKind.override, view.overridden, reason, now))


def _is_cordoned_in(node: Node, cluster: str) -> bool:
    return OWNER in node.cordons and node.assignment is not None and node.assignment.cluster == cluster


def see_node(present: LiveState, seen: NodeSeen, now: datetime) -> bool:
    """Take over volatile readings; whether anything changed, or is told that is kept nowhere else."""
    here = present.entry(seen.node)
    before = (here.power, here.ready, here.bmc_unreachable, here.bmc_refused, here.scheduler_boot)
    if seen.power:
        here.power, here.power_at = seen.power, now
    if seen.ready is not None:
        here.ready = seen.ready
    if seen.bmc_unreachable is not None:
        here.bmc_unreachable = seen.bmc_unreachable
    if seen.bmc_refuses is not None:
        here.bmc_refused = bool(seen.bmc_refuses)
    if seen.boot_id is not None:
        here.scheduler_boot = seen.boot_id
    now_is = (here.power, here.ready, here.bmc_unreachable, here.bmc_refused, here.scheduler_boot)
    return before != now_is or seen.bmc_exceeds is not None


def of_reach(fleet: Fleet, node: Node, seen: NodeSeen, now: datetime) -> Iterator[e.Event]:
    """bmc.unreachable, bmc.refused and bmc.response_too_large come and go with what the looks at the BMC say."""
    silence = f"the BMC does not answer: {seen.bmc_says}" if seen.bmc_says else "the BMC does not answer"
    refusal = f"the BMC answers and cannot be used: {seen.bmc_refuses}"
    what, why = seen.bmc_exceeds or ("", None)
    told = (
        ("bmc.unreachable", "", seen.bmc_unreachable, silence, "the BMC answers"),
        ("bmc.refused", "", _is_so(seen.bmc_refuses), refusal, "the BMC serves us"),
        (BMC_TOO_LARGE, what, _is_so(why), f"{what}: {why}", f"{what}: as much as is read"),
    )
    for kind, part, standing, bad, good in told:
        if standing is None:
            continue
        finding = stands(kind, bad, part) if standing else over(kind, good, part)
        if (event := stand(node, finding, Evidence(now, "bmc", finding.text), "")) is not None:
            yield event
            raised = isinstance(event, e.ConditionRaised)
            yield from recurrence.count(fleet, fleet.nodes[node.id], finding, now, raised=raised)


def _is_so(why: str | None) -> bool | None:
    return None if why is None else bool(why)


class ReplyEffect(Struct, frozen=True):
    """Effect of a driver's reply: events, or in a while its effect is observed, or it is sent again."""

    events: tuple[e.Event, ...] = ()
    observe: bool = False
    resend: bool = False


def is_known_by(node: Node, outcome: Outcome) -> bool:
    """Whether it says what came of what is under way on the node: of this attempt, not of an earlier one."""
    asked = node.operation
    same = asked is not None and (asked.id, asked.attempt) == (outcome.operation, outcome.attempt)
    return same and outcome.result not in ("unknown", "busy")


def of_reply(scene: DecisionContext, node: Node, outcome: Outcome) -> ReplyEffect:
    """A driver's answer. Unknown is observed, never repeated; not_done may be sent again where that is safe."""
    operation = next((one for one in node.under_way if one.id == outcome.operation), None)
    if operation is None:
        return ReplyEffect(_late(node, outcome))
    if outcome.attempt != operation.attempt:
        return ReplyEffect()
    outcome = gate_requirements.as_seen(operation, outcome)
    if outcome.result in ("unknown", "busy"):
        return ReplyEffect(observe=True)
    if operation.kind == IDLE_CHECK:
        return ReplyEffect(_idle_checked(scene, node, operation, outcome))
    if outcome.result == "not_done":
        return _not_done(scene, node, operation)
    if operation.kind == "run_checks":
        return _checked(scene, node, operation, outcome)
    if outcome.result == "done":
        _see_effect(scene, node, operation, outcome)
        return _done(scene, node, operation, outcome)
    result = outcome.result if outcome.result in ("failed", "refused") else "failed"
    failed = Outcome(outcome.operation, node.id, result, outcome.detail, outcome.facts)
    return ReplyEffect(conclude(scene, node, operation, failed))


def _not_done(scene: DecisionContext, node: Node, operation: Operation) -> ReplyEffect:
    row = OPERATIONS[operation.kind]
    if row.repeatable and operation.attempt > 1:
        return ReplyEffect(resend=True)
    if row.repeatable:
        return ReplyEffect((e.OperationStarted(again(operation, node, scene.now)),))
    failed = Outcome(operation.id, node.id, "failed", "observed not to have happened")
    return ReplyEffect(conclude(scene, node, operation, failed))


def again(operation: Operation, node: Node, now: datetime) -> Operation:
    """The same operation, to be sent once more: what was sent before `now` is no longer what may still land."""
    agents = OPERATIONS[operation.kind].port == "agent"
    boot_id = node.boot_id if operation.boot_id and agents else operation.boot_id
    return replace(operation, started=now, boot_id=boot_id, attempt=operation.attempt + 1)


def _late(node: Node, outcome: Outcome) -> tuple[e.Event, ...]:
    late = e.OutcomeLate(node.id, outcome.operation, outcome.result, outcome.detail[:200])
    if outcome.operation not in node.given_up or outcome.result not in ("done", "failed", "refused"):
        return ()
    if any((o.id, o.attempt) == (outcome.operation, outcome.attempt) for o in node.settling):
        return (late, e.OperationSettled(node.id, outcome.operation, f"answered late: {outcome.result}"))
    return (late,)


def _see_effect(scene: DecisionContext, node: Node, operation: Operation, outcome: Outcome) -> None:
    """Take over what a confirmed effect shows, until the next reading."""
    here, now = scene.present.entry(operation.node), scene.now
    cluster = node.assignment.cluster if node.assignment else ""
    if operation.kind in ("power_on", "power_off"):
        here.power, here.power_at = (ON if operation.kind == "power_on" else OFF), now
    if operation.kind == "power_off":
        here.heard = False
    if operation.kind == "evict":  # of a node in no pool any cluster may have shown the work
        shown = {name: works for name, works in here.workloads.items() if cluster in ("", name)}
        here.workloads |= {name: _without(works, operation, outcome) for name, works in shown.items()}
    if operation.kind == "leave_cluster":
        here.workloads.pop(cluster, None)
        _unlist(here, cluster)
    if operation.kind == "join_cluster":
        here.workloads.setdefault(cluster, ())


def _without(works: tuple[Workload, ...], operation: Operation, outcome: Outcome) -> tuple[Workload, ...]:
    """The work that is left: what was ended is gone, but for what still has its grace (fact "ending")."""
    asked = frozenset(operation.args.get("workloads", "").split(","))
    ending = frozenset(str(outcome.facts.get("ending", "")).split(","))
    return tuple(
        replace(w, held_by=w.held_by or "it is ending") if w.id in asked else w
        for w in works
        if w.id not in asked or w.id in ending
    )


def _done(scene: DecisionContext, node: Node, operation: Operation, outcome: Outcome) -> ReplyEffect:
    extra: list[e.Event] = []
    if operation.kind == unanswered_checks.SANITISE:
        extra.extend(unanswered_checks.answered(scene.fleet, node, operation.kind, "observation", "it was erased"))
    if operation.kind == "collect_inventory" and outcome.parts:
        extra.extend(of_inventory(scene.fleet, node, outcome, scene.now))
    return ReplyEffect((*extra, *conclude(scene, node, operation, outcome)))


def _checked(scene: DecisionContext, node: Node, operation: Operation, outcome: Outcome) -> ReplyEffect:
    """Only passed is passed, only failed is failed. What says neither is tried again, and then leaves its step open.

    One that was tried before is not tried at once: it has its pauses (`unanswered_checks`).
    """
    profile = operation.args.get("profile", "gate")
    verdict = verdict_of(outcome)
    recorded = e.CheckRecorded(node.id, CheckResult(profile, verdict, scene.now, outcome.detail[:500]))
    match ENDS[verdict]:
        case StepEnd.passed:
            told = _verified(node, profile)
        case StepEnd.failed:
            told = (*_wanting(scene, node, profile, outcome.detail), *_conclusive(node, profile))
        case StepEnd.open:
            if operation.attempt < ATTEMPTS and unanswered_checks.standing(node, profile) is None:
                return ReplyEffect((recorded, e.OperationStarted(again(operation, node, scene.now))))
            return ReplyEffect(conclude(scene, node, operation, outcome))
        case other:
            assert_never(other)
    closed = _closed(scene.fleet, node, profile, f"{profile} {verdict}")
    return ReplyEffect((recorded, *told, *closed, *conclude(scene, node, operation, outcome)))


def _conclusive(node: Node, profile: str) -> Iterator[e.Event]:
    """A check that has failed is inconclusive no more."""
    if (condition := unanswered_checks.standing(node, profile)) is not None:
        yield e.ConditionCleared(node.id, condition.id, "observation", f"{profile} failed")


def _closed(fleet: Fleet, node: Node, profile: str, why: str) -> Iterator[e.Event]:
    """The ticket that asked for an answer is closed by it."""
    if (ticket := unanswered_checks.ticket_of(fleet, node, profile)) is not None:
        yield e.TicketClosed(ticket.id, why, "hostler")


def _wanting(scene: DecisionContext, node: Node, profile: str, detail: str) -> tuple[e.Event, ...]:
    severity, text = CONDITIONS["check.failed"].severity, f"{profile} failed: {detail}"[:500]
    finding = Finding("check.failed", severity, text, f"check:{profile}")
    event = stand(node, finding, Evidence(scene.now, "check", finding.text), node.boot_id)
    return (event,) if event else ()


def _idle_checked(scene: DecisionContext, node: Node, operation: Operation, outcome: Outcome) -> tuple[e.Event, ...]:
    """An idle check has ended. Inconclusive (pre-empted, refused, gone) accuses nobody and is not tried again."""
    verdict = verdict_of(outcome)
    detail = outcome.detail or ("" if outcome.result == "done" else f"the check came to nothing: {outcome.result}")
    recorded = e.CheckRecorded(node.id, CheckResult(PROFILE, verdict, scene.now, detail[:500]))
    told: tuple[e.Event, ...] = ()
    if verdict is Verdict.passed:
        told = _verified(node, PROFILE)
    elif verdict is Verdict.failed:
        told = _wanting(scene, node, PROFILE, detail)
    finished = Outcome(operation.id, node.id, outcome.result, detail)
    return (recorded, *told, *conclude(scene, node, operation, finished))


_THOROUGH = ("suspect", "burn_in")


def _verified(node: Node, profile: str) -> tuple[e.Event, ...]:
    """A passed check ends what it disproves: its own failure; a thorough one ends the failure of every check.

    The gate after a remedy ends what the idle check had found: should it come back, the ladder counts it.
    """
    answered = [f"check:{profile}"]
    if profile == "gate" and node.plan is not None and node.plan.touched:
        answered.append(f"check:{PROFILE}")
    return tuple(
        e.ConditionCleared(node.id, c.id, "observation", f"{profile} passed")
        for c in node.conditions
        if c.type in ("check.failed", "check.inconclusive")
        and (profile in _THOROUGH or c.part.partition("/")[0] in answered)
    )
