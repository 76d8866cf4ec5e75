"""Removes expired data from the journal once a day, while this controller decides.

A process of its own does it: neither the loop nor its interpreter waits for it. Cut off, it goes on the next time.
"""

import asyncio
from pathlib import Path

from msgspec import Struct

from hostler.app.child_process import SAID_MAX, run_module
from hostler.logs.structured import logger

log = logger()


class Compacting(Struct, frozen=True):
    """Journal to compact (a file or a postgresql:// URL), folder of the archives, and interval.

    `first_s` after this controller has begun to decide, then every `period_s`. How long what is kept:
    `hostler journal compact`.
    """

    place: str
    archive: Path
    first_s: float = 300.0
    period_s: float = 86_400.0

    async def run(self) -> None:
        """Compact until cancelled. What fails is logged, and tried again when its time has come."""
        await asyncio.sleep(self.first_s)
        while True:
            await self.once()
            await asyncio.sleep(self.period_s)

    async def once(self) -> None:
        """Compact now."""
        words = ("journal", "compact", f"--archive={self.archive}")
        end = await run_module("hostler.cli.main", *words, journal=self.place)
        if end.status:
            log.error("journal_not_compacted", reason=end.reason)
        else:
            log.info("journal_compacted", text=end.said.decode(errors="replace")[:SAID_MAX])
