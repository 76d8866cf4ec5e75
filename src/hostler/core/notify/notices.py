"""Meaning of a record to people: something began, grew, or is over; whom it concerns, and whether it is a page.

Only what a person should know becomes a notice; most records are none. Texts for tenants are made of fields alone.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from hostler.core.report.sentences import asked_for, sentence
from hostler.core.state import events as e
from hostler.core.state.cases import CONDITION, DUE_NOW, Incident, Ticket
from hostler.core.state.change_control import Approval
from hostler.core.state.model import OWNER, ActClass, Condition, Plan, Severity
from hostler.core.state.notify_routes import SEVERITIES, PageRules
from hostler.core.state.scopes import WHOLE_CELL
from hostler.core.state.windows import Window
from hostler.core.tables.conditions import CONDITIONS

TEXT_MAX = 1_000
EVIDENCE_MAX = 300


class Place(Struct, frozen=True):
    """Position of a node, and whom it served, when something befell it."""

    pool: str = ""
    tenant: str = ""
    site: str = ""
    rack: str = ""
    serial: str = ""


class Notice(Struct, frozen=True):
    """One thing to be told. `action`: open, more (of what is open), over, or note (which nothing ends).

    `subject` is the same in what began and what is over. What shares a `cause` is told as one. `told_tenant` is the
    text that its tenant may read, "" where it is none of theirs. `held`: it may be over in a moment, so it waits.
    """

    topic: str
    action: str
    subject: str
    cause: str = ""
    severity: Severity = Severity.warning
    page: bool = False
    summary: str = ""
    told_tenant: str = ""
    node: str = ""
    place: Place = field(default_factory=Place)
    details: dict[str, str] = {}
    held: bool = False


TOLD_OF = (
    e.TicketOpened,
    e.TicketUpdated,
    e.TicketClosed,
    e.EvidenceKept,
    e.IncidentOpened,
    e.IncidentUpdated,
    e.IncidentClosed,
    e.BrakeLatched,
    e.BrakeReleased,
    e.JournalRestored,
    e.RestoreReleased,
    e.ClockGap,
    e.ClockConfirmed,
    e.DiskRoomChanged,
    e.ConditionRaised,
    e.ConditionCleared,
    e.NodeReleased,
    e.NodeAssigned,
    e.PlanRecorded,
    e.PlanEnded,
    e.WindowScheduled,
    e.WindowAnswered,
    e.WindowEnded,
    e.ApprovalRequested,
    e.ApprovalEnded,
    e.RolloutStopped,
    e.RmaCaseChanged,
    e.ManualTestOverdue,
    e.ManualTestSigned,
    e.ManualTestScheduled,
    e.FabricRemoved,
    e.DrillBegan,
    e.DrillEnded,
)
"""Events that may be told of; every other is passed over unread."""


def concerned(event: e.Event) -> tuple[str, ...]:
    """Nodes and scopes whose place has to be known to make notices of the event."""
    match event:
        case e.TicketOpened(ticket=ticket) | e.TicketUpdated(ticket=ticket):
            return (ticket.node,)
        case e.ConditionRaised(condition=condition):
            return (condition.node,) if condition.severity >= Severity.critical else ()
        case e.NodeReleased(node=node) | e.NodeAssigned(node=node) | e.DrillBegan(node=node):
            return (node,)
        case e.PlanRecorded(plan=plan):
            return (plan.node,) if _is_planned(plan) else ()
        case e.WindowScheduled(window=window):
            return (window.scope.text,)
        case e.RmaCaseChanged(case=case):
            return (case.node,) if case.overdue else ()
        case _:
            return ()


def notices(event: e.Event, places: Mapping[str, tuple[Place, ...]], pages: PageRules) -> Iterator[Notice]:  # noqa: C901, PLR0912, PLR0915 - one flat table of cases
    """Notices that the event makes. `places` holds those of `concerned`; a scope may lie in several."""
    match event:
        case e.TicketOpened(ticket=ticket):
            yield from _ticket(ticket, places, pages, "open")
        case e.TicketUpdated(ticket=ticket):
            yield from _ticket(ticket, places, pages, "more")
        case e.TicketClosed():
            yield Notice("ticket", "over", f"ticket/{event.ticket}", summary=sentence(event))
        case e.IncidentOpened(incident=incident):
            yield _incident(incident, pages)
        case e.IncidentUpdated():
            yield Notice("incident", "more", f"incident/{event.incident}", summary=sentence(event))
        case e.IncidentClosed():
            yield Notice("incident", "over", f"incident/{event.incident}", summary=sentence(event))
        case e.BrakeLatched():
            yield Notice("brake", "open", "brake", "brake", Severity.critical, pages.brake, sentence(event))
        case e.BrakeReleased():
            yield Notice("brake", "over", "brake", summary=sentence(event))
        case e.JournalRestored():
            yield Notice("cell", "open", "restored", "restored", Severity.critical, pages.cell, sentence(event))
        case e.RestoreReleased():
            yield Notice("cell", "over", "restored", summary=sentence(event))
        case e.ClockGap() if event.doubt:
            yield Notice("cell", "open", "clock", "clock", Severity.critical, pages.cell, sentence(event))
        case e.ClockConfirmed():
            yield Notice("cell", "over", "clock", summary=sentence(event))
        case e.DiskRoomChanged(low=low) if low:
            yield Notice("cell", "open", "disk", "disk", Severity.critical, pages.cell, sentence(event))
        case e.DiskRoomChanged():
            yield Notice("cell", "over", "disk", summary=sentence(event))
        case e.ConditionRaised(condition=condition):
            yield from _failed(condition, places, pages)
        case e.ConditionCleared():
            yield Notice("node_failed", "over", f"condition/{event.condition}", summary=sentence(event))
        case e.NodeReleased() | e.NodeAssigned():
            yield from _moved(event, places)
        case e.PlanRecorded(plan=plan) if _is_planned(plan):
            yield from _planned(plan, places)
        case e.PlanEnded():
            yield Notice("maintenance", "over", f"plan/{event.plan}", summary=f"{event.node}: {sentence(event)}")
        case e.WindowScheduled(window=window):
            yield from _window(window, places)
        case e.WindowAnswered() if event.answer.rather is not None:
            yield Notice("maintenance", "more", f"window/{event.window}", event.window, summary=sentence(event))
        case e.WindowEnded():
            yield Notice("maintenance", "over", f"window/{event.window}", summary=sentence(event))
        case e.ApprovalRequested(approval=approval):
            yield _approval(approval)
        case e.ApprovalEnded():
            yield Notice("approval", "over", f"approval/{event.approval}", summary=sentence(event))
        case e.ManualTestOverdue() | e.ManualTestSigned() | e.ManualTestScheduled() | e.FabricRemoved():
            yield _of_test(event)
        case e.RolloutStopped() if event.person == OWNER:
            yield Notice("rollout", "note", f"rollout/{event.rollout}", event.rollout, summary=sentence(event))
        case e.RmaCaseChanged() if event.case.overdue and event.person == OWNER:
            yield _overdue(event, places)
        case e.DrillBegan():
            yield _drilled(event, places)
        case e.DrillEnded():
            summary = f"{event.node}: {sentence(event)}"[:TEXT_MAX]
            yield Notice("maintenance", "over", f"drill/{event.drill}", summary=summary)
        case _:
            return


def _ticket(ticket: Ticket, places: Mapping[str, tuple[Place, ...]], pages: PageRules, action: str) -> Iterator[Notice]:
    """A ticket of an incident is told with the incident."""
    if ticket.kind == "incident":
        return
    place = _one(places, ticket.node)
    due = ticket.due == DUE_NOW
    details = {
        "ticket": ticket.id,
        "kind": ticket.kind,
        "action": ticket.action,
        "component": ticket.component,
        "hardware": ticket.hardware,
        "owner": ticket.owner,
        "rack": place.rack,
    }
    yield Notice(
        topic="ticket",
        action=action,
        subject=f"ticket/{ticket.id}",
        cause=f"{ticket.kind}:{ticket.fault or ticket.action}",
        severity=Severity.critical if due else Severity.warning,
        page=due and pages.tickets and not _pages_itself(ticket, place, pages),
        summary=f"{ticket.node}: {ticket.summary}"[:TEXT_MAX],
        node=ticket.node,
        place=place,
        details={name: value for name, value in details.items() if value},
        held=True,
    )


def _overdue(event: e.RmaCaseChanged, places: Mapping[str, tuple[Place, ...]]) -> Notice:
    """A return of which nothing was heard in time: told once, beside its ticket."""
    case = event.case
    details = {"return": case.id, "vendor": case.vendor, "vendor case": case.vendor_case, "hardware": case.serial}
    return Notice(
        topic="ticket",
        action="note",
        subject=f"rma/{case.id}",
        cause=f"rma:{case.id}",
        summary=f"{case.node}: {sentence(event)}"[:TEXT_MAX],
        node=case.node,
        place=_one(places, case.node),
        details={name: value for name, value in details.items() if value},
    )


def _pages_itself(ticket: Ticket, place: Place, pages: PageRules) -> bool:
    """Whether the condition that the ticket is about pages on its own: one cause is one call.

    Of one that a newer controller recorded nothing is known here: rather two calls than none.
    """
    if ticket.kind != CONDITION or not place.pool or not pages.severity:
        return False
    kind = CONDITIONS.get(ticket.fault)
    return kind is not None and kind.severity >= SEVERITIES.index(pages.severity)


def _incident(incident: Incident, pages: PageRules) -> Notice:
    details = {"incident": incident.id, "ticket": incident.ticket, "shared part": incident.scope.text}
    return Notice(
        topic="incident",
        action="open",
        subject=f"incident/{incident.id}",
        cause=incident.id,
        severity=Severity.critical,
        page=pages.incidents,
        summary=sentence(e.IncidentOpened(incident))[:TEXT_MAX],
        node=incident.scope.text,
        details={**details, "nodes": str(len(incident.members))},
    )


def _failed(condition: Condition, places: Mapping[str, tuple[Place, ...]], pages: PageRules) -> Iterator[Notice]:
    """A grave condition of a node that serves somebody."""
    place = _one(places, condition.node)
    if condition.severity < Severity.critical or not place.pool or condition.drill:
        return  # a drill is announced as such
    lost = pages.severity and condition.severity >= SEVERITIES.index(pages.severity)
    said = condition.evidence[-1].text[:EVIDENCE_MAX] if condition.evidence else ""
    on = f" on {condition.part}" if condition.part else ""
    yield Notice(
        topic="node_failed",
        action="open",
        subject=f"condition/{condition.id}",
        cause=condition.type,
        severity=condition.severity,
        page=bool(lost),
        summary=f"{condition.node}: {condition.type}{on}" + (f": {said}" if said else ""),
        told_tenant=f"{condition.node}: {condition.type} since {condition.since:%Y-%m-%d %H:%M:%S} UTC",
        node=condition.node,
        place=place,
        details={"condition": condition.type, **({"part": condition.part} if condition.part else {})},
        held=not lost,
    )


def _moved(event: e.NodeReleased | e.NodeAssigned, places: Mapping[str, tuple[Place, ...]]) -> Iterator[Notice]:
    place = _one(places, event.node)
    if not place.pool:
        return
    left = isinstance(event, e.NodeReleased)
    topic, verb = ("node_out", "left") if left else ("node_in", "joined")
    yield Notice(
        topic=topic,
        action="note",
        subject=f"node/{event.node}",
        cause=place.pool,
        severity=Severity.info,
        summary=f"{event.node} {verb} pool {place.pool}" + (f": {event.reason}" if event.reason else ""),
        told_tenant=f"{event.node} {verb} pool {place.pool}",
        node=event.node,
        place=place,
    )


def _is_planned(plan: Plan) -> bool:
    """Work on a serving node that waits for its customer's work: announced, not sudden."""
    return plan.disruptive and plan.act_class is ActClass.pending and bool(plan.pool) and not plan.drill


