"""Events that can be recorded. Stored names are written by hand and never change meaning; bodies carry a version.

An event states what happened with everything needed to fold and explain it later. Names and versions are kept apart
from the classes so that a class may be renamed. A file holds the events of one family: their classes, and one row each.
"""

from datetime import datetime
from typing import Any

from msgspec import Struct

from hostler.core.state.events import (
    bmc_certificates,
    bmc_logins,
    boot,
    cell,
    certificates,
    conditions,
    drills,
    evidence,
    fabrics,
    goldens,
    holds,
    intents,
    inventory,
    lights,
    links,
    machine_work,
    manual_tests,
    nodes,
    onboarding,
    operations,
    plans,
    racks,
    restore,
    rma_cases,
    rollouts,
    tickets,
)
from hostler.core.state.events.bmc_certificates import BmcCertificateDue, BmcCertificateSeen
from hostler.core.state.events.bmc_logins import BmcLoginDue, DpuLoginDue
from hostler.core.state.events.boot import (
    AgentEnrolled,
    BootAnswered,
    BootMediumDue,
    BootMediumRead,
    BootPhonedHome,
    BootRefused,
    BootSeeded,
    StrangerSeen,
)
from hostler.core.state.events.cell import (
    AuditSealed,
    BrakeLatched,
    BrakeReleased,
    ClockConfirmed,
    ClockGap,
    ControllerStarted,
    DiskRoomChanged,
    FormatRaised,
    ModeSet,
    PauseSet,
    RemediatorAccepted,
    RemediatorsFound,
)
from hostler.core.state.events.certificates import NodeSanitised
from hostler.core.state.events.conditions import (
    ConditionCleared,
    ConditionRaised,
    ConditionUpdated,
    KnowledgeChanged,
    RecurrenceCounted,
    ShadowNoted,
    SourcesChanged,
)
from hostler.core.state.events.drills import DrillBegan, DrillEnded, DrillPlaceFilled, DrillSighted
from hostler.core.state.events.evidence import EvidenceKept
from hostler.core.state.events.fabrics import (
    DesignTakenOver,
    FabricEvent,
    FabricFindingChanged,
    FabricFindingClosed,
    FabricFindingOpened,
    FabricRegistered,
    FabricRemoved,
    FabricValidated,
    FabricValidationAsked,
    RecablingEnded,
    RecablingEvent,
    RecablingMoved,
    RecablingPlanned,
    SubnetChanged,
    fabric_subject,
)
from hostler.core.state.events.goldens import (
    BitsDisputed,
    BitsJudged,
    BitsTold,
    GoldenEvent,
    GoldenLearned,
    GoldenRetired,
    WitnessHeard,
    golden_subject,
)
from hostler.core.state.events.holds import HoldPlaced, HoldReleased, WindowAnswered, WindowEnded, WindowScheduled
from hostler.core.state.events.intents import (
    ApprovalEnded,
    ApprovalRequested,
    ConfigActivated,
    IntentRecorded,
    RequestWithdrawn,
)
from hostler.core.state.events.inventory import HardwareSeen, InventorySeen, PartMoved
from hostler.core.state.events.lights import LightAsked
from hostler.core.state.events.links import LinkEvent, LinkFaultChanged, LinkFaultClosed, LinkFaultOpened
from hostler.core.state.events.machine_work import InstanceReplaced, MachineWorkAsked
from hostler.core.state.events.manual_tests import (
    ManualTestEntered,
    ManualTestEvent,
    ManualTestFileAdded,
    ManualTestOverdue,
    ManualTestScheduled,
    ManualTestSigned,
    ManualTestTicked,
)
from hostler.core.state.events.nodes import (
    AssetChanged,
    AssetRebound,
    AssetRegistered,
    AssetSeen,
    BindingChanged,
    BootObserved,
    CheckRecorded,
    NodeAssigned,
    NodeCertified,
    NodeFieldChanged,
    NodeRegistered,
    NodeReleased,
    PhaseChanged,
    RepairRecorded,
    WaitingChanged,
)
from hostler.core.state.events.onboarding import NodeRejected, OnboardEvent, OnboardFileAdded, OnboardTicked
from hostler.core.state.events.operations import OperationFinished, OperationSettled, OperationStarted, OutcomeLate
from hostler.core.state.events.plans import (
    YIELDED,
    PlanAdvanced,
    PlanApproved,
    PlanEnded,
    PlanRecorded,
    PlanUndoing,
    WorkConsented,
)
from hostler.core.state.events.racks import (
    AssetCertificateDue,
    AssetLoginDue,
    AssetOperationFinished,
    AssetOperationSettled,
    AssetOperationStarted,
    RackActDone,
    RackActsLaid,
    RackCertificateVoided,
    RackCertified,
    RackEvent,
    RackRunBegan,
    RackRunEnded,
    RackStepDone,
    RackWaitChanged,
)
from hostler.core.state.events.restore import JournalRestored, NodeCompared, RestoreReleased
from hostler.core.state.events.rma_cases import RmaCaseChanged, RmaCaseClosed, RmaCaseOpened, RmaEvent, StockChanged
from hostler.core.state.events.rollouts import (
    RolloutCompleted,
    RolloutStarted,
    RolloutStopped,
    SliceErrorSeen,
    SliceStarted,
)
from hostler.core.state.events.row import EventRow
from hostler.core.state.events.tickets import (
    IncidentClosed,
    IncidentOpened,
    IncidentUpdated,
    TicketClaimed,
    TicketClosed,
    TicketFileAdded,
    TicketHandedOver,
    TicketOpened,
    TicketUpdated,
    WalkStopChanged,
)

