"""Records that others brought about hide nothing of a node: bill, history, lanes, drills, files are read by name."""

import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from hostler.core.report.evidence_bundle import MAX_OBSERVATIONS
from hostler.core.state import events as e
from hostler.core.state.model import Condition, Observation, Severity
from hostler.journal import schema
from hostler.journal.memory import MemoryJournal
from hostler.journal.named_records import PAGE, each_named_since, each_record, record_names
from hostler.journal.opening import open_database, open_journal
from hostler.journal.sql import SqlJournal
from hostler.ports import Batch, RecordWindow
from hostler.server.routes import node_stories
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import XID79, House, house
from tests.contract.journal_samples import at, boot, boots, of_events
from tests.drawing import first_in_gate

Journal = SqlJournal | MemoryJournal
CROWD = 21_000
"""More than any reader once took for the last records of a node (20 pages of 1,000)."""


def crowd(node: str, count: int, chance: random.Random) -> list[e.Event]:
    """Records about the node that another's words brought about: claims on its parts, raised, changed, cleared."""
    told: list[e.Event] = []
    now = datetime.now(UTC)
    while len(told) < count:
        part = f"GPU-x-{chance.randrange(99)}"
        kind = "inventory.claimed_twice"
        claimed = Condition(
            f"{node}/{kind}/{part}", kind, node, Severity.info, now, now, "observation", "hostler", part
        )
        told.append(e.ConditionRaised(claimed))
        told += [e.ConditionUpdated(claimed)] * chance.randrange(4)
        told.append(e.ConditionCleared(node, claimed.id, "observation", "another says otherwise"))
    return told


async def crowded(inside: House, journal: Journal, count: int = CROWD) -> None:
    """Has the records appended where the cell no longer runs, so that it reads them when it starts again."""
    await inside.cell.stop()
    events, before = crowd("n0", count, random.Random(7)), journal.latest_seq()
    epoch, now = journal.acquire("crowd"), datetime.now(UTC)
    records = [e.Record(seq, now, epoch, "agent:n9", event) for seq, event in enumerate(events, before + 1)]
    for first in range(0, len(records), 5_000):
        journal.append(Batch(records=tuple(records[first : first + 5_000])), epoch)
    journal.resign(epoch)


