"""Histories of racks, networks and others go on page by page to their beginning, and steps are read by name."""

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hostler.controller.inputs import RackSeen
from hostler.core.state import events as e
from hostler.core.state.racks import AssetLook
from hostler.journal.memory import MemoryJournal
from hostler.ports import Batch
from hostler.server.subject_histories import subject_history
from hostler.server.tokens import Grant, Identity, Role
from tests.contract.api_world import House, house
from tests.contract.test_api_incidents import dark_rack
from tests.contract.test_api_racks import begun

CROWD = 1_300
"""More than was once read for a rack's steps."""
ADA = Identity("t1", Grant("ada", Role.operator))


def append(journal: MemoryJournal, events: list[e.Event]) -> None:
    """Records that the next cell on this journal reads; the one before has stopped."""
    before, epoch, now = journal.latest_seq(), journal.acquire("crowd"), datetime.now(UTC)
    records = (e.Record(seq, now, epoch, "", event) for seq, event in enumerate(events, before + 1))
    journal.append(Batch(records=tuple(records)), epoch)
    journal.resign(epoch)


async def pages(world: House, path: str, limit: int, go_on: str = "before") -> list[dict[str, Any]]:
    """All rows of the history under a path, page by page."""
    rows: list[dict[str, Any]] = []
    cursor = ""
    while True:
        more = f"&{go_on}={cursor}" if cursor else ""
        page = await world.operator.get(f"{path}?limit={limit}{more}")
        told = page.get("history", page.get("items"))
        assert len(told) <= limit
        rows += told
        cursor = page["cursor"]
        if not cursor:
            return rows
        assert int(cursor) == told[-1]["seq"]


async def test_a_racks_steps_are_told_whatever_else_was_recorded_of_it(tmp_path: Path) -> None:
    """Mutants: steps are read from the rack's last 1,000 records; a history ends with its first page."""
    journal = MemoryJournal()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    async with house(tmp_path / "a", journal=journal) as world:
        await begun(world)
        supplies = (("psu1", "ok"), ("psu2", "ok"))
        look = AssetLook(world.cell.now(), serial="SH-1", health="ok", supplies=supplies)
        world.cell.tell(RackSeen("ps1", look))
        await world.until(lambda: world.cell.view.racks["r0"].run is None)
        status, answer = await world.operator.post("/v1/racks/r0/rack-certify", {"reason": "handed over"})
        assert status == 200, answer
        told = await world.operator.get("/v1/racks/r0")
        assert {one["state"] for one in told["steps"]} >= {"done"}
        assert told["cursor"] == ""
        await world.cell.stop()
        append(journal, [e.RackCertificateVoided("r0", f"a shelf was opened ({n})") for n in range(CROWD)])
    async with house(tmp_path / "b", journal=journal) as world:
        again = await world.operator.get("/v1/racks/r0")
        assert again["steps"] == told["steps"]
        assert (len(again["history"]), again["cursor"]) == (200, str(again["history"][-1]["seq"]))
        rows = await pages(world, "/v1/racks/r0", 500)
        numbers = [row["seq"] for row in rows]
        assert numbers == sorted(set(numbers), reverse=True)
        assert len(rows) == CROWD + len(told["history"])
        assert [row["seq"] for row in rows[-len(told["history"]) :]] == [row["seq"] for row in told["history"]]


async def test_a_history_goes_on_where_its_page_ends(tmp_path: Path) -> None:
    """Mutants: a cursor where nothing more comes; the last record is told twice; a page beyond the end is unknown."""
    async with house(tmp_path) as world:
        row = await dark_rack(world)
        asked = {"act": {"verb": "close-incident"}, "target": row["id"], "reason": "the feed is back"}
        assert (await world.operator.post("/v1/intents", asked))[0] == 200
        path = f"/v1/incidents/{row['id']}"
        whole = await world.operator.get(path)
        count = len(whole["history"])
        assert count >= 3
        assert whole["cursor"] == ""
        for limit in (1, 2, count - 1, count, count + 1):
            assert await pages(world, path, limit) == whole["history"], limit
        first = whole["history"][-1]["seq"]
        beyond = await world.operator.get(f"{path}?before={first}")
        assert (beyond["history"], beyond["cursor"]) == ([], "")


async def test_records_about_several_subjects_come_once_and_in_order(tmp_path: Path) -> None:
    """Of a link, its cable and its modules. Mutants: one that is about two of them comes twice, or takes two places."""
    journal, chance = MemoryJournal(), random.Random(31)
    names = ["S1", "S2", "S3"]
    moved = list[e.Event]()
    for _ in range(200):
        before, after = chance.sample(["S1", "S2", "x", "y"], 2)
        moved.append(e.PartMoved(chance.choice(names), before, after, "gpu0"))
    append(journal, moved)
    wanted = [seq for seq in range(200, 0, -1) if {"S1", "S2"} & set(e.subjects_of(moved[seq - 1]))]
    async with house(tmp_path, journal=journal) as world:
        for limit in (1, 7, len(wanted) - 1, len(wanted), 1_000):
            found: list[int] = []
            place: int | None = None
            while True:
                page = await subject_history(world.app_state, ADA, {"S1", "S2"}, place, limit)
                found += [row.seq for row in page.rows]
                assert len(page.rows) <= limit
                if not page.cursor:
                    break
                place = int(page.cursor)
            assert found == wanted, limit
