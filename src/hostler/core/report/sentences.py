"""One plain sentence per recorded event, for histories that people read. Console, CLI and API show it as it stands."""

from typing import assert_never

from hostler.core.state import events as e
from hostler.core.state.cases import Incident
from hostler.core.state.change_control import Approval, Rollout
from hostler.core.state.model import Condition, Plan, Shadow


def sentence(event: e.Event) -> str:  # noqa: C901, PLR0911, PLR0912, PLR0915 - one flat table of cases
    """The event in one line."""
    match event:
        case e.NodeRegistered(node=node):
            return f"{'adopted' if event.adopted else 'registered'} as {node.sku} in rack {node.position.rack or '?'}"
        case e.AssetRegistered(asset=asset):
            return f"{asset.kind} {asset.id} registered"
        case e.AssetChanged():
            return f"{event.asset} is {event.state}: {event.reason}"
        case e.BindingChanged(binding=binding):
            return f"{binding.kind} is {binding.value} now"
        case e.PhaseChanged():
            ends = event.probation_until
            watched = f", on probation until {ends:%Y-%m-%d %H:%M} UTC" if ends else ""
            return f"{event.before} → {event.after}: {event.reason}{watched}"
        case e.ConditionRaised(condition=condition):
            return f"{_condition(condition)} raised{_said(condition)}"
        case e.ConditionUpdated(condition=condition):
            return f"{_condition(condition)} seen again ({condition.count} times){_said(condition)}"
        case e.ConditionCleared():
            return f"{event.condition.partition('/')[2]} cleared by {event.by}: {event.reason}"
        case e.RecurrenceCounted(tally=tally):
            where = f" on {event.part}" if event.part else ""
            return f"{tally.row}{where}: {len(tally.seen)} within the window that leads to {tally.result}"
        case e.SourcesChanged():
            return _sources(event)
        case e.KnowledgeChanged():
            return _knowledge(event)
        case e.PlanRecorded(plan=plan):
            return _planned(plan)
        case e.PlanApproved():
            return f"plan approved by {event.person}"
        case e.PlanAdvanced():
            return f"plan passed to step {event.index + 1}"
        case e.PlanUndoing():
            return f"plan is taken back: {event.reason}"
        case e.PlanEnded():
            return f"plan {event.result}" + (f": {event.reason}" if event.reason else "")
        case e.OperationStarted(operation=operation):
            again = f", attempt {operation.attempt}" if operation.attempt > 1 else ""
            return f"{operation.kind} asked for{again}"
        case e.OperationFinished():
            return f"{event.kind} {event.result.replace('_', ' ')}" + (f": {event.detail}" if event.detail else "")
        case e.OperationSettled():
            return f"a late operation can no longer surprise: {event.detail}"
        case e.OutcomeLate():
            return f"a late answer: {event.result} {event.detail}".rstrip()
        case e.WaitingChanged(waiting=None):
            return "waits for nothing any more"
        case e.WaitingChanged(waiting=waiting):
            assert waiting is not None, "the case above took None"
            return f"{waiting.what} waits: " + "; ".join(b.text for b in waiting.blockers)
        case e.BootObserved():
            return f"boot {event.boot_id[:13]} seen"
        case e.ShadowNoted(shadow=shadow):
            return f"in shadow: {shadow.rule} would have meant {shadow.remedy} ({shadow.act_class}){_would(shadow)}"
        case e.CheckRecorded(check=check):
            return f"check {check.profile}: {check.verdict}" + (f", {check.detail}" if check.detail else "")
        case e.InventorySeen():
            return f"inventory seen: {len(event.parts)} parts"
        case e.PartMoved():
            return f"part {event.serial} moved from {event.before or 'the shelf'} to {event.after or 'the shelf'}"
        case e.NodeAssigned(assignment=assignment):
            return f"assigned to pool {assignment.pool}" + (f": {event.reason}" if event.reason else "")
        case e.NodeReleased():
            return f"released from its pool: {event.reason}"
        case e.NodeCertified():
            return f"certified by {event.person}"
        case e.HoldPlaced(hold=hold):
            until = f" until {hold.until:%Y-%m-%d %H:%M} UTC" if hold.until else ""
            return f"{hold.owner} holds it ({hold.kind}){until}: {hold.reason}"
        case e.HoldReleased():
            return f"hold {event.hold} released by {event.person}: {event.reason}"
        case e.WindowScheduled(window=window):
            return f"maintenance {window.starts:%Y-%m-%d %H:%M} to {window.ends:%Y-%m-%d %H:%M} UTC: {window.reason}"
        case e.WindowEnded():
            return f"maintenance window {event.window} cancelled by {event.person}"
        case e.PauseSet():
            return f"{event.scope} {'paused' if event.paused else 'goes on'} by {event.person}: {event.reason}"
        case e.ModeSet():
            return f"pool {event.pool}: {event.remedy} stands at {event.mode} by {event.person}"
        case e.RemediatorsFound():
            return f"cluster {event.cluster} is treated by {', '.join(event.remediators) or 'nobody else'}"
        case e.RemediatorAccepted():
            how = "accepted" if event.accepted else "no longer accepted"
            return f"{event.remediator} of cluster {event.cluster} {how} by {event.person}: {event.reason}"
        case e.BrakeLatched():
            return f"storm brake latched: {event.reason}"
        case e.BrakeReleased():
            return f"storm brake released by {event.person}: {event.reason}"
        case e.ConfigActivated():
            return f"configuration {event.configuration.sha256[:12]} activated by {event.person}"
        case e.IntentRecorded(intent=intent):
            said = "granted" if event.granted else "refused"
            return f"{intent.person} asked for {intent.verb} ({intent.reason}): {said}, {event.answer}"
        case e.ApprovalRequested(approval=approval):
            return asked_for(approval)
        case e.ApprovalEnded():
            return f"approval {event.approval} {event.result} by {event.person}: {event.reason}"
        case e.WorkConsented():
            names = ", ".join(w.workload for w in event.work)
            return f"{event.work[0].person} lets {names} be ended for {event.work[0].remedy}: {event.reason}"
        case e.RolloutStarted(rollout=rollout):
            what = f"configuration {rollout.sha256[:12]} by {rollout.person}"
            return f"rollout {rollout.id} of {what} began with {named(rollout)}"
        case e.SliceStarted():
            where = f"pool {event.pool}" if event.pool else "nodes of no pool"
            return f"rollout {event.rollout} reached slice {event.index + 1} ({where})"
        case e.SliceErrorSeen(error=error):
            return f"rollout {event.rollout}: {error.kind.replace('_', ' ')} on {error.node}: {error.text}"
        case e.RolloutStopped():
            return f"rollout {event.rollout} stopped by {event.person}: {event.reason}"
        case e.RolloutCompleted():
            return f"rollout {event.rollout} completed"
        case e.TicketOpened(ticket=ticket):
            return f"ticket {ticket.id} opened: {ticket.summary}"
        case e.TicketUpdated(ticket=ticket):
            return f"ticket {ticket.id} updated: {ticket.summary}"
        case e.TicketClosed():
            return f"ticket {event.ticket} closed by {event.person}: {event.resolution}"
        case e.IncidentOpened(incident=incident):
            return _incident_opened(incident)
        case e.IncidentUpdated():
            return _incident_updated(event)
        case e.IncidentClosed():
            return f"incident {event.incident} closed by {event.by}: {event.reason}"
        case e.ControllerStarted():
            return f"controller {event.version} active, epoch {event.epoch}"
        case e.ClockGap():
            return _clock(event)
        case e.ClockConfirmed():
            return f"the clock is believed again ({event.person}): {event.reason}"
        case e.FormatRaised():
            return f"events of format {event.format} may be written: {', '.join(event.members)} read it"
        case e.JournalRestored():
            return (
                f"restored from an export up to {event.until:%Y-%m-%d %H:%M} UTC: nothing is disturbed until released"
            )
        case e.NodeCompared():
            found = "; ".join(f"{d.what}: journal {d.journal}, now {d.reality}" for d in event.differences)
            return f"compared with the restored journal: {found or 'as recorded'}"
        case e.RestoreReleased():
            unheard = f", {event.unheard} nodes unheard" if event.unheard else ""
            return f"restored cell released by {event.person}{unheard}: {event.reason}"
        case _:
            assert_never(event)


