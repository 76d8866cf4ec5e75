"""Audit trail: acts are written before they are answered; what is refused is counted by the minute and bounded.

Anybody may send any number of requests: alike refusals of a minute are one entry, and of those that differ each sender
has an allowance (`audit_folding`), for acts too. What is beyond it is one line of that sender an hour, and hides no
other's.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime

from msgspec import Struct

from hostler.journal.audit_log import AuditEntry, SqlAuditLog
from hostler.logs.structured import logger
from hostler.ports import JournalError
from hostler.server.audit_folding import AuditFolds, beginnings

log = logger()

FOLD_S = 60.0
"""How long alike refusals are counted before they are written; what a process that is killed has counted is lost."""
REST_FOLDS = 60
"""For so many folds what is beyond a sender's allowance is counted before it is written."""
WRITE_S = 5.0
"""How long an answer waits for its entry; the act is done by then, and in the journal."""
PENDING_MOST, PENDING_EACH = 10_000, 1_000
"""Acts that wait to be written while the database does not take them: all, and those under one token."""


class RequestNote(Struct):
    """Facts that the handler of a request adds: a verb, its target, who came to be recognised.

    `refused`: the status of a refusal that a browser is told by the page it is led to, 0 where the answer says it.
    """

    verb: str = ""
    target: str = ""
    intent: str = ""
    dry_run: bool = False
    waits: bool = False
    person: str = ""
    role: str = ""
    token: str = ""
    refused: int = 0


NOTE: ContextVar[RequestNote | None] = ContextVar("audit_note", default=None)


def note() -> RequestNote:
    """The note of the request that is answered now; outside one, a note that nobody reads."""
    return NOTE.get() or RequestNote()


class AuditTrail:
    """Writer of this controller's entries in the audit log. `unwritten`: those that the database did not take."""

    def __init__(self, written: SqlAuditLog, controller: str, clock: Callable[[], datetime]) -> None:
        self.written = written
        self.controller = controller
        self.clock = clock
        self.unwritten = 0
        self._pending: list[tuple[AuditEntry, asyncio.Future[None]]] = []
        self._moved = asyncio.Event()
        self._folds = AuditFolds()
        self._waiting: Counter[str] = Counter()

    async def act(self, entry: AuditEntry) -> None:
        """Write the entry; returns when it is on the disk, or after WRITE_S, which is logged.

        Acts beyond a token's allowance are counted in one line an hour: the journal has each under its intent.
        """
        if not self._folds.admit(entry):
            return
        if len(self._pending) >= PENDING_MOST or self._waiting[entry.token] >= PENDING_EACH:
            self._lose([entry], "too many wait to be written")
            return
        done = asyncio.get_running_loop().create_future()
        self._pending.append((entry, done))
        self._waiting[entry.token] += 1
        self._moved.set()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(done, WRITE_S)

    def refusal(self, entry: AuditEntry) -> None:
        """Count the entry with those that are like it; it is written within twice FOLD_S, or with its sender's rest."""
        self._folds.add(entry)

    async def run(self) -> None:
        """Write what comes, until cancelled; what was counted by then is written still."""
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._moved.wait(), FOLD_S)
                self._moved.clear()
                await self._write()
        finally:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(self._write(everything=True))

    async def _write(self, everything: bool = False) -> None:
        pending, self._pending = self._pending, []
        self._waiting.clear()
        now = self.clock()
        ripe = self._folds.take(*(beginnings(now, FOLD_S, REST_FOLDS) if not everything else (_END, _END)))
        entries = [*(entry for entry, _ in pending), *ripe]
        if entries:
            try:
                await asyncio.to_thread(self.written.append, entries, now)
            except (JournalError, OSError) as error:
                self._lose(entries, str(error))
        for _, done in pending:
            if not done.done():
                done.set_result(None)

    def _lose(self, entries: list[AuditEntry], why: str) -> None:
        """Tell in the log what the database does not take."""
        self.unwritten += len(entries)
        for one in entries[:20]:
            log.error("audit_not_written", person=one.person, verb=one.verb, target=one.target, reason=why[:200])


_END = datetime.max.replace(tzinfo=UTC)
