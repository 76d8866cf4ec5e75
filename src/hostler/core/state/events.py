"""Events that can be recorded. Stored names are written by hand and never change meaning; bodies carry a version.

An event states what happened with everything needed to fold and explain it later: `fold.evolve` reads no table,
no clock and no present. Names and versions are kept apart from the classes so that a class may be renamed.
"""

from datetime import datetime

from msgspec import Struct

from hostler.core.state.cases import Incident, Ticket
from hostler.core.state.change_control import Approval, Rollout, SliceError
from hostler.core.state.configuration import Configuration
from hostler.core.state.intent import Intent
from hostler.core.state.model import (
    Asset,
    Assignment,
    Binding,
    CheckResult,
    Condition,
    ConsentedWork,
    Difference,
    Evidence,
    Hold,
    Mode,
    Node,
    Operation,
    Part,
    Phase,
    Plan,
    Shadow,
    Tally,
    Waiting,
    Window,
)


class NodeRegistered(Struct, frozen=True, tag="node_registered"):
    """A node became known (from an inventory, or adopted with `node.phase` production)."""

    node: Node
    adopted: bool = False


class AssetRegistered(Struct, frozen=True, tag="asset_registered"):
    """An asset that is not a node became known."""

    asset: Asset


class AssetChanged(Struct, frozen=True, tag="asset_changed"):
    """The asset moved along its small lifecycle."""

    asset: str
    state: str
    reason: str


class BindingChanged(Struct, frozen=True, tag="binding_changed"):
    """The outside has a new name for the node; the old binding of that kind ends."""

    node: str
    binding: Binding


class PhaseChanged(Struct, frozen=True, tag="phase_changed"):
    """The node moved along an edge of TRANSITIONS; `deadline` ends the new phase where it has a limit.

    `probation_until`: it was repaired, and until then the ladder begins one rung higher. `convicted` is the evidence
    that led here, "" where there was none: a visit to triage without any counts towards nothing.
    """

    node: str
    before: Phase
    after: Phase
    reason: str
    deadline: datetime | None = None
    person: str = ""
    probation_until: datetime | None = None
    convicted: str = ""


class ConditionRaised(Struct, frozen=True, tag="condition_raised"):
    """A condition stands on a node from here on."""

    condition: Condition


class ConditionUpdated(Struct, frozen=True, tag="condition_updated"):
    """It was seen again, or grew worse: the whole condition as it now stands."""

    condition: Condition


class ConditionCleared(Struct, frozen=True, tag="condition_cleared"):
    """`by` is remedy, observation, age, retired or a person's name."""

    node: str
    condition: str
    by: str
    reason: str


class SourcesChanged(Struct, frozen=True, tag="sources_changed"):
    """Who fell silent about nodes that have conditions, and who is heard again: node → sources (`staleness`)."""

    silent: dict[str, tuple[str, ...]]
    heard: dict[str, tuple[str, ...]]


class KnowledgeChanged(Struct, frozen=True, tag="knowledge_changed"):
    """Conditions of which nobody can say any more whether they stand, and such as are believed again: node → their ids.

    None of them is cleared by this, and none is raised.
    """

    unknown: dict[str, tuple[str, ...]]
    known: dict[str, tuple[str, ...]]


class RecurrenceCounted(Struct, frozen=True, tag="recurrence_counted"):
    """Something came back on the node ("" part) or one of its parts: the whole tally of its row as it now stands."""

    node: str
    part: str
    tally: Tally


class PlanRecorded(Struct, frozen=True, tag="plan_recorded"):
    """A frozen plan with the evidence that decided it and the present facts it was decided on."""

    plan: Plan
    evidence: tuple[Evidence, ...] = ()
    present: dict[str, str] = {}


class PlanApproved(Struct, frozen=True, tag="plan_approved"):
    """A person said yes to a proposed plan."""

    node: str
    plan: str
    person: str


class PlanAdvanced(Struct, frozen=True, tag="plan_advanced"):
    """The plan passed a step boundary and now stands before step `index`."""

    node: str
    plan: str
    index: int


