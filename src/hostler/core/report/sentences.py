"""One plain sentence per recorded event, for histories that people read, and the event's place in a node's story.

Console, CLI and API show a sentence as it stands.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, get_args

from msgspec import Struct

from hostler.core.report.fabric_sentences import of_fabric, of_link, of_manual_test, of_recabling, of_walk_stop
from hostler.core.report.golden_sentences import of_golden
from hostler.core.report.rack_sentences import of_rack
from hostler.core.report.rma_sentences import of_rma
from hostler.core.report.story import NodeStory
from hostler.core.state import events as e
from hostler.core.state.boot import HOLD, LOADER
from hostler.core.state.cases import Incident
from hostler.core.state.change_control import Approval, Rollout
from hostler.core.state.counting import counted
from hostler.core.state.durations import duration
from hostler.core.state.model import Condition, Plan, Shadow
from hostler.core.state.repairs import RepairAction

E = TypeVar("E", bound=Struct)


class EventTelling(Struct, Generic[E], frozen=True):
    """One event: its sentence, and its part in a node's story, which is a note unless said otherwise."""

    kind: type[E]
    sentence: Callable[[E], str]
    story: Callable[[NodeStory, e.Record, E], None] = NodeStory.note  # type: ignore[assignment]


def sentence(event: e.Event) -> str:
    """The event in one line."""
    return ROWS[type(event)].sentence(event)


def asked_for(approval: Approval) -> str:
    """The intent, its person and its nodes, and that a second person is asked."""
    intent, disturbed = approval.intent, f"{counted(approval.count, 'node')}, {counted(approval.gpus, 'GPU')}"
    return (
        f"approval {approval.id} waits for a second person: {intent.person} asked for {intent.verb} on {intent.target} "
        f"({disturbed}) since {approval.asked:%Y-%m-%d %H:%M} UTC, "
        f"expires {approval.expires:%Y-%m-%d %H:%M} UTC: {intent.reason}"
    )


def named(rollout: Rollout) -> str:
    """The current slice of a rollout: "slice 1 of 6 (4 of pool train)"."""
    slice_ = rollout.current
    where = f"pool {slice_.pool}" if slice_.pool else "nodes of no pool"
    part = f"{len(slice_.nodes)} of {where}" if slice_.nodes else where
    return f"slice {rollout.index + 1} of {len(rollout.slices)} ({part})"


def _handed_over(event: e.TicketHandedOver) -> str:
    had = f" of {event.before}" if event.before not in ("", event.person) else ""
    what = f"handed over to {event.to}" if event.to else "given back to the queue"
    return f"ticket {event.ticket}{had} {what} by {event.person}: {event.reason}"


def _incident_opened(incident: Incident) -> str:
    blamed = " or ".join(map(str, (incident.scope, *incident.also)))
    ticket = f" (ticket {incident.ticket})" if incident.ticket else ""
    if not incident.conditions:  # a switch's: what is wrong stands in the tickets of its findings
        concerned = f"it concerns {counted(len(incident.members), 'node')}"
        return f"incident {incident.id} opened: {blamed} suspected by its {incident.syndrome}, {concerned}{ticket}"
    shown = f"{len(incident.members)} of {incident.size} nodes show {', '.join(incident.conditions)}"
    return f"incident {incident.id} opened: {blamed} suspected, {shown}{ticket}"


def _incident_updated(event: e.IncidentUpdated) -> str:
    joined = f"{len(event.joined)} joined" if event.joined else ""
    left = f"{len(event.left)} recovered" if event.left else ""
    calm = "too few nodes show it now" if event.calm_since else ""
    said = f"{event.by}: {event.reason}" if event.reason else ""
    changes = ", ".join(t for t in (joined, left, calm, said) if t)
    return f"incident {event.incident} is {event.state}" + (f": {changes}" if changes else "")


def _clock(event: e.ClockGap) -> str:
    gap = (
        f"no controller was active for {duration(event.unattended_s)}; deadlines moved by as much"
        if event.unattended_s
        else ""
    )
    return "; ".join(text for text in (gap, event.doubt and f"clock in doubt: {event.doubt}") if text)


