"""Snapshots are taken, and where they cannot be that is told: as a number, a line of the status, and by a standby."""

from typing import Any

import pytest

from hostler.core.state.cell_record import CellRecord as CellState
from hostler.core.state.fleet import Fleet
from hostler.core.state.number_limits import INTEGER_MOST
from hostler.core.state.snapshot import load, state_of
from hostler.ports import JournalError, Snapshot
from hostler.runtime.checkpoints import EVERY, LATE, Checkpoints
from tests.kit import a_node


class Kept:
    """Destination of snapshots; `raises` is what saving one does."""

    def __init__(self, newest: int = 0) -> None:
        self.newest = newest
        self.saved: list[Snapshot] = []
        self.raises: Exception | None = None

    def snapshot_seq(self) -> int:
        return self.newest

    def save_snapshot(self, snapshot: Snapshot) -> None:
        if self.raises is not None:
            raise self.raises
        self.newest = snapshot.seq
        self.saved.append(snapshot)


def of(kept: Any) -> Checkpoints:
    return Checkpoints(kept)


def state(seq: int = EVERY, memory_gib: Any = 0.0) -> Any:
    fleet = Fleet()
    fleet.put_node("n0", a_node("n0", memory_gib=memory_gib))
    fleet.merge()
    fleet.singles.base["cell"] = CellState(seq=seq)
    return state_of(fleet)


async def test_one_is_due_by_what_is_behind_the_newest_whoever_took_it() -> None:
    """Mutant: the records are counted from the start of the term, so a cell that changes hands often never has one."""
    found = of(Kept(5))
    assert not found.due(10**9), "nobody has looked yet"
    await found.look()
    assert not found.due(EVERY + 4)
    assert found.due(EVERY + 5)
    found.begun(EVERY + 5)
    assert not found.due(2 * EVERY + 4)


async def test_one_that_is_taken_can_be_loaded() -> None:
    kept = Kept()
    found = of(kept)
    await found.look()
    await found.take(state(), "ab")
    assert found.failed == 0
    assert found.age(EVERY + 7) == 7
    assert "n0" in load(kept.saved[0].body).nodes


@pytest.mark.parametrize("huge", [INTEGER_MOST + 1, 10**30])
async def test_what_cannot_be_encoded_is_told_and_ends_with_the_next_that_is_taken(huge: int) -> None:
    """Mutant: only JournalError is caught: the task ends with an OverflowError that nobody reads."""
    found = of(Kept())
    await found.look()
    found.begun(EVERY)
    await found.take(state(memory_gib=huge), "ab")
    assert found.failed == 1
    assert "the fleet cannot be written: OverflowError" in found.fault(EVERY)
    assert "none was ever taken" in found.fault(EVERY)
    await found.look()
    assert found.fault(EVERY), "looking at the old one mends nothing"
    await found.take(state(), "ab")
    assert found.fault(EVERY) == ""


async def test_a_journal_that_refuses_is_told() -> None:
    kept = Kept()
    kept.raises = JournalError("the disk is full")
    found = of(kept)
    await found.take(state(), "ab")
    assert (found.failed, "the disk is full" in found.fault(EVERY)) == (1, True)


async def test_who_stands_by_sees_that_none_is_taken() -> None:
    """Mutant: only the one that failed knows."""
    found = of(Kept(100))
    await found.look()
    assert found.fault(100 + LATE - 1) == ""
    assert found.fault(100 + LATE) == (
        f"no snapshot for {LATE} records (the last of record 100): the active controller has taken none; see its log"
    )


async def test_another_controller_that_has_taken_one_mends_it() -> None:
    kept = Kept()
    found = of(kept)
    found.begun(EVERY)
    await found.take(state(memory_gib=10**30), "ab")
    kept.newest = EVERY + 3
    await found.look()
    assert found.fault(EVERY + 3) == ""
