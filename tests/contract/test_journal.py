"""Promises of every journal, asked of each: the one on disk and its twin in memory."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from hostler.core.state.events import ConditionRaised, NodeReleased, PartMoved, PlanRecorded, Record, subjects_of
from hostler.core.state.model import Condition, Step
from hostler.core.state.operations import SwitchOff
from hostler.journal.codec import LIMIT_MAX, OutOfPlaceError, UnwritableError
from hostler.journal.memory import MemoryJournal
from hostler.journal.opening import open_journal
from hostler.journal.sql import SqlJournal
from hostler.ports import Batch, FencedError, Journal, JournalError, RecordWindow, Snapshot
from tests.contract.journal_samples import START, at, boot, boots, every_event, observed, of_events, sample


def state(journal: SqlJournal | MemoryJournal) -> tuple[object, ...]:
    """State as a reader can see, to compare before and after."""
    return (
        list(journal.records()),
        journal.digest(),
        journal.cursors(),
        journal.history("n1"),
        journal.observations_of("n1"),
        journal.snapshot(),
        journal.latest_seq(),
        journal.count(),
    )


def test_it_is_the_port(journal: Journal) -> None:
    assert journal.acquire("a") == 1


def test_an_empty_journal_answers(journal: SqlJournal | MemoryJournal) -> None:
    assert state(journal) == ([], "00" * 16, {}, [], [], None, 0, 0)
    assert journal.observation("n/s/1") is None
    assert journal.observation("no id") is None
    assert journal.observation(f"n/s/{2**70}") is None
    assert list(journal.records(after=5)) == []


def test_what_was_appended_is_read_back(journal: SqlJournal | MemoryJournal) -> None:
    records = of_events(every_event())
    epoch = journal.acquire("a")
    journal.append(Batch(records=records[:10]), epoch)
    journal.append(Batch(records=records[10:]), epoch)
    assert tuple(journal.records()) == records
    assert tuple(journal.records(after=30)) == records[30:]
    assert (journal.latest_seq(), journal.count()) == (len(records), len(records))


def test_reading_goes_on_over_pages(journal: SqlJournal | MemoryJournal) -> None:
    """Mutant: the page's last record is read twice, or the next page skips one."""
    journal.append(boots(1, 4_321), journal.acquire("a"))
    assert [record.seq for record in journal.records(after=100)] == list(range(101, 4_322))


def test_records_of_some_names_since_a_moment_the_latest_first(journal: SqlJournal | MemoryJournal) -> None:
    """Mutants: the earliest of too many; every name."""
    journal.append(boots(1, 9), journal.acquire("a"))
    name = boot(1).event.__struct_config__.tag
    assert [r.seq for r in journal.named_since(("x", str(name)), at(4), limit=3)] == [9, 8, 7]
    assert [r.seq for r in journal.named_since((str(name),), at(8), limit=9)] == [9, 8]
    assert journal.named_since(("phase_changed",), at(0), limit=9) == []


def test_a_window_is_read_from_either_end(journal: SqlJournal | MemoryJournal) -> None:
    """Mutants: either end is within; a subject's or a name's rows come from outside; the order is one and the same."""
    journal.append(boots(1, 50), journal.acquire("a"))
    name = str(boot(1).event.__struct_config__.tag)
    window = RecordWindow(10, 20)
    assert [r.seq for r in journal.window(window, 99)] == list(range(19, 10, -1))
    assert [r.seq for r in journal.window(replace(window, oldest_first=True), 3)] == [11, 12, 13]
    assert [r.seq for r in journal.window(RecordWindow(10, None, "n3"), 3)] == [43, 33, 23]
    assert [r.seq for r in journal.window(RecordWindow(10, 40, "n3", name[:4], oldest_first=True), 9)] == [13, 23, 33]
    assert journal.window(replace(window, name=name + "x"), 9) == []
    assert journal.window(replace(window, name=name.upper()), 9) == []
    assert journal.window(RecordWindow(subject="nobody"), 9) == []
    assert len(journal.window(RecordWindow(), 10**9)) == 50


def test_the_first_record_since_a_moment(journal: SqlJournal | MemoryJournal) -> None:
    """Mutants: the one before; by number where a clock went back; none is the last."""
    records = [Record(seq, at(moment), 1, "", boot(seq).event) for seq, moment in enumerate((5, 9, 7, 7, 1), 1)]
    journal.append(Batch(records=tuple(records)), journal.acquire("a"))
    assert [journal.first_since(at(moment)) for moment in (0, 1, 2, 6, 8, 10)] == [5, 5, 1, 3, 2, 0]


def test_history_is_newest_first_and_pages_backwards(journal: SqlJournal | MemoryJournal) -> None:
    journal.append(boots(1, 50), journal.acquire("a"))
    assert [r.seq for r in journal.history("n3")] == [43, 33, 23, 13, 3]
    assert [r.seq for r in journal.history("n3", limit=2)] == [43, 33]
    assert [r.seq for r in journal.history("n3", before=33, limit=2)] == [23, 13]
    assert journal.history("n3", limit=-1) == []
    assert journal.history("nobody") == []