def asked_for(approval: Approval) -> str:
    """The intent, its person and its nodes, and that a second person is asked."""
    intent = approval.intent
    return (
        f"approval {approval.id} by a second person: {intent.person} asked for {intent.verb} on {intent.target} "
        f"({approval.count} nodes, {approval.gpus} GPUs) since {approval.asked:%Y-%m-%d %H:%M} UTC, "
        f"expires {approval.expires:%Y-%m-%d %H:%M} UTC: {intent.reason}"
    )


def named(rollout: Rollout) -> str:
    """The slice that a rollout stands at: "slice 1 of 6 (4 of pool train)"."""
    slice_ = rollout.current
    where = f"pool {slice_.pool}" if slice_.pool else "nodes of no pool"
    part = f"{len(slice_.nodes)} of {where}" if slice_.nodes else where
    return f"slice {rollout.index + 1} of {len(rollout.slices)} ({part})"


def _incident_opened(incident: Incident) -> str:
    blamed = " or ".join((incident.scope, *incident.also))
    shown = f"{len(incident.members)} of {incident.size} nodes show {', '.join(incident.conditions)}"
    return f"incident {incident.id} opened: {blamed}, {shown} (ticket {incident.ticket})"


def _incident_updated(event: e.IncidentUpdated) -> str:
    joined = f"{len(event.joined)} joined" if event.joined else ""
    left = f"{len(event.left)} recovered" if event.left else ""
    calm = "too few show it now" if event.calm_since else ""
    said = f"{event.by}: {event.reason}" if event.reason else ""
    return f"incident {event.incident} is {event.state}: " + ", ".join(t for t in (joined, left, calm, said) if t)