def _sources(event: e.SourcesChanged) -> str:
    told = ((event.silent, "silent"), (event.heard, "heard again"))
    return "; ".join(f"sources {what} for {_nodes(of)}: {', '.join(_all(of))}" for of, what in told if of)


def _knowledge(event: e.KnowledgeChanged) -> str:
    told = ((event.unknown, "unknown, its sources are silent"), (event.known, "known again"))
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


def _condition_cleared(event: e.ConditionCleared) -> str:
    kind, _, part = event.condition.partition("/")[2].partition("/")
    where = f" on {part}" if part else ""
    return f"{kind}{where} cleared by {event.by}: {event.reason}"


def _seen_again(condition: Condition) -> str:
    return f"{_condition(condition)} seen again ({counted(condition.count, 'time')}){_said(condition)}"


def _said(condition: Condition) -> str:
    return f": {condition.evidence[-1].text}" if condition.evidence else ""


def _named_remedy(remedy: str) -> str:
    """A remedy in a sentence; `*` stands for all of them."""
    return "all remedies" if remedy == "*" else remedy


def _repaired(event: e.RepairRecorded) -> str:
    repair = event.repair
    if not repair.part:
        return f"{repair.by} worked on the node and does not say what was done"
    if repair.action == RepairAction.unsaid:
        return f"{repair.by} worked on {repair.part} and does not say what was done"
    return f"{repair.by} {repair.action} {repair.part}"


def _part_moved(event: e.PartMoved) -> str:
    if event.before and event.after:
        return f"part {event.serial} moved from {event.before} to {event.after}"
    return (
        f"part {event.serial} seen in {event.after}"
        if event.after
        else f"part {event.serial} removed from {event.before}"
    )


def _would(shadow: Shadow) -> str:
    works = "" if not shadow.works else f" while {counted(shadow.works, 'workload')} ran there"
    return (
        f"{works}; it would have waited: {shadow.waits}" if shadow.waits else f"{works}; nothing would have stopped it"
    )


def _planned(plan: Plan) -> str:
    why = f" for {plan.rule}" if plan.rule else ""
    steps = " → ".join(step.operation for step in plan.steps)
    without = f"; without proof of: {'; '.join(plan.unproven)}" if plan.unproven else ""
    return f"{plan.name} {'proposed' if plan.state == 'proposed' else 'planned'}{why}: {steps}{without}"


def _node_registered(event: e.NodeRegistered) -> str:
    node = event.node
    return f"{'adopted' if event.adopted else 'registered'} as {node.sku}" + (
        f" in rack {node.position.rack}" if node.position.rack else ", its rack is not known"
    )


def _shadow_noted(event: e.ShadowNoted) -> str:
    shadow = event.shadow
    return f"shadow rule {shadow.rule} would have started {shadow.remedy} ({shadow.act_class}){_would(shadow)}"


def _late(event: e.OutcomeLate) -> str:
    return f"a late answer to an ended operation came: {event.result}" + (f", {event.detail}" if event.detail else "")


def _window_scheduled(event: e.WindowScheduled) -> str:
    window = event.window
    return (
        f"maintenance window planned from {window.starts:%Y-%m-%d %H:%M} to {window.ends:%Y-%m-%d %H:%M} UTC"
        f": {window.reason}"
    )


def _window_answered(event: e.WindowAnswered) -> str:
    answer, window = event.answer, f"maintenance window {event.window}"
    if answer.rather is None:
        return f"{answer.tenant} acknowledged {window}: {answer.reason}"
    return f"{answer.tenant} asks that {window} begin at {answer.rather:%Y-%m-%d %H:%M} UTC instead: {answer.reason}"


def _phase_changed(event: e.PhaseChanged) -> str:
    ends = event.probation_until
    watched = f", on probation until {ends:%Y-%m-%d %H:%M} UTC" if ends else ""
    return f"{event.before} → {event.after}: {event.reason}{watched}"


