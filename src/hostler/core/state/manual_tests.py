"""Tests of a network that people run by hand: a schedule with an owner, and runs with their results."""

from datetime import datetime, timedelta

from msgspec import Struct

from hostler.core.state.attached_files import AttachedFile

RUNS_KEPT = 12
"""Runs that are kept beside the schedule, three months of weekly ones; the journal holds all."""


class ChecklistTick(Struct, frozen=True):
    """A step of the checklist, counted from 1, that a person did, or says why not."""

    step: int
    at: datetime
    person: str
    note: str = ""


class ManualRun(Struct, frozen=True):
    """One run. `results` are metrics with their values, `irregular` says which are not as in earlier runs.

    `signed`: when a person took it as done; None: nobody has yet. `ticks` and `files` are those of the time since the
    run that was signed before; they are the run's from then on.
    """

    entered: datetime
    person: str
    results: tuple[tuple[str, float], ...]
    notes: str = ""
    irregular: tuple[str, ...] = ()
    signed: datetime | None = None
    signed_by: str = ""
    ticks: tuple[ChecklistTick, ...] = ()
    files: tuple[AttachedFile, ...] = ()


class ManualTest(Struct, frozen=True):
    """A network's test by hand: who sees to it, every how many days, what is to be done, and its last runs.

    `ticks` and `files` are those of the run that is under way. `told`: the moment it was due at when it was told last
    that it is overdue.
    """

    fabric: str
    owner: str
    every_days: float
    checklist: tuple[str, ...]
    since: datetime
    runs: tuple[ManualRun, ...] = ()
    ticks: tuple[ChecklistTick, ...] = ()
    files: tuple[AttachedFile, ...] = ()
    told: datetime | None = None

    @property
    def last_signed(self) -> datetime | None:
        """When a run was signed off last, None where none was."""
        return max((run.signed for run in self.runs if run.signed is not None), default=None)

    @property
    def due(self) -> datetime:
        """When the next signed run is due."""
        return (self.last_signed or self.since) + timedelta(days=self.every_days)

    @property
    def untold(self) -> bool:
        """Whether nobody has been told yet that the run due at `due` is overdue, once it is."""
        return self.told != self.due

    @property
    def unticked(self) -> tuple[int, ...]:
        """Steps of the checklist, counted from 1, that nobody has ticked since the last run was signed off."""
        done = {tick.step for tick in self.ticks}
        return tuple(step for step in range(1, len(self.checklist) + 1) if step not in done)
