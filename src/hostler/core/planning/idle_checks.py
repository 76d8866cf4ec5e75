"""Idle slots: when a node in service is checked with all its GPUs, where that may begin, and when it must yield. Pure.

An idle check disturbs nobody, so it needs no plan: it is one operation, and its verdict a record. Slots come once a
period; each node's begin at a moment of its own, so that a fleet is never checked all at once. A check begins only
where customers' work is known to be absent, and has been for a while, and ends as soon as anybody wants the node: a
customer, a plan, a person. It ends too when its cluster is heard no longer: a customer may have come, unseen. What was
ended so is inconclusive, and is not tried again before the node's next slot.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2s

from hostler.core.planning.meeting_calls import checks_idle, is_called
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import blockers
from hostler.core.policy.remedy_escalation import is_on_probation
from hostler.core.state import events as e
from hostler.core.state.configuration import IdleCheckPolicy, scaled
from hostler.core.state.customer_workloads import WorkClass
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, asked_again
from hostler.core.state.drills import running as running_drill
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import ActClass, Blocker, CheckResult, Node, Operation, Phase, Profile, Severity, Verdict
from hostler.core.state.operations import IdleCheck
from hostler.core.state.requalification import has_proven_itself
from hostler.core.state.trends import DRIFT
from hostler.core.tables.operations import IDLE_CHECK

PROFILE = "idle"
"""The profile of checks that runs in a slot, and under which its verdict is recorded."""

IN_DOUBT = "the journal or the clock is in doubt"


def serves(fleet: Fleet, node: Node) -> bool:
    """Whether the node's pool wants idle checks: its mode for them is act, by name. "*" speaks of remedies only."""
    if node.assignment is None or node.phase is not Phase.production or node.profile is not Profile.managed:
        return False
    return checks_idle(fleet, node.pool, fleet.pool_of(node))


def running(node: Node) -> Operation | None:
    """The idle check that is under way on the node."""
    return node.operation if node.operation is not None and node.operation.kind == IDLE_CHECK else None


def beside(context: DecisionContext, node: Node, answer: Answer) -> Answer:
    """The answer; where it is none to act on, the check of the node's slot begins now, or is thought of in time."""
    if isinstance(answer, Act):
        return answer
    if (check := running(node)) is not None:
        return asked_again(context.now, answer, _over_at(context, check), _heard_by(context, check))
    return begin(context, node) or asked_again(context.now, answer, _next_moment(context, node))


def begin(context: DecisionContext, node: Node) -> Act | None:
    """The check of the node's slot begins now; None where none is due, or it may not."""
    if node.operation is not None or not serves(context.fleet, node) or not _is_due(context, node):
        return None
    if keeps_away(context, node) or not _is_quiet(context, node) or not _has_room(context, node):
        return None
    return Act((e.OperationStarted(_operation(context, node)),))


def end(context: DecisionContext, node: Node, check: Operation) -> Act | None:
    """The check under way is called off, inconclusively, because somebody wants the node or its time is over."""
    if context.fleet.cell.restored is not None:
        return None
    why = keeps_away(context, node) or _busy(context, node) or _unheard(context, node, check)
    if not why and _over_at(context, check) <= context.now:
        why = "it did not end in its time"
    if not why:
        return None
    verdict = CheckResult(PROFILE, Verdict.inconclusive, context.now, f"called off: {why}"[:500])
    finished = e.OperationFinished(node.id, check.id, check.kind, "revoked", verdict.detail)
    return Act((e.CheckRecorded(node.id, verdict), finished))


def _heard_by(context: DecisionContext, check: Operation) -> datetime:
    """When it must be known who works on the node: at once, but after a start its cluster has time to answer."""
    return context.live.unobserved.get(check.id, context.now)


def _over_at(context: DecisionContext, check: Operation) -> datetime:
    """When the check's time is over; after a start not before somebody has looked what came of it."""
    return max(check.deadline, context.live.unobserved.get(check.id, check.deadline))


def could_begin(context: DecisionContext, node: Node) -> bool:
    """Whether a check could begin on the node now if it were due and there were room."""
    free = node.operation is None and serves(context.fleet, node) and _is_quiet(context, node)
    return free and not keeps_away(context, node)