def _recurrence_counted(event: e.RecurrenceCounted) -> str:
    tally = event.tally
    where = f" on {event.part}" if event.part else ""
    return f"{tally.row}{where}: {counted(len(tally.seen), 'time')} within its window; too many raise {tally.result}"


def _operation_started(event: e.OperationStarted) -> str:
    operation = event.operation
    again = f", attempt {operation.attempt}" if operation.attempt > 1 else ""
    return f"{operation.kind} requested{again}"


def _hold_placed(event: e.HoldPlaced) -> str:
    hold = event.hold
    until = f" until {hold.until:%Y-%m-%d %H:%M} UTC" if hold.until else ""
    word = f"; {hold.owner} says: {hold.word}" if hold.word else ""
    return f"{hold.owner} placed a hold on {hold.scope} ({hold.kind}){until}: {hold.reason}{word}"


def _remediator_accepted(event: e.RemediatorAccepted) -> str:
    how = "accepted" if event.accepted else "no longer accepted"
    return f"remediator {event.remediator} of cluster {event.cluster} {how} by {event.person}: {event.reason}"


def _audit_sealed(event: e.AuditSealed) -> str:
    return f"audit log sealed up to {' and '.join(f'entry {seal.number} of {seal.chain}' for seal in event.seals)}"


def _activated(event: e.ConfigActivated) -> str:
    fresh = event.configuration
    return f"configuration {fresh.sha256[:12]} activated by {event.person}{f', {fresh.source}' if fresh.source else ''}"


def _intent_recorded(event: e.IntentRecorded) -> str:
    intent = event.intent
    said = "granted" if event.granted else "refused"
    return f"{intent.person} asked for {intent.verb} ({intent.reason}): {said}, {event.answer}"


def _work_consented(event: e.WorkConsented) -> str:
    names = ", ".join(w.workload for w in event.work)
    return f"{event.work[0].person} allowed {event.work[0].remedy} to end {names}: {event.reason}"


def _rollout_started(event: e.RolloutStarted) -> str:
    rollout = event.rollout
    what = f"configuration {rollout.sha256[:12]} by {rollout.person}"
    return f"rollout {rollout.id} of {what} began with {named(rollout)}"


def _slice_started(event: e.SliceStarted) -> str:
    where = f"pool {event.pool}" if event.pool else "nodes of no pool"
    return f"rollout {event.rollout} reached slice {event.index + 1} ({where})"


def _node_compared(event: e.NodeCompared) -> str:
    found = "; ".join(f"{d.what} was {d.journal}, is {d.reality}" for d in event.differences)
    return f"compared with the restored journal: {found or 'no difference'}"


def _restore_released(event: e.RestoreReleased) -> str:
    unheard = f", {counted(event.unheard, 'node')} not heard" if event.unheard else ""
    return f"restored cell released by {event.person}{unheard}: {event.reason}"


def _boot_answered(event: e.BootAnswered) -> str:
    boot = event.boot
    if boot.kind == HOLD:
        return f"waits at the boot loader: {boot.reason}"
    if boot.kind == LOADER:
        return (
            f"its UEFI fetched the boot loader for {boot.image} with the secret given to its BMC, from {boot.address}"
        )
    what = f"image {boot.image}" if boot.image else "its local disk"
    shown = "the secret given to its BMC" if boot.identity == "bmc" else "its MAC address alone"
    where = "in its boot window" if boot.plan else "outside a boot window, without cloud-init data"
    return f"boots {what} {where}, known by {shown}" + (f", from {boot.address}" if boot.address else "")


def _agent_enrolled(event: e.AgentEnrolled) -> str:
    quoted = f", which quoted PCRs 0 to {len(event.pcrs) - 1}" if event.pcrs else ""
    proof = f", proved by the TPM {event.tpm[:16]}{quoted}" if event.tpm else ", without a TPM"
    return f"its agent enrolled with the key {event.key[:16]} from {event.address}{proof}"


