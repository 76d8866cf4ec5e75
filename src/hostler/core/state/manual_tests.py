"""Tests of a network that people run by hand: a schedule with an owner and a checklist, and runs with their results."""

from datetime import datetime

from msgspec import Struct

RUNS_KEPT = 12
"""Runs that are kept beside the schedule, three months of weekly ones; the journal holds all."""


class ManualRun(Struct, frozen=True):
    """One run. `results` are metrics with their values, `irregular` says which are not as in earlier runs.

    `signed`: when a person took it as done; None: nobody has yet.
    """

    entered: datetime
    person: str
    results: tuple[tuple[str, float], ...]
    notes: str = ""
    irregular: tuple[str, ...] = ()
    signed: datetime | None = None
    signed_by: str = ""


class ManualTest(Struct, frozen=True):
    """A network's test by hand: who sees to it, every how many days, what is to be done, and its last runs."""

    fabric: str
    owner: str
    every_days: float
    checklist: tuple[str, ...]
    since: datetime
    runs: tuple[ManualRun, ...] = ()

    @property
    def last_signed(self) -> datetime | None:
        """When a run was signed off last, None where none was."""
        return max((run.signed for run in self.runs if run.signed is not None), default=None)