def _planned(plan: Plan, places: Mapping[str, tuple[Place, ...]]) -> Iterator[Notice]:
    place = _one(places, plan.node)
    what = plan.remedy or plan.name
    yield Notice(
        topic="maintenance",
        action="open",
        subject=f"plan/{plan.id}",
        cause=f"{what}:{plan.rule}:{plan.pool}",
        severity=Severity.info,
        summary=f"{plan.node}: {what} planned" + (f" for {plan.rule}" if plan.rule else ""),
        told_tenant=f"{plan.node}: {what} is planned and waits for work on it to end",
        node=plan.node,
        place=place,
        details={"plan": plan.id, "action": what},
        held=True,
    )


def _drilled(event: e.DrillBegan, places: Mapping[str, tuple[Place, ...]]) -> Notice:
    """A drill is announced as it begins, to its tenant too."""
    drill = event.drill
    return Notice(
        topic="maintenance",
        action="open",
        subject=f"drill/{drill.id}",
        cause=f"drill:{drill.id}",
        severity=Severity.info,
        summary=f"{event.node}: {sentence(event)}"[:TEXT_MAX],
        told_tenant=f"{event.node}: a drill of {drill.fault} runs until {drill.until:%Y-%m-%d %H:%M:%S} UTC at most",
        node=event.node,
        place=_one(places, event.node),
        details={"drill": drill.id, "fault": drill.fault.value},
    )