__all__ = [
    "INTRODUCED",
    "ROWS",
    "VERSION",
    "YIELDED",
    "AgentEnrolled",
    "ApprovalEnded",
    "ApprovalRequested",
    "AssetCertificateDue",
    "AssetChanged",
    "AssetLoginDue",
    "AssetOperationFinished",
    "AssetOperationSettled",
    "AssetOperationStarted",
    "AssetRebound",
    "AssetRegistered",
    "AssetSeen",
    "AuditSealed",
    "BindingChanged",
    "BitsDisputed",
    "BitsJudged",
    "BitsTold",
    "BmcCertificateDue",
    "BmcCertificateSeen",
    "BmcLoginDue",
    "BootAnswered",
    "BootMediumDue",
    "BootMediumRead",
    "BootObserved",
    "BootPhonedHome",
    "BootRefused",
    "BootSeeded",
    "BrakeLatched",
    "BrakeReleased",
    "CheckRecorded",
    "ClockConfirmed",
    "ClockGap",
    "ConditionCleared",
    "ConditionRaised",
    "ConditionUpdated",
    "ConfigActivated",
    "ControllerStarted",
    "DesignTakenOver",
    "DiskRoomChanged",
    "DpuLoginDue",
    "DrillBegan",
    "DrillEnded",
    "DrillPlaceFilled",
    "DrillSighted",
    "Event",
    "EvidenceKept",
    "FabricEvent",
    "FabricFindingChanged",
    "FabricFindingClosed",
    "FabricFindingOpened",
    "FabricRegistered",
    "FabricRemoved",
    "FabricValidated",
    "FabricValidationAsked",
    "FormatRaised",
    "GoldenEvent",
    "GoldenLearned",
    "GoldenRetired",
    "HardwareSeen",
    "HoldPlaced",
    "HoldReleased",
    "IncidentClosed",
    "IncidentOpened",
    "IncidentUpdated",
    "InstanceReplaced",
    "IntentRecorded",
    "InventorySeen",
    "JournalRestored",
    "KnowledgeChanged",
    "LightAsked",
    "LinkEvent",
    "LinkFaultChanged",
    "LinkFaultClosed",
    "LinkFaultOpened",
    "MachineWorkAsked",
    "ManualTestEntered",
    "ManualTestEvent",
    "ManualTestFileAdded",
    "ManualTestOverdue",
    "ManualTestScheduled",
    "ManualTestSigned",
    "ManualTestTicked",
    "ModeSet",
    "NodeAssigned",
    "NodeCertified",
    "NodeCompared",
    "NodeFieldChanged",
    "NodeRegistered",
    "NodeRejected",
    "NodeReleased",
    "NodeSanitised",
    "OnboardEvent",
    "OnboardFileAdded",
    "OnboardTicked",
    "OperationFinished",
    "OperationSettled",
    "OperationStarted",
    "OutcomeLate",
    "PartMoved",
    "PauseSet",
    "PhaseChanged",
    "PlanAdvanced",
    "PlanApproved",
    "PlanEnded",
    "PlanRecorded",
    "PlanUndoing",
    "RackActDone",
    "RackActsLaid",
    "RackCertificateVoided",
    "RackCertified",
    "RackEvent",
    "RackRunBegan",
    "RackRunEnded",
    "RackStepDone",
    "RackWaitChanged",
    "RecablingEnded",
    "RecablingEvent",
    "RecablingMoved",
    "RecablingPlanned",
    "Record",
    "RecurrenceCounted",
    "RemediatorAccepted",
    "RemediatorsFound",
    "RepairRecorded",
    "RequestWithdrawn",
    "RestoreReleased",
    "RmaCaseChanged",
    "RmaCaseClosed",
    "RmaCaseOpened",
    "RmaEvent",
    "RolloutCompleted",
    "RolloutStarted",
    "RolloutStopped",
    "ShadowNoted",
    "SliceErrorSeen",
    "SliceStarted",
    "SourcesChanged",
    "StockChanged",
    "StrangerSeen",
    "SubnetChanged",
    "TicketClaimed",
    "TicketClosed",
    "TicketFileAdded",
    "TicketHandedOver",
    "TicketOpened",
    "TicketUpdated",
    "WaitingChanged",
    "WalkStopChanged",
    "WindowAnswered",
    "WindowEnded",
    "WindowScheduled",
    "WitnessHeard",
    "WorkConsented",
    "fabric_subject",
    "golden_subject",
    "name_of",
    "subjects_of",
]


