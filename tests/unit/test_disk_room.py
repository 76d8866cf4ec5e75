"""When observations end and when deciding ends, by the room on the disk; never in turns around one value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.journal.journal_room import JournalRoom
from hostler.runtime.disk_room import MIB, DiskRoom, reserve_of

DISK = 150 * MIB


def room(free: float, size: int = DISK) -> JournalRoom:
    return JournalRoom(int(free), size, "/srv/hostler")


@pytest.mark.parametrize(
    ("size", "reserve"),
    [(40 * MIB, 10 * MIB), (150 * MIB, 32 * MIB), (10_240 * MIB, 512 * MIB), (1 << 42, 2_048 * MIB)],
)
def test_the_reserve_is_a_share_of_the_disk_within_bounds(size: int, reserve: int) -> None:
    """Mutants: a small disk is all reserve; a large one keeps a twentieth of itself."""
    assert reserve_of(room(0, size)) == reserve


def stands(judged: DiskRoom) -> tuple[bool, bool]:
    """Whether it is low, and whether it is full."""
    return bool(judged.low), bool(judged.full)


def test_each_state_is_left_with_more_room_than_it_was_entered_with() -> None:
    """Mutants: one value for both ways; low is not said while it is full; text without what to do."""
    judged = DiskRoom()
    judged.saw(room(33 * MIB))
    assert (stands(judged), judged.near) == ((False, False), True)
    for left, low, full in ((31, True, False), (39, True, False), (1, True, True), (15, True, True), (17, True, False)):
        judged.saw(room(left * MIB))
        assert stands(judged) == (low, full), left
        assert ("is full" in judged.why) == full
        assert full or "observations" in judged.why
    judged.saw(room(41 * MIB))
    assert not judged.why


@given(st.lists(st.integers(28, 36), min_size=2, max_size=60), st.lists(st.integers(0, 4), min_size=2, max_size=60))
def test_around_a_limit_it_changes_once(near_low: list[int], near_full: list[int]) -> None:
    """Mutant: hysteresis is left out."""
    for values, read in ((near_low, "low"), (near_full, "full")):
        judged, changes, was = DiskRoom(), 0, ""
        for free in values:
            judged.saw(room(free * MIB))
            changes += bool(getattr(judged, read)) != bool(was)
            was = getattr(judged, read)
        assert changes <= 1


def test_a_place_that_nobody_sees_is_tried_again_later_each_time() -> None:
    """Mutants: it is tried at once; it waits no longer each time; it waits for ever; a success changes nothing."""
    judged, at, waits = DiskRoom(), 100.0, list[float]()
    for _ in range(6):
        judged.failed(at)
        began = at
        while judged.full:
            at += 1.0
            judged.tried(at)
        waits.append(at - began)
    assert waits == [30.0, 60.0, 120.0, 240.0, 480.0, 480.0]
    judged.worked()
    judged.failed(at)
    judged.tried(at + 30.0)
    assert not judged.full


def test_a_failure_for_want_of_room_counts_also_where_some_is_seen() -> None:
    """Mutants: what the disk says of itself is believed against a write that failed; a quota is tried at each look."""
    judged = DiskRoom()
    judged.saw(room(15 * MIB))
    judged.failed(0.0)
    judged.tried(1e9)
    assert stands(judged) == (True, True)
    judged.saw(room(20 * MIB))
    assert stands(judged) == (True, False)
    judged.saw(room(100 * MIB))
    judged.failed(0.0)
    judged.saw(room(100 * MIB))
    judged.tried(29.0)
    assert stands(judged) == (False, True)
    judged.tried(30.0)
    assert stands(judged) == (False, False)