class PlanUndoing(Struct, frozen=True, tag="plan_undoing"):
    """The plan ends early; its undo tail runs from here. `result` (cancelled, failed) is how it will have ended."""

    node: str
    plan: str
    reason: str
    result: str = "cancelled"


class PlanEnded(Struct, frozen=True, tag="plan_ended"):
    """`result`: done, failed, cancelled (through its undo tail), superseded (by a graver plan, or by a release)."""

    node: str
    plan: str
    result: str
    reason: str


class OperationStarted(Struct, frozen=True, tag="operation_started"):
    """Recorded before it is sent: an operation that is not here was never asked for."""

    operation: Operation


class OperationFinished(Struct, frozen=True, tag="operation_finished"):
    """`result`: done, failed, refused, timed_out, revoked. A timed-out one settles until `settle_until`."""

    node: str
    operation: str
    kind: str
    result: str
    detail: str = ""
    facts: dict[str, str | int | float | bool | None] = {}
    settle_until: datetime | None = None


class OperationSettled(Struct, frozen=True, tag="operation_settled"):
    """A timed-out operation can no longer surprise us: observed, or its settle time is over."""

    node: str
    operation: str
    detail: str


class OutcomeLate(Struct, frozen=True, tag="outcome_late"):
    """A driver answered for an operation that had already been given up."""

    node: str
    operation: str
    result: str
    detail: str


class WaitingChanged(Struct, frozen=True, tag="waiting_changed"):
    """What the node waits for changed; None when it waits for nothing any more."""

    node: str
    waiting: Waiting | None


class ShadowNoted(Struct, frozen=True, tag="shadow_noted"):
    """A rule in shadow would have answered a condition on the node. Nothing was done; its `times` is counted here."""

    node: str
    shadow: Shadow


class BootObserved(Struct, frozen=True, tag="boot_observed"):
    """The node is heard in another boot than before."""

    node: str
    boot_id: str


class CheckRecorded(Struct, frozen=True, tag="check_recorded"):
    """A check profile gave its verdict."""

    node: str
    check: CheckResult


class InventorySeen(Struct, frozen=True, tag="inventory_seen"):
    """The node's parts as seen at `at`; recorded only when they differ from what was known.

    `addresses` are (PCI address, serial): how the kernel's log names a part. `boot_id` is the boot in which they were
    seen, `covers` the kinds that were looked at in it so far, `memory_gib` the host's memory, 0 where nobody read it.
    """

    node: str
    at: datetime
    parts: tuple[Part, ...]
    firmware: tuple[tuple[str, str], ...] = ()
    addresses: tuple[tuple[str, str], ...] = ()
    boot_id: str = ""
    covers: tuple[str, ...] = ()
    memory_gib: float = 0.0


class PartMoved(Struct, frozen=True, tag="part_moved"):
    """A serial left one node ("" = shelf) and was seen in another."""

    serial: str
    before: str
    after: str
    slot: str


class NodeAssigned(Struct, frozen=True, tag="node_assigned"):
    """The node serves a pool, and so a tenant, from here on. `reason`: whose dark places it comes for, "" for none."""

    node: str
    assignment: Assignment
    reason: str = ""


class NodeReleased(Struct, frozen=True, tag="node_released"):
    """The assignment ended; the tenant sees nothing of the node that comes later."""

    node: str
    at: datetime
    reason: str


class NodeCertified(Struct, frozen=True, tag="node_certified"):
    """A technician has inspected and cabled the node."""

    node: str
    person: str


class HoldPlaced(Struct, frozen=True, tag="hold_placed"):
    """Somebody keeps a node, asset, pool or the fleet as it is."""

    hold: Hold


class HoldReleased(Struct, frozen=True, tag="hold_released"):
    """The hold is over."""

    hold: str
    scope: str
    person: str
    reason: str


class WindowScheduled(Struct, frozen=True, tag="window_scheduled"):
    """A maintenance window was set."""

    window: Window