Event = (
    NodeRegistered
    | AssetRegistered
    | AssetChanged
    | AssetSeen
    | AssetRebound
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
    | RepairRecorded
    | InventorySeen
    | HardwareSeen
    | PartMoved
    | NodeAssigned
    | NodeReleased
    | NodeCertified
    | NodeFieldChanged
    | HoldPlaced
    | HoldReleased
    | WindowScheduled
    | WindowAnswered
    | WindowEnded
    | PauseSet
    | ModeSet
    | AuditSealed
    | BrakeLatched
    | BrakeReleased
    | RemediatorsFound
    | RemediatorAccepted
    | ConfigActivated
    | IntentRecorded
    | ApprovalRequested
    | RequestWithdrawn
    | ApprovalEnded
    | WorkConsented
    | RolloutStarted
    | SliceStarted
    | SliceErrorSeen
    | RolloutStopped
    | RolloutCompleted
    | TicketOpened
    | TicketUpdated
    | TicketFileAdded
    | TicketClaimed
    | TicketHandedOver
    | WalkStopChanged
    | TicketClosed
    | IncidentOpened
    | IncidentUpdated
    | IncidentClosed
    | ControllerStarted
    | ClockGap
    | DiskRoomChanged
    | ClockConfirmed
    | FormatRaised
    | JournalRestored
    | NodeCompared
    | RestoreReleased
    | FabricRegistered
    | FabricRemoved
    | FabricValidationAsked
    | FabricValidated
    | FabricFindingOpened
    | FabricFindingChanged
    | FabricFindingClosed
    | SubnetChanged
    | DesignTakenOver
    | RecablingEnded
    | RecablingMoved
    | RecablingPlanned
    | LinkFaultOpened
    | LinkFaultChanged
    | LinkFaultClosed
    | ManualTestEvent
    | RmaCaseOpened
    | RmaCaseChanged
    | RmaCaseClosed
    | StockChanged
    | BootAnswered
    | BootSeeded
    | BootPhonedHome
    | AgentEnrolled
    | BootMediumDue
    | BootMediumRead
    | BootRefused
    | StrangerSeen
    | BmcLoginDue
    | DpuLoginDue
    | BmcCertificateDue
    | BmcCertificateSeen
    | InstanceReplaced
    | MachineWorkAsked
    | LightAsked
    | DrillBegan
    | DrillSighted
    | DrillPlaceFilled
    | DrillEnded
    | GoldenEvent
    | EvidenceKept
    | NodeSanitised
    | OnboardTicked
    | OnboardFileAdded
    | NodeRejected
    | RackEvent
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


VERSION = 3
"""The newest version of any event's body, and of snapshots; older bodies pass `upcast` on the way in."""

INTRODUCED: dict[tuple[str, int], int] = {
    ("plan_recorded", 2): 2,
    ("intent_recorded", 2): 2,
    ("approval_requested", 2): 2,
    ("fabric_registered", 1): 3,
    ("fabric_removed", 1): 3,
    ("fabric_validation_asked", 1): 3,
    ("fabric_validated", 1): 3,
    ("fabric_finding_opened", 1): 3,
    ("fabric_finding_changed", 1): 3,
    ("fabric_finding_closed", 1): 3,
    ("link_fault_opened", 1): 3,
    ("link_fault_changed", 1): 3,
    ("link_fault_closed", 1): 3,
    ("manual_test_scheduled", 1): 3,
    ("manual_test_entered", 1): 3,
    ("manual_test_signed", 1): 3,
    ("boot_answered", 1): 3,
    ("boot_seeded", 1): 3,
    ("boot_phoned_home", 1): 3,
    ("boot_refused", 1): 3,
    ("stranger_seen", 1): 3,
    ("hardware_seen", 1): 4,
    ("node_field_changed", 1): 4,
    ("plan_recorded", 3): 5,
    ("operation_started", 2): 5,
    ("node_registered", 2): 5,
    ("repair_recorded", 1): 7,
    ("rma_case_opened", 1): 6,
    ("rma_case_changed", 1): 6,
    ("rma_case_closed", 1): 6,
    ("stock_changed", 1): 6,
    ("manual_test_ticked", 1): 7,
    ("manual_test_file_added", 1): 7,
    ("manual_test_overdue", 1): 7,
    ("ticket_file_added", 1): 7,
    ("ticket_claimed", 1): 7,
    ("ticket_handed_over", 1): 7,
    ("light_asked", 1): 7,
    ("bmc_login_due", 1): 7,
    ("bmc_certificate_due", 1): 7,
    ("bmc_certificate_seen", 1): 7,
    ("machine_work_asked", 1): 7,
    ("evidence_kept", 1): 7,
    ("node_sanitised", 1): 7,
    ("subnet_changed", 1): 7,
    ("recabling_planned", 1): 7,
    ("recabling_moved", 1): 7,
    ("design_taken_over", 1): 7,
    ("recabling_ended", 1): 7,
    ("bits_told", 1): 7,
    ("golden_learned", 1): 7,
    ("bits_disputed", 1): 7,
    ("witness_heard", 1): 7,
    ("bits_judged", 1): 7,
    ("golden_retired", 1): 7,
    ("onboard_ticked", 1): 7,
    ("onboard_file_added", 1): 7,
    ("node_rejected", 1): 7,
    ("asset_seen", 1): 7,
    ("agent_enrolled", 1): 7,
    ("boot_medium_due", 1): 7,
    ("boot_medium_read", 1): 7,
    ("window_answered", 1): 7,
    ("walk_stop_changed", 1): 7,
    ("asset_rebound", 1): 7,
    ("rack_bring_up_began", 1): 7,
    ("rack_acts_laid", 1): 7,
    ("rack_act_done", 1): 7,
    ("rack_step_done", 1): 7,
    ("rack_wait_changed", 1): 7,
    ("rack_bring_up_ended", 1): 7,
    ("asset_operation_started", 1): 7,
    ("asset_operation_finished", 1): 7,
    ("asset_operation_settled", 1): 7,
    ("asset_certificate_due", 1): 7,
    ("asset_login_due", 1): 7,
    ("rack_certified", 1): 7,
    ("rack_certificate_voided", 1): 7,
    ("audit_sealed", 1): 7,
    ("dpu_login_due", 1): 9,
    ("instance_replaced", 1): 10,
    ("drill_began", 1): 10,
    ("drill_sighted", 1): 10,
    ("drill_place_filled", 1): 10,
    ("drill_ended", 1): 10,
    ("request_withdrawn", 1): 10,
    ("disk_room_changed", 1): 10,
}
"""(stored name, body version) → the format in which it came. What is not here is a version 1 of format 1.

Nothing of a format is written before every controller of the cell reads it (`formats`). Shapes of bodies are recorded
for each format too (`recorded_bodies`): a field, a kind or a word that is new needs no row here, but a format.
"""


def name_of(event: Event) -> str:
    """The stored name of the event, e.g. "phase_changed"."""
    tag = event.__struct_config__.tag
    assert isinstance(tag, str), "every event has a hand-written stored name"
    return tag


ROWS: dict[type, EventRow[Any]] = {
    row.kind: row
    for family in (
        bmc_certificates,
        bmc_logins,
        machine_work,
        boot,
        cell,
        conditions,
        certificates,
        drills,
        evidence,
        fabrics,
        goldens,
        holds,
        intents,
        inventory,
        lights,
        links,
        manual_tests,
        nodes,
        onboarding,
        operations,
        plans,
        racks,
        restore,
        rma_cases,
        rollouts,
        tickets,
    )
    for row in family.ROWS
}
"""Every event's row."""


def subjects_of(event: Event) -> tuple[str, ...]:
    """The nodes, parts, assets or scopes under whose history the event is found."""
    return ROWS[type(event)].subjects(event)
