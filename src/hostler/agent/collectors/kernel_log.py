"""The kernel log, from /dev/kmsg to the spool: nothing counted twice, nothing lost unsaid, whatever dies when.

`Intake` decides without I/O; `KernelLogReader` reads the device and commits what the intake made of it. What is seen
and how far was read become durable together, so a crash between the two cannot happen.
"""

import os
import select
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hostler.agent.collectors import kmsg, line_dedup
from hostler.agent.collectors.line_priority import KERNEL, rank
from hostler.agent.local_observation import LocalObservation, agent_event, collector_started
from hostler.core.diagnose.kernel_log import decode
from hostler.core.diagnose.line_filter import passes
from hostler.core.state.model import Facts

WINDOW_S = 2.0
"""Time for which repeats are counted before the count is sent."""
MAX_WINDOW_S = 16.0
"""Longest window: it doubles while repeats keep coming."""
READ_BYTES = 16_384
"""A record is at most 8 KiB; a shorter buffer would make the kernel answer EINVAL."""
REST_BYTES = 262_144
"""Bytes of an unfinished record that are kept between two reads."""
BATCH_RECORDS = 512
"""Records taken before what they gave is committed."""
POSITION_INTERVAL_S = 30.0
"""Interval at which the position is saved while only uninteresting lines pass."""
FINDINGS_NAMED, FINDING_CHARS = 4, 200
"""Findings named with a line, and characters of each."""
CURSOR = "kernel_log"


class LogPosition(Struct, frozen=True):
    """Progress in the log of one boot: everything up to `base` is read, and after it only `sent`.

    `series` names what the numbers count, where a log can begin to count anew within a boot.
    """

    boot_id: str
    base: int = -1
    sent: tuple[int, ...] = ()
    series: str = ""


class LineSink(Protocol):
    """Sink for observations. `append` returns when they and the cursor are as durable as they can be made."""

    def append(self, observations: list[LocalObservation], cursor: tuple[str, bytes] | None = None) -> None:
        """Store the observations, and the named cursor in the same transaction."""

    def cursor(self, name: str) -> bytes | None:
        """The cursor stored under this name, None where there is none."""


class Source(Protocol):
    """Source of records: a stream of bytes, split as /dev/kmsg splits it."""

    name: str
    contiguous: bool
    series: str

    def open(self, series: str, base: int) -> int:
        """Open the stream of one boot (`series`) after position `base`; the file descriptor to poll."""

    def read(self, most: int) -> bytes:
        """Bytes that are there, b"" at the end. Raises BlockingIOError where there are none now."""

    def split(self, stream: bytes) -> tuple[Iterator[bytes], bytes]:
        """Whole records of the bytes read so far, and the bytes that are left over."""

    def close(self) -> None:
        """Close the stream; closing twice is allowed."""