def waits(context: DecisionContext, node: Node) -> bool:
    """Whether the node would be checked now if there were room, and nothing kept it away."""
    return (
        node.operation is None and serves(context.fleet, node) and _is_due(context, node) and _is_quiet(context, node)
    )


def keeps_away(context: DecisionContext, node: Node) -> str:
    """Why no idle check may run on the node whoever works there, "" where nothing keeps it away."""
    if not serves(context.fleet, node):
        return "its pool wants no idle checks"
    return _wanted_by_others(context, node) or _stopped(context, node)


def _wanted_by_others(context: DecisionContext, node: Node) -> str:
    if (drill := running_drill(node.drill)) is not None:
        return f"drill {drill.id} runs"
    if node.plan is not None:
        return f"{node.plan.name} is under way"
    if ailing := next((c for c in node.conditions if _matters(c.severity, c.type, c.part, c.remedy)), None):
        return f"{ailing.type} stands on it"
    if context.fleet.incidents_of(node.id):
        return "it belongs to an incident"
    if node.cordons or context.live.of(node.id).cordoned_by_other:
        return "it is cordoned"
    if node.settling or not has_proven_itself(node):
        return "it has not proven itself since it was acted upon"
    return ""


def _stopped(context: DecisionContext, node: Node) -> str:
    if context.fleet.cell.doubt is not None:
        return IN_DOUBT
    found = blockers(context, DisruptionRequest(IDLE_CHECK, ActClass.idle_check, (node,)))
    return next((_clause(context, one) for one in found), "")


def _clause(context: DecisionContext, found: Blocker) -> str:
    """The blocker as the end of "called off: …" in a verdict's record."""
    match found.kind:
        case "restored":
            return IN_DOUBT
        case "brake":
            return "the storm brake is latched"
        case "hold":
            return f"{context.fleet.holds[found.name].owner} holds it"
        case _:
            return "it is paused"


def _matters(severity: Severity, kind: str, part: str, request: str) -> bool:
    """A node that is unwell is a remedy's. What its own last check said is just what the next one is to confirm."""
    if kind == "check.failed" and part.partition("/")[0] == f"check:{PROFILE}":
        return False
    return severity >= Severity.degraded or bool(request)


def _unheard(context: DecisionContext, node: Node, check: Operation) -> str:
    """Say that it is unknown who works on the node, "" where that is known or its cluster still has time to answer."""
    if context.live.workloads(node) is not None or context.now < _heard_by(context, check):
        return ""
    cluster = node.assignment.cluster if node.assignment is not None else ""
    lost = context.live.clusters.get(cluster, "it has told nothing since the start") or "it does not list the node"
    return f"it is unknown who works there; {f'cluster {cluster}' if cluster else 'its scheduler'}: {lost}"


def _busy(context: DecisionContext, node: Node) -> str:
    """Work that is shown on the node; of what is not shown see `_unheard`."""
    for work in context.live.workloads(node) or ():
        if work.work_class is not WorkClass.infrastructure:
            return f"{work.job or work.id} has come"
    return ""


def _is_quiet(context: DecisionContext, node: Node) -> bool:
    """Whether nobody works there, no check is left, for long enough by now, and its scheduler calls it ready.

    Of a node without a scheduler its agent is heard: it sees who works there, and yields.
    """
    here, works = context.live.of(node.id), context.live.workloads(node)
    is_ready = here.ready if node.assignment is None or node.assignment.cluster else here.heard
    if works is None or is_ready is not True or here.idle_since is None:
        return False
    if any(work.check or work.work_class is not WorkClass.infrastructure for work in works):
        return False
    return _quiet_at(context, node, here.idle_since) <= context.now


def _quiet_at(context: DecisionContext, node: Node, idle_since: datetime) -> datetime:
    policy = context.fleet.policy_of(node)
    return idle_since + timedelta(seconds=scaled(policy, policy.slots.quiet_s))


