"""evolve: what each recorded event does to the fleet. Reads no table of rules, no clock and no present."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import assert_never

from msgspec.structs import replace

from hostler.core.state import events as e
from hostler.core.state import fold_change_control, fold_restore, most_parts_seen, remediators
from hostler.core.state.cell_record import Closure, Removal, StoredAnswer
from hostler.core.state.clock_doubt import Doubt
from hostler.core.state.configuration import STRIKES_KEPT_S
from hostler.core.state.deadlines import extend
from hostler.core.state.fleet import ANSWERS_KEPT, SHELF_KEPT, Fleet
from hostler.core.state.model import (
    HELD,
    LIFTED,
    OWNER,
    STUCK,
    ActClass,
    AsideFailure,
    Assignment,
    Attempt,
    CheckResult,
    Condition,
    Hold,
    HoldKind,
    Node,
    Operation,
    Part,
    Phase,
    Plan,
    Shadow,
    Verdict,
)
from hostler.core.state.packed_strings import pairs

BOOTS_KEPT = 8
ATTEMPTS_KEPT = 32
GIVEN_UP_KEPT = 8
SHADOWS_KEPT = 16
RECENT_KEPT = 4096
CLOSURES_KEPT = 256
_EVER = datetime.min.replace(tzinfo=UTC)


class FoldError(Exception):
    """A record contradicts the fleet it is folded into: the journal is not ours, or a bug wrote it."""


def evolve(fleet: Fleet, record: e.Record) -> None:
    """Fold one record into the fleet's overlay. Raises FoldError where the two contradict each other."""
    cell = fleet.cell
    fleet.singles.put("cell", replace(cell, seq=record.seq, last_at=record.at, epoch=record.epoch))
    _evolve(fleet, record.event, record.at)


def _node(fleet: Fleet, node_id: str) -> Node:
    node = fleet.nodes.get(node_id)
    if node is None:
        raise FoldError(f"no node {node_id}")
    return node


