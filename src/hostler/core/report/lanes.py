"""A node's life as intervals in lanes, from its records: phases, pools, conditions, plans, operations, tickets, holds.

Pure, and content with part of a history: what began before its first record is shown from there on, what had not ended
at the last one of an earlier part up to there; both as `partial`.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.diagnose.firmware import FIRMWARE_PREFIX
from hostler.core.state import events as e
from hostler.core.state.lane_names import LaneName
from hostler.core.state.model import Waiting
from hostler.core.state.operations import FIRMWARE_LOOKS

LANES = get_args(LaneName)
"""Lanes in the order in which they are drawn. A check, a part and a person's request are moments, not spans."""


class LaneSpan(Struct, frozen=True):
    """One span or moment of a node's life. `until` None: it lasts; of a moment it equals `since`.

    `lane` is one of LANES, `what` its name there ("production", "gpu.ecc_dbe"), `on` the part where it has one. Of
    firmware it is the version of a component (`on`), from the moment at which it is seen in another's place.
    `state` is the severity of a condition, the result of a plan, operation or check, and "" otherwise. `seq` is the
    record that began it, of a partial one the record that ended it.
    """

    lane: str
    what: str
    since: datetime
    until: datetime | None
    seq: int
    on: str = ""
    state: str = ""
    text: str = ""
    partial: bool = False


class Lanes(Struct, frozen=True):
    """Intervals in the order in which they began. `since` is the first record's time, None without records.

    `until` is the last record's of an earlier part, None of what lasts until now. `first` is the first record: where
    they are `partial`, an earlier part is before it. `lanes` are LANES.
    """

    node: str
    since: datetime | None
    intervals: tuple[LaneSpan, ...]
    partial: bool = False
    until: datetime | None = None
    first: int = 0
    lanes: tuple[str, ...] = LANES


def lanes(node: str, records: Sequence[e.Record], *, earlier: bool = False) -> Lanes:
    """The lanes of one node from records about it, in any order. `earlier`: they are not the latest ones about it."""
    ordered = sorted(records, key=lambda r: r.seq)
    if not ordered:
        return Lanes(node, None, ())
    reading = _Reading(node, ordered[0].at)
    for record in ordered:
        reading.take(record)
    until = ordered[-1].at if earlier else None
    lasting = (replace(one, until=until, partial=earlier) for one in reading.open.values())
    found = sorted((*reading.ended, *lasting), key=lambda i: (i.since, i.seq))
    whole = isinstance(ordered[0].event, e.NodeRegistered)
    return Lanes(node, ordered[0].at, tuple(found), not whole, until, ordered[0].seq)


LANE_EVENTS: tuple[type[Struct], ...] = (
    *(e.NodeRegistered, e.PhaseChanged, e.NodeAssigned, e.NodeReleased),
    *(e.ConditionRaised, e.ConditionUpdated, e.ConditionCleared),
    *(e.PlanRecorded, e.PlanEnded, e.WaitingChanged, e.OperationStarted, e.OperationFinished),
    *(e.TicketOpened, e.TicketUpdated, e.TicketClosed, e.HoldPlaced, e.HoldReleased),
    *(e.CheckRecorded, e.PartMoved, e.IntentRecorded, e.InventorySeen),
)
"""Records that lanes are made of: who reads all of these of a node needs no others."""


