"""The outbox in each database: what is kept together, in which order it is tried, and what survives."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from hostler.journal.outbox import DELIVERED_KEPT_S, SqlOutbox, open_outbox
from hostler.ports import Delivery, JournalError, RouteCounts
from tests.contract.test_notify_targets import NOW, OVER, PAGE

NOTE = replace(PAGE, id="c1/ticket/8/1", key="c1/ticket/8", page=False)


@pytest.fixture
def outbox(place: str) -> Iterator[SqlOutbox]:
    found = open_outbox(place)
    yield found
    found.close()


def due(outbox: SqlOutbox, now: datetime = NOW) -> list[Delivery]:
    return outbox.due(now, 10)


def test_messages_and_place_are_kept_together_by_who_knows_the_place(outbox: SqlOutbox) -> None:
    assert outbox.position() is None
    assert outbox.advance(5, 5, b"a", (), NOW)
    assert outbox.advance(5, 9, b"b", (PAGE,), NOW)
    assert not outbox.advance(5, 7, b"c", (NOTE,), NOW), "another has moved on"
    assert outbox.position() == (9, b"b")
    assert [one.message for one in due(outbox)] == [PAGE]


def test_what_ends_is_not_tried_before_what_it_ends_and_pages_come_first(outbox: SqlOutbox) -> None:
    """Mutant: in the order of their numbers alone."""
    outbox.advance(0, 1, b"", (NOTE, PAGE, OVER), NOW)
    page, note = due(outbox)
    assert (page.message, note.message) == (PAGE, NOTE)
    outbox.postponed(page, NOW + timedelta(minutes=1), "down")
    assert [one.message for one in due(outbox)] == [NOTE]
    [again] = [one for one in due(outbox, NOW + timedelta(minutes=1)) if one.message == PAGE]
    assert (again.attempts, again.why) == (1, "down")
    outbox.ended(again, "delivered", NOW)
    assert OVER in [one.message for one in due(outbox, NOW + timedelta(minutes=1))]


def test_a_dead_letter_is_kept_told_of_and_tried_again_when_a_person_says_so(outbox: SqlOutbox) -> None:
    outbox.advance(0, 1, b"", (PAGE,), NOW)
    outbox.ended(due(outbox)[0], "dead", NOW, "410")
    assert not due(outbox)
    [dead] = outbox.listed("r", "dead", None, 10)
    assert (dead.why, dead.message.id) == ("410", PAGE.id)
    assert not outbox.retry(dead.number + 1, NOW)
    assert outbox.retry(dead.number, NOW)
    assert not outbox.retry(dead.number, NOW), "it waits already"
    assert due(outbox)[0].message == PAGE


def test_an_answer_that_comes_after_the_end_changes_nothing(outbox: SqlOutbox) -> None:
    outbox.advance(0, 1, b"", (PAGE,), NOW)
    [one] = due(outbox)
    outbox.ended(one, "delivered", NOW)
    outbox.postponed(one, NOW, "late")
    outbox.ended(one, "dead", NOW, "late")
    assert outbox.counts() == {"r": RouteCounts(delivered=1, last=NOW)}


def test_what_was_delivered_is_forgotten_in_time_and_what_waits_is_not(outbox: SqlOutbox) -> None:
    outbox.advance(0, 1, b"", (PAGE, NOTE), NOW)
    outbox.ended(due(outbox)[0], "delivered", NOW)
    outbox.advance(1, 2, b"", (OVER,), NOW + timedelta(seconds=DELIVERED_KEPT_S + 60))
    assert [one.message for one in outbox.listed("", "", None, 10)] == [OVER, NOTE]
    assert outbox.listed("", "", None, 1)[0].message == OVER


def test_a_busy_route_takes_no_others_place(outbox: SqlOutbox) -> None:
    """Mutant: the first of the queue are looked up, whoever they are for."""
    outbox.advance(0, 1, b"", (PAGE, replace(NOTE, route="other")), NOW)
    assert [one.message.route for one in outbox.due(NOW, 1, {"r"})] == ["other"]
    assert not outbox.due(NOW, 10, {"r", "other"})


def test_a_queue_without_end_gives_up_the_oldest_that_are_no_pages(
    outbox: SqlOutbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hostler.journal.outbox.QUEUED_MOST", 2)
    notes = tuple(replace(NOTE, id=f"n{number}", key=f"n{number}") for number in range(4))
    outbox.advance(0, 1, b"", (PAGE, *notes), NOW)
    assert [one.message.id for one in due(outbox)] == [PAGE.id, "n3"]
    assert {one.why for one in outbox.listed("", "dead", None, 10)} == {"the queue was full"}


def test_it_is_there_when_it_is_opened_again(place: str, outbox: SqlOutbox) -> None:
    outbox.advance(0, 3, b"x", (PAGE,), NOW)
    second = open_outbox(place)
    assert (second.position(), [one.message for one in due(second)]) == ((3, b"x"), [PAGE])
    second.close()


def test_what_is_wrong_with_the_database_is_a_journal_error(tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("broken") / "outbox"
    file.write_bytes(b"no database" * 1000)
    with pytest.raises(JournalError):
        open_outbox(file)