def _evolve(fleet: Fleet, event: e.Event, at: datetime) -> None:  # noqa: C901, PLR0912, PLR0915 - one flat table of cases
    match event:
        case e.NodeRegistered(node=node):
            fleet.put_node(node.id, node)
        case e.AssetRegistered(asset=asset):
            fleet.assets.put(asset.id, asset)
        case e.AssetChanged(asset=asset_id, state=state):
            fleet.assets.put(asset_id, replace(fleet.assets[asset_id], state=state))
        case e.BindingChanged():
            _bind(fleet, event, at)
        case e.PhaseChanged():
            _change_phase(fleet, event, at)
        case e.ConditionRaised(condition=condition) | e.ConditionUpdated(condition=condition):
            _put_condition(fleet, condition)
        case e.ConditionCleared():
            node = _node(fleet, event.node)
            kept = tuple(c for c in node.conditions if c.id != event.condition)
            _count_anew(fleet, node, event.condition, at)
            consented = node.consented if kept else ()
            granted = at if event.condition == f"{node.id}/{STUCK}" and event.by != "observation" else node.stay_granted
            left = replace(node, conditions=kept, consented=consented, stay_granted=granted)
            fleet.put_node(node.id, _asked_about(left))
        case e.RecurrenceCounted(node=node_id, part=part, tally=tally):
            others = tuple(t for t in fleet.tallies_of(node_id, part) if t.row != tally.row and t.until > at)
            fleet.put_tallies(node_id, part, (*others, tally), at)
        case e.SourcesChanged():
            _change_sources(fleet, event, at)
        case e.KnowledgeChanged():
            _change_knowledge(fleet, event, at)
        case e.PlanRecorded(plan=plan):
            _record_plan(fleet, plan, at)
        case e.PlanApproved():
            _put_plan(fleet, event.node, lambda p: replace(p, state="running", step_since=at))
            _count_removal(fleet, _node(fleet, event.node), at)
        case e.PlanAdvanced():
            _put_plan(fleet, event.node, lambda p: replace(p, index=event.index, step_since=at))
        case e.PlanUndoing():
            _put_plan(
                fleet,
                event.node,
                lambda p: replace(
                    p,
                    state="undoing",
                    reached=p.index,
                    index=0,
                    step_since=at,
                    reason=event.reason,
                    result=event.result,
                ),
            )
        case e.PlanEnded():
            _end_plan(fleet, event)
        case e.OperationStarted(operation=operation):
            _start_operation(fleet, operation)
        case e.OperationFinished():
            _finish_operation(fleet, event, at)
        case e.OperationSettled():
            node = _node(fleet, event.node)
            fleet.put_node(node.id, replace(node, settling=tuple(o for o in node.settling if o.id != event.operation)))
        case e.OutcomeLate():
            node = _node(fleet, event.node)
            awaited = tuple(o for o in node.given_up if o != event.operation)
            fleet.put_node(node.id, replace(node, given_up=awaited))
        case e.WaitingChanged():
            fleet.put_node(event.node, replace(_node(fleet, event.node), waiting=event.waiting))
        case e.BootObserved():
            node = _node(fleet, event.node)
            boots = (*(b for b in node.boots if b != event.boot_id), event.boot_id)[-BOOTS_KEPT:]
            fleet.put_node(node.id, replace(node, boot_id=event.boot_id, boots=boots))
        case e.ShadowNoted(shadow=shadow):
            _note_shadow(fleet, event.node, shadow)
        case e.CheckRecorded():
            _record_check(fleet, event.node, event.check)
        case e.InventorySeen():
            _see_inventory(fleet, event)
        case e.PartMoved():
            _move_part(fleet, event, at)
        case e.NodeAssigned():
            fleet.put_node(event.node, _assigned(_node(fleet, event.node), event.assignment))
        case e.NodeReleased():
            fleet.put_node(event.node, _released(_node(fleet, event.node)))
        case e.NodeCertified():
            fleet.put_node(event.node, replace(_node(fleet, event.node), certified_by=event.person))
        case e.HoldPlaced(hold=hold):
            fleet.holds.put(hold.id, hold)
            _lift(fleet, hold)
        case e.HoldReleased():
            fleet.holds.put(event.hold, None)
        case e.WindowScheduled(window=window):
            fleet.windows.put(window.id, window)
        case e.WindowEnded():
            fleet.windows.put(event.window, None)
        case e.PauseSet():
            kept_scopes = tuple(s for s in fleet.cell.paused if s != event.scope)
            paused = (*kept_scopes, event.scope) if event.paused else kept_scopes
            fleet.singles.put("cell", replace(fleet.cell, paused=paused))
            if not event.paused:
                fold_change_control.watch_anew(fleet, at)
        case e.ModeSet():
            kept_modes = tuple(m for m in fleet.cell.modes if m[:2] != (event.pool, event.remedy))
            fleet.singles.put(
                "cell", replace(fleet.cell, modes=(*kept_modes, (event.pool, event.remedy, event.mode.value)))
            )
        case e.RemediatorsFound():
            fleet.singles.put("cell", remediators.found(fleet.cell, event.cluster, event.remediators, at))
        case e.RemediatorAccepted():
            who = event.person if event.accepted else ""
            fleet.singles.put("cell", remediators.accepted(fleet.cell, event.cluster, event.remediator, who))
        case e.BrakeLatched():
            fleet.singles.put("cell", replace(fleet.cell, brake=event.reason, brake_since=at))
        case e.BrakeReleased():
            fleet.singles.put("cell", replace(fleet.cell, brake="", brake_since=None, calm_since=at))
            fold_change_control.watch_anew(fleet, at)
        case e.ConfigActivated():
            fleet.configurations.put("active", replace(event.configuration, activated=at))
        case e.IntentRecorded():
            _record_intent(fleet, event, at)
            fold_change_control.count_act(fleet, event, at)
        case e.ApprovalRequested(approval=approval):
            fleet.put_approval(approval.id, approval)
        case e.ApprovalEnded():
            fleet.put_approval(event.approval, None)
        case e.WorkConsented():
            fold_change_control.consent(fleet, _node(fleet, event.node), event)
        case e.RolloutStarted(rollout=rollout):
            fold_change_control.start(fleet, rollout)
        case e.SliceStarted():
            fold_change_control.start_slice(fleet, event, at)
        case e.SliceErrorSeen():
            fold_change_control.note_error(fleet, event)
        case e.RolloutStopped():
            fold_change_control.end(fleet, event.rollout, "stopped", (at, event.person, event.reason))
        case e.RolloutCompleted():
            fold_change_control.end(fleet, event.rollout, "completed", (at, "hostler", "every slice was watched"))
        case e.TicketOpened(ticket=ticket) | e.TicketUpdated(ticket=ticket):
            fleet.put_ticket(ticket.id, ticket)
        case e.TicketClosed():
            _close_ticket(fleet, event.ticket)
        case e.IncidentOpened(incident=incident):
            fleet.put_incident(incident.id, incident)
        case e.IncidentUpdated():
            _update_incident(fleet, event)
        case e.IncidentClosed():
            _close_incident(fleet, event, at)
        case e.ControllerStarted():
            pass
        case e.ClockGap():
            extend(fleet, timedelta(seconds=event.unattended_s))
            fold_change_control.postpone(fleet, timedelta(seconds=event.unattended_s))
            if event.doubt and fleet.cell.doubt is None:
                fleet.singles.put("cell", replace(fleet.cell, doubt=Doubt(at, event.doubt)))
        case e.ClockConfirmed():
            fleet.singles.put("cell", replace(fleet.cell, doubt=None))
        case e.FormatRaised():
            fleet.singles.put("cell", replace(fleet.cell, format=event.format))
        case e.JournalRestored():
            fold_restore.begin(fleet, event, at)
        case e.NodeCompared():
            fold_restore.compare(fleet, event, at)
        case e.RestoreReleased():
            fold_restore.release(fleet, at)
        case _:
            assert_never(event)


