"""The story of a rack's bring-up: each step of its recipe with when it stood, from the rack's records."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from hostler.core.state import events as e
from hostler.core.state.events import Record
from hostler.core.state.rack_runs import Rack, RackRun, RackStep
from hostler.core.tables.rack_recipe import RACK_STEPS

STEP_EVENTS = (e.RackRunBegan, e.RackStepDone)
"""Events that tell of steps: who reads all of these of a rack needs no others."""


class StepState(StrEnum):
    """Standing of a step: its bring-up has passed it, is at it, has ended at it, or has not come to it."""

    done = "done"
    at = "at"
    failed = "failed"
    called_off = "called_off"
    to_come = "to_come"


class RackStepRow(Struct, frozen=True):
    """One step of the last bring-up, or of the next one. `deadline` of the step that it is at; `writes` firmware of."""

    name: str
    state: StepState
    since: datetime | None
    until: datetime | None
    deadline: datetime | None
    ends_when: str
    writes: str = ""


def steps_of(rack: Rack, records: Iterable[Record]) -> tuple[RackStepRow, ...]:
    """Steps of the rack's bring-up: of the one under way, else of the last one, else as the recipe has them."""
    told = sorted(records, key=lambda record: record.seq)
    run = rack.run or _last(rack, told)
    if run is None:
        return tuple(_row(step, StepState.to_come) for step in RACK_STEPS)
    ends = {r.event.step: r.at for r in told if isinstance(r.event, e.RackStepDone) and r.event.run == run.id}
    return tuple(_rows(rack, run, ends))


def _last(rack: Rack, records: list[Record]) -> RackRun | None:
    """The bring-up that ended last, where its beginning is among the records."""
    begun = {r.event.run.id: r.event.run for r in records if isinstance(r.event, e.RackRunBegan)}
    return begun.get(rack.ended.run) if rack.ended is not None else None


def _rows(rack: Rack, run: RackRun, ends: dict[str, datetime]) -> Iterable[RackStepRow]:
    index = run.index if rack.run is not None else _reached(run, ends)
    since: datetime | None = run.began
    for place, step in enumerate(run.steps):
        until = ends.get(step.name)
        if place < index:
            yield _row(step, StepState.done, since, until)
        elif place > index:
            yield _row(step, StepState.to_come)
        elif rack.run is not None:
            due = run.since + timedelta(seconds=step.deadline_s)
            yield _row(step, StepState.at, run.since, deadline=due)
        else:
            assert rack.ended is not None, "a run that is not under way has ended"
            state = StepState.called_off if rack.ended.result == "called_off" else StepState.failed
            yield _row(step, state, since, rack.ended.at)
        since = until


def _reached(run: RackRun, ends: dict[str, datetime]) -> int:
    """How many steps stood, as the last of them that is recorded says."""
    return max((place + 1 for place, step in enumerate(run.steps) if step.name in ends), default=0)


def _row(
    step: RackStep,
    state: StepState,
    since: datetime | None = None,
    until: datetime | None = None,
    deadline: datetime | None = None,
) -> RackStepRow:
    writes = step.writes.value if step.writes is not None else ""
    return RackStepRow(step.name, state, since, until, deadline, step.ends_when, writes)