class WindowEnded(Struct, frozen=True, tag="window_ended"):
    """A maintenance window was cancelled."""

    window: str
    person: str


class PauseSet(Struct, frozen=True, tag="pause_set"):
    """Disruption stops (or goes on) in FLEET, "cluster:NAME" or "pool:NAME"."""

    scope: str
    paused: bool
    person: str
    reason: str


class ModeSet(Struct, frozen=True, tag="mode_set"):
    """The pool's mode for one remedy ("*" for all)."""

    pool: str
    remedy: str
    mode: Mode
    person: str


class RemediatorsFound(Struct, frozen=True, tag="remediators_found"):
    """Programs that treat nodes of the cluster too, all that are there now; `person` is who looked."""

    cluster: str
    remediators: tuple[str, ...]
    person: str


class RemediatorAccepted(Struct, frozen=True, tag="remediator_accepted"):
    """A person lets Hostler act beside this program of the cluster, or no longer."""

    cluster: str
    remediator: str
    accepted: bool
    person: str
    reason: str


class BrakeLatched(Struct, frozen=True, tag="brake_latched"):
    """Too much was being disturbed: nothing more is until a person releases the brake."""

    reason: str


class BrakeReleased(Struct, frozen=True, tag="brake_released"):
    """A person released the storm brake."""

    person: str
    reason: str


class ConfigActivated(Struct, frozen=True, tag="config_activated"):
    """A whole checked configuration, the documents' text it was read from, and who activated it."""

    configuration: Configuration
    documents: dict[str, str]
    person: str


class IntentRecorded(Struct, frozen=True, tag="intent_recorded"):
    """A request and its answer; `answer` is what the requester was told.

    `disturbs`: the nodes that this person's word alone lets be disturbed. `approval` is the one that it waits for.
    `content` is the digest of what was asked, whole; "" where the request had no key, and in records from before it.
    """

    intent: Intent
    granted: bool
    answer: str
    disturbs: tuple[str, ...] = ()
    approval: str = ""
    content: str = ""


class ApprovalRequested(Struct, frozen=True, tag="approval_requested"):
    """An intent would disturb more than one person may decide: it waits for a second one."""

    approval: Approval


class ApprovalEnded(Struct, frozen=True, tag="approval_ended"):
    """`result`: approved (and granted then), denied, withdrawn, expired, refused (it would do more by now)."""

    approval: str
    target: str
    result: str
    person: str
    reason: str


class WorkConsented(Struct, frozen=True, tag="work_consented"):
    """Whoever may say so lets this running work be ended for one remedy; nothing else on the node is included."""

    node: str
    ticket: str
    work: tuple[ConsentedWork, ...]
    reason: str


class RolloutStarted(Struct, frozen=True, tag="rollout_started"):
    """A new configuration is put in force slice by slice, the first from here on."""

    rollout: Rollout


class SliceStarted(Struct, frozen=True, tag="slice_started"):
    """The slice before gave no cause to stop: the next is reached, and watched until `until` at least."""

    rollout: str
    index: int
    pool: str
    until: datetime
    expected: tuple[str, ...] = ()


class SliceErrorSeen(Struct, frozen=True, tag="slice_error_seen"):
    """The new configuration did something to a node that the one before would not have done."""

    rollout: str
    index: int
    error: SliceError


class RolloutStopped(Struct, frozen=True, tag="rollout_stopped"):
    """The configuration before is in force everywhere again. `person` "hostler": it stopped by itself."""

    rollout: str
    reason: str
    person: str


class RolloutCompleted(Struct, frozen=True, tag="rollout_completed"):
    """Every slice was watched; the new configuration is activated with the record that follows."""

    rollout: str


class TicketOpened(Struct, frozen=True, tag="ticket_opened"):
    """Work for a person."""

    ticket: Ticket


class TicketUpdated(Struct, frozen=True, tag="ticket_updated"):
    """The whole ticket as it now stands."""

    ticket: Ticket


class TicketClosed(Struct, frozen=True, tag="ticket_closed"):
    """The work is done, or no longer needed."""

    ticket: str
    resolution: str
    person: str