def _bind(fleet: Fleet, event: e.BindingChanged, at: datetime) -> None:
    node = _node(fleet, event.node)
    ended = tuple(
        replace(b, until=at) if b.kind == event.binding.kind and b.until is None else b for b in node.bindings
    )
    fleet.put_node(node.id, replace(node, bindings=(*ended, event.binding)[-16:]))


_WORKED_ON = (Phase.rma, Phase.debug)
"""Phases in which others decide what a machine consists of: what it showed before says nothing of what comes back."""


def _change_phase(fleet: Fleet, event: e.PhaseChanged, at: datetime) -> None:
    node = _node(fleet, event.node)
    if node.phase is not event.before:
        raise FoldError(f"{node.id} stands at {node.phase}, not at {event.before}")
    if event.after is Phase.retired:
        fleet.put_node(node.id, None)
        fleet.retired.put(node.id, at)
        for part in fleet.parts.of(node.id):
            _shelve(fleet, replace(part, node="", slot="", since=at))
        return
    visits = node.visits
    if event.after in (Phase.triage, Phase.rma):
        visits = (*visits, Attempt(event.after.value, "", at, struck=bool(event.convicted)))[-ATTEMPTS_KEPT:]
    changed = replace(
        node,
        phase=event.after,
        phase_since=at,
        stay_granted=None,
        deadline=event.deadline,
        visits=visits,
        waiting=None,
        certified_by="" if event.after is Phase.onboard else node.certified_by,
        handover=node.handover or (at if event.after is Phase.production else None),
        most_seen=() if event.before in _WORKED_ON else node.most_seen,
        probation_until=event.probation_until if event.after is Phase.production else None,
    )
    fleet.put_node(node.id, changed)


