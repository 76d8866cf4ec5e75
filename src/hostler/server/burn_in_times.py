"""Burn-ins of a cell and how long each took, read from the journal: a few questions for each, kept once answered."""

import asyncio
from datetime import datetime, timedelta

from hostler.core.report import burn_ins
from hostler.core.report.burn_ins import BurnInStanding, EndedBurnIn, EndedCheck
from hostler.core.state.events import OperationFinished, OperationStarted
from hostler.core.state.model import Node
from hostler.journal.named_records import each_record, record_names
from hostler.ports import RecordWindow
from hostler.server.cell_view import CellView, JournalView

COHORT_DAYS, COHORT_S, SLICE = 90, 60.0, 2_000
"""Days of burn-ins that make a cohort; seconds for which a cohort is not looked up again; nodes looked at in one go."""
STARTS, RUNS = record_names(OperationStarted), record_names(OperationStarted, OperationFinished)
LOOKED = 50
"""Records of a node's operations that are asked for at first: most burn-ins are among them."""
WRITTEN_S = 2.0
"""A verdict and the end of its operation are written within this time."""
KEPT_MOST, SKUS_MOST = 5_000, 256


class BurnInTimes:
    """Times of burn-ins. An ended one is read once; its answer never changes."""

    def __init__(self, cell: CellView) -> None:
        self._cell = cell
        self._took: dict[EndedCheck, float | None] = {}
        self._cohorts: dict[str, tuple[datetime, tuple[EndedBurnIn, ...]]] = {}

    async def standing(self, node: Node, now: datetime) -> BurnInStanding | None:
        """The node's burn-in beside its cohort; None where none is under way."""
        operation = burn_ins.running(node)
        if operation is None:
            return None
        since = operation.started
        if operation.attempt > 1:
            wanted = RecordWindow(subject=node.id, names=STARTS)
            first: datetime | None = await asyncio.to_thread(_first_start, self._cell.journal, wanted, operation.id)
            since = first if first is not None else since
        return burn_ins.standing(node, since, now, await self._cohort(node.sku, now))

    async def _cohort(self, sku: str, now: datetime) -> tuple[EndedBurnIn, ...]:
        asked, found = self._cohorts.get(sku, (None, ()))
        if asked is not None and timedelta() <= now - asked < timedelta(seconds=COHORT_S):
            return found
        found = await asyncio.to_thread(self._read, await self._ended(sku, now - timedelta(days=COHORT_DAYS)))
        while len(self._cohorts) >= SKUS_MOST:
            del self._cohorts[next(iter(self._cohorts))]
        self._cohorts[sku] = (now, found)
        return found

    async def _ended(self, sku: str, since: datetime) -> list[EndedCheck]:
        """The last burn-ins of the SKU. The loop has its turns: 100,000 nodes take a tenth of a second."""
        names = list(self._cell.view.nodes)
        found: list[EndedCheck] = []
        for at in range(0, len(names), SLICE):
            nodes = self._cell.view.nodes
            some = (node for name in names[at : at + SLICE] if (node := nodes.get(name)) is not None)
            found = burn_ins.latest([*found, *burn_ins.last_verdicts(some, sku, since)])
            await asyncio.sleep(0)
        return found

    def _read(self, ended: list[EndedCheck]) -> tuple[EndedBurnIn, ...]:
        """Read those of which the journal still holds begin and end."""
        for one in ended:
            if one not in self._took:
                while len(self._took) >= KEPT_MOST:
                    self._took.pop(next(iter(self._took)), None)
                self._took[one] = took_s(self._cell.journal, one[0], one[2])
        times = ((one, self._took[one]) for one in ended)
        return tuple(EndedBurnIn(one[0], one[1], seconds) for one, seconds in times if seconds is not None)


def took_s(journal: JournalView, node: str, ended: datetime) -> float | None:
    """Seconds from the first start of the burn-in whose verdict came then; None where the journal has it no more."""
    beyond = journal.first_since(ended + timedelta(seconds=WRITTEN_S))
    until = RecordWindow(before=beyond or None, subject=node, names=RUNS)
    operation = burn_ins.operation_that_ended(each_record(journal, until, LOOKED))
    begun = _first_start(journal, until, operation) if operation else None
    return (ended - begun).total_seconds() if begun is not None else None


def _first_start(journal: JournalView, wanted: RecordWindow, operation: str) -> datetime | None:
    return burn_ins.first_start(each_record(journal, wanted, LOOKED), operation)
