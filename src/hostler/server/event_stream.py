"""Events as they are recorded, over server-sent events: resumed by sequence number, filtered by node, kept alive."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from datetime import datetime

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.report.sentences import sentence
from hostler.core.state import events as e
from hostler.core.state.events import Record, name_of, subjects_of
from hostler.core.state.scopes import text_hook
from hostler.ports import JournalError
from hostler.runtime.subscribers import SlowSubscriberError, Subscription
from hostler.server.cell_view import CellView
from hostler.server.problems import refuse
from hostler.server.token_scope import sees, shown
from hostler.server.tokens import Identity, Role

ALIVE_S = 15.0
"""Interval of keep-alive comments on a silent stream."""
BEHIND_MAX = 50_000
"""Records a stream may be resumed over; who missed more reads histories instead."""
RETRY_MS = 2_000
LINES_KEPT = 256
"""Encoded records that are kept to be shared: all clients that keep up ask for the same few in the same moment."""
NOT_COMPRESSED = "not_compressed"
"""Option of routes whose answer is not compressed: a stream's compressor would hold records back, and one is made for
each request as it comes (some 300 KB), so an agent's long poll would hold it for as long as it waits."""

Keep = Callable[[Record], Record | None]


class StreamedRecord(Struct, frozen=True):
    """A record as a stream tells it: `name` of its event and what it says as `text`; `subjects` it concerns."""

    seq: int
    at: datetime
    name: str
    text: str
    subjects: tuple[str, ...]
    cause: str
    event: e.Event


def keeper(cell: CellView, who: Identity, node: str) -> Keep:
    """Make a stream's filter: records of one node ("" for all) that the caller reaches; None for nothing."""
    reaches: Keep = (lambda record: record) if who.whole else _Reach(cell, who)
    if not node:
        return reaches
    return lambda record: reaches(record) if node in subjects_of(record.event) else None


class _Reach:
    """Remembers, along the stream, which nodes were the caller's: a node's release is still told to its tenant.

    The storm brake concerns everybody, and everybody is told.
    """

    def __init__(self, cell: CellView, who: Identity) -> None:
        self._cell = cell
        self._who = who
        self._mine: set[str] = set()

    def __call__(self, record: Record) -> Record | None:
        if isinstance(record.event, e.BrakeLatched | e.BrakeReleased):
            return shown(self._who, self._cell.view, record)
        own = frozenset(subject for subject in subjects_of(record.event) if self._shows(record, subject))
        if not own:
            return None
        return shown(self._who, self._cell.view, record, own)

    def _shows(self, record: Record, subject: str) -> bool:
        node = self._cell.view.nodes.get(subject)
        if node is not None and sees(self._who, node):
            since = node.assignment.since if node.assignment and self._who.role is Role.tenant else record.at
            if since <= record.at:
                self._mine.add(subject)
                return True
        if subject not in self._mine:
            return False
        if isinstance(record.event, e.NodeReleased):
            self._mine.discard(subject)
        return True


SHARES: dict[Role, float] = {
    Role.operator: 1.0,
    Role.technician: 0.25,
    Role.viewer: 0.5,
    Role.tenant: 0.5,
    Role.agent: 0.0,
}
"""Share of a server's streams for all callers of a role together."""
OWN_SHARE = 1 / 16
"""Share of one identity: a token, or all the tokens of a tenant."""