def _put_condition(fleet: Fleet, condition: Condition) -> None:
    node = _node(fleet, condition.node)
    others = tuple(c for c in node.conditions if c.id != condition.id)
    fleet.put_node(node.id, replace(node, conditions=(*others, condition)))


def _count_anew(fleet: Fleet, node: Node, condition_id: str, at: datetime) -> None:
    """What led to a suspicion that is cleared counts no more."""
    cleared = next((c for c in node.conditions if c.id == condition_id), None)
    had = fleet.tallies_of(node.id, cleared.part) if cleared is not None else ()
    if cleared is not None and any(t.result == cleared.type for t in had):
        fleet.put_tallies(node.id, cleared.part, tuple(t for t in had if t.result != cleared.type), at)


def _asked_about(node: Node) -> Node:
    """The node without the silence of those who are asked about nothing any more."""
    if node.conditions or not (node.unheard or node.heard_again):
        return node
    return replace(node, unheard=(), heard_again=None)


def _change_sources(fleet: Fleet, event: e.SourcesChanged, at: datetime) -> None:
    for node_id in dict.fromkeys((*event.silent, *event.heard)):
        node, back = _node(fleet, node_id), event.heard.get(node_id, ())
        left = tuple((source, since) for source, since in node.unheard if source not in back)
        fresh = tuple((source, at) for source in event.silent.get(node_id, ()))
        unheard = (*left, *fresh)
        fleet.put_node(node_id, replace(node, unheard=unheard, heard_again=at if back else node.heard_again))


def _change_knowledge(fleet: Fleet, event: e.KnowledgeChanged, at: datetime) -> None:
    for node_id in dict.fromkeys((*event.unknown, *event.known)):
        node, known = _node(fleet, node_id), event.known.get(node_id, ())
        unknown = event.unknown.get(node_id, ())
        conditions = tuple(
            replace(c, unknown_since=at) if c.id in unknown else _known(c, at) if c.id in known else c
            for c in node.conditions
        )
        fleet.put_node(node_id, replace(node, conditions=conditions))


def _known(condition: Condition, at: datetime) -> Condition:
    """What clears by age goes on ageing from here: while nobody looked its time did not count."""
    expires, since = condition.expires_at, condition.unknown_since
    later = expires + (at - since) if expires is not None and since is not None else expires
    return replace(condition, unknown_since=None, expires_at=later)


def _put_plan(fleet: Fleet, node_id: str, change: Callable[[Plan], Plan]) -> None:
    node = _node(fleet, node_id)
    if node.plan is None:
        raise FoldError(f"{node_id} has no plan")
    fleet.put_node(node_id, replace(node, plan=change(node.plan)))


def _record_plan(fleet: Fleet, plan: Plan, at: datetime) -> None:
    node = _node(fleet, plan.node)
    attempts = _kept((*node.attempts, Attempt(plan.remedy or plan.name, plan.part, at)))
    counts = plan.disruptive or plan.act_class in (ActClass.pending, ActClass.immediate)
    fleet.put_node(node.id, replace(node, plan=plan, attempts=attempts if counts else node.attempts))
    fold_change_control.note_plan(fleet, plan)
    if plan.state != "proposed":
        _count_removal(fleet, fleet.nodes[node.id], at)


def _count_removal(fleet: Fleet, node: Node, at: datetime) -> None:
    """Guards remember what begins to disturb; what is only proposed takes nothing from any budget."""
    plan = node.plan
    if plan is not None and plan.disruptive:
        seen = Removal(at=at, node=node.id, pool=node.pool, name=plan.name)
        fleet.singles.put("cell", replace(fleet.cell, recent=_recent(fleet, seen)))