def _stranger_seen(event: e.StrangerSeen) -> str:
    one = event.stranger
    if not one.mac:
        return f"machines of the boot network without their boot's secret, last {one.address}: {one.why}"
    return f"unknown machine {one.mac} (serial {one.serial or 'not shown'}) asked for a boot from {one.address}"


def _onboard_ticked(event: e.OnboardTicked) -> str:
    tick = event.tick
    return f"'{tick.item}' is ticked by {tick.person}{': ' + tick.note if tick.note else ''}"


def _of_drill(drill: str) -> str:
    return f" (drill {drill})" if drill else ""


def _drill_began(event: e.DrillBegan) -> str:
    drill = event.drill
    bounds = "" if drill.remedy else ", without a remedy"
    return (
        f"drill {drill.id}: it is to show {drill.fault} until {drill.until:%Y-%m-%d %H:%M} UTC{bounds} "
        f"({drill.by}): {drill.why}"
    )


def _node_sanitised(event: e.NodeSanitised) -> str:
    one = event.certificate
    whose = f" of {one.tenant}" if one.tenant else ""
    return f"erased{whose}, {one.drives} drives read back: certificate {one.digest[:12]}"


def _asset_seen(event: e.AssetSeen) -> str:
    look = event.look
    if look.why:
        return f"{event.asset} could not be read: {look.why}"
    ill = [f"{name} {word or 'says nothing'}" for name, word in (*look.supplies, *look.leaks) if word != "ok"]
    told = f": {', '.join(ill[:4])}" if ill else ""
    return f"{event.asset} shows serial {look.serial or 'none'}, health {look.health or 'none'}{told}"


def _evidence_kept(event: e.EvidenceKept) -> str:
    bundle = event.bundle
    missing = f"; not in it: {'; '.join(bundle.missing)}" if bundle.missing else ""
    if not bundle.digest:
        return f"no evidence was kept{missing}"
    about = ", ".join((*bundle.tickets, *bundle.cases))
    return f"evidence {bundle.digest[:12]} kept ({bundle.files} files{', for ' + about if about else ''}){missing}"


def _field_changed(event: e.NodeFieldChanged) -> str:
    return f"{event.field} changed from '{event.before}' to '{event.after}', as {event.source} says"


def _waits(event: e.WaitingChanged) -> str:
    waiting = event.waiting
    if waiting is None:
        return "no longer waits"
    return f"{waiting.what} waits: " + "; ".join(b.text for b in waiting.blockers)