def _window(window: Window, places: Mapping[str, tuple[Place, ...]]) -> Iterator[Notice]:
    span = f"{window.starts:%Y-%m-%d %H:%M} to {window.ends:%Y-%m-%d %H:%M} UTC"
    where = "the whole cell" if window.scope == WHOLE_CELL else window.scope.text
    for place in places.get(window.scope.text) or (Place(),):
        own = f"pool {place.pool}" if place.pool else where
        yield Notice(
            topic="maintenance",
            action="open",
            subject=f"window/{window.id}",
            cause=window.id,
            severity=Severity.info,
            summary=f"maintenance of {where}, {span}: {window.reason}"[:TEXT_MAX],
            told_tenant=f"maintenance of {own}, {span}",
            place=place,
            details={"window": window.id, "starts": window.starts.isoformat(), "ends": window.ends.isoformat()},
        )


def _of_test(event: e.ManualTestOverdue | e.ManualTestSigned | e.ManualTestScheduled | e.FabricRemoved) -> Notice:
    """A test by hand is overdue, or no longer: signed, scheduled otherwise, gone with its network."""
    fabric = event.test.fabric if isinstance(event, e.ManualTestScheduled) else event.fabric
    subject, text = f"manual_test/{fabric}", sentence(event)[:TEXT_MAX]
    if not isinstance(event, e.ManualTestOverdue):
        return Notice("manual_test", "over", subject, summary=text)
    details = {"network": fabric, "owner": event.owner, "due": event.due.isoformat()}
    return Notice("manual_test", "open", subject, f"manual_test:{fabric}", summary=text, details=details)


def _approval(approval: Approval) -> Notice:
    return Notice(
        topic="approval",
        action="open",
        subject=f"approval/{approval.id}",
        cause=approval.id,
        summary=asked_for(approval)[:TEXT_MAX],
        details={"approval": approval.id, "nodes": str(approval.count)},
    )


def _one(places: Mapping[str, tuple[Place, ...]], node: str) -> Place:
    found = places.get(node, ())
    return found[0] if found else Place()