def _end_plan(fleet: Fleet, event: e.PlanEnded) -> None:
    """A plan that disturbed nobody is no strike: a mere try if it failed, forgotten if it was called off in time."""
    node = _node(fleet, event.node)
    plan, attempts = node.plan, node.attempts
    if plan is not None:
        own = (plan.remedy or plan.name, plan.recorded_at)
        others = tuple(a for a in attempts if (a.remedy, a.at) != own)
        if event.result == "failed":
            struck, touched = plan.disturbed and not plan.busy, plan.touched and not plan.busy
            tried = Attempt(own[0], plan.part, own[1], struck, failed=True, touched=touched, busy=plan.busy)
            attempts = (*others, tried)
        elif event.result in ("cancelled", "superseded") and not _has_acted(plan):
            attempts = others
        else:
            attempts = tuple(replace(a, touched=plan.touched) if (a.remedy, a.at) == own else a for a in attempts)
    over = plan is not None and plan.disruptive and event.result in ("done", "failed")
    consented = () if over else node.consented
    fleet.put_node(node.id, replace(node, plan=None, attempts=_kept(attempts), consented=consented))


def _kept(attempts: tuple[Attempt, ...]) -> tuple[Attempt, ...]:
    """So many; mere tries are forgotten first: however often one is in vain, what touched the node is remembered."""
    while len(attempts) > ATTEMPTS_KEPT:
        mere = (i for wanted in (_is_mere, _is_in_vain) for i, a in enumerate(attempts[:-1]) if wanted(a))
        first = next(mere, 0)
        attempts = (*attempts[:first], *attempts[first + 1 :])
    return attempts


def _is_mere(attempt: Attempt) -> bool:
    return not attempt.struck


def _is_in_vain(attempt: Attempt) -> bool:
    return not attempt.touched


def _has_acted(plan: Plan) -> bool:
    """Whether calling it off came too late; of a plan that disturbs nobody, every step that was reached is an act."""
    return plan.disturbed or (not plan.disruptive and plan.reached > 0)


def _close_ticket(fleet: Fleet, ticket_id: str) -> None:
    """Closing a ticket about something that failed again and again lets it be tried anew."""
    ticket = fleet.tickets.get(ticket_id)
    fleet.put_ticket(ticket_id, None)
    node = fleet.nodes.get(ticket.node) if ticket is not None and ticket.kind == "stuck" else None
    if ticket is not None and node is not None:
        attempts = tuple(replace(a, forgiven=True) if a.remedy == ticket.action else a for a in node.attempts)
        fleet.put_node(node.id, replace(node, attempts=attempts))


def _update_incident(fleet: Fleet, event: e.IncidentUpdated) -> None:
    incident = fleet.incidents.get(event.incident)
    if incident is None:
        raise FoldError(f"no incident {event.incident}")
    members = {**incident.members, **event.joined}
    for node_id in event.left:
        members.pop(node_id, None)
    conditions = tuple(sorted({*incident.conditions, *event.conditions}))
    changed = replace(incident, members=members, conditions=conditions, state=event.state, calm_since=event.calm_since)
    fleet.put_incident(incident.id, changed)


def _close_incident(fleet: Fleet, event: e.IncidentClosed, at: datetime) -> None:
    fleet.put_incident(event.incident, None)
    if not event.merged_into:
        day = at - timedelta(days=1)
        kept = tuple(c for c in fleet.cell.closures if c.at > day)
        closures = (*kept, Closure(event.scope, event.syndrome, at))[-CLOSURES_KEPT:]
        fleet.singles.put("cell", replace(fleet.cell, closures=closures))


def _recent(fleet: Fleet, seen: Removal) -> tuple[Removal, ...]:
    day = seen.at - timedelta(days=1)
    kept = fleet.cell.recent
    if kept and kept[0].at < day:
        kept = tuple(r for r in kept if r.at >= day)
    return (*kept, seen)[-RECENT_KEPT:]