class Intake:
    """Raw records in, sightings and a position out. Knows no file and no clock.

    Invariant: the sightings committed with a position hold every record up to `base` and exactly `sent` above it.
    """

    def __init__(self, position: LogPosition, *, contiguous: bool = True) -> None:
        self._boot_id = position.boot_id
        self._contiguous = contiguous
        self._base = self._last = position.base
        self._sent = dict.fromkeys(position.sent)
        self._kernel = line_dedup.LineDedup(line_dedup.KERNEL_LIMITS)
        self._userspace = line_dedup.LineDedup(line_dedup.USERSPACE_LIMITS)
        self._out: list[LocalObservation] = []
        self._window_s = WINDOW_S
        self._closes_s: float | None = None
        self._drained_s = 0.0
        self._highest = -1
        self._resuming = position.base >= 0

    def take(self, raw: bytes, now_s: float) -> None:
        """Take one record as read."""
        head = kmsg.head(raw)
        if head is None:
            self._fold(self._kernel, _unparsable(raw, now_s), None, now_s)
            return
        sequence = head.sequence
        self._highest = max(self._highest, sequence)
        if sequence <= self._last:
            return
        if self._contiguous:
            self._check_gap(sequence, now_s)
        self._last = sequence
        folder = self._kernel if head.priority >> 3 == KERNEL else self._userspace
        body = raw[head.body :]
        seen_s, fresh = self._seen_s(head.usec, now_s), sequence not in self._sent
        if (fresh and folder.repeats(body, seen_s)) or not passes(body):
            return
        if fresh and (text := kmsg.plain(body)) and folder.counts(text, seen_s):
            return
        if (record := kmsg.parse(raw)) is not None:
            self._fold(folder, self._observation(record, now_s), sequence, now_s, body)

    def drained(self, now_s: float) -> None:
        """The log has nothing more for now: what comes later happened later."""
        self._drained_s = now_s
        if self._resuming and 0 <= self._highest < self._last:
            self._went_back(now_s)
        self._resuming = False

    def due_s(self) -> float | None:
        """Moment at which the window closes, None while none is open."""
        return self._closes_s

    def batch(self, now_s: float) -> tuple[list[LocalObservation], LogPosition]:
        """Observations that must become durable now, with the position that goes with them."""
        if self._closes_s is not None and now_s >= self._closes_s:
            self._close(now_s)
        elif self._closes_s is None:
            self._advance(self._last)
        out, self._out = [named(seen) for seen in self._out], []
        return out, LogPosition(self._boot_id, self._base, tuple(self._sent))

    def finish(self, now_s: float) -> tuple[list[LocalObservation], LogPosition]:
        """Close the window early because reading ends."""
        self._close(now_s)
        return self.batch(now_s)

    def _check_gap(self, sequence: int, now_s: float) -> None:
        lost = sequence - self._last - 1
        if lost <= 0:
            return
        lost -= sum(self._last < sent < sequence for sent in self._sent)
        cause = "start" if self._last < 0 else "overrun"
        self._close(now_s)
        self._advance(sequence - 1)
        if lost > 0:
            facts: Facts = {"lost": lost, "cause": cause, "kernel_sequence": sequence}
            self._out.append(agent_event("kernel_log.overrun", now_s, f"{lost} kernel-log records were lost", facts))

    def _went_back(self, now_s: float) -> None:
        """The log of this boot ends before our position (a restored virtual machine): start from where it is."""
        facts: Facts = {
            "lost": self._highest + 1,
            "cause": "reset",
            "position": self._last,
            "kernel_sequence": self._highest,
        }
        self._out.append(agent_event("kernel_log.overrun", now_s, "the log ends before our position", facts))
        self._last, self._sent = self._highest, {}
        self._advance(self._highest)

    def _advance(self, base: int) -> None:
        self._base = base
        self._sent = {sent: None for sent in self._sent if sent > base}

    def _fold(
        self, folder: line_dedup.LineDedup, seen: LocalObservation, sequence: int | None, now_s: float, raw: bytes = b""
    ) -> None:
        if self._closes_s is None:
            self._closes_s = now_s + self._window_s
        if sequence in self._sent:
            folder.recall(seen, raw)
        elif first := folder.add(seen, raw):
            self._out.append(first)
            if sequence is not None:
                self._sent[sequence] = None

    def _close(self, now_s: float) -> None:
        counted = self._kernel.close(now_s) + self._userspace.close(now_s)
        self._out += counted
        self._advance(self._last)
        self._window_s = min(self._window_s * 2, MAX_WINDOW_S) if counted else WINDOW_S
        idle = self._kernel.empty and self._userspace.empty
        self._closes_s = None if idle else now_s + self._window_s

    def _observation(self, record: kmsg.KmsgRecord, now_s: float) -> LocalObservation:
        facts: Facts = {"kernel_sequence": record.sequence, "level": record.level}
        for name, value in (("subsystem", record.subsystem), ("device", record.device)):
            if value:
                facts[name] = value
        if record.truncated:
            facts["truncated"] = True
        seen_s = self._seen_s(record.usec, now_s)
        return LocalObservation(
            "kernel_log",
            seen_s,
            rank(record),
            record.text,
            facility=record.facility,
            facts=facts,
        )

    def _seen_s(self, usec: int, now_s: float) -> float:
        """`usec` and CLOCK_MONOTONIC drift apart over months; a line read live is no older than the last pause."""
        return min(now_s, max(usec / 1e6, self._drained_s))


def named(seen: LocalObservation) -> LocalObservation:
    """The sighting with what this agent makes of its line, in a few words; the controller reads the line itself."""
    found = [
        f"{one.kind} {one.event or one.code}{' ' + one.pci if one.pci else ''}"
        for one in (decode(seen.text)[:FINDINGS_NAMED] if seen.kind == "kernel_log" else ())
    ]
    return replace(seen, finding=", ".join(found)[:FINDING_CHARS]) if found else seen


def _unparsable(raw: bytes, now_s: float) -> LocalObservation:
    text = "kernel-log record without a readable header"
    return agent_event("kernel_log.unparsable", now_s, text, {"example": kmsg.readable(raw[:200])})


