"""Lines of the event stream: each record encoded once for all who see it whole, never shared with who does not."""

from datetime import UTC, datetime
from typing import Any, cast

import pytest
from msgspec.structs import replace

from hostler.core.state import events as e
from hostler.core.state.events import Record
from hostler.runtime.subscribers import Subscribers, Subscription
from hostler.server import event_stream
from hostler.server.event_stream import LINES_KEPT, SharedLines, Streams
from hostler.server.tokens import Grant, Identity, Role

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "it was a drill of acme's"


def record(seq: int) -> Record:
    return Record(seq, NOW, 1, "test", e.BrakeReleased("ann", SECRET))


class Cell:
    """Serves records as a cell does, from its journal."""

    def __init__(self, last: int) -> None:
        self.records = [record(seq) for seq in range(1, last + 1)]
        self.subscribers = Subscribers(lambda after: iter(self.records[after:]))

    def subscribe(self, after: int, quiet_s: float | None = None) -> Subscription:
        return self.subscribers.follow(after, quiet_s)


def whole(given: Record) -> Record:
    return given


def redacted(given: Record) -> Record:
    return replace(given, event=e.BrakeReleased("", ""))


def even(given: Record) -> Record | None:
    return given if given.seq % 2 == 0 else None


async def told(streams: Streams, keep: Any, until: int, name: str = "ann") -> bytes:
    who = Identity(name, Grant(name, Role.operator))
    return b"".join([line async for line in streams.lines(who, 0, keep, until)])


@pytest.mark.parametrize("first", [whole, redacted])
async def test_who_is_shown_less_never_gets_the_line_of_who_is_shown_all(first: Any) -> None:
    """Mutant: lines are shared by the record's number alone."""
    streams = Streams(cast("Any", Cell(3)), 32)
    second = redacted if first is whole else whole
    answers = {keep: await told(streams, keep, 3) for keep in (first, second)}
    assert answers[whole].count(SECRET.encode()) == 3 * 2
    assert SECRET.encode() not in answers[redacted]
    assert answers[redacted].count(b"\nid: ") + 1 >= 3


async def test_a_record_is_encoded_once_for_all_who_see_it_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []
    real = event_stream.encode

    def counted(one: Record) -> bytes:
        encoded.append(one.seq)
        return real(one)

    monkeypatch.setattr(event_stream, "encode", counted)
    streams = Streams(cast("Any", Cell(4)), 32)
    first, second, third = [await told(streams, keep, 4) for keep in (whole, whole, even)]
    assert first == second
    assert encoded == [1, 2, 3, 4]
    assert b"id: 4\n" in third
    assert b"id: 3\n" not in third


async def test_a_stream_ends_behind_the_record_that_was_asked_for() -> None:
    """Mutant: the rest of the batch is told as well."""
    answer = await told(Streams(cast("Any", Cell(9)), 32), whole, 5)
    assert b"id: 5\n" in answer
    assert b"id: 6\n" not in answer


def test_few_lines_are_kept_and_another_record_of_the_same_number_has_its_own() -> None:
    lines = SharedLines()
    for seq in range(1, LINES_KEPT + 10):
        lines.of(record(seq))
    assert len(lines._kept) == LINES_KEPT  # noqa: SLF001 - the bound
    assert SECRET.encode() not in lines.of(redacted(record(LINES_KEPT)))


async def test_streams_end_with_the_server() -> None:
    """Mutants: an open stream goes on; one that is asked for behind the end begins."""
    cell = Cell(1)
    streams = Streams(cast("Any", cell), 32)
    who = Identity("ann", Grant("ann", Role.operator))
    lines = streams.lines(who, 0, whole)
    assert b"retry" in await anext(lines)
    assert b"id: 1\n" in await anext(lines)
    streams.close()
    assert await anext(lines, b"the end") == b"the end"
    assert streams.open == 0
    assert [line async for line in streams.lines(who, 0, whole)] == []