class Streams:
    """The open event streams of a server: so many in all, of each role, and of each identity."""

    def __init__(self, cell: CellView, most: int) -> None:
        self._cell = cell
        self._most = most
        self._closed = False
        self._following: set[Subscription] = set()
        self._lines = SharedLines()
        self._of_role: Counter[Role] = Counter()
        self._of_owner: Counter[str] = Counter()

    @property
    def open(self) -> int:
        """Number of open streams."""
        return self._of_role.total()

    def close(self) -> None:
        """End every stream, so that the server can stop. Clients resume elsewhere."""
        self._closed = True
        for one in self._following:
            one.close()

    async def begin(self, who: Identity, last: int | None) -> int:
        """The record after which a stream starts: `last`, or only what comes from now on. Raises ProblemError."""
        if taken := self._taken(who):
            raise refuse(503, "busy", taken, "close one, or try again later")
        seq = self._cell.view.cell.seq
        if last is None:
            return seq
        if why := await asyncio.to_thread(self._unreachable, last, seq):
            raise refuse(410, "gone", why, "list again, then continue from the `seq` of that answer")
        return last

    def _unreachable(self, last: int, seq: int) -> str:
        """Why a stream cannot go on after record `last`, "" where it can.

        Who stands by may not have folded yet what the active controller's answer stood at: the journal decides.
        """
        if last > seq and last > (recorded := self._cell.journal.latest_seq()):
            return f"record {last} is not in this journal, which ends at {recorded}"
        if seq - last > BEHIND_MAX:
            return f"record {last} is not within the last {BEHIND_MAX} of {seq}"
        gone = self._cell.journal.archived()
        return f"the records after {last} have left the journal: {gone.text}" if gone and last < gone.seq else ""

    def _taken(self, who: Identity) -> str:
        """Why there is no room for another stream of theirs, "" where there is."""
        counts = (
            (self.open, 1.0, "in all"),
            (self._of_role[who.role], SHARES[who.role], f"of the role {who.role}"),
            (self._of_owner[_owner(who)], OWN_SHARE, "of yours"),
        )
        full = (
            f"{count} event streams {whose} are open already"
            for count, share, whose in counts
            if count >= max(1, int(self._most * share))
        )
        return next(full, "")

    async def lines(self, who: Identity, after: int, keep: Keep, until: int | None = None) -> AsyncIterator[bytes]:
        """The stream's body. Ends when the server stops or the client is too slow; it then resumes.

        `until`: the record after which it ends.

        Room is looked for once more: many may have begun in the same moment.
        """
        if self._closed or self._taken(who) or (until is not None and until <= after):
            return
        self._of_role[who.role] += 1
        self._of_owner[_owner(who)] += 1
        batches = self._cell.subscribe(after, ALIVE_S)
        self._following.add(batches)
        try:
            yield f"retry: {RETRY_MS}\n: from {after}\n\n".encode()
            with suppress(SlowSubscriberError, JournalError):
                async for batch in batches:
                    if told := self._told(batch, keep, until):
                        yield told
                    if until is not None and batches.seen >= until:
                        return
        finally:
            batches.close()
            self._following.discard(batches)
            self._of_role[who.role] -= 1
            self._of_owner -= Counter((_owner(who),))

    def _told(self, batch: Sequence[Record], keep: Keep, until: int | None) -> bytes:
        """Tell a client of the batch in one write; an empty batch is told as a keep-alive."""
        if not batch:
            return b": alive\n\n"
        due = (record for record in batch if until is None or record.seq <= until)
        return b"".join(self._line(record, kept) for record in due if (kept := keep(record)) is not None)

    def _line(self, record: Record, kept: Record) -> bytes:
        """The record's line: shared where the caller is shown the record itself, its own where it is redacted."""
        return self._lines.of(record) if kept is record else encode(kept)


class SharedLines:
    """The latest records as they are streamed to everybody who is shown them whole: each encoded once."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Record, bytes]] = {}

    def of(self, record: Record) -> bytes:
        """The record's line. Another record under the same number, as a redacted one, is never given its line."""
        kept = self._kept.get(record.seq)
        if kept is not None and kept[0] is record:
            return kept[1]
        line = encode(record)
        self._kept[record.seq] = record, line
        if len(self._kept) > LINES_KEPT:
            del self._kept[next(iter(self._kept))]
        return line


def _owner(who: Identity) -> str:
    return f"tenant {who.grant.tenant}" if who.role is Role.tenant else who.token


def _without_designs(event: e.Event) -> e.Event:
    """The event without a network's cables, which are up to 32 MB: its digest stands in it, the journal holds them."""
    if isinstance(event, e.FabricRegistered):
        return replace(event, fabric=replace(event.fabric, design="", recabling=None))
    if isinstance(event, e.RecablingPlanned):
        return replace(event, recabling=replace(event.recabling, design=""))
    return event


def streamed(record: Record) -> StreamedRecord:
    """The record as streams and lists of records tell it."""
    return StreamedRecord(
        record.seq,
        record.at,
        name_of(record.event),
        sentence(record.event),
        subjects_of(record.event),
        record.cause,
        _without_designs(record.event),
    )


def encode(record: Record) -> bytes:
    """One record as a server-sent event; `id` is what a client resumes from."""
    data = msgspec.json.encode(streamed(record), enc_hook=text_hook)
    return b"id: %d\nevent: record\ndata: %s\n\n" % (record.seq, data)