def _clock(event: e.ClockGap) -> str:
    gap = f"nobody attended for {event.unattended_s:.0f} s, deadlines are as much later" if event.unattended_s else ""
    return "; ".join(text for text in (gap, event.doubt and f"the clock is not believed: {event.doubt}") if text)


def _sources(event: e.SourcesChanged) -> str:
    told = ((event.silent, "is not heard any more"), (event.heard, "is heard again"))
    return "; ".join(f"{', '.join(_all(of))} {what} about {_nodes(of)}" for of, what in told if of)


def _knowledge(event: e.KnowledgeChanged) -> str:
    told = ((event.unknown, "nobody can say whether it still stands"), (event.known, "it is believed to stand again"))
    return "; ".join(
        f"{', '.join(dict.fromkeys(c.split('/')[1] for c in _all(of)))} on {_nodes(of)}: {what}"
        for of, what in told
        if of
    )


def _all(named: dict[str, tuple[str, ...]]) -> list[str]:
    return list(dict.fromkeys(one for some in named.values() for one in some))


def _nodes(named: dict[str, tuple[str, ...]]) -> str:
    return next(iter(named)) if len(named) == 1 else f"{len(named)} nodes"


def _condition(condition: Condition) -> str:
    return f"{condition.type} on {condition.part}" if condition.part else condition.type


def _said(condition: Condition) -> str:
    return f": {condition.evidence[-1].text}" if condition.evidence else ""


def _would(shadow: Shadow) -> str:
    works = "" if not shadow.works else f", with {shadow.works} workload{'s' if shadow.works > 1 else ''} on it"
    return (
        f"{works}; it would have waited: {shadow.waits}" if shadow.waits else f"{works}; nothing would have stopped it"
    )


def _planned(plan: Plan) -> str:
    why = f" for {plan.rule}" if plan.rule else ""
    steps = " → ".join(step.operation for step in plan.steps)
    return f"{plan.name} {'proposed' if plan.state == 'proposed' else 'planned'}{why}: {steps}"
