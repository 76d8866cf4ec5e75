"""The clock of a drill, read from the records of its node: when its fault was injected, seen, and answered. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state import drills
from hostler.core.state import events as e
from hostler.core.state.drills import Drill
from hostler.core.state.events import Record
from hostler.core.state.model import Plan

STAGES = ("injected", "seen", "cordoned", "drained", "filled", "returned")
"""The moments of a clock, in the order in which they mostly come."""


class DrillClock(Struct, frozen=True):
    """One drill with its moments; None: that did not happen, or not yet.

    `injected`: the fault was shown. `seen`: its condition was raised. `cordoned`, `drained`: as the scheduler told.
    `filled`: another node (`place`) served in its place in the pool. `returned`: it was open to work again. `remedies`
    are the plans that were laid down for it. `result` is returned, seen, unseen, ended, timed_out or failed, "" while
    it runs.
    """

    id: str
    node: str
    fault: str
    condition: str
    by: str
    why: str
    since: datetime
    until: datetime
    remedy: bool
    injected: datetime | None = None
    seen: datetime | None = None
    cordoned: datetime | None = None
    drained: datetime | None = None
    filled: datetime | None = None
    returned: datetime | None = None
    ended: datetime | None = None
    result: str = ""
    detail: str = ""
    ended_by: str = ""
    place: str = ""
    remedies: tuple[str, ...] = ()


DRILL_EVENTS: tuple[type[Struct], ...] = (
    *(e.DrillBegan, e.DrillSighted, e.DrillPlaceFilled, e.DrillEnded),
    *(e.PlanRecorded, e.PlanAdvanced, e.OperationFinished),
)
"""Records that clocks are read from."""


def clocks(node: str, records: Iterable[Record]) -> tuple[DrillClock, ...]:
    """The drills of the node, the latest first; `records` are its own, in any order."""
    found: list[DrillClock] = []
    plan: Plan | None = None
    for record in sorted(records, key=lambda one: one.seq):
        event = record.event
        if isinstance(event, e.DrillBegan):
            found.append(_begun(node, event.drill))
        elif found:
            plan = event.plan if isinstance(event, e.PlanRecorded) else plan
            found[-1] = _told(found[-1], record, plan)
    return tuple(reversed(found))


def filled_by(clock: DrillClock, records: Sequence[Record]) -> DrillClock:
    """The clock with the moment in which its place was filled; `records` are those of the node that fills it."""
    at = clock.filled
    delivered = (
        record.at
        for record in sorted(records, key=lambda one: one.seq)
        if at is not None
        and record.at >= at
        and isinstance(record.event, e.OperationFinished)
        and (record.event.kind, record.event.result) == ("uncordon", "done")
    )
    return replace(clock, filled=next(delivered, None)) if at is not None else clock


def _begun(node: str, drill: Drill) -> DrillClock:
    told = (drill.id, node, drill.fault.value, drill.condition, drill.by, drill.why, drill.since, drill.until)
    return DrillClock(*told, drill.remedy, injected=drill.injected_at)


def _told(clock: DrillClock, record: Record, plan: Plan | None) -> DrillClock:
    """The clock after one more record; once the drill is over only the node's return is still to come."""
    event, at = record.event, record.at
    if clock.ended is not None and (clock.cordoned is None or clock.returned is not None):
        return clock
    match event:
        case e.OperationFinished(kind=kind, result="done"):
            return _acted(clock, kind, at)
        case e.DrillSighted():
            return replace(clock, seen=at)
        case e.PlanRecorded(plan=laid) if laid.drill == clock.id and clock.ended is None:
            return replace(clock, remedies=(*clock.remedies, laid.remedy or laid.name))
        case e.PlanAdvanced(index=index) if clock.drained is None and _has_drained(plan, index):
            return replace(clock, drained=at)
        case e.DrillPlaceFilled(by=by):
            return replace(clock, filled=at, place=by)
        case e.DrillEnded():
            said = {"ended": at, "result": event.result, "detail": event.reason, "ended_by": event.person}
            back = at if event.result == "returned" and clock.returned is None else clock.returned
            return replace(clock, **said, returned=back)
        case _:
            return clock


def _acted(clock: DrillClock, kind: str, at: datetime) -> DrillClock:
    if kind == drills.INJECT and clock.injected is None:
        return replace(clock, injected=at)
    if kind == "cordon" and clock.cordoned is None and clock.ended is None:
        return replace(clock, cordoned=at)
    if kind == "uncordon" and clock.cordoned is not None:
        return replace(clock, returned=at)
    return clock


def _has_drained(plan: Plan | None, index: int) -> bool:
    """Whether this step boundary lies behind the plan's drain."""
    steps = plan.steps[:index] if plan is not None and plan.drill else ()
    return any(step.operation == "drain" for step in steps)