class IncidentOpened(Struct, frozen=True, tag="incident_opened"):
    """Many nodes show what one shared part can have caused: from here on it is held responsible."""

    incident: Incident


class IncidentUpdated(Struct, frozen=True, tag="incident_updated"):
    """Who joined (since when) and who left; `state` and `calm_since` as they now stand. `by` is a person or hostler."""

    incident: str
    scope: str
    state: str
    joined: dict[str, datetime] = {}
    left: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    calm_since: datetime | None = None
    by: str = "hostler"
    reason: str = ""


class IncidentClosed(Struct, frozen=True, tag="incident_closed"):
    """It is over, disproved, or part of a wider one (`merged_into`). `nodes` were its members to the end.

    Unless merged, what those nodes of `scope` show already never again counts towards an incident of this `syndrome`.
    """

    incident: str
    scope: str
    syndrome: str
    nodes: tuple[str, ...]
    by: str
    reason: str
    merged_into: str = ""


class ControllerStarted(Struct, frozen=True, tag="controller_started"):
    """A controller became active."""

    epoch: int
    version: str


class ClockGap(Struct, frozen=True, tag="clock_gap"):
    """Nobody attended for `unattended_s`, by which deadlines are extended; or the clock is not believed (`doubt`).

    `leap_s`: how much further the wall clock moved than the monotonic one, 0 where that is not the reason.
    """

    unattended_s: float
    leap_s: float = 0.0
    doubt: str = ""


class ClockConfirmed(Struct, frozen=True, tag="clock_confirmed"):
    """The clock is believed again: by a person's word, or because the clocks agree (`person` "clocks")."""

    person: str
    reason: str


class FormatRaised(Struct, frozen=True, tag="format_raised"):
    """From here on events of this format may be written: every controller in `members` reads it."""

    format: int
    members: tuple[str, ...]


class JournalRestored(Struct, frozen=True, tag="journal_restored"):
    """Records up to `through` are a copy's, the last of `until`: nothing is disturbed until a person says so."""

    epoch: int
    through: int
    until: datetime


class NodeCompared(Struct, frozen=True, tag="node_compared"):
    """After a restore these differences from the copy are new; `heard`: the node itself has shown what it is."""

    node: str
    differences: tuple[Difference, ...]
    heard: bool = False


class RestoreReleased(Struct, frozen=True, tag="restore_released"):
    """A person lets the restored cell act again. `unheard` nodes had shown no sign of themselves by then."""

    person: str
    reason: str
    unheard: int = 0


Event = (
    NodeRegistered
    | AssetRegistered
    | AssetChanged
    | BindingChanged
    | PhaseChanged
    | ConditionRaised
    | ConditionUpdated
    | ConditionCleared
    | SourcesChanged
    | KnowledgeChanged
    | RecurrenceCounted
    | PlanRecorded
    | PlanApproved
    | PlanAdvanced
    | PlanUndoing
    | PlanEnded
    | OperationStarted
    | OperationFinished
    | OperationSettled
    | OutcomeLate
    | WaitingChanged
    | BootObserved
    | ShadowNoted
    | CheckRecorded
    | InventorySeen
    | PartMoved
    | NodeAssigned
    | NodeReleased
    | NodeCertified
    | HoldPlaced
    | HoldReleased
    | WindowScheduled
    | WindowEnded
    | PauseSet
    | ModeSet
    | BrakeLatched
    | BrakeReleased
    | RemediatorsFound
    | RemediatorAccepted
    | ConfigActivated
    | IntentRecorded
    | ApprovalRequested
    | ApprovalEnded
    | WorkConsented
    | RolloutStarted
    | SliceStarted
    | SliceErrorSeen
    | RolloutStopped
    | RolloutCompleted
    | TicketOpened
    | TicketUpdated
    | TicketClosed
    | IncidentOpened
    | IncidentUpdated
    | IncidentClosed
    | ControllerStarted
    | ClockGap
    | ClockConfirmed
    | FormatRaised
    | JournalRestored
    | NodeCompared
    | RestoreReleased
)


