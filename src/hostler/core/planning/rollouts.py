"""A configuration comes into force slice by slice: what each slice is, what counts as its error, and when it ends.

Level, not edge: asked at any moment, the recorded rollout and the fleet say what is next. What is judged is only what
the new configuration does and the one before would not have done.
"""

from datetime import timedelta

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.planning.firmware_waves import DRIFT, behind, brings
from hostler.core.planning.what_if import acts_in, ailing, begins, changed, disturbed, supposing
from hostler.core.policy.remedy_escalation import rank, rule_for
from hostler.core.policy.workload_consent import Disturbance, is_doomed, lost_to
from hostler.core.report.sentences import named
from hostler.core.state import events as e
from hostler.core.state.change_control import AHEAD_MOST, NODES_LISTED, Rollout, Slice, SliceError
from hostler.core.state.configuration import Configuration, scaled
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import OWNER, Condition, Node, Operation, Phase, Plan, Severity, Verdict
from hostler.core.state.operations import Evict
from hostler.core.state.scopes import POOL, WHOLE_CELL, Scope

EXAMINED = "suspect"
"""The profile that says whether a node in triage has anything; that its parts are all there says less."""


class RolloutOrder(Struct, frozen=True):
    """A request to roll a configuration out: whose, why, and who approved it."""

    configuration: Configuration
    documents: dict[str, str]
    person: str
    reason: str
    approved_by: str = ""


def begin(context: DecisionContext, order: RolloutOrder) -> e.RolloutStarted:
    """The rollout with its slices in their order, frozen, and the first of them reached."""
    fleet, fresh = context.fleet, order.configuration
    policy = fleet.policy
    reach, soak_s = policy.reach, scaled(policy, policy.reach.soak_s)
    slices = slices_of(fleet, fresh)
    return e.RolloutStarted(
        Rollout(
            id=f"r-{fleet.cell.seq}",
            sha256=fresh.sha256,
            before=fleet.configuration.sha256,
            person=order.person,
            reason=order.reason,
            started=context.now,
            slices=slices,
            soak_s=soak_s,
            limit_s=scaled(policy, reach.limit_s),
            error_percent=reach.error_percent,
            errors_most=max(1, reach.nodes),
            since=context.now,
            until=context.now + timedelta(seconds=soak_s),
            approved_by=order.approved_by,
            configuration=fresh,
            documents=order.documents,
            expected=_expected(context, slices[0], fresh),
            foreseen=disturbed(context, fresh)[:NODES_LISTED],
            ahead_most=min(AHEAD_MOST, max(reach.nodes, int(len(fleet.nodes) * reach.error_percent / 100))),
        )
    )


def slices_of(fleet: Fleet, fresh: Configuration) -> tuple[Slice, ...]:
    """First a few nodes of the smallest pool that acts, then pool by pool, what acts and is small first.

    Nodes of no pool come last.
    """
    sizes = {name: fleet.index.count(f"pool:{name}") for name in fleet.configuration.pools}
    acts = {name: acts_in(fleet, name, fleet.configuration, fresh) for name in sizes}
    names = sorted((name for name, size in sizes.items() if size), key=lambda n: (not acts[n], sizes[n], n))
    found = [Slice(name, sizes[name]) for name in names]
    few = max(1, fleet.policy.reach.first_nodes)
    if found and found[0].size > few:
        first = found[0].pool
        some = tuple(fleet.index.members(f"pool:{first}")[:few])
        found[:1] = [Slice(first, few, some), Slice(first, found[0].size - few)]
    loose = len(fleet.nodes) - sum(sizes.values())
    if loose > 0 or not found:
        found.append(Slice("", loose))
    return tuple(found)


def _expected(context: DecisionContext, slice_: Slice, fresh: Configuration) -> tuple[str, ...]:
    """The slice's nodes that the configuration would disturb at once and the one before does not."""
    before, after = supposing(context, context.fleet.configuration), supposing(context, fresh)
    nodes = [n for n in ailing(context.fleet) if (n.id in slice_.nodes if slice_.nodes else n.pool == slice_.pool)]
    return changed(before, after, nodes)