def test_history_follows_a_part_from_node_to_node(journal: SqlJournal | MemoryJournal) -> None:
    condition: Condition = sample(Condition)
    raised = ConditionRaised(condition=condition)
    moved = PartMoved(serial=condition.part, before=condition.node, after="n2", slot="gpu3")
    journal.append(Batch(records=of_events([raised, moved])), journal.acquire("a"))
    assert [r.seq for r in journal.history(condition.part)] == [2, 1]
    assert [r.seq for r in journal.history("n2")] == [2]


def test_a_subject_named_twice_is_one(journal: SqlJournal | MemoryJournal) -> None:
    moved = PartMoved(serial="S", before="n1", after="n1", slot="gpu3")
    assert subjects_of(moved) == ("S", "n1", "n1")
    journal.append(Batch(records=of_events([moved])), journal.acquire("a"))
    assert [r.seq for r in journal.history("n1")] == [1]


def test_every_page_has_a_maximum(journal: SqlJournal | MemoryJournal) -> None:
    journal.append(boots(1, LIMIT_MAX + 5), journal.acquire("a"))
    assert len(journal.window(RecordWindow(), 10**9)) == LIMIT_MAX


def test_cursors_are_replaced(journal: SqlJournal | MemoryJournal) -> None:
    epoch = journal.acquire("a")
    journal.append(Batch(cursors={"n2": ("s", 1), "n1": ("s", 4)}), epoch)
    journal.append(Batch(cursors={"n1": ("t", 2)}), epoch)
    assert journal.cursors() == {"n1": ("t", 2), "n2": ("s", 1)}
    assert list(journal.cursors()) == ["n1", "n2"]


def test_an_observation_is_stored_once(journal: SqlJournal | MemoryJournal) -> None:
    """Mutant: a repeated observation replaces the first, or fails the batch."""
    epoch = journal.acquire("a")
    first, again = observed("n1", 7), observed("n1", 7, spool="s")
    journal.append(Batch(observations=(first, again, observed("n1", 7, spool="t"))), epoch)
    journal.append(Batch(observations=(observed("n1", 7), observed("n1", 8)), records=(boot(1),)), epoch)
    assert journal.observation("n1/s/7") == first
    assert [o.id for o in journal.observations_of("n1")] == ["n1/s/8", "n1/t/7", "n1/s/7"]
    assert journal.latest_seq() == 1


def test_observations_of_a_node_newest_first(journal: SqlJournal | MemoryJournal) -> None:
    batch = Batch(observations=tuple(observed(f"n{i % 3}", i) for i in range(1, 31)))
    journal.append(batch, journal.acquire("a"))
    assert [o.sequence for o in journal.observations_of("n1", limit=3)] == [28, 25, 22]
    assert [o.sequence for o in journal.observations_of("n1", since=at(22))] == [28, 25, 22]
    assert journal.observations_of("nobody") == []