class Record(Struct, frozen=True):
    """An event in its place: sequence number, moment, writer's epoch, and what caused it.

    `cause` is an observation id, "intent:ID", "record:SEQ" or "clock".
    """

    seq: int
    at: datetime
    epoch: int
    cause: str
    event: Event


VERSION = 2
"""The newest version of any event's body, and of snapshots; older bodies pass `upcast` on the way in."""

INTRODUCED: dict[tuple[str, int], int] = {
    ("plan_recorded", 2): 2,
    ("intent_recorded", 2): 2,
    ("approval_requested", 2): 2,
}
"""(stored name, body version) → the format in which it came. What is not here is a version 1 of format 1.

Nothing of a format is written before every controller of the cell reads it (`formats`). A field that only has a
default may come without one if no fold, guard or plan looks at it, or if its default is the cautious answer.
"""


def name_of(event: Event) -> str:
    """The stored name of the event, e.g. "phase_changed"."""
    tag = event.__struct_config__.tag
    assert isinstance(tag, str), "every event has a hand-written stored name"
    return tag


def subjects_of(event: Event) -> tuple[str, ...]:  # noqa: C901, PLR0911, PLR0912 - one flat table of cases
    """The nodes, parts, assets or scopes under whose history the event is found."""
    match event:
        case NodeRegistered(node=node):
            return (node.id,)
        case ConditionRaised(condition=c) | ConditionUpdated(condition=c):
            return (c.node, c.part) if c.part else (c.node,)
        case RecurrenceCounted(node=node_id, part=part):
            return (node_id, part) if part else (node_id,)
        case SourcesChanged(silent=one, heard=other) | KnowledgeChanged(unknown=one, known=other):
            return tuple(dict.fromkeys((*one, *other)))
        case PlanRecorded(plan=plan):
            return (plan.node, plan.part) if plan.part else (plan.node,)
        case OperationStarted(operation=operation):
            return (operation.node,)
        case TicketOpened(ticket=t) | TicketUpdated(ticket=t):
            return tuple(name for name in (t.node, t.hardware, t.id) if name)
        case HoldPlaced(hold=hold):
            return (hold.scope,)
        case HoldReleased(scope=scope) | PauseSet(scope=scope):
            return (scope,)
        case WindowScheduled(window=window):
            return (window.scope,)
        case ModeSet(pool=pool):
            return (f"pool:{pool}",)
        case IntentRecorded(intent=intent):
            return (intent.target,)
        case RemediatorsFound(cluster=cluster) | RemediatorAccepted(cluster=cluster):
            return (f"cluster:{cluster}",)
        case AssetRegistered(asset=asset):
            return (asset.id,)
        case IncidentOpened(incident=incident):
            return (incident.id, incident.scope, *incident.members)
        case IncidentUpdated():
            return (event.incident, event.scope, *event.joined, *event.left)
        case IncidentClosed():
            return (event.incident, event.scope, *event.nodes)
        case ApprovalRequested(approval=a):
            return tuple(dict.fromkeys((a.id, a.intent.target, *a.nodes)))
        case ApprovalEnded(approval=approval, target=target):
            return (approval, target)
        case WorkConsented(node=node_id, ticket=ticket_id):
            return (node_id, ticket_id)
        case RolloutStarted(rollout=rollout):
            return (rollout.id,)
        case SliceStarted(rollout=rollout_id, pool=pool):
            return (rollout_id, f"pool:{pool}") if pool else (rollout_id,)
        case SliceErrorSeen(rollout=rollout_id, error=error):
            return (rollout_id, error.node)
        case RolloutStopped(rollout=rollout_id) | RolloutCompleted(rollout=rollout_id):
            return (rollout_id,)
        case PartMoved(serial=serial, before=before, after=after):
            return tuple(name for name in (serial, before, after) if name)
        case _:
            name = getattr(event, "node", "") or getattr(event, "asset", "") or getattr(event, "ticket", "")
            return (name,) if name else ()