def _start_operation(fleet: Fleet, operation: Operation) -> None:
    node = _node(fleet, operation.node)
    if operation.aside:
        fleet.put_node(node.id, replace(node, aside=operation))
        return
    plan = node.plan
    if plan is not None and (operation.disturbs or operation.touches):
        plan = replace(plan, disturbed=plan.disturbed or operation.disturbs, touched=plan.touched or operation.touches)
    if plan is not None and operation.restarts:
        plan = replace(plan, left_boot=plan.left_boot or node.boot_id)
    fleet.put_node(node.id, replace(node, operation=operation, plan=plan))


def _finish_operation(fleet: Fleet, event: e.OperationFinished, at: datetime) -> None:
    node = _node(fleet, event.node)
    if node.aside is not None and node.aside.id == event.operation:
        fleet.put_node(node.id, _aside_finished(node, event, at))
        return
    operation = node.operation
    if operation is None or operation.id != event.operation:
        raise FoldError(f"{event.node} has no outstanding operation {event.operation}")
    settling = node.settling
    if event.settle_until is not None:
        settling = (*settling, replace(operation, deadline=event.settle_until, settling=True))
    given_up = node.given_up
    if event.result in ("timed_out", "revoked"):
        given_up = (*given_up, operation.id)[-GIVEN_UP_KEPT:]
    cordons = node.cordons
    if event.result == "done" and operation.kind in ("cordon", "join_cluster"):
        cordons = (*_others(cordons), OWNER)
    if event.result == "done" and operation.kind in ("uncordon", "leave_cluster"):
        cordons = _others(cordons)
    if event.result == "done" and operation.kind == "verify_firmware":
        node = _runs(node, tuple(sorted((k, str(v)) for k, v in event.facts.items())), at)
    plan = node.plan
    if plan is not None and plan.id == operation.plan and event.facts.get(HELD):
        plan = replace(plan, busy=True)
    fleet.put_node(
        node.id,
        replace(node, plan=plan, operation=None, settling=settling, given_up=given_up, cordons=cordons),
    )


def _aside_finished(node: Node, event: e.OperationFinished, at: datetime) -> Node:
    """The node without its operation aside; what failed is counted until one is done."""
    given_up = node.given_up
    if event.result in ("timed_out", "revoked"):
        given_up = (*given_up, event.operation)[-GIVEN_UP_KEPT:]
    failed = None
    if event.result != "done":
        times = 1 + (node.aside_failed.times if node.aside_failed is not None else 0)
        failed = AsideFailure(event.kind, at, event.result, event.detail, times)
    return replace(node, aside=None, aside_failed=failed, given_up=given_up)


def _note_shadow(fleet: Fleet, node_id: str, shadow: Shadow) -> None:
    node = _node(fleet, node_id)
    key = (shadow.rule, shadow.remedy)
    times = 1 + sum(s.times for s in node.shadows if (s.rule, s.remedy) == key)
    others = tuple(s for s in node.shadows if (s.rule, s.remedy) != key)
    fleet.put_node(node.id, replace(node, shadows=(*others, replace(shadow, times=times))[-SHADOWS_KEPT:]))


def _runs(node: Node, firmware: tuple[tuple[str, str], ...], at: datetime) -> Node:
    """The node with this firmware; versions that replaced others are its last change. First sight changes nothing."""
    had = dict(node.firmware)
    changed = tuple(f"{name}={version}" for name, version in firmware if had.get(name, version) != version)
    if not changed:
        return replace(node, firmware=firmware)
    return replace(node, firmware=firmware, changed=changed, changed_at=at)


def _assigned(node: Node, assignment: Assignment) -> Node:
    if assignment.cluster == node.left_cluster:
        return replace(node, assignment=assignment, left_cluster="", left_pool="", aside_failed=None)
    return replace(node, assignment=assignment)