class _Reading:
    """Intervals while the records are read: those that last, by lane and name, and those that have ended."""

    def __init__(self, node: str, first: datetime) -> None:
        self._node = node
        self._first = first
        self.open: dict[tuple[str, str], LaneSpan] = {}
        self.ended: list[LaneSpan] = []
        self._versions: dict[str, str] = {}

    def take(self, record: e.Record) -> None:
        """Read one record; one that is no part of any lane changes nothing."""
        self._place(record)
        self._work(record)
        self._beside(record)
        for component, version in _listed(record.event):
            self._runs(record, component, version)

    def _runs(self, record: e.Record, component: str, version: str) -> None:
        """Read which version a component runs; the first sight of it is no change."""
        before = self._versions.get(component, version)
        self._versions[component] = version
        if before != version:
            self._end(record, "firmware", component, "")
            self._begin(record, "firmware", component, version, on=component, text=f"{before} before")

    def _place(self, record: e.Record) -> None:
        """Read where the node stands and what ails it."""
        match record.event:
            case e.NodeRegistered(node=node):
                self._begin(record, "phase", "", node.phase)
            case e.PhaseChanged(before=before, after=after, reason=reason):
                self._end(record, "phase", "", "", before)
                self._end(record, "wait", "", "")
                self._begin(record, "phase", "", after, text=reason)
            case e.NodeAssigned(assignment=serves):
                self._begin(record, "pool", "", serves.pool, text=serves.tenant)
            case e.NodeReleased(reason=reason):
                self._end(record, "pool", "", reason)
            case e.ConditionRaised(condition=one) | e.ConditionUpdated(condition=one):
                self._begin(record, "condition", one.id, one.type, on=one.part, state=one.severity.name)
            case e.ConditionCleared(condition=name, reason=reason):
                self._end(record, "condition", name, "", name.partition("/")[2], text=reason)
            case _:
                pass

    def _work(self, record: e.Record) -> None:
        """Read what is done about it."""
        match record.event:
            case e.PlanRecorded(plan=plan):
                self._begin(record, "plan", plan.id, plan.name)
            case e.PlanEnded(plan=name, result=result, reason=reason):
                self._end(record, "plan", name, result, name, text=reason)
            case e.WaitingChanged(waiting=waiting):
                self._waits(record, waiting)
            case e.OperationStarted(operation=operation):
                self._begin(record, "operation", operation.id, operation.kind)
            case e.OperationFinished(operation=name, kind=kind, result=result, detail=detail):
                self._end(record, "operation", name, result, kind, text=detail)
            case _:
                pass

    def _waits(self, record: e.Record, waiting: Waiting | None) -> None:
        """Read what it waits for now: a changed reason is a span of its own."""
        self._end(record, "wait", "", "")
        if waiting is not None:
            first = waiting.blockers[0].kind if waiting.blockers else ""
            self._begin(record, "wait", "", waiting.what, state=first, text="; ".join(b.text for b in waiting.blockers))

    def _beside(self, record: e.Record) -> None:
        """Read what people do, and moments."""
        match record.event:
            case e.TicketOpened(ticket=ticket) | e.TicketUpdated(ticket=ticket):
                self._begin(record, "ticket", ticket.id, ticket.kind, text=ticket.summary)
            case e.TicketClosed(ticket=name, resolution=text):
                self._end(record, "ticket", name, "", name, text=text)
            case e.HoldPlaced(hold=hold):
                self._begin(record, "hold", hold.id, hold.kind, text=f"{hold.owner}: {hold.reason}")
            case e.HoldReleased(hold=name, reason=text):
                self._end(record, "hold", name, "", name, text=text)
            case e.CheckRecorded(check=check):
                self._moment(record, "check", check.profile, check.verdict, check.detail)
            case e.PartMoved(serial=serial, after=after):
                self._moment(record, "part", serial, "in" if after == self._node else "out", "")
            case e.IntentRecorded(intent=intent, granted=granted, answer=answer):
                text = f"{intent.person}: {intent.reason}"
                self._moment(record, "person", intent.verb, "" if granted else "refused", text or answer)
            case _:
                pass

    def _begin(  # noqa: PLR0913 - one argument per field
        self, record: e.Record, lane: str, name: str, what: str, *, on: str = "", state: str = "", text: str = ""
    ) -> None:
        known = self.open.get((lane, name))
        if known is not None and known.what == what:
            self.open[lane, name] = replace(known, on=on, state=_graver(known.state, state), text=text or known.text)
        else:
            self.open[lane, name] = LaneSpan(lane, what, record.at, None, record.seq, on, state, text)

    def _end(  # noqa: PLR0913 - one argument per field
        self, record: e.Record, lane: str, name: str, state: str, what: str = "", text: str = ""
    ) -> None:
        known = self.open.pop((lane, name), None)
        if known is None:
            if not what:
                return
            known = LaneSpan(lane, what, self._first, None, record.seq, partial=True)
        ended = replace(known, until=record.at, state=state or known.state, text=text or known.text)
        self.ended.append(ended)

    def _moment(self, record: e.Record, lane: str, what: str, state: str, text: str) -> None:
        self.ended.append(LaneSpan(lane, what, record.at, record.at, record.seq, "", state, text))


def _listed(event: e.Event) -> Iterator[tuple[str, str]]:
    """Components and their versions, where the event tells them: an inventory, or a look after a firmware update."""
    match event:
        case e.InventorySeen(firmware=firmware):
            yield from firmware
        case e.OperationFinished(kind="collect_inventory", result="done", facts=facts):
            for name, version in facts.items():
                if name.startswith(FIRMWARE_PREFIX) and version:
                    yield name.removeprefix(FIRMWARE_PREFIX), str(version)
        case e.OperationFinished(kind=kind, result="done" | "failed", facts=facts) if kind in FIRMWARE_LOOKS:
            yield from ((name, str(version)) for name, version in facts.items() if version)
        case _:
            pass


_SEVERITIES = ("", "info", "warning", "degraded", "critical", "catastrophic")


def _graver(known: str, fresh: str) -> str:
    """The gravest that a condition has been; of everything else what it is now."""
    return max(known, fresh, key=_SEVERITIES.index) if known in _SEVERITIES and fresh in _SEVERITIES else fresh
