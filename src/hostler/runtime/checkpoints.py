"""Takes a snapshot of the fleet every so many records, and says it where the last one is older than it should be."""

import asyncio
import time

import msgspec

from hostler.core.state.snapshot import State, dump
from hostler.logs.structured import logger
from hostler.ports import Journal, JournalError, Snapshot

log = logger()

EVERY = 20_000
"""Records from one snapshot to the next; one that fails is tried again after as many."""
LATE = 2 * EVERY
"""Records behind a snapshot after which the next one is missing, whoever was to take it."""
PAUSE_S = 0.001
"""A snapshot's rest after each piece. Without it the event loop would wait for the interpreter at every system call."""

_UNENCODABLE = (msgspec.MsgspecError, OverflowError, TypeError, ValueError, RecursionError, MemoryError)
"""Exceptions of encoding a value that no snapshot can hold: a bug, or a bound that is missing at the edge."""


class Checkpoints:
    """A journal's snapshots as one controller knows them, in all its terms: the newest's record, and what failed.

    `failed` counts the snapshots that this process could not take.
    """

    def __init__(self, journal: Journal) -> None:
        self.failed = 0
        self._journal = journal
        self._newest: int | None = None
        self._tried = 0
        self._why = ""

    async def look(self) -> None:
        """Read at which record the newest snapshot was taken, by whomever. Raises JournalError."""
        self._newest = await asyncio.to_thread(self._journal.snapshot_seq)
        if self._newest >= self._tried:
            self._why = ""

    def age(self, seq: int) -> int:
        """Records up to `seq` behind the newest snapshot; 0 before it was looked for."""
        return 0 if self._newest is None else max(0, seq - self._newest)

    def due(self, seq: int) -> bool:
        """Whether one is to be taken at record `seq`."""
        return self._newest is not None and seq - max(self._newest, self._tried) >= EVERY

    def fault(self, seq: int) -> str:
        """Why a start would have to read far more of the journal than it should, "" where it would not."""
        age = self.age(seq)
        if not self._why and age < LATE:
            return ""
        since = f"the last of record {self._newest}" if self._newest else "none was ever taken"
        why = self._why or "the active controller has taken none; see its log"
        return f"no snapshot for {age} records ({since}): {why}"

    def begun(self, seq: int) -> None:
        """Note that a snapshot is being taken at this record; no other is until as many records later."""
        self._tried = seq

    async def take(self, state: State, digest: str) -> None:
        """Take one of this state. Where that fails it is counted, logged and told by `fault`, never raised."""
        seq = state.cell.seq
        try:
            body = await asyncio.to_thread(dump, state, lambda: time.sleep(PAUSE_S))
            await asyncio.to_thread(self._journal.save_snapshot, Snapshot(seq, digest, body))
        except JournalError as broken:
            self._failed(str(broken))
        except _UNENCODABLE as unencodable:
            self._failed(f"the fleet cannot be written: {type(unencodable).__name__}: {unencodable}"[:300])
        else:
            self._newest, self._why = seq, ""

    def _failed(self, why: str) -> None:
        self.failed += 1
        self._why = why
        log.warning("snapshot_failed", reason=why)
