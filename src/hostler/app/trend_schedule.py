"""Judges all readings a few times a day, while this controller decides, and hands the report to it.

A process of its own does it: neither the loop nor its interpreter loads NumPy or waits for it.
"""

import asyncio
from collections.abc import Callable

import msgspec
from msgspec import Struct

from hostler.app.child_process import SAID_MAX, run_module
from hostler.controller.inputs import TrendsSeen
from hostler.core.state.trends import TrendReport
from hostler.logs.structured import logger
from hostler.ports import JournalError
from hostler.runtime.runner import Cell
from hostler.server.trend_archive import TrendArchive

log = logger()

REPORT_BYTES_MAX = 16 * 1024 * 1024


class TrendSchedule(Struct, frozen=True):
    """When readings are written to files and judged. `journal`: a file or URL, for what came of earlier findings."""

    archive: TrendArchive
    cell: Cell
    journal: str
    flush_s: float = 300.0
    period_s: float = 6 * 3600.0

    async def run(self) -> None:
        """Until cancelled; what waits is written then. What fails is logged, and tried again in its time."""
        judged_s = 0.0
        try:
            while True:
                await asyncio.sleep(self.flush_s)
                judged_s -= self.flush_s
                await self._quietly(self.archive.store.flush)
                if judged_s <= 0:
                    await self.judge()
                    judged_s = self.period_s
        finally:
            await self._quietly(self.archive.store.flush)

    async def judge(self) -> None:
        """Judge now, and tell the controller."""
        share = self.cell.view.policy.trends.healthy_share_a_month
        words = ("trend", "judge", str(self.archive.store.folder), f"--budget={share}", "-o", "json")
        end = await run_module("hostler.cli.main", *words, journal=self.journal)
        if end.status:
            log.warning("readings_not_judged", reason=end.reason)
            return
        report = msgspec.json.decode(end.said[:REPORT_BYTES_MAX], type=TrendReport)
        await asyncio.to_thread(self.archive.read_scores)
        self.archive.report = report
        self.cell.tell(TrendsSeen(report))
        log.info("readings_judged", drifts=len(report.drifts), shifts=len(report.shifts), metrics=len(report.metrics))

    async def _quietly(self, work: Callable[[], object]) -> None:
        try:
            await asyncio.to_thread(work)
        except JournalError as error:
            log.warning("readings_not_written", reason=str(error)[:SAID_MAX])
