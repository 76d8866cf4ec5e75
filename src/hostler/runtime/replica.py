"""Keeps a fleet folded from the journal while another controller writes it, and knows how far behind it is."""

import asyncio
from collections.abc import Callable
from itertools import islice

from hostler.core.state import snapshot as snapshots
from hostler.core.state.events import Record
from hostler.core.state.events.row import FoldError
from hostler.core.state.fleet import Fleet
from hostler.core.state.fold import evolve
from hostler.core.state.formats import UnreadableFormatError, check
from hostler.ports import Journal, JournalError

PAGE = 1_000
"""Records read, and then folded, at a time; the loop's other work goes on in between."""

FOLDED_AT_ONCE = 1_000

TIMELY_S = 10.0
"""A record has been seen arriving where everything had been read so shortly before."""


class CannotFollowError(JournalError):
    """The next record does not fit into what this controller knows: it may neither fold it nor take over."""


def load(journal: Journal, reads: int) -> Fleet:
    """The fleet as the journal tells it: the last snapshot and the records after it.

    Raises UnreadableFormatError where it is written in a format beyond `reads`.
    """
    snapshot = journal.snapshot()
    fleet = snapshots.load(snapshot.body) if snapshot else Fleet()
    check(fleet.cell.format, reads)
    for number, record in enumerate(journal.records(snapshot.seq if snapshot else 0)):
        evolve(fleet, record)
        check(fleet.cell.format, reads)
        if number % FOLDED_AT_ONCE == 0:
            fleet.merge()
    fleet.merge()
    return fleet


class Follower:
    """The journal's fold, warm. `moment` gives seconds that also pass while the machine sleeps."""

    def __init__(self, journal: Journal, reads: int, moment: Callable[[], float]) -> None:
        self._journal = journal
        self._reads = reads
        self._moment = moment
        self._caught_up = moment()
        self._arrived: float | None = None
        self._last = 0
        self.keep(Fleet())

    def keep(self, fleet: Fleet) -> None:
        """Go on from this fleet, which is the fold of the journal up to its own last record."""
        self.fleet = fleet
        self.view = fleet.committed()
        self._arrived = None
        self.leads()

    async def load(self) -> None:
        """Begin anew from the last snapshot. Raises JournalError."""
        began = self._moment()
        try:
            self.keep(await asyncio.to_thread(load, self._journal, self._reads))
        except UnreadableFormatError as beyond:
            raise CannotFollowError(str(beyond)) from beyond
        except (FoldError, ValueError) as misfit:
            raise CannotFollowError(f"the journal cannot be folded: {misfit}") from misfit
        self._caught_up = began

    async def catch_up(self, told: Callable[[tuple[Record, ...]], None]) -> None:
        """Fold what the journal has gained, telling of each page, until there is nothing more. Raises JournalError."""
        while True:
            began = self._moment()
            self._last = await asyncio.to_thread(self._journal.latest_seq)
            page = await asyncio.to_thread(self._page, self.fleet.cell.seq)
            self._fold(page)
            if page:
                self._arrived = began if began - self._caught_up < TIMELY_S else None
            told(page)
            if len(page) < PAGE:
                self._caught_up = began
                return

    def leads(self) -> None:
        """Take the fleet as all there is: nobody else writes."""
        self._last = self.fleet.cell.seq
        self._caught_up = self._moment()

    def since_record_s(self) -> float | None:
        """How long ago the last record arrived, None where it was not seen arriving."""
        return None if self._arrived is None else self._moment() - self._arrived

    def behind(self) -> tuple[int, float]:
        """Records known to be missing, and seconds since nothing was."""
        return max(0, self._last - self.view.cell.seq), max(0.0, self._moment() - self._caught_up)

    def _page(self, after: int) -> tuple[Record, ...]:
        return tuple(islice(self._journal.records(after), PAGE))

    def _fold(self, page: tuple[Record, ...]) -> None:
        """Fold the page, or what comes before the record that does not fit."""
        for record in page:
            try:
                evolve(self.fleet, record)
                check(self.fleet.cell.format, self._reads)
            except UnreadableFormatError as beyond:
                self.fleet.drop()
                raise CannotFollowError(f"record {record.seq}: {beyond}") from beyond
            except (FoldError, KeyError) as misfit:
                self.fleet.drop()
                raise CannotFollowError(f"record {record.seq} ({type(record.event).__name__}): {misfit}") from misfit
            self.fleet.merge()