@pytest.fixture
async def told(journal: Journal, tmp_path: Path) -> AsyncIterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Answers about n0 before and after others had 21,000 records written on it; the second cell reads the journal."""
    async with AsyncExitStack() as stack:
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        async with house(tmp_path / "a", journal=journal) as inside:
            await inside.adopt(1)
            assert (await inside.operator.post("/v1/nodes/n0/hold", {"reason": "a fan rattles"}))[0] == 200
            before = await answers(inside)
            await crowded(inside, journal)
        inside = await stack.enter_async_context(house(tmp_path / "b", journal=journal))
        yield before, await answers(inside)


async def answers(inside: House) -> dict[str, Any]:
    """Answers to a tenant and to people who see all."""
    inside.app_state.now = lambda: datetime.now(UTC) + timedelta(seconds=792)
    tenant = inside.client(Grant("alice", Role.tenant, tenant="acme"))
    found: dict[str, Any] = {}
    for who, person in (("tenant", tenant), ("operator", inside.operator)):
        for path in ("/nodes/n0/history", "/nodes/n0/explain", "/nodes/n0/lanes", "/statement", "/maintenance?node=n0"):
            status, body = await person.call("GET", f"/v1{path}")
            assert status == 200, (who, path, body)
            found[f"{who} {path}"] = body
    found["changes"] = (await inside.operator.get("/v1/status"))["changes"]
    intent = next(one for one in found["operator /nodes/n0/lanes"]["intervals"] if one["lane"] == "person")
    found["person"] = intent["what"]
    return found


@pytest.mark.parametrize("journal", first_in_gate(["sqlite", "postgres", "memory"]), indirect=True)
async def test_a_bill_is_whole_and_a_tenant_reads_its_node_whatever_was_recorded_of_it(
    told: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    """Mutants: a bill is read from the last 10,000 records; a tenant's interval is looked for in the last 20,000.

    Lanes are of the last 10,000; an explanation is of the last 1,000; people's acts in the status of the last 20,000.
    """
    before, after = told
    assert [one for one in after["changes"]["latest"] if "asked for hold" in one["text"]]
    assert [one for one in after["changes"]["moves"] if one["name"] == "phase_changed"]
    for which in ("latest", "moves"):
        numbers = [one["seq"] for one in after["changes"][which]]
        assert numbers == sorted(set(numbers), reverse=True)
    for who in ("tenant", "operator"):
        (row,) = after[f"{who} /statement"]["items"]
        assert row["since"] == before[f"{who} /statement"]["items"][0]["since"], "from its first second on"
        assert not [one for one in row["causes"] if one["kind"] == "unrecorded"]
        assert sum(one["seconds"] for one in row["causes"]) == row["had_s"] >= 792
        kept, now = (one[f"{who} /nodes/n0/lanes"] for one in (before, after))
        assert (now["since"], now["partial"], now["first"]) == (kept["since"], kept["partial"], kept["first"])
        assert {one["lane"] for one in kept["intervals"]} <= {one["lane"] for one in now["intervals"]}
        assert after[f"{who} /nodes/n0/explain"]["since"] == before[f"{who} /nodes/n0/explain"]["since"]
        assert not after[f"{who} /nodes/n0/explain"]["partial"]


NAMES = record_names(e.NodeReleased, e.PartMoved)


def test_records_of_some_names_are_all_found_among_others(journal: Journal) -> None:
    """Mutants: a page is the end; a page's last record is read twice; other names' rows fill the page."""
    epoch = journal.acquire("a")
    wanted: list[int] = []
    for seq in range(1, 12_001, 2_000):
        rare: list[e.Event] = [
            e.NodeReleased(node="n3", reason="x", at=at(seq)),
            e.PartMoved(serial="S", before="n3", after="n4", slot="gpu0"),
        ]
        journal.append(boots(seq, seq + 1_997), epoch)
        named = (e.Record(seq + 1_998 + i, at(seq), epoch, "", one) for i, one in enumerate(rare))
        journal.append(Batch(records=tuple(named)), epoch)
        wanted += [seq + 1_998, seq + 1_999]
    for oldest_first in (False, True):
        window = RecordWindow(subject="n3", names=NAMES, oldest_first=oldest_first)
        found = [r.seq for r in each_record(journal, window, 3)]
        assert found == (wanted if oldest_first else wanted[::-1])
        assert [r.seq for r in journal.window(window, 3)] == found[:3]
    before = each_record(journal, RecordWindow(before=wanted[-1], subject="n3", names=NAMES), 1)
    assert next(before).seq == wanted[-2]
    assert not list(each_record(journal, RecordWindow(subject="n3", names=("hold_placed",))))
    assert len(list(each_record(journal, RecordWindow(subject="n3")))) == 6 * 200 + len(wanted)


def test_all_of_a_name_since_a_moment_are_read_also_of_one_moment(journal: Journal) -> None:
    """Mutant: records of the moment at which a page ends are lost, or told twice."""
    records = [e.Record(seq, at(seq // 1_500), 1, "", boot(seq).event) for seq in range(1, 2 * PAGE + 502)]
    journal.append(Batch(records=tuple(records)), journal.acquire("a"))
    name = record_names(type(boot(1).event))
    found = [r.seq for r in each_named_since(journal, name, at(1))]
    assert found == list(range(2 * PAGE + 501, 1_499, -1))


def test_of_rows_without_a_name_the_record_is_asked(place: str) -> None:
    """Mutants: what a controller of the layout before wrote is not found by its name; is found by any name."""
    journal = open_journal(place)
    moved = [e.PartMoved(serial="S", before="n3", after="n4", slot="gpu0")]
    events = [*[boot(3).event] * 50, *moved, *[boot(3).event] * 50]
    journal.append(Batch(records=of_events(events)), journal.acquire("a"))
    database = open_database(place, writable=True)
    with database.writing() as db:
        db.execute(update(schema.subjects).values(name=None))
    database.close()
    found = [r.seq for r in each_record(journal, RecordWindow(subject="n3", names=NAMES), 1)]
    assert found == [51]
    journal.close()


def seen(sequence: int, source: str) -> Observation:
    """A raw observation of n0, later than those before it."""
    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=sequence)
    return Observation("n0", "event_log", source, source, sequence, text=f"line {sequence}", received=moment)


async def test_an_agents_log_hides_nothing_that_the_bmc_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: the last so many of all sources are searched; a page that found nothing is the end."""
    monkeypatch.setattr(node_stories, "LOOKED_MOST", 400)
    monkeypatch.setattr(node_stories, "LOOKED_AT_ONCE", 200)
    journal = MemoryJournal()
    told = (*(seen(n, "bmc") for n in range(1, 4)), *(seen(n, "agent") for n in range(4, 1_004)))
    journal.append(Batch(observations=told), journal.acquire("crowd"))
    async with house(tmp_path, journal=journal) as inside:
        await inside.adopt(1)
        for source, limit, count in (("bmc", 2, 3), ("agent", 700, 1_000), ("", 300, 1_003)):
            found, cursor, pages = list[str](), "", 0
            while pages == 0 or cursor:
                path = f"/v1/nodes/n0/observations?source={source}&limit={limit}&cursor={cursor}"
                page = await inside.operator.get(path)
                found += [one["text"] for one in page["items"] if one["text"].startswith("line ")]
                cursor, pages = page["cursor"], pages + 1
            assert len(found) == len(set(found)) == count, source
        status, answer = await inside.operator.call("GET", "/v1/nodes/n0/observations?cursor=n0/s/9")
        assert (status, answer["instead"]) == (404, "list from the newest on, without a cursor")


NOISE = MAX_OBSERVATIONS + 100


async def test_a_log_that_repeats_itself_hides_no_fault_from_its_vendor(tmp_path: Path) -> None:
    """Mutants: a bundle has the node's last 2,000 lines alone; it does not say since when it has all of them."""
    async with house(tmp_path) as inside:
        await inside.adopt(1)
        await inside.report("n0", kind="kernel_log", text=XID79, facility=0)
        await inside.until(lambda: inside.cell.view.nodes["n0"].conditions)
        quiet = (await inside.operator.get("/v1/nodes/n0/evidence"))["files"]
        assert "Xid" in quiet["log.txt"]
        assert "only those on which" not in quiet["missing.txt"]
        for first in range(1, NOISE, 700):
            lines = [
                {"node": "n0", "source": "agent", "spool": "s2", "sequence": n, "kind": "kernel_log", "facility": 0}
                | {"text": f"usb 1-1: new device number {n}"}
                for n in range(first, min(first + 700, NOISE + 1))
            ]
            body = {"node": "n0", "spool": "s2", "boot_id": "", "observations": lines}
            status, answer = await inside.agent("n0").post("/v1/agent/observations", body)
            assert status == 200, answer
        files = (await inside.operator.get("/v1/nodes/n0/evidence"))["files"]
        told = files["log.txt"].splitlines()
        assert MAX_OBSERVATIONS - 20 <= len([line for line in told if "new device" in line]) <= MAX_OBSERVATIONS
        (fault,) = [line for line in told if "Xid" in line]
        assert told[0] == fault, "the oldest comes first"
        assert "only those on which a condition rests are here" in files["missing.txt"]