def _released(node: Node) -> Node:
    """What serves nobody is in no cluster, and needs no cordon."""
    left, pool = node.left_cluster, node.left_pool
    if node.assignment is not None and node.assignment.cluster:
        left, pool = node.assignment.cluster, node.assignment.pool
    return replace(node, assignment=None, cordons=_others(node.cordons), left_cluster=left, left_pool=pool)


def _others(cordons: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(c for c in cordons if c not in (OWNER, LIFTED))


def _lift(fleet: Fleet, hold: Hold) -> None:
    """A person's override is of the cordon that stands: once it is released, a lift that still shows is no other."""
    node = fleet.nodes.get(hold.scope) if hold.kind is HoldKind.override else None
    if node is not None and OWNER in node.cordons:
        fleet.put_node(node.id, replace(node, cordons=(*_others(node.cordons), LIFTED)))


def _record_check(fleet: Fleet, node_id: str, check: CheckResult) -> None:
    node = _node(fleet, node_id)
    others = tuple(c for c in node.checks if c.profile != check.profile)
    fleet.put_node(node_id, replace(node, checks=(*others, check), attempts=_remembered(node, check)))


def _remembered(node: Node, check: CheckResult) -> tuple[Attempt, ...]:
    """The attempts that some rung may still count, or that no check has followed yet."""
    if check.verdict is not Verdict.passed:
        return node.attempts
    return tuple(a for a in node.attempts if a.at > check.at - timedelta(seconds=STRIKES_KEPT_S))


def _see_inventory(fleet: Fleet, event: e.InventorySeen) -> None:
    node = _node(fleet, event.node)
    since = {part.serial: part.since for part in fleet.parts.of(node.id)}
    for part in event.parts:
        fleet.put_part(part.serial, replace(part, node=node.id, since=since.get(part.serial) or event.at))
    share = fleet.parts.base.share
    slots = share(pairs(sorted((p.slot or p.serial, p.serial) for p in event.parts)))
    seen = replace(
        node,
        slots=slots,
        addresses=share(pairs(event.addresses)),
        inventory_at=event.at,
        inventory_boot=event.boot_id,
        inventory_covers=event.covers,
        memory_gib=event.memory_gib,
        most_seen=fleet.parts.base.share_most(
            most_parts_seen.raised(node.most_seen, event.covers, event.parts, event.memory_gib)
        ),
    )
    fleet.put_node(node.id, _runs(seen, event.firmware, event.at) if event.firmware else seen)


def _move_part(fleet: Fleet, event: e.PartMoved, at: datetime) -> None:
    part = fleet.parts.get(event.serial)
    if part is None:
        return
    moved = replace(part, node=event.after, slot=event.slot, since=at)
    donor = fleet.nodes.get(event.before) if event.after else None
    if donor is not None:
        fleet.put_node(donor.id, replace(donor, most_seen=most_parts_seen.lowered(donor.most_seen, part.kind)))
    if moved.node:
        fleet.put_part(moved.serial, moved)
    else:
        _shelve(fleet, moved)


def _shelve(fleet: Fleet, part: Part) -> None:
    """The part is in no node; of those that have lain there longest a tenth is forgotten once there are too many."""
    fleet.put_part(part.serial, part)
    if fleet.index.count("shelf") > SHELF_KEPT:
        by_age = sorted((fleet.parts[serial].since or _EVER, serial) for serial in fleet.index.members("shelf"))
        for _, serial in by_age[: 1 + SHELF_KEPT // 10]:
            fleet.put_part(serial, None)


def _record_intent(fleet: Fleet, event: e.IntentRecorded, at: datetime) -> None:
    number = fleet.cell.intents
    fleet.singles.put("cell", replace(fleet.cell, intents=number + 1))
    if event.intent.key:
        fleet.answers.put(
            event.intent.key,
            StoredAnswer(event.intent.id, event.answer, event.granted, at, event.approval, event.content),
        )
        if len(fleet.answers) > ANSWERS_KEPT:
            fleet.answers.put(next(iter(fleet.answers)), None)