class KmsgDevice:
    """/dev/kmsg, or a file or pipe that holds the same records."""

    contiguous = True
    series = ""

    def __init__(self, path: str) -> None:
        self.name = path
        self._log = -1

    def open(self, _series: str, _base: int) -> int:
        """A named pipe is opened for writing too, so that it does not end when its writer does."""
        mode = os.O_RDWR if Path(self.name).is_fifo() else os.O_RDONLY
        self._log = os.open(self.name, mode | os.O_NONBLOCK | os.O_CLOEXEC)
        return self._log

    def read(self, most: int) -> bytes:
        """One record of the device, or what a pipe holds. Raises BlockingIOError, BrokenPipeError."""
        return os.read(self._log, most)

    def split(self, stream: bytes) -> tuple[Iterator[bytes], bytes]:
        """Whole records of the bytes read so far, and the bytes that are left over."""
        return kmsg.split(stream)

    def close(self) -> None:
        """Close the device; closing twice is allowed."""
        if self._log >= 0:
            os.close(self._log)
        self._log = -1


class KernelLogReader:
    """Reads one log until told to stop: `run`, or turn by turn from `begin` to `end`.

    `committed` is called after sightings were added.
    """

    def __init__(self, source: Source, spool: LineSink, boot_id: str, clock: Callable[[], float]) -> None:
        self._source = source
        self._spool = spool
        self._boot_id = boot_id
        self._clock = clock
        self._rest = b""
        self._saved = LogPosition(boot_id)
        self._saved_s = clock()
        self._intake = Intake(self._saved, contiguous=source.contiguous)

    def run(self, stop: int, committed: Callable[[], None]) -> None:
        """Read until the descriptor `stop` becomes readable. Blocks; belongs in a thread of its own.

        Raises OSError when the log cannot be read, EOFError when it ends.
        """
        log = self.begin(committed)
        try:
            self._follow(log, stop, committed)
        finally:
            self.end(committed)

    def begin(self, committed: Callable[[], None]) -> int:
        """Open the log where it was left; the descriptor to poll. Raises OSError."""
        self._saved = self._position()
        self._intake = Intake(self._saved, contiguous=self._source.contiguous)
        self._rest = b""
        log = self._source.open(self._saved.series, self._saved.base)
        self._spool.append([collector_started("kernel_log", self._clock())])
        committed()
        return log

    def turn(self, committed: Callable[[], None]) -> None:
        """Read what is there, and commit it. Raises OSError, EOFError."""
        self._read()
        self._commit(*self._intake.batch(self._clock()), committed)

    def wait_s(self) -> float:
        """Longest wait until the next turn, which is due earlier where there is something to read."""
        due_s = self._intake.due_s()
        return POSITION_INTERVAL_S if due_s is None else max(0.0, due_s - self._clock())

    def end(self, committed: Callable[[], None]) -> None:
        """Commit what waits for its window, and close the log."""
        self._commit(*self._intake.finish(self._clock()), committed)
        self._source.close()

    def _follow(self, log: int, stop: int, committed: Callable[[], None]) -> None:
        poller = select.poll()
        poller.register(log, select.POLLIN)
        poller.register(stop, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poller.poll(max(1, int(self.wait_s() * 1000) + 1))]
            if stop in ready:
                return
            if log in ready:
                self._read()
            self._commit(*self._intake.batch(self._clock()), committed)

    def _read(self) -> None:
        for _ in range(BATCH_RECORDS):
            try:
                chunk = self._source.read(READ_BYTES)
            except BlockingIOError:
                self._intake.drained(self._clock())
                return
            except BrokenPipeError:
                continue  # overwritten before we came; the gap in the sequence tells how many
            if not chunk:
                raise EOFError(f"{self._source.name} ended")
            self._take(chunk)

    def _take(self, chunk: bytes) -> None:
        records, self._rest = self._source.split(self._rest + chunk)
        self._rest = self._rest[-REST_BYTES:]
        now_s = self._clock()
        for raw in records:
            self._intake.take(raw, now_s)

    def _commit(self, seen: list[LocalObservation], position: LogPosition, committed: Callable[[], None]) -> None:
        now_s = self._clock()
        position = replace(position, series=self._source.series)
        stale = position != self._saved and now_s - self._saved_s >= POSITION_INTERVAL_S
        if not seen and not stale:
            return
        self._spool.append(seen, (CURSOR, msgspec.json.encode(position)))
        self._saved, self._saved_s = position, now_s
        if seen:
            committed()

    def _position(self) -> LogPosition:
        raw = self._spool.cursor(CURSOR)
        saved = msgspec.json.decode(raw, type=LogPosition) if raw else None
        return saved if saved and saved.boot_id == self._boot_id else LogPosition(self._boot_id)
