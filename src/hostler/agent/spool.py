"""Spool of observations: numbered, on disk until well after they arrived, so that a controller may be away.

Numbers are contiguous per spool id. Acknowledged sightings stay for a day, because a controller restored from a
backup asks for them again. While the disk refuses, sightings stay in memory (bounded), numbered on, and are written
once it recovers. Numbers given out in memory can die with the process after the controller has seen them; `hello`
finds that out and starts a new spool id.
"""

import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hostler.agent.local_observation import LocalObservation, Rank, agent_event, collector_failed, collector_started
from hostler.agent.spool_file import SpoolFile, SpoolRow, accepted
from hostler.core.state.model import Facts
from hostler.logs.secret_patterns import redact, redact_facts

KEEP_ACKNOWLEDGED_S = 24 * 3600.0
MARK_EVERY_S = 60.0
"""Resolution of the dates of acknowledgements; acknowledged rows are kept this much longer."""
SHARE = {Rank.routine: 0.6, Rank.notable: 0.8, Rank.urgent: 1.0}
"""The part of the spool that unacknowledged sightings of a rank may fill: the rest is for graver ones."""
ROOM_AGAIN = 0.5
"""Refusals are reported once unacknowledged sightings fill less than this."""
_CURSOR = "cursor/"


class SpoolLimits(Struct, frozen=True):
    """Capacity of the spool: bytes on disk, observations in memory while the disk refuses.

    `emulated`: the disk is an emulated machine's, and no write waits for the one below.
    """

    max_bytes: int = 64 * 1024 * 1024
    max_memory: int = 2_000
    emulated: bool = False


class Spooled(Struct, frozen=True):
    """A sighting with its number. `age_s` is a lower bound for one of an earlier boot."""

    sequence: int
    boot_id: str
    age_s: float
    observation: LocalObservation