# what a record shows of the slice


def judged(context: DecisionContext, event: e.Event) -> tuple[e.Event, ...]:
    """The error that this event is, with the stop where it is one too many. Asked before the event is folded."""
    rollout = context.fleet.rollout
    if rollout is None:
        return ()
    error = _error(context, rollout, event)
    if error is None or any((x.node, x.kind) == (error.node, error.kind) for x in rollout.errors):
        return ()
    seen = e.SliceErrorSeen(rollout.id, rollout.index, error)
    if error.kind == "ahead":
        return (seen,) if len(rollout.ahead) < rollout.ahead_most else (seen, _stop(rollout, _too_far(rollout, error)))
    return (seen,) if len(rollout.errors) < rollout.tolerated else (seen, _stop(rollout, _too_many(rollout, error)))


def _stop(rollout: Rollout, why: str) -> e.RolloutStopped:
    return e.RolloutStopped(rollout.id, why, OWNER)


def _too_far(rollout: Rollout, last: SliceError) -> str:
    return (
        f"{named(rollout)}: it would have disturbed {len(rollout.ahead) + 1} nodes not yet reached though nothing was "
        f"foreseen of them, {rollout.ahead_most} are tolerated; the last: {last.node}: {last.text}"
    )


def _too_many(rollout: Rollout, last: SliceError) -> str:
    errors = (*rollout.errors, last)
    kinds = sorted({x.kind.replace("_", " ") for x in errors})
    return (
        f"{named(rollout)}: {len(errors)} errors on {rollout.current.size} nodes, {rollout.tolerated} are tolerated "
        f"({', '.join(kinds)}); the last: {last.node}: {last.text}"
    )


def _error(context: DecisionContext, rollout: Rollout, event: e.Event) -> SliceError | None:
    match event:
        case e.PlanRecorded(plan=plan):
            return _unexpected(context, rollout, plan) if plan.state != "proposed" else None
        case e.PlanEnded(node=node_id, result="failed"):
            return _failed(context, rollout, context.fleet.nodes[node_id], event.reason)
        case e.OperationStarted(operation=Operation(act=Evict(workloads=ids), node=node_id)):
            return _customer(context, rollout, context.fleet.nodes[node_id], ids)
        case e.ConditionRaised(condition=condition) | e.ConditionUpdated(condition=condition):
            node = context.fleet.nodes[condition.node]
            if not rollout.reaches(node.id, node.pool):
                return _ahead(context, rollout, node, condition)
            back = _came_back(context, rollout, node, condition) if isinstance(event, e.ConditionRaised) else None
            return back or _worsened(context, rollout, node, condition)
        case e.CheckRecorded(node=node_id, check=check) if (check.profile, check.verdict) == (EXAMINED, Verdict.passed):
            return _wrong_removal(context, rollout, context.fleet.nodes[node_id])
        case _:
            return None


def _is_new(context: DecisionContext, rollout: Rollout, node: Node, plan: Plan) -> bool:
    """Whether the plan is the new configuration's own: for its causes the one before would do less, or nothing."""
    if plan.config != rollout.sha256:
        return False
    if context.fleet.configuration.skus.get(node.sku) != _fresh(rollout).skus.get(node.sku):
        return True
    asking = replace(node, conditions=tuple(c for c in node.conditions if c.id in plan.causes))
    return _is_graver(plan.remedy, _would(context, context.fleet.configuration, asking))


def _is_graver(remedy: str, before: str) -> bool:
    return bool(remedy) and (not before or rank(before) < rank(remedy))


def _would(context: DecisionContext, configuration: Configuration, node: Node) -> str:
    return begins(supposing(context, configuration), node)