_TABLE: tuple[EventTelling[Any], ...] = (
    EventTelling(e.NodeRegistered, _node_registered, NodeStory.registered),
    EventTelling(e.AssetRegistered, lambda event: f"{event.asset.kind} {event.asset.id} registered"),
    EventTelling(e.AssetSeen, _asset_seen),
    EventTelling(e.AssetRebound, lambda event: f"{event.binding.kind} of {event.asset} is now {event.binding.value}"),
    *(EventTelling(kind, of_rack) for kind in get_args(e.RackEvent)),
    EventTelling(e.AssetChanged, lambda event: f"{event.asset} is {event.state.replace('_', ' ')}: {event.reason}"),
    EventTelling(e.BindingChanged, lambda event: f"{event.binding.kind} binding is now {event.binding.value}"),
    EventTelling(e.NodeFieldChanged, _field_changed),
    EventTelling(e.PhaseChanged, _phase_changed, NodeStory.moved),
    EventTelling(
        e.ConditionRaised,
        lambda event: f"{_condition(event.condition)} raised{_of_drill(event.condition.drill)}{_said(event.condition)}",
        NodeStory.raised,
    ),
    EventTelling(
        e.ConditionUpdated,
        lambda event: _seen_again(event.condition),
        NodeStory.updated,
    ),
    EventTelling(
        e.ConditionCleared,
        _condition_cleared,
        NodeStory.cleared,
    ),
    EventTelling(e.RecurrenceCounted, _recurrence_counted),
    EventTelling(e.SourcesChanged, _sources),
    EventTelling(e.KnowledgeChanged, _knowledge, NodeStory.known),
    EventTelling(
        e.PlanRecorded, lambda event: f"{_planned(event.plan)}{_of_drill(event.plan.drill)}", NodeStory.planned
    ),
    EventTelling(e.PlanApproved, lambda event: f"plan approved by {event.person}", NodeStory.approved),
    EventTelling(e.PlanAdvanced, lambda event: f"plan is at step {event.index + 1}", NodeStory.advanced),
    EventTelling(e.PlanUndoing, lambda event: f"plan is being undone: {event.reason}", NodeStory.undoing),
    EventTelling(
        e.PlanEnded,
        lambda event: f"plan {event.result}" + (f": {event.reason}" if event.reason else ""),
        NodeStory.ended,
    ),
    EventTelling(e.OperationStarted, _operation_started, NodeStory.started),
    EventTelling(
        e.OperationFinished,
        lambda event: f"{event.kind} {event.result.replace('_', ' ')}" + (f": {event.detail}" if event.detail else ""),
        NodeStory.finished,
    ),
    EventTelling(
        e.OperationSettled, lambda event: f"late operation can no longer take effect: {event.detail}", NodeStory.late
    ),
    EventTelling(e.OutcomeLate, _late, NodeStory.late),
    EventTelling(e.WaitingChanged, _waits, NodeStory.waited),
    EventTelling(e.BootObserved, lambda event: f"now runs boot {event.boot_id[:13]}"),
    EventTelling(e.ShadowNoted, _shadow_noted, NodeStory.overshadowed),
    EventTelling(
        e.CheckRecorded,
        lambda event: (
            f"check {event.check.profile}: {event.check.verdict}"
            + (f", {event.check.detail}" if event.check.detail else "")
        ),
    ),
    EventTelling(e.RepairRecorded, _repaired),
    EventTelling(e.InventorySeen, lambda event: f"inventory seen: {counted(len(event.parts), 'part')}"),
    EventTelling(
        e.HardwareSeen, lambda event: f"hardware read by {event.source}: {counted(len(event.readings), 'reading')}"
    ),
    EventTelling(e.PartMoved, _part_moved),
    EventTelling(
        e.NodeAssigned,
        lambda event: f"assigned to pool {event.assignment.pool}" + (f": {event.reason}" if event.reason else ""),
    ),
    EventTelling(e.NodeReleased, lambda event: f"released from its pool: {event.reason}"),
    EventTelling(e.NodeCertified, lambda event: f"certified by {event.person}"),
    EventTelling(e.HoldPlaced, _hold_placed),
    EventTelling(e.HoldReleased, lambda event: f"hold {event.hold} released by {event.person}: {event.reason}"),
    EventTelling(e.WindowScheduled, _window_scheduled),
    EventTelling(e.WindowAnswered, _window_answered),
    EventTelling(e.WindowEnded, lambda event: f"maintenance window {event.window} cancelled by {event.person}"),
    EventTelling(
        e.PauseSet,
        lambda event: (
            f"disruption {'paused' if event.paused else 'resumed'} for {event.scope} by {event.person}: {event.reason}"
        ),
    ),
    EventTelling(
        e.ModeSet,
        lambda event: f"pool {event.pool}: mode of {_named_remedy(event.remedy)} set to {event.mode} by {event.person}",
    ),
    EventTelling(
        e.RemediatorsFound,
        lambda event: f"other remediators in cluster {event.cluster}: {', '.join(event.remediators) or 'none'}",
    ),
    EventTelling(e.RemediatorAccepted, _remediator_accepted),
    EventTelling(e.AuditSealed, _audit_sealed),
    EventTelling(e.BrakeLatched, lambda event: f"storm brake latched: {event.reason}"),
    EventTelling(e.BrakeReleased, lambda event: f"storm brake released by {event.person}: {event.reason}"),
    EventTelling(e.ConfigActivated, _activated),
    EventTelling(e.IntentRecorded, _intent_recorded),
    EventTelling(e.ApprovalRequested, lambda event: asked_for(event.approval)),
    EventTelling(
        e.ApprovalEnded, lambda event: f"approval {event.approval} {event.result} by {event.person}: {event.reason}"
    ),
    EventTelling(e.WorkConsented, _work_consented),
    EventTelling(e.RolloutStarted, _rollout_started),
    EventTelling(e.SliceStarted, _slice_started),
    EventTelling(
        e.SliceErrorSeen,
        lambda event: (
            f"rollout {event.rollout}: {event.error.kind.replace('_', ' ')} on {event.error.node}: {event.error.text}"
        ),
    ),
    EventTelling(e.RolloutStopped, lambda event: f"rollout {event.rollout} stopped by {event.person}: {event.reason}"),
    EventTelling(e.RolloutCompleted, lambda event: f"rollout {event.rollout} completed"),
    EventTelling(e.TicketOpened, lambda event: f"ticket {event.ticket.id} opened: {event.ticket.summary}"),
    EventTelling(e.TicketUpdated, lambda event: f"ticket {event.ticket.id} updated: {event.ticket.summary}"),
    EventTelling(
        e.TicketFileAdded, lambda event: f"{event.file.person} added {event.file.told} to ticket {event.ticket}"
    ),
    EventTelling(
        e.TicketClaimed,
        lambda event: (
            f"ticket {event.ticket} claimed by {event.person} until {event.until:%Y-%m-%d %H:%M} UTC"
            f"{event.before and f' after the shift of {event.before}'}: {event.reason}"
        ),
    ),
    EventTelling(e.TicketHandedOver, _handed_over),
    EventTelling(e.WalkStopChanged, of_walk_stop),
    EventTelling(e.TicketClosed, lambda event: f"ticket {event.ticket} closed by {event.person}: {event.resolution}"),
    EventTelling(e.IncidentOpened, lambda event: _incident_opened(event.incident)),
    EventTelling(e.IncidentUpdated, _incident_updated),
    EventTelling(e.IncidentClosed, lambda event: f"incident {event.incident} closed by {event.by}: {event.reason}"),
    EventTelling(e.ControllerStarted, lambda event: f"controller {event.version} active, epoch {event.epoch}"),
    EventTelling(e.ClockGap, _clock),
    EventTelling(
        e.DiskRoomChanged,
        lambda event: event.low or "the journal's disk has room again: observations are taken",
    ),
    EventTelling(e.ClockConfirmed, lambda event: f"clock confirmed by {event.person}: {event.reason}"),
    EventTelling(
        e.FormatRaised,
        lambda event: f"event format raised to {event.format}: {', '.join(event.members)} can read it",
    ),
    EventTelling(
        e.JournalRestored,
        lambda event: (
            f"journal restored up to {event.until:%Y-%m-%d %H:%M} UTC: no disruption until a person releases it"
        ),
    ),
    EventTelling(e.NodeCompared, _node_compared),
    EventTelling(e.RestoreReleased, _restore_released),
    EventTelling(e.FabricRegistered, of_fabric),
    EventTelling(e.FabricRemoved, of_fabric),
    EventTelling(e.FabricValidationAsked, of_fabric),
    EventTelling(e.FabricValidated, of_fabric),
    EventTelling(e.FabricFindingOpened, of_fabric),
    EventTelling(e.FabricFindingChanged, of_fabric),
    EventTelling(e.FabricFindingClosed, of_fabric),
    EventTelling(e.SubnetChanged, of_fabric),
    EventTelling(e.RecablingPlanned, of_recabling),
    EventTelling(e.RecablingMoved, of_recabling),
    EventTelling(e.DesignTakenOver, of_recabling),
    EventTelling(e.RecablingEnded, of_recabling),
    EventTelling(e.LinkFaultOpened, of_link),
    EventTelling(e.LinkFaultChanged, of_link),
    EventTelling(e.LinkFaultClosed, of_link),
    EventTelling(e.ManualTestScheduled, of_manual_test),
    EventTelling(e.ManualTestEntered, of_manual_test),
    EventTelling(e.ManualTestSigned, of_manual_test),
    EventTelling(e.ManualTestTicked, of_manual_test),
    EventTelling(e.ManualTestFileAdded, of_manual_test),
    EventTelling(e.ManualTestOverdue, of_manual_test),
    EventTelling(e.BitsTold, of_golden),
    EventTelling(e.GoldenLearned, of_golden),
    EventTelling(e.BitsDisputed, of_golden),
    EventTelling(e.WitnessHeard, of_golden),
    EventTelling(e.BitsJudged, of_golden),
    EventTelling(e.GoldenRetired, of_golden),
    EventTelling(e.RmaCaseOpened, of_rma),
    EventTelling(e.RmaCaseChanged, of_rma),
    EventTelling(e.RmaCaseClosed, of_rma),
    EventTelling(e.StockChanged, of_rma),
    EventTelling(e.BootAnswered, _boot_answered),
    EventTelling(e.BootSeeded, lambda event: f"cloud-init data given to {event.address}"),
    EventTelling(e.BootPhonedHome, lambda event: f"phoned home from {event.address}: its boot window is closed"),
    EventTelling(e.AgentEnrolled, _agent_enrolled),
    EventTelling(
        e.BootMediumDue, lambda _: "a boot medium may be in a virtual drive of its BMC until this boot is over"
    ),
    EventTelling(e.BootMediumRead, lambda event: f"its boot medium is read from {event.address}"),
    EventTelling(e.BootRefused, lambda event: f"{event.what} refused to {event.address}: {event.reason}"),
    EventTelling(e.StrangerSeen, _stranger_seen),
    EventTelling(e.OnboardTicked, _onboard_ticked),
    EventTelling(e.OnboardFileAdded, lambda event: f"{event.added.file.name} shows '{event.added.item}'"),
    EventTelling(e.NodeRejected, lambda event: f"rejected at its inspection by {event.person}: {event.reason}"),
    EventTelling(e.EvidenceKept, _evidence_kept),
    EventTelling(e.NodeSanitised, _node_sanitised),
    EventTelling(
        e.LightAsked,
        lambda event: (
            f"the locate LED is to be lit until {event.until:%Y-%m-%d %H:%M} UTC ({event.by}): {event.why}"
            if event.until
            else f"the locate LED is to be put out ({event.by}): {event.why}"
        ),
    ),
    EventTelling(
        e.BmcCertificateDue, lambda event: f"the BMC's certificate is to be renewed ({event.by}): {event.why}"
    ),
    EventTelling(
        e.BmcCertificateSeen,
        lambda event: (
            f"the BMC shows the certificate {event.shown.fingerprint[:16]}…"
            + (f", good until {event.shown.expires_at:%Y-%m-%d}" if event.shown.expires_at is not None else "")
        ),
    ),
    EventTelling(e.MachineWorkAsked, lambda event: f"{event.act.kind} is asked for ({event.by}): {event.why}"),
    EventTelling(
        e.InstanceReplaced,
        lambda event: (
            f"provider {event.provider} took back instance {event.before} of {event.node} and gave "
            f"{event.after}, which is {event.by}"
        ),
    ),
    EventTelling(e.DrillBegan, _drill_began),
    EventTelling(e.DrillSighted, lambda event: f"drill {event.drill}: what it injected is seen"),
    EventTelling(e.DrillPlaceFilled, lambda event: f"drill {event.drill}: {event.by} fills the place in its pool"),
    EventTelling(
        e.DrillEnded, lambda event: f"drill {event.drill} is over ({event.person}): {event.result}, {event.reason}"
    ),
    EventTelling(
        e.DpuLoginDue,
        lambda event: f"the password of its DPU's BMC {event.bmc} is to be renewed ({event.by}): {event.why}",
    ),
    EventTelling(e.RequestWithdrawn, lambda event: f"{event.what} is called off ({event.by}): {event.why}"),
    EventTelling(e.BmcLoginDue, lambda event: f"the BMC's password is to be renewed ({event.by}): {event.why}"),
)
ROWS: dict[type, EventTelling[Any]] = {row.kind: row for row in _TABLE}
"""Every event's sentence and story."""