class Spool:
    """The numbered sightings of one node. Safe to use from several threads.

    Invariants: numbers are contiguous from the oldest held to `newest`; `append` loses nothing unsaid, what it
    refuses is counted on disk until an observation has reported it; nothing unacknowledged is ever deleted.
    """

    def __init__(
        self,
        directory: Path,
        boot_id: str,
        clock: Callable[[], float],
        new_id: Callable[[], str],
        limits: SpoolLimits = SpoolLimits(),  # noqa: B008 - frozen
    ) -> None:
        self._store = SpoolFile(directory / "spool.sqlite", emulated=limits.emulated)
        self.boot_id = boot_id
        self.now_s = clock
        self._new_id = new_id
        self._limits = limits
        self._lock = threading.RLock()
        self._memory: deque[SpoolRow] = deque()
        self._disk_refuses = False
        self._greeted = False
        self.id, self.acknowledged, self.newest = new_id(), 0, 0
        self.newest_urgent = 0
        """The newest urgent sighting of this process, 0 before the first: it hurries everything up to it."""
        self._newest_at_open = self._bytes = self._waiting_bytes = 0
        self._refused: dict[str, int] = {}
        self._cursors: dict[str, bytes] = {}
        self._boot_ends: dict[str, float] = {}
        if self._store.is_open:
            self._read()
            self._begin()

    def append(self, observations: list[LocalObservation], cursor: tuple[str, bytes] | None = None) -> None:
        """Number the sightings and make them durable together with the collector's cursor.

        Never raises for want of space: agent events tell of refusals ("spool_overflow") and of a disk that refuses
        ("collector_failed" of the collector "spool").
        """
        with self._lock:
            rows = self._admit([*self._refusals(), *map(_without_secrets, observations)])
            if cursor:
                self._cursors[cursor[0]] = cursor[1]
            if not accepted(lambda: self._write(rows)):
                self._remember(rows)
            elif self._disk_refuses:
                self._disk_refuses = False
                self.append([collector_started("spool", self.now_s())])

    def recover(self) -> None:
        """Open a disk that has refused since the start, if it takes writes by now: what it holds is sent first.

        What was numbered in memory goes on under a new spool id, so nobody may be sending meanwhile.
        """
        with self._lock:
            if self._store.is_open or not self._store.open():
                return
            held, urgent = list(self._memory), self.newest_urgent > self.acknowledged
            refused, cursors, before = self._refused, self._cursors, self.acknowledged
            self._read()
            self._store.renumber(
                self.acknowledged, [], {"id": (fresh := self._new_id()).encode(), "acknowledged": b"0"}
            )
            shift = self.newest - self.acknowledged - before
            self._memory = deque(replace(row, sequence=row.sequence + shift) for row in held)
            self.id, self.acknowledged, self.newest = fresh, 0, self.newest - self.acknowledged + len(held)
            self.newest_urgent = self.newest if urgent else 0
            self._cursors |= cursors
            for rank, count in refused.items():
                self._refused[rank] = self._refused.get(rank, 0) + count
            self._begin()
            self.append([])

    def pending(self, limit: int, max_bytes: int) -> list[Spooled]:
        """The oldest sightings that the controller has not acknowledged, at least one if there is any.

        Raises `sqlite3.Error` when the disk cannot be read.
        """
        with self._lock:
            rows = self._store.rows(self.acknowledged, limit) if self._store.is_open else []
            rows += [row for row in self._memory if row.sequence > self.acknowledged]
            return [self._spooled(row) for row in _within(rows[:limit], max_bytes)]

    def acknowledge(self, upto: int) -> None:
        """The controller has everything up to this number; a lower one than before asks for the rest again.

        Where the rest is held no more, what is held continues under a new spool id, and the loss is reported. Raises
        `sqlite3.Error` when the disk refuses that.
        """
        with self._lock:
            upto = max(0, min(upto, self.newest))
            if upto == self.acknowledged:
                return
            if upto < self.acknowledged and (lost := self._oldest() - 1 - upto) > 0:
                text = "the controller asked for sightings that are held no more"
                self._renew(upto + lost, collector_failed("spool", self.now_s(), text, {"lost": lost}))
                return
            self.acknowledged = upto
            while self._memory and self._memory[0].sequence <= upto:
                self._memory.popleft()
            accepted(self._mark)
            accepted(self._measure)
            if self._refusals_due():
                self.append([])

    def hello(self, acknowledged: int) -> bool:
        """Compare notes before the first send of this process: the controller's cursor for this spool id.

        True where it knows numbers that the disk does not (they died in memory, or an old disk image came back): a
        new spool id is taken and what was appended since is numbered anew. Raises `sqlite3.Error` where the disk
        refuses; nothing has changed then, and nothing may be sent.
        """
        with self._lock:
            strange = not self._greeted and acknowledged > self._newest_at_open
            if strange:
                facts: Facts = {"before": self.id, "controller": acknowledged, "disk": self._newest_at_open}
                text = "the controller knew numbers that the disk does not; a new spool began"
                self._renew(self._newest_at_open, agent_event("started", self.now_s(), text, facts))
            self._greeted = True
            return strange

    def cursor(self, name: str) -> bytes | None:
        """Position that the collector of this name saved last."""
        with self._lock:
            return self._cursors.get(name)

    @property
    def waiting(self) -> int:
        """Count observations that the controller does not have."""
        return self.newest - self.acknowledged

    @property
    def refused(self) -> int:
        """Count observations that were refused and not yet reported."""
        return sum(self._refused.values())

    @property
    def in_memory(self) -> int:
        """Count observations that exist in memory only, because the disk refuses."""
        return len(self._memory)

    def close(self) -> None:
        """Write what memory holds, if the disk takes it, and let go of the file."""
        with self._lock:
            accepted(lambda: self._write([]))
            self._store.close()

    def _read(self) -> None:
        """Take over what the disk holds."""
        meta = self._store.meta()
        self.id = meta.get("id", b"").decode() or self.id
        self.acknowledged = int(meta.get("acknowledged", b"0"))
        self.newest = self._newest_at_open = max(self._store.newest(), self.acknowledged)
        self._refused = msgspec.json.decode(meta.get("refused", b"{}"), type=dict[str, int])
        self._cursors = {name.removeprefix(_CURSOR): v for name, v in meta.items() if name.startswith(_CURSOR)}
        self._boot_ends = self._store.boot_ends()

    def _begin(self) -> None:
        self._store.write([], {"id": self.id.encode()})
        self._store.restart_retention(self.now_s())
        self._measure()
        if self._store.set_aside:
            text = f"the spool was unreadable and was put aside: {self._store.set_aside}"
            self.append([collector_failed("spool", self.now_s(), text)])

    def _measure(self) -> None:
        """Count all bytes on disk, and the bytes that the controller does not have."""
        self._bytes = self._store.size()
        self._waiting_bytes = self._store.size(self.acknowledged) + sum(row.size for row in self._memory)

    def _row(self, seen: LocalObservation, sequence: int = 0) -> SpoolRow:
        return SpoolRow(sequence, self.boot_id, seen.seen_s, msgspec.json.encode(seen))

    def _admit(self, observations: list[LocalObservation]) -> list[SpoolRow]:
        rows: list[SpoolRow] = []
        for seen in observations:
            row = self._row(seen)
            held = len(self._memory) + len(rows) if self._memory else 0
            room = self._limits.max_bytes * SHARE[seen.rank] - self._waiting_bytes
            if row.size <= room and held < self._limits.max_memory * SHARE[seen.rank]:
                rows.append(self._numbered(row))
                self.newest_urgent = self.newest if seen.rank is Rank.urgent else self.newest_urgent
            elif note := self._refuse(seen):
                rows.append(self._numbered(self._row(note)))
        return rows

    def _numbered(self, row: SpoolRow) -> SpoolRow:
        self.newest += 1
        self._waiting_bytes += row.size
        return replace(row, sequence=self.newest)

    def _refuse(self, seen: LocalObservation) -> LocalObservation | None:
        """Count what there is no room for; the first refusal is itself reported, beyond the limit if need be."""
        first = not self._refused
        self._refused[seen.rank.name] = self._refused.get(seen.rank.name, 0) + seen.count
        if not first:
            return None
        text = f"the spool is full: {seen.rank.name} sightings are refused and counted"
        return agent_event("spool_overflow", self.now_s(), text, {"rank": seen.rank.name})

    def _refusals_due(self) -> bool:
        crowded = self._waiting_bytes > self._limits.max_bytes * ROOM_AGAIN
        return bool(self._refused) and not crowded and len(self._memory) <= self._limits.max_memory * ROOM_AGAIN

    def _refusals(self) -> list[LocalObservation]:
        """Report refused observations, once there is room again."""
        if not self._refusals_due():
            return []
        facts: Facts = {"lost": self.refused, **self._refused}
        self._refused = {}
        return [agent_event("spool_overflow", self.now_s(), f"{facts['lost']} sightings were refused", facts)]

    def _write(self, rows: list[SpoolRow]) -> None:
        """Write one transaction: what memory holds, the rows, the cursors, and eviction of the oldest acknowledged."""
        waiting = [*self._memory, *rows]
        added = sum(row.size for row in waiting)
        excess = self._bytes + added - self._limits.max_bytes
        upto, freed = self._store.oldest_worth(excess, self.acknowledged) if excess > 0 else (0, 0)
        meta = {_CURSOR + name: value for name, value in self._cursors.items()}
        self._store.write(waiting, meta | {"refused": msgspec.json.encode(self._refused)}, upto)
        self._bytes += added - freed
        self._memory.clear()

    def _remember(self, rows: list[SpoolRow]) -> None:
        """Hold rows in memory because the disk refused; the first time, say so.

        What is acknowledged meanwhile leaves memory: an empty one does not mean that the disk takes anything.
        """
        if rows and not self._disk_refuses:
            self._disk_refuses = True
            note = collector_failed("spool", self.now_s(), "the disk refuses: sightings are in memory only")
            rows = [*rows, self._numbered(self._row(note))]
        self._memory.extend(rows)

    def _mark(self) -> None:
        if self._store.mark(self.acknowledged, self.now_s(), MARK_EVERY_S, KEEP_ACKNOWLEDGED_S):
            self._bytes = self._store.size()

    def _renew(self, base: int, why: LocalObservation) -> None:
        """Take a new id; what lies above `base` is numbered from 1, and `why` follows it."""
        note = self._row(why, self.newest + 1)
        held = [replace(row, sequence=row.sequence - base) for row in (*self._memory, note)]
        fresh = self._new_id()
        self._store.renumber(base, held, {"id": fresh.encode(), "acknowledged": b"0"})
        self.id, self.acknowledged, self.newest = fresh, 0, self.newest + 1 - base
        self.newest_urgent = max(0, self.newest_urgent - base)
        self._memory.clear()
        self._measure()

    def _oldest(self) -> int:
        """The oldest number held, `newest` + 1 where none is."""
        first = self._memory[0].sequence if self._memory else self.newest + 1
        return self._store.oldest() or first

    def _spooled(self, row: SpoolRow) -> Spooled:
        return Spooled(row.sequence, row.boot_id, self._age_s(row), _observation(row))

    def _age_s(self, row: SpoolRow) -> float:
        """Seconds since it was seen; across a boot, the rest of that boot as far as known plus this one's uptime."""
        if row.boot_id == self.boot_id:
            return max(0.0, self.now_s() - row.seen_s)
        return max(0.0, self._boot_ends.get(row.boot_id, row.seen_s) - row.seen_s) + self.now_s()


def _within(rows: list[SpoolRow], max_bytes: int) -> list[SpoolRow]:
    """As many of the first rows as fit, and always one."""
    total = 0
    for index, row in enumerate(rows):
        total += row.size
        if index and total > max_bytes:
            return rows[:index]
    return rows


def _observation(row: SpoolRow) -> LocalObservation:
    """Decode the row's observation; a damaged row becomes a report of the damage."""
    if row.damaged:
        return collector_failed("spool", row.seen_s, "a spooled sighting failed its checksum", {"lost": 1})
    return msgspec.json.decode(row.body, type=LocalObservation)


def _without_secrets(seen: LocalObservation) -> LocalObservation:
    """The observation as it may leave this node: the controller looks again, as an older agent does not."""
    text, facts = redact(seen.text), redact_facts(seen.facts)
    return seen if text == seen.text and facts is seen.facts else replace(seen, text=text, facts=facts)
