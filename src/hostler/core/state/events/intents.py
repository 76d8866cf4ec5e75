"""Events of what people asked for: configurations, intents, approvals."""

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state import machine_work
from hostler.core.state.bmc_certificate import CERTIFY
from hostler.core.state.bmc_login import RENEW
from hostler.core.state.cell_record import DisturbanceByPerson, StoredAnswer
from hostler.core.state.change_control import Approval
from hostler.core.state.configuration import Configuration
from hostler.core.state.dpu_login import RENEW_DPU, login_at, with_login
from hostler.core.state.dpus import bmcs_of
from hostler.core.state.events.row import EventRow, EventRows, node_of, of_nobody, of_node
from hostler.core.state.fleet import ACTS_KEPT, ANSWERS_KEPT, Fleet
from hostler.core.state.intent import Intent


class ConfigActivated(Struct, frozen=True, tag="config_activated"):
    """A whole checked configuration, the documents' text it was read from, and who activated it."""

    configuration: Configuration
    documents: dict[str, str]
    person: str


class IntentRecorded(Struct, frozen=True, tag="intent_recorded"):
    """A request and its answer; `answer` is what the requester was told.

    `disturbs`: the nodes that this person's word alone lets be disturbed. `approval` is the one that it waits for.
    `content` is the digest of what was asked, whole; "" where the request had no key, and in records from before it.
    `handle` is the subject by which the intent is found, "" in records from before it. `concerns`: the nodes of an act
    that disturbs none of them, where its target is no node.
    """

    intent: Intent
    granted: bool
    answer: str
    disturbs: tuple[str, ...] = ()
    approval: str = ""
    content: str = ""
    handle: str = ""
    concerns: tuple[str, ...] = ()


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


class RequestWithdrawn(Struct, frozen=True, tag="request_withdrawn"):
    """Work beside the plan that a person asked for and that has not begun is called off: `by` whom, and why.

    `what` is its kind of operation; `bmc` the address of the DPU's BMC whose password was to be renewed.
    """

    node: str
    what: str
    by: str
    why: str
    bmc: str = ""


def _activate(fleet: Fleet, event: ConfigActivated, at: datetime) -> None:
    fleet.configurations.put("active", replace(event.configuration, activated=at))


def _record_intent(fleet: Fleet, event: IntentRecorded, at: datetime) -> None:
    number = fleet.cell.intents
    fleet.singles.put("cell", replace(fleet.cell, intents=number + 1))
    if event.intent.key:
        fleet.answers.put(
            event.intent.key,
            StoredAnswer(event.intent.id, event.answer, event.granted, at, event.approval, event.content),
        )
        if len(fleet.answers) > ANSWERS_KEPT:
            fleet.answers.put(next(iter(fleet.answers)), None)
    _count_act(fleet, event, at)


def _count_act(fleet: Fleet, event: IntentRecorded, at: datetime) -> None:
    """Remember whom a person's word alone let be disturbed, for a day."""
    if not event.granted or not event.disturbs:
        return
    day = at - timedelta(days=1)
    acts = (*(a for a in fleet.cell.acts if a.at > day), DisturbanceByPerson(at, event.intent.person, event.disturbs))[
        -ACTS_KEPT:
    ]
    fleet.singles.put("cell", replace(fleet.cell, acts=acts))


def _withdraw(fleet: Fleet, event: RequestWithdrawn, at: datetime) -> None:
    node = node_of(fleet, event.node)
    asked = {"asked_at": None, "asked_by": "", "why": ""}
    if event.what in machine_work.KINDS and node.machine_work is not None:
        said = f"called off by {event.by}: {event.why}"[:500]
        work = replace(node.machine_work, state="withdrawn", detail=said, ended_at=at)
        fleet.put_node(node.id, replace(node, machine_work=work))
    elif event.what == RENEW and node.bmc_login is not None:
        fleet.put_node(node.id, replace(node, bmc_login=replace(node.bmc_login, anew=False, **asked)))
    elif event.what == RENEW_DPU:
        known = login_at(node.dpu_logins, event.bmc)
        left = replace(known, login=replace(known.login, anew=False, **asked))
        fleet.put_node(node.id, replace(node, dpu_logins=with_login(node.dpu_logins, left, bmcs_of(node))))
    elif event.what == CERTIFY and node.bmc_certificate is not None:
        fleet.put_node(node.id, replace(node, bmc_certificate=replace(node.bmc_certificate, **asked)))


def _of_approval(event: ApprovalRequested) -> tuple[str, ...]:
    approval = event.approval
    return tuple(dict.fromkeys((approval.id, approval.intent.target, *approval.nodes)))


ROWS: EventRows = (
    EventRow(ConfigActivated, of_nobody, _activate),
    EventRow(IntentRecorded, lambda e: (e.intent.target, e.handle) if e.handle else (e.intent.target,), _record_intent),
    EventRow(ApprovalRequested, _of_approval, lambda fleet, e, _at: fleet.put_approval(e.approval.id, e.approval)),
    EventRow(RequestWithdrawn, of_node, _withdraw),
    EventRow(
        ApprovalEnded, lambda e: (e.approval, e.target), lambda fleet, e, _at: fleet.put_approval(e.approval, None)
    ),
)