@pytest.mark.parametrize("limit", [1, 3, 4, 10, 11])
def test_observations_go_on_beyond_one_of_them(journal: SqlJournal | MemoryJournal, limit: int) -> None:
    """Also among many of one moment. Mutants: the page's last comes again; those of its moment are left out."""
    seen = tuple(replace(observed(f"n{i % 3}", i), received=at(i // 9)) for i in range(1, 31))
    journal.append(Batch(observations=seen), journal.acquire("a"))
    whole = [o.id for o in journal.observations_of("n1", limit=100)]
    assert len(whole) == 10
    found, beyond = list[str](), ""
    while page := journal.observations_of("n1", None, limit, beyond):
        found += [o.id for o in page]
        beyond = found[-1]
    assert found == whole
    assert journal.observations_of("n1", None, 9, "n1/s/999") == []
    assert journal.observations_of("n1", None, 9, "no id") == []


def test_a_node_name_may_hold_slashes(journal: SqlJournal | MemoryJournal) -> None:
    journal.append(Batch(observations=(observed("cell/r1/n1", 3),)), journal.acquire("a"))
    assert journal.observation("cell/r1/n1/s/3") == observed("cell/r1/n1", 3)


def test_a_new_epoch_fences_the_old(journal: SqlJournal | MemoryJournal) -> None:
    """Mutants: the epoch is not checked, is checked with <, or only for batches that hold records."""
    old, new = journal.acquire("a"), journal.acquire("b")
    assert (old, new) == (1, 2)
    for batch in (boots(1, 1), Batch(cursors={"n": ("s", 1)}), Batch(observations=(observed("n", 1),)), Batch()):
        for epoch in (0, old, new + 1):
            with pytest.raises(FencedError, match=rf"epoch {epoch} is fenced: b holds epoch 2"):
                journal.append(batch, epoch)
    assert state(journal) == ([], "00" * 16, {}, [], [], None, 0, 0)
    journal.append(boots(1, 1, epoch=2), new)


def test_nobody_writes_before_acquiring(journal: SqlJournal | MemoryJournal) -> None:
    with pytest.raises(FencedError, match="nobody holds epoch 0"):
        journal.append(boots(1, 1), 0)


@pytest.mark.parametrize("records", [(boot(4),), (boot(2),), (boot(3), boot(5)), (boot(3), boot(3)), (boot(3, 7),)])
def test_a_record_out_of_place_stops_its_batch(
    journal: SqlJournal | MemoryJournal, records: tuple[Record, ...]
) -> None:
    """Mutant: what came before the record that is out of place stays."""
    epoch = journal.acquire("a")
    journal.append(boots(1, 2), epoch)
    before = state(journal)
    with pytest.raises(OutOfPlaceError, match="decide again"):
        journal.append(Batch(records=records, observations=(observed("n1", 1),), cursors={"n1": ("s", 1)}), epoch)
    assert state(journal) == before


PLANNED: PlanRecorded = sample(PlanRecorded)
ENDLESS = replace(PLANNED, plan=replace(PLANNED.plan, steps=(Step(SwitchOff(), float("inf")),)))
UNWRITABLE = {
    "a wrong type": Batch(records=(Record(2, at(2), 1, "", NodeReleased(node=None, at=START, reason="")),)),  # type: ignore[arg-type]
    "an infinite number": Batch(records=(Record(2, at(2), 1, "", ENDLESS),)),
    "a naive moment": Batch(records=(Record(2, at(2).replace(tzinfo=None), 1, "", boot(2).event),)),
    "half a character": Batch(records=(boot(2, node="\ud800"),)),
    "a cause that is half a character": Batch(records=(Record(2, at(2), 1, "\ud800", boot(2).event),)),
    "a sequence beyond any column": Batch(records=(boot(2),), observations=(observed("n1", 2**63),)),
    "a cursor beyond any column": Batch(records=(boot(2),), cursors={"n1": ("s", 2**63)}),
    "a cursor of half a character": Batch(records=(boot(2),), cursors={"n1": ("\ud800", 1)}),
    "an observation of half a character": Batch(records=(boot(2),), observations=(observed("\ud800", 1),)),
}


@pytest.mark.parametrize("batch", UNWRITABLE.values(), ids=UNWRITABLE)
def test_what_could_not_be_read_back_is_refused(journal: SqlJournal | MemoryJournal, batch: Batch) -> None:
    """Mutant: `seal` does not decode what it encoded; the journal then never opens again."""
    epoch = journal.acquire("a")
    journal.append(boots(1, 1), epoch)
    before = state(journal)
    with pytest.raises(UnwritableError, match="cannot be stored"):
        journal.append(batch, epoch)
    assert state(journal) == before
    journal.append(boots(2, 2), epoch)


def test_snapshots_belong_to_their_journal(journal: SqlJournal | MemoryJournal) -> None:
    epoch = journal.acquire("a")
    journal.append(boots(1, 3), epoch)
    three = Snapshot(seq=3, digest=journal.digest(), body=bytes(range(256)) * 10_000)
    journal.save_snapshot(three)
    assert journal.snapshot() == three
    for wrong in (Snapshot(2, three.digest, b""), Snapshot(9, three.digest, b""), Snapshot(3, "00" * 16, b"")):
        with pytest.raises(OutOfPlaceError):
            journal.save_snapshot(wrong)
    assert journal.snapshot() == three
    journal.append(boots(4, 9), epoch)
    nine = Snapshot(seq=9, digest=journal.digest(), body=b"")
    journal.save_snapshot(nine)
    journal.save_snapshot(three)
    assert journal.snapshot() == nine


def test_a_snapshot_of_nothing(journal: SqlJournal | MemoryJournal) -> None:
    empty = Snapshot(seq=0, digest=journal.digest(), body=b"{}")
    journal.save_snapshot(empty)
    assert journal.snapshot() == empty


def test_both_journals_have_one_digest(tmp_path: Path) -> None:
    """Mutant: one of the two hashes the body without what stands around it."""
    digests = [_digests(make) for make in (MemoryJournal, lambda: open_journal(tmp_path / "journal"))]
    assert digests[0] == digests[1]
    assert len(set(digests[0])) == len(digests[0])


def _digests(make: Callable[[], SqlJournal | MemoryJournal]) -> list[str]:
    journal = make()
    epoch = journal.acquire("a")
    digests = [journal.digest()]
    for record in of_events(every_event()):
        journal.append(Batch(records=(record,), observations=(observed("n1", record.seq),)), epoch)
        digests.append(journal.digest())
    journal.close()
    return digests


@pytest.mark.parametrize(
    "changed",
    [
        Record(2, at(3), 1, "n/s/2", boot(2).event),
        Record(2, at(2), 1, "n/s/3", boot(2).event),
        Record(2, at(2), 1, "n/s/2", boot(3).event),
    ],
)
def test_another_history_has_another_digest(changed: Record) -> None:
    digests = []
    for second in (boot(2), changed):
        journal = MemoryJournal()
        journal.append(Batch(records=(boot(1), second, boot(3))), journal.acquire("a"))
        digests.append(journal.digest())
    assert digests[0] != digests[1]


def test_errors_are_the_ports_family() -> None:
    assert issubclass(OutOfPlaceError, JournalError)
    assert issubclass(UnwritableError, JournalError)
