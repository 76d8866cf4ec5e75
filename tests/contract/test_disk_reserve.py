"""A cell whose disk runs short: observations are refused and kept by their agents, people and records go on."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hostler.core.notify.notices import notices
from hostler.core.state.events import DiskRoomChanged
from hostler.core.state.notify_routes import PageRules
from hostler.journal.journal_room import JournalFullError, JournalRoom
from hostler.journal.memory import MemoryJournal
from hostler.journal.opening import open_journal
from hostler.journal.sqlite import SqliteDatabase
from hostler.ports import Batch
from hostler.runtime.disk_room import MIB
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House, house
from tests.contract.journal_samples import boots


class ShortJournal(MemoryJournal):
    """A journal in memory on a disk of 150 MB; `free` bytes are left, and none are where it `fails`."""

    def __init__(self) -> None:
        super().__init__()
        self.free, self.fails, self.taken = 100 * MIB, False, 0
        self.short: list[bool] = []

    def room(self) -> JournalRoom:
        return JournalRoom(self.free, 150 * MIB, "/srv/hostler")

    def save_room(self, *, short: bool) -> None:
        self.short.append(short)

    def append(self, batch: Batch, epoch: int) -> None:
        if self.fails:
            raise JournalFullError("no room")
        super().append(batch, epoch)

    def acquire(self, *args: Any, **more: Any) -> int:
        self.taken += 1
        return super().acquire(*args, **more)


@pytest.fixture
def journal() -> ShortJournal:
    return ShortJournal()


@pytest.fixture
async def world(tmp_path: Path, journal: ShortJournal) -> AsyncIterator[House]:
    async with house(tmp_path, journal=journal) as inside:
        await inside.adopt(2)
        yield inside


def observed(number: int) -> dict[str, Any]:
    seen = {"node": "n0", "source": "agent", "spool": "s1", "sequence": number, "kind": "kernel_log", "text": "systemd"}
    return {"node": "n0", "spool": "s1", "boot_id": "", "observations": [seen]}


async def ready(world: House) -> tuple[int, dict[str, Any]]:
    return await world.operator.call("GET", "/readyz")


async def test_below_the_reserve_agents_wait_and_people_do_not(world: House, journal: ShortJournal) -> None:
    """Mutants: observations are taken to the end; a person waits too; it is said nowhere; it never ends."""
    agent = world.agent("n0")
    journal.free = 20 * MIB
    await world.until(lambda: world.cell.health().disk)
    status, refused = await agent.post("/v1/agent/observations", observed(9_000))
    assert (status, refused["error"]) == (503, "no_room")
    assert "32 MiB are kept for records and acts" in refused["detail"]
    reading = {"node": "n0", "boot_id": "b", "window": 1, "age_s": 1.0, "readings": []}
    assert (await agent.post("/v1/agent/readings", reading))[0] == 503
    assert (await agent.post("/v1/agent/heartbeat", {"node": "n0", "boot_id": "first-n0"}))[0] in (200, 204)
    assert (await world.operator.post("/v1/nodes/n1/cordon", {"reason": "a fan rattles"}))[0] == 200
    status, told = await ready(world)
    assert (status, told["role"], "no observations" in told["disk"]) == (200, "active", True)
    assert "no observations" in (await world.operator.get("/v1/status"))["disk"]
    await world.until(lambda: world.cell.view.cell.disk)
    assert "disk_reserve_reached 1" in str((await world.operator.call("GET", "/metrics"))[1])
    assert (await world.client(Grant("alice", Role.tenant, tenant="acme")).get("/v1/status"))["disk"] == ""
    journal.free = 100 * MIB
    await world.until(lambda: not world.cell.health().disk)
    assert (await agent.post("/v1/agent/observations", observed(9_000)))[0] == 200
    await world.until(lambda: not world.cell.view.cell.disk)
    changes = [r.event for r in journal.records() if isinstance(r.event, DiskRoomChanged)]
    assert [bool(event.low) for event in changes] == [True, False], "told once each way"
    notes = [next(iter(notices(event, {}, PageRules()))) for event in changes]
    assert [(note.action, note.subject) for note in notes] == [("open", "disk"), ("over", "disk")]
    assert journal.taken == 1, "it was active throughout"


async def test_a_full_disk_is_one_state(world: House, journal: ShortJournal) -> None:
    """Mutants: the lease is taken anew after each failure; it is ready; it does not go on by itself."""
    journal.free, journal.fails = 1 * MIB, True
    await world.until(lambda: world.cell.role == "standby")
    await asyncio.sleep(2.0)
    status, told = await ready(world)
    assert (status, told["role"]) == (503, "standby")
    assert "is full (1 MiB left)" in told["why"]
    assert (await world.operator.post("/v1/nodes/n1/cordon", {"reason": "a fan rattles"}))[0] == 503
    assert journal.taken == 1
    journal.free, journal.fails = 100 * MIB, False
    await world.until(lambda: world.cell.role == "active")
    assert (await world.operator.post("/v1/nodes/n1/cordon", {"reason": "a fan rattles"}))[0] == 200
    assert journal.taken == 2


def test_a_file_tells_its_room_and_that_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: free pages of the file, or what the log will still take, are not counted; full is any failure."""
    path = tmp_path / "journal"
    journal = open_journal(path)
    epoch = journal.acquire("a")
    before = journal.room()
    assert before is not None
    journal.append(boots(1, 5_000), epoch)
    logged = journal.room()
    journal.save_room(short=True)
    folded = journal.room()
    assert logged is not None
    assert folded is not None
    assert path.with_name("journal-wal").stat().st_size == 0
    assert before.size == logged.size > logged.free
    database = SqliteDatabase(path)
    with database.writing() as db:
        pages = db.exec_driver_sql("PRAGMA page_count").scalar_one()
    database.close()
    assert pages * 4096 <= path.stat().st_size + 4096
    writer = journal._database._writer  # type: ignore[attr-defined]  # noqa: SLF001 - its limit stands in for the disk's
    with writer.connect() as connection:
        connection.connection.driver_connection.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(JournalFullError):
        journal.append(boots(5_001, 9_000), epoch)
    assert journal.latest_seq() == 5_000
    journal.close()
