"""A tenant's statement over HTTP: what it had, how it was, also of what has left; and nothing of another's."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.state.events import NodeRegistered, Record
from hostler.ports import Archived, RecordWindow
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import XID79, Client, House, house


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        yield inside


def sums(rows: list[dict[str, Any]]) -> bool:
    spent = ("healthy_s", "degraded_s", "away_s", "unknown_s")
    return all(
        sum(row[name] for name in spent) == row["had_s"] == sum(one["seconds"] for one in row["causes"])
        and sum(row["away_by"].values()) == row["away_s"]
        for row in rows
    )


async def test_a_tenant_reads_its_own_and_operators_anybodys(world: House) -> None:
    """Mutants: another's rows are shown; another's name may be asked for; rows do not sum."""
    await world.adopt(2)
    await world.adopt(1, pool="beta", start=5)
    later = datetime.now(UTC) + timedelta(seconds=100)
    world.app_state.now = lambda: later
    tenant = world.client(Grant("alice", Role.tenant, tenant="acme"))
    own = (await tenant.get("/v1/statement"))["items"]
    assert [(row["node"], row["tenant"], row["pool"]) for row in own] == [
        ("n0", "acme", "alpha"),
        ("n1", "acme", "alpha"),
    ]
    assert sums(own)
    assert all(row["had_s"] >= 99 for row in own)
    assert (await tenant.get("/v1/statement?tenant=acme"))["items"] == own
    status, refused = await tenant.call("GET", "/v1/statement?tenant=globex")
    assert (status, refused["error"]) == (403, "forbidden")
    assert [row["node"] for row in (await world.operator.get("/v1/statement"))["items"]] == ["n0", "n1", "n5"]
    assert [row["node"] for row in (await world.operator.get("/v1/statement?tenant=globex"))["items"]] == ["n5"]
    assert (await world.operator.get("/v1/statement?tenant=acme"))["items"] == own


async def test_a_node_that_left_counts_until_it_left_page_by_page(world: House) -> None:
    """Mutants: it counts no more; it counts on; a page loses or repeats a node."""
    await world.adopt(3)
    status, _ = await world.operator.post("/v1/nodes/n1/return-for-maintenance", {"reason": "given back"})
    assert status == 200
    await world.until(lambda: world.cell.view.nodes["n1"].assignment is None)
    later = datetime.now(UTC) + timedelta(seconds=100)
    world.app_state.now = lambda: later
    tenant = world.client(Grant("alice", Role.tenant, tenant="acme"))
    rows: list[dict[str, Any]] = []
    cursor = ""
    for _ in range(9):
        page = await tenant.get(f"/v1/statement?limit=1&cursor={cursor}")
        rows += page["items"]
        cursor = page["cursor"]
        if not cursor:
            break
    stayed = {row["node"]: row["had_s"] for row in rows}
    assert len(stayed) == len(rows)
    assert {"n0", "n2"} <= {*stayed} <= {"n0", "n1", "n2"}
    assert stayed.get("n1", 0) < 90 <= stayed["n0"]
    assert sums(rows)


async def test_a_page_reads_few_nodes_and_none_is_lost_or_told_twice(
    world: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: what left between two stretches is in neither, or in both; an empty stretch ends the list."""
    await world.adopt(3)
    await world.adopt(3, pool="beta", start=3)
    status, _ = await world.operator.post("/v1/nodes/n1/return-for-maintenance", {"reason": "given back"})
    assert status == 200
    await world.until(lambda: world.cell.view.nodes["n1"].assignment is None)
    later = datetime.now(UTC) + timedelta(seconds=100)
    world.app_state.now = lambda: later
    read: list[str] = []
    window = world.cell.journal.window

    def watched(wanted: RecordWindow, limit: int) -> list[Record]:
        read.append(wanted.subject)
        return [an_hour_earlier(record) for record in window(wanted, limit)]

    monkeypatch.setattr(world.cell.journal, "window", watched)
    whole = {who: (await client.get("/v1/statement?limit=1000"))["items"] for who, client in readers(world).items()}
    assert "n1" in [row["node"] for row in whole["ada"]]
    for most in (1, 2, 3):
        for who, client in readers(world).items():
            rows, cursor = list[Any](), ""
            while True:
                read.clear()
                page = await client.get(f"/v1/statement?limit={most}&cursor={cursor}")
                assert len(set(read)) <= most + 1, "those that left come on top"
                rows, cursor = rows + page["items"], page["cursor"]
                if not cursor:
                    break
            assert rows == whole[who], (most, who)
    assert [row["node"] for row in whole["globex"]] == ["n3", "n4", "n5"]


def an_hour_earlier(record: Record) -> Record:
    """The record, where it is of a node's coming: it then had some time of its own before it left."""
    return replace(record, at=record.at - timedelta(hours=1)) if isinstance(record.event, NodeRegistered) else record


def readers(world: House) -> dict[str, Client]:
    """Readers of a statement: of everything, a tenant's, a pool's."""
    return {
        "ada": world.operator,
        "globex": world.client(Grant("gia", Role.tenant, tenant="globex")),
        "beta": world.client(Grant("bob", Role.operator, pool="beta")),
    }


async def test_a_fault_is_no_health_and_says_which(world: House) -> None:
    """Mutant: a node in service with a fault counts as healthy."""
    await world.adopt(1)
    world.work("n0", "acme")
    await world.report("n0", kind="kernel_log", text=XID79, facility=0)
    await world.until(lambda: world.cell.view.nodes["n0"].conditions)
    later = datetime.now(UTC) + timedelta(hours=1)
    world.app_state.now = lambda: later
    (row,) = (await world.operator.get("/v1/statement"))["items"]
    assert row["healthy_s"] < 100
    assert {one["condition"] for one in row["causes"] if one["seconds"] > 3000} == {"gpu.fallen_off_bus"}
    assert sums([row])


@pytest.mark.parametrize("month", ["2026-13", "2026-1", "26-01", "2026-01-01", "x", "2099-12"])
async def test_a_month_that_is_none_or_has_not_begun_is_refused(world: House, month: str) -> None:
    status, said = await world.operator.call("GET", f"/v1/statement?month={month}")
    assert status == 400
    assert re.search("month", said["detail"])


async def test_months_before_the_first_record_are_empty_and_missing_history_is_said(
    world: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: what is archived is not told."""
    await world.adopt(1)
    assert (await world.operator.get("/v1/statement?month=2001-01"))["items"] == []
    monkeypatch.setattr(world.cell.journal, "archived", lambda: Archived(7, ("records-1-7.jsonl",)))
    told = await world.operator.get("/v1/statement")
    assert told["archived"] == "records 1 to 7 are archived, the last of them in records-1-7.jsonl"
