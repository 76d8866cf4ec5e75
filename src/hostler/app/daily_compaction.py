"""Removes expired data from the journal once a day, while this controller decides.

A process of its own does it: neither the loop nor its interpreter waits for it. Cut off, it goes on the next time.
"""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

from msgspec import Struct

from hostler.logs.structured import logger

log = logger()

SAID_MAX = 500


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
        """Compact now. The journal's address stands in the environment, where a list of processes does not show it."""
        words = (sys.executable, "-m", "hostler.cli.main", "journal", "compact", f"--archive={self.archive}")
        environment = {**os.environ, "HOSTLER_JOURNAL": self.place}
        child = await asyncio.create_subprocess_exec(*words, env=environment, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
        try:
            said, wrong = await child.communicate()
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        if child.returncode:
            log.error("journal_not_compacted", reason=wrong.decode(errors="replace")[-SAID_MAX:])
        else:
            log.info("journal_compacted", text=said.decode(errors="replace")[:SAID_MAX])