def _fresh(rollout: Rollout) -> Configuration:
    assert rollout.configuration is not None, "a running rollout carries its configuration"
    return rollout.configuration


def _unexpected(context: DecisionContext, rollout: Rollout, plan: Plan) -> SliceError | None:
    node = context.fleet.nodes[plan.node]
    if not plan.disruptive or node.id in rollout.expected or not _is_new(context, rollout, node, plan):
        return None
    if plan.rule == DRIFT and brings(context.fleet.configuration, _fresh(rollout), node.sku):
        return None  # what a new baseline is for
    text = f"{plan.name} for {plan.rule or 'a request'} was not foreseen when the slice began"
    return SliceError(node.id, "unexpected", text, context.now)


def _failed(context: DecisionContext, rollout: Rollout, node: Node, why: str) -> SliceError | None:
    plan = node.plan
    if plan is None or not plan.disruptive or not _is_new(context, rollout, node, plan):
        return None
    return SliceError(node.id, "failed", f"{plan.name} for {plan.rule}: {why}"[:300], context.now)


def _customer(context: DecisionContext, rollout: Rollout, node: Node, ids: tuple[str, ...]) -> SliceError | None:
    """Work is ended that the configuration before would have left alone, and that the fault had not ended already."""
    plan = node.plan
    if plan is None or not _is_new(context, rollout, node, plan):
        return None
    cause = next((c for c in node.conditions if c.id in plan.causes and c.type == plan.rule), None)
    rule = rule_for(context.fleet.policy, cause) if cause else None
    fault = Disturbance(plan.act_class, lost_to(cause, rule.dooms) if cause and rule and rule.remedy else ())
    ended = [w for w in context.live.workloads(node) or () if w.id in ids and not is_doomed(node, w, fault)]
    if not ended:
        return None
    names = ", ".join(w.job or w.id for w in ended[:4])
    return SliceError(node.id, "customer", f"{plan.name} for {plan.rule} ends running work: {names}", context.now)


def _came_back(context: DecisionContext, rollout: Rollout, node: Node, condition: Condition) -> SliceError | None:
    """The remedy that the new configuration brought has not cured what it was for."""
    ours, before = rule_for(_fresh(rollout).policy, condition).remedy, rule_for(context.fleet.policy, condition).remedy
    if ours == before or not any(a.remedy == ours and a.at >= rollout.started for a in node.attempts):
        return None
    return SliceError(node.id, "worsened", f"{condition.type} came back after {ours}", context.now)


def _worsened(context: DecisionContext, rollout: Rollout, node: Node, condition: Condition) -> SliceError | None:
    """Error where a condition comes or grows grave, and the two configurations have treated the node differently."""
    standing = next((c for c in node.conditions if c.id == condition.id), None)
    grown = standing is None or standing.severity < condition.severity
    if condition.severity < Severity.critical or not grown or not node.conditions:
        return None
    if _would(context, _fresh(rollout), node) == _would(context, context.fleet.configuration, node):
        return None
    return SliceError(node.id, "worsened", f"{condition.type} came on top", context.now)


def _ahead(context: DecisionContext, rollout: Rollout, node: Node, condition: Condition) -> SliceError | None:
    """The node is not reached yet; what would the new configuration do about this?"""
    if node.id in rollout.foreseen or node.id in rollout.ahead:
        return None
    stood = tuple(c for c in node.conditions if c.id != condition.id)
    seen = replace(node, conditions=(*stood, condition))
    would = _would(context, _fresh(rollout), seen)
    if not _is_graver(would, _would(context, context.fleet.configuration, seen)):
        return None
    return SliceError(node.id, "ahead", f"{would} for {condition.type} would have begun", context.now)


def _wrong_removal(context: DecisionContext, rollout: Rollout, node: Node) -> SliceError | None:
    """Examined in triage, a node that the new configuration took out of its pool is found to have nothing."""
    if node.id not in rollout.removed or node.phase is not Phase.triage:
        return None
    served = replace(node, phase=Phase.production, plan=None)
    if rank(_would(context, context.fleet.configuration, served)) >= rank("triage"):
        return None
    return SliceError(node.id, "wrong_removal", "it left its pool and was found healthy", context.now)