def _is_due(context: DecisionContext, node: Node) -> bool:
    """Whether the node has not been looked at in its present slot.

    Nobody is due before a slot of its own has begun since it was delivered, since the configuration came into force,
    and since the controller started: so nothing of this makes all nodes due at once. Who was checked late in a slot is
    left in peace in the next.
    """
    tried = next((check.at for check in node.checks if check.profile == PROFILE), None)
    assert node.assignment is not None, "only members of a pool are served"
    activated = context.fleet.configuration_of(node).activated
    moments = (tried, node.assignment.since, activated, context.live.started)
    begins, apart = slot_begins(context, node), timedelta(seconds=_period_s(context, node) / 2)
    if _is_first(context, node, tried):
        return True
    if tried is not None and tried + apart > begins:
        return False
    return max(at for at in moments if at is not None) < begins


def _is_first(context: DecisionContext, node: Node, tried: datetime | None) -> bool:
    """Whether the node does not wait for its slot: it was repaired, drifts, is called to meet, or is a witness."""
    assert node.assignment is not None, "only members of a pool are served"
    if is_on_probation(node, context.now) and (tried is None or tried < node.assignment.since):
        return True
    if any(c.type == DRIFT and (tried is None or c.since > tried) for c in node.conditions):
        return True
    if is_called(context, node, tried):
        return True
    return any(tried is None or since > tried for since in _wanted_as_witness(context, node))


def _wanted_as_witness(context: DecisionContext, node: Node) -> Iterator[datetime]:
    """Since when others' bits differ from those that the node gave, and are undecided."""
    for golden in context.fleet.disputes_seen_by(node.id):
        yield from (dispute.since for dispute in golden.disputes if not dispute.culprit)


def slot_begins(context: DecisionContext, node: Node) -> datetime:
    """When the node's present slot began: a whole second, so that its end and the next one's beginning are one."""
    period_s = _period_s(context, node)
    offset_s = int(stagger(node.id) * period_s)
    passed = (int(context.sure.timestamp()) - offset_s) // period_s
    return datetime.fromtimestamp(passed * period_s + offset_s, UTC)


def _period_s(context: DecisionContext, node: Node) -> int:
    policy = context.fleet.policy_of(node)
    return max(1, int(scaled(policy, policy.slots.period_s)))


@lru_cache(maxsize=200_000)
def stagger(node_id: str) -> float:
    """Share of a period at which the node's slots begin, 0 to 1: always the same, and another place for each node."""
    return int.from_bytes(blake2s(node_id.encode(), digest_size=6).digest(), "big") / (1 << 48)


def _has_room(context: DecisionContext, node: Node) -> bool:
    """Whether pool and cluster check fewer nodes than they may at once."""
    fleet, pool = context.fleet, context.fleet.pool_of(node)
    assert node.assignment is not None, "only members of a pool are served"
    assert pool is not None, "only members of a pool are served"
    limits, cluster = fleet.policy_of(node).slots, node.assignment.cluster
    busy = [fleet.nodes[i] for i in fleet.index.members("operating")]
    others = [one.assignment for one in busy if running(one) is not None and one.assignment is not None]
    in_pool = sum(one.pool == node.pool for one in others)
    in_cluster = sum(one.cluster == cluster for one in others)
    return in_pool < allowance(limits, pool.target) and in_cluster < limits.cluster_count


def allowance(limits: IdleCheckPolicy, target: int) -> int:
    """How many nodes of a pool of this target may be checked at once: the stricter of count and percent.

    Where the percentage allows any at all, it allows one.
    """
    share = target * limits.percent / 100
    return min(limits.count, max(1, int(share)) if share > 0 else 0)


def _operation(context: DecisionContext, node: Node) -> Operation:
    """The operation, whose id names node and slot, so that whoever is asked twice does it once."""
    policy = context.fleet.policy_of(node)
    begins = slot_begins(context, node)
    return Operation(
        id=f"{node.id}-idle-{int(begins.timestamp())}",
        act=IdleCheck(PROFILE, policy.slots.image),
        node=node.id,
        plan="",
        step=0,
        started=context.now,
        deadline=context.now + timedelta(seconds=scaled(policy, policy.slots.limit_s)),
        boot_id=node.boot_id,
    )


def _next_moment(context: DecisionContext, node: Node) -> datetime | None:
    """When the clock alone may begin a check of the node."""
    if not serves(context.fleet, node):
        return None
    idle_since = context.live.of(node.id).idle_since
    if idle_since is not None and _is_due(context, node) and (at := _quiet_at(context, node, idle_since)) > context.now:
        return at
    return slot_begins(context, node) + timedelta(seconds=_period_s(context, node))
