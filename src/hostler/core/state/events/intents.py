"""Events of what people asked for: configurations, intents, approvals."""

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.cell_record import DisturbanceByPerson, StoredAnswer
from hostler.core.state.change_control import Approval
from hostler.core.state.configuration import Configuration
from hostler.core.state.events.row import EventRow, EventRows, of_nobody
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
    `handle` is the subject by which the intent is found, "" in records from before it.
    """

    intent: Intent
    granted: bool
    answer: str
    disturbs: tuple[str, ...] = ()
    approval: str = ""
    content: str = ""
    handle: str = ""


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


def _of_approval(event: ApprovalRequested) -> tuple[str, ...]:
    approval = event.approval
    return tuple(dict.fromkeys((approval.id, approval.intent.target, *approval.nodes)))


ROWS: EventRows = (
    EventRow(ConfigActivated, of_nobody, _activate),
    EventRow(IntentRecorded, lambda e: (e.intent.target, e.handle) if e.handle else (e.intent.target,), _record_intent),
    EventRow(ApprovalRequested, _of_approval, lambda fleet, e, _at: fleet.put_approval(e.approval.id, e.approval)),
    EventRow(
        ApprovalEnded, lambda e: (e.approval, e.target), lambda fleet, e, _at: fleet.put_approval(e.approval, None)
    ),
)
