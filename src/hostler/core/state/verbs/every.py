"""All verbs: the union that is decoded, and the table from a verb's name to its struct."""

from typing import get_args

from hostler.core.state.verbs.activation import Activate, StopRollout
from hostler.core.state.verbs.approvals import ApproveRequest, DenyRequest, WithdrawRequest
from hostler.core.state.verbs.facts import Verb, name_of
from hostler.core.state.verbs.holds import Cordon, Pause, PlaceHold, ReleaseHold, Resume, Uncordon
from hostler.core.state.verbs.maintenance import CancelMaintenance, EndWork, ScheduleMaintenance, StartWork
from hostler.core.state.verbs.modes import ReleaseBrake, SetMode
from hostler.core.state.verbs.nodes import (
    Adopt,
    Certify,
    ClearCondition,
    Debug,
    Onboard,
    Rebind,
    Register,
    RegisterAssets,
    Retire,
    RmaReturn,
    RmaSend,
    Triage,
    Vouch,
    ZapAgain,
)
from hostler.core.state.verbs.proposals import Approve, Reject
from hostler.core.state.verbs.recovery import ConfirmClock, ReleaseRestore
from hostler.core.state.verbs.remediators import AcceptRemediator, ReportRemediators, WithdrawRemediator
from hostler.core.state.verbs.remedies import (
    CallOff,
    Drain,
    PowerCycle,
    PowerOff,
    Reboot,
    ReleaseNode,
    RequestReplacement,
    ResetGpu,
    ReturnForMaintenance,
    UpdateFirmware,
)
from hostler.core.state.verbs.tickets import CloseIncident, CloseTicket, ConsentToEviction, TreatIndividually

AnyVerb = (
    Cordon
    | Uncordon
    | Drain
    | Approve
    | Reject
    | ClearCondition
    | ResetGpu
    | Reboot
    | PowerCycle
    | PowerOff
    | UpdateFirmware
    | ReturnForMaintenance
    | RequestReplacement
    | StartWork
    | EndWork
    | Vouch
    | RmaSend
    | RmaReturn
    | Certify
    | ReleaseNode
    | ZapAgain
    | Triage
    | Debug
    | Onboard
    | Rebind
    | Retire
    | Register
    | Adopt
    | RegisterAssets
    | Activate
    | StopRollout
    | CallOff
    | PlaceHold
    | ReleaseHold
    | Pause
    | Resume
    | SetMode
    | ReleaseBrake
    | ReportRemediators
    | AcceptRemediator
    | WithdrawRemediator
    | ReleaseRestore
    | ConfirmClock
    | ConsentToEviction
    | ApproveRequest
    | DenyRequest
    | WithdrawRequest
    | CloseTicket
    | CloseIncident
    | TreatIndividually
    | ScheduleMaintenance
    | CancelMaintenance
)
"""Every verb, in the order in which the command line lists them."""

VERBS: dict[str, type[Verb]] = {name_of(kind): kind for kind in get_args(AnyVerb)}
"""The verb as people write it → its struct."""
