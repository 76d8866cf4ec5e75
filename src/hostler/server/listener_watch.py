"""Looks at listeners each second: says when no file is left to open, and when connections are turned away.

An accept that finds no free file tells nobody: libuv closes the connection and goes on. So it is tried here.
"""

import asyncio
import os
import time
from collections.abc import Sequence

from hostler.logs.structured import logger
from hostler.server.connection_limits import NO_ROOM, ConnectionTable
from hostler.server.open_file_limits import OUT_OF_FILES

log = logger()

EVERY_S = 1.0
TOLD_S = 60.0
"""A line for each listener at most so often, and one for files."""


class OpenFiles:
    """Whether this process could open a file. `exhausted` counts the looks at which it could not."""

    def __init__(self) -> None:
        self.exhausted = 0

    def look(self) -> bool:
        """Try to open one; says whether that was possible."""
        try:
            os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            if error.errno not in OUT_OF_FILES:
                raise
            self.exhausted += 1
            return False
        return True


async def watch_listeners(tables: Sequence[ConnectionTable], files: OpenFiles, every_s: float = EVERY_S) -> None:
    """Look until cancelled: at files, at who was turned away, and at answers that have not left."""
    told_files = -TOLD_S
    told = {table.listener: (0, -TOLD_S) for table in tables}
    while True:
        await asyncio.sleep(every_s)
        now = time.monotonic()
        if not files.look() and now - told_files >= TOLD_S:
            told_files = now
            log.error(
                "open_files_exhausted", instead="raise LimitNOFILE (ulimit -n); nothing new is accepted meanwhile"
            )
        for table in tables:
            table.watch_unread()
            number, at = told[table.listener]
            refused = table.ended[NO_ROOM]
            if refused > number and now - at >= TOLD_S:
                told[table.listener] = (refused, now)
                log.warning(
                    "connections_refused",
                    listener=table.listener,
                    number=refused - number,
                    open=table.strangers + table.known,
                    most=table.limits.total,
                    most_of_an_address=table.limits.strangers,
                )