# what is next


def advance(context: DecisionContext) -> tuple[e.Event, ...]:
    """Next events of the running rollout: nothing yet, the next slice, its end."""
    rollout = context.fleet.rollout
    if rollout is None or context.now < rollout.until:
        return ()
    if unsettled(context, rollout):
        if context.now < rollout.since + timedelta(seconds=rollout.limit_s):
            return ()
        why = f"{named(rollout)} did not settle in time: {unsettled(context, rollout)[0]}"
        return (_stop(rollout, why),)
    if rollout.index + 1 < len(rollout.slices):
        index = rollout.index + 1
        until = context.now + timedelta(seconds=rollout.soak_s)
        expected = _expected(context, rollout.slices[index], _fresh(rollout))
        return (e.SliceStarted(rollout.id, index, rollout.slices[index].pool, until, expected),)
    return _complete(context, rollout)


def _complete(context: DecisionContext, rollout: Rollout) -> tuple[e.Event, ...]:
    fresh, pools = _fresh(rollout), context.fleet.configuration.pools
    if lost := sorted(n for n in pools if n not in fresh.pools and context.fleet.index.count(f"pool:{n}")):
        why = f"pools {', '.join(lost)} have got members and are not in it"
        return (_stop(rollout, why),)
    return (
        e.RolloutCompleted(rollout.id),
        e.ConfigActivated(fresh, rollout.documents, rollout.person),
    )


def unsettled(context: DecisionContext, rollout: Rollout) -> list[str]:
    """Why the slice cannot be judged yet: nothing may be disturbed, or what it began has not ended."""
    fleet = context.fleet
    found = [f"the storm brake is latched: {fleet.cell.brake}"] if fleet.cell.brake else []
    scopes = (WHOLE_CELL, Scope(POOL, rollout.current.pool))
    found.extend(f"{scope} is paused" for scope in scopes if scope in fleet.cell.paused)
    for node_id in fleet.index.members("planned"):
        plan = fleet.nodes[node_id].plan
        if plan is not None and plan.config == rollout.sha256 and plan.disruptive and plan.state != "proposed":
            found.append(f"{plan.name} of {node_id} is under way")
    found.extend(f"{name} does not run its new firmware baseline yet" for name in _lagging(context, rollout))
    for node_id in rollout.removed:
        node = fleet.nodes.get(node_id)
        if node is not None and node.phase is Phase.triage:
            found.append(f"{node_id} is being examined")
    return found


def _lagging(context: DecisionContext, rollout: Rollout) -> list[str]:
    """Nodes of the slice that a new baseline has not reached; one that has failed is counted as an error already."""
    fleet, slice_, failed = context.fleet, rollout.current, {error.node for error in rollout.errors}
    names = slice_.nodes or (fleet.index.members(f"pool:{slice_.pool}") if slice_.pool else ())
    nodes = (fleet.nodes[name] for name in names if name in fleet.nodes and name not in failed)
    return list(behind(supposing(context, _fresh(rollout)), fleet.configuration, nodes))


def waits_for(context: DecisionContext, rollout: Rollout) -> str:
    """State of a running rollout and what it waits for, as every surface shows it."""
    errors = f"{len(rollout.errors)} errors of at most {rollout.tolerated}"
    if context.now < rollout.until:
        return f"{named(rollout)} is watched until {rollout.until:%Y-%m-%d %H:%M} UTC, {errors}"
    waits = unsettled(context, rollout)
    more = f" and {len(waits) - 1} more" if len(waits) > 1 else ""
    return f"{named(rollout)} waits: {waits[0]}{more}; {errors}" if waits else f"{named(rollout)} is done, {errors}"
