"""The audit log in each database: chains that follow, seals that are met, what leaves, and who tampered where."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import delete, update

from hostler.core.state.audit import Seal
from hostler.journal import audit_log
from hostler.journal.audit_log import KEPT, AuditEntry, AuditQuery, Keeping, SqlAuditLog, open_audit_log
from hostler.journal.codec import micros

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ACT = AuditEntry(
    chain="acts", at=NOW, last=NOW, person="ann", role="operator", token="0123456789ab", address="10.0.0.9",
    method="POST", route="/v1/nodes/{node_id}/{verb}", verb="drain", target="n1", status=200, outcome="done",
    request="r1", controller="c1", intent="i1",
)  # fmt: skip
REFUSED = replace(ACT, chain="refusals", person="", role="", token="", status=401, outcome="refused", intent="")
ENTRIES = audit_log._ENTRIES  # noqa: SLF001 - whoever tampers knows the table
HEADS = audit_log._HEADS  # noqa: SLF001


@pytest.fixture
def log(place: str) -> Iterator[SqlAuditLog]:
    found = open_audit_log(place)
    yield found
    found.close()


def acts(number: int, start: int = 0) -> list[AuditEntry]:
    return [replace(ACT, at=NOW + timedelta(seconds=n), last=NOW + timedelta(seconds=n), target=f"n{n}")
            for n in range(start, start + number)]  # fmt: skip


def change(log: SqlAuditLog, *statements: Any) -> None:
    with log._database.writing() as db:  # noqa: SLF001 - past every rule
        for one in statements:
            db.execute(one)


def test_entries_are_chained_by_chain_and_read_newest_first_a_page_at_a_time(log: SqlAuditLog) -> None:
    log.append([*acts(3), REFUSED], NOW)
    log.append(acts(2, start=3), NOW)
    assert [(s.chain, s.number) for s in log.seals()] == [("acts", 5), ("refusals", 1)]
    found = log.listed(AuditQuery(), 4)
    assert [row.entry.target for row in found[:4]] == ["n4", "n3", "n2", "n1"]
    last = found[-1]
    rest = log.listed(AuditQuery(before=(micros(last.entry.at), last.entry.chain, last.number)), 4)
    assert sorted((row.entry.chain, row.number) for row in rest) == [("acts", 1), ("refusals", 1)]
    assert log.faults([(seal, NOW) for seal in log.seals()], NOW) == []
    assert found[0].entry == acts(1, start=4)[0]


@pytest.mark.parametrize(
    ("wanted", "number"),
    [
        (AuditQuery(person="ann"), 3), (AuditQuery(person="bob"), 0), (AuditQuery(chain="refusals"), 1),
        (AuditQuery(outcome="refused"), 1), (AuditQuery(target="n2"), 1), (AuditQuery(verb="drain"), 4),
        (AuditQuery(address="10.0.0.9"), 4), (AuditQuery(since=NOW + timedelta(seconds=2)), 1),
        (AuditQuery(until=NOW + timedelta(seconds=1)), 2), (AuditQuery(person="ann' OR 1=1 --"), 0),
    ],
)  # fmt: skip
def test_each_filter_leaves_what_it_names(log: SqlAuditLog, wanted: AuditQuery, number: int) -> None:
    log.append([*acts(3), REFUSED], NOW)
    assert len(log.listed(wanted, 10)) == number


def removed_in_the_middle() -> tuple[Any, ...]:
    return (delete(ENTRIES).where(ENTRIES.c.number == 3),)


def changed() -> tuple[Any, ...]:
    return (update(ENTRIES).where(ENTRIES.c.number == 3).values(person="eve"),)


def moment_changed() -> tuple[Any, ...]:
    return (update(ENTRIES).where(ENTRIES.c.number == 3).values(at=ENTRIES.c.at + 1),)


def taken_off_the_end() -> tuple[Any, ...]:
    return (delete(ENTRIES).where(ENTRIES.c.number >= 4),)


TAMPERED: list[tuple[Callable[[], tuple[Any, ...]], str]] = [
    (removed_in_the_middle, "acts: entry 3 missing"),
    (changed, "acts: entry 3 of 2026-03-01 12:00:02 UTC and its digest differ"),
    (moment_changed, "acts: entry 3 of 2026-03-01 12:00:02 UTC and its digest differ"),
    (taken_off_the_end, "acts: it ends with entry 3, and 5 were written"),
]


@pytest.mark.parametrize(("tamper", "said"), TAMPERED)
def test_an_entry_that_is_changed_or_taken_away_is_named(
    log: SqlAuditLog, tamper: Callable[[], tuple[Any, ...]], said: str
) -> None:
    log.append(acts(5), NOW)
    change(log, *tamper())
    assert log.faults([], NOW) == [said]


def test_a_chain_that_was_made_anew_is_not_the_one_that_the_journal_sealed(log: SqlAuditLog) -> None:
    """Mutant: trust the head row. Who rewrites chain and head alike is found by the journal's seal."""
    log.append(acts(5), NOW)
    sealed = [(seal, NOW) for seal in log.seals()]
    change(log, delete(ENTRIES), delete(HEADS))
    log.append([replace(one, person="eve") for one in acts(5)], NOW)
    assert log.faults([], NOW) == []
    [said] = log.faults(sealed, NOW)
    assert said == "acts: entry 5 is not the one that the journal sealed at 2026-03-01 12:00:00 UTC"
    change(log, delete(ENTRIES), delete(HEADS))
    assert log.faults(sealed, NOW) == ["acts: the journal has sealed 5 entries, and none is here"]
    log.append(acts(2), NOW)
    assert log.faults(sealed, NOW) == [said]


def test_what_has_had_its_time_leaves_and_the_rest_still_follows(
    log: SqlAuditLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: a flood of refusals pushes out acts; what left looks like what was taken."""
    monkeypatch.setitem(KEPT, "refusals", Keeping(30, 3))
    log.append(acts(4), NOW)
    log.append([REFUSED] * 10, NOW)
    assert [row.number for row in log.listed(AuditQuery(chain="refusals"), 99)] == [10, 9, 8]
    assert len(log.listed(AuditQuery(chain="acts"), 99)) == 4
    later = NOW + timedelta(days=400)
    sealed = [(seal, NOW) for seal in log.seals()]
    log.append([replace(ACT, at=later, last=later)], later)
    assert [row.number for row in log.listed(AuditQuery(chain="acts"), 99)] == [5]
    assert log.faults(sealed, later) == []


def test_entries_that_left_before_their_time_are_told(log: SqlAuditLog) -> None:
    """A younger seal finds out whoever claims that entries have had their time."""
    log.append(acts(5), NOW)
    digest = log.listed(AuditQuery(), 5)[2].digest
    sealed = [(Seal("acts", 2, log.listed(AuditQuery(), 5)[3].digest), NOW), *((s, NOW) for s in log.seals())]
    change(log, delete(ENTRIES).where(ENTRIES.c.number <= 3),
           update(HEADS).values(left=3, left_digest=bytes.fromhex(digest)))  # fmt: skip
    assert log.faults(sealed, NOW + timedelta(days=1)) == ["acts: entries up to 3 have left before their 365 days"]


def test_any_text_is_kept_and_cut(log: SqlAuditLog) -> None:
    odd = replace(ACT, target="a\0b\ud800" + "x" * 500, person="=cmd|' /C'!A0")
    log.append([odd], NOW)
    [row] = log.listed(AuditQuery(), 1)
    assert row.entry.target.startswith("ab?x")
    assert len(row.entry.target) <= 200
    assert log.faults([], NOW) == []
