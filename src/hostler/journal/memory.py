"""The journal in memory: for the simulator, and for tests of what stands on a journal."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from threading import Condition

from msgspec.structs import replace

from hostler.core.state.events import Record, subjects_of
from hostler.core.state.model import Observation
from hostler.journal.codec import (
    GENESIS,
    INTEGER_MAX,
    OutOfPlaceError,
    StoredRow,
    capped,
    micros,
    seal_all,
    seal_cursors,
    seal_observation,
    unseal,
    verified,
)
from hostler.journal.lease_succession import changed_hands, next_holder, refuse_fenced
from hostler.ports import Archived, Batch, ControllerMember, Lease, RecordWindow, Restored, Snapshot


class MemoryJournal:
    """`ports.Journal` without a disk. Records are kept as the rows the others store: digests and faults are equal.

    One thread appends; another may follow and `wait`. It never fails by itself; who wants a commit to fail wraps it.
    """

    def __init__(self) -> None:
        self._rows: list[StoredRow] = []
        self._about: defaultdict[str, list[int]] = defaultdict(list)
        self._observations: dict[str, Observation] = {}
        self._seen: defaultdict[str, list[Observation]] = defaultdict(list)
        self._cursors: dict[str, tuple[str, int]] = {}
        self._snapshot: Snapshot | None = None
        self._lease = Lease()
        self._members: dict[str, ControllerMember] = {}
        self._changed = Condition()

    def lease(self) -> Lease:
        """The lease as it stands."""
        return self._lease

    def acquire(self, holder: str, address: str = "", seen: Lease | None = None) -> int:
        """Take the lease where it is still as `seen`; the new epoch. Raises FencedError where somebody else has it."""
        with self._changed:
            self._lease = next_holder(self._lease, holder, address, seen)
            self._changed.notify_all()
            return self._lease.epoch

    def renew(self, epoch: int) -> None:
        """Show that the holder lives. Raises FencedError where another holds the lease."""
        with self._changed:
            refuse_fenced(self._lease, epoch)
            self._lease = replace(self._lease, renewal=self._lease.renewal + 1)

    def resign(self, epoch: int) -> None:
        """Give the lease up; nothing where it is another's by now."""
        with self._changed:
            if epoch == self._lease.epoch:
                self._lease = replace(self._lease, holder="", address="")
            self._changed.notify_all()

    def announce(self, member: ControllerMember) -> None:
        """Write the controller down, or count one more beat of it."""
        known = self._members.get(member.name)
        self._members[member.name] = replace(member, beats=known.beats + 1 if known else 1)

    def members(self) -> tuple[ControllerMember, ...]:
        """Controllers announced and not dismissed, by name."""
        return tuple(self._members[name] for name in sorted(self._members))

    def dismiss(self, name: str) -> None:
        """Forget a controller that has gone."""
        self._members.pop(name, None)

    def wait(self, after: int, seen: Lease, timeout_s: float) -> None:
        """Return when a record after `after` is there, the lease has changed hands, or the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._rows) > after or changed_hands(seen, self._lease), timeout_s)

    def archived(self) -> Archived | None:
        """Return no file, as nothing is ever archived here."""
        return None

    def restored(self) -> Restored | None:
        """Return None: this journal is never filled from a copy."""
        return None

    def append(self, batch: Batch, epoch: int) -> None:
        """Append all of the batch or nothing. Raises FencedError where another holds the lease."""
        for observation in batch.observations:
            seal_observation(observation)
        seal_cursors(batch.cursors)
        with self._changed:
            refuse_fenced(self._lease, epoch)
            last, digest = len(self._rows), self._digest_at(len(self._rows))
            self._rows += seal_all(batch.records, last, digest, epoch, batch.format)
            self._changed.notify_all()
        for record in batch.records:
            for subject in dict.fromkeys(subjects_of(record.event)):
                self._about[subject].append(record.seq)
        for observation in batch.observations:
            self._observe(observation)
        self._cursors.update(batch.cursors)

    def snapshot(self) -> Snapshot | None:
        """The newest snapshot, None where there is none."""
        return self._snapshot

    def snapshot_seq(self) -> int:
        """The record at which it was taken, 0 where there is none."""
        return self._snapshot.seq if self._snapshot is not None else 0

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep it as the newest. Raises OutOfPlaceError where its digest is not the chain's there."""
        seq = snapshot.seq
        if seq > len(self._rows) or self._digest_at(seq).hex() != snapshot.digest:
            raise OutOfPlaceError(f"a snapshot of record {seq} does not belong to this journal")
        if self._snapshot is None or self._snapshot.seq <= seq:
            self._snapshot = snapshot

    def records(self, after: int = 0) -> Iterator[Record]:
        """All records after `after`, verified in order. Raises CorruptJournalError at the first that is damaged."""
        if after < len(self._rows):
            yield from map(unseal, verified(islice(self._rows, after, None), after, self._digest_at(after)))

    def named_since(self, names: Sequence[str], at: datetime, limit: int, beyond: Record | None = None) -> list[Record]:
        """At most `limit` records of these event names, of this moment and later, the latest first, beyond that one."""
        since = micros(at)
        end = (micros(beyond.at), beyond.seq) if beyond is not None else (INTEGER_MAX, 0)
        rows = (row for row in self._rows if row.at >= since and row.name in names and (row.at, row.seq) < end)
        found = sorted(rows, key=lambda r: (r.at, r.seq))
        return [unseal(row) for row in found[::-1][: capped(limit)]]

    def history(self, subject: str, before: int | None = None, limit: int = 200) -> list[Record]:
        """Records about the subject, newest first, before record `before` where one is given."""
        found = (seq for seq in reversed(self._about.get(subject, ())) if before is None or seq < before)
        return [unseal(self._rows[seq - 1]) for seq in islice(found, capped(limit))]

    def window(self, wanted: RecordWindow, limit: int) -> list[Record]:
        """At most `limit` records of the window, in its order."""
        end = len(self._rows) if wanted.before is None else wanted.before - 1
        numbers = self._about.get(wanted.subject, ()) if wanted.subject else range(1, len(self._rows) + 1)
        within = [seq for seq in numbers if wanted.after < seq <= end]
        rows = (self._rows[seq - 1] for seq in (within if wanted.oldest_first else reversed(within)))
        found = (row for row in rows if row.name.startswith(wanted.name) and row.name in (wanted.names or (row.name,)))
        return [unseal(row) for row in islice(found, capped(limit))]

    def first_since(self, at: datetime) -> int:
        """The first record, by moment, of that moment or later; 0 where there is none."""
        since = micros(at)
        return min(((row.at, row.seq) for row in self._rows if row.at >= since), default=(0, 0))[1]

    def observation(self, identity: str) -> Observation | None:
        """The raw observation of this id, None where it is not kept."""
        return self._observations.get(identity)

    def observations_of(
        self, node: str, since: datetime | None = None, limit: int = 200, beyond: str = ""
    ) -> list[Observation]:
        """The node's raw observations, newest first; of those after `beyond`, where it is given."""
        start = micros(since) if since else 0
        found = [o for o in reversed(self._seen.get(node, ())) if _received(o) >= start]
        told = sorted(found, key=_received, reverse=True)
        if beyond:
            told = told[next((n for n, one in enumerate(told, 1) if one.id == beyond), len(told)) :]
        return told[: capped(limit)]

    def cursors(self) -> dict[str, tuple[str, int]]:
        """How far each sender's spool has been read: sender → (spool, sequence)."""
        return dict(sorted(self._cursors.items()))

    def digest(self) -> str:
        """The chained digest of all records, hex."""
        return self._digest_at(len(self._rows)).hex()

    def latest_seq(self) -> int:
        """The last record's number, 0 for an empty journal."""
        return len(self._rows)

    def count(self) -> int:
        """Number of records."""
        return len(self._rows)

    def close(self) -> None:
        """Do nothing, as there is nothing to give back."""

    def _digest_at(self, seq: int) -> bytes:
        return self._rows[seq - 1].digest if seq else GENESIS

    def _observe(self, observation: Observation) -> None:
        if observation.id not in self._observations:
            self._observations[observation.id] = observation
            self._seen[observation.node].append(observation)


def _received(observation: Observation) -> int:
    return micros(observation.received) if observation.received else 0
