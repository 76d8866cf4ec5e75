"""The audit over HTTP: acts are written before they are answered, refusals are counted, and no secret is in any."""

import asyncio
import csv
import json
import os
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hostler.app.audit_sealing import sealing
from hostler.core.state.audit import Seal
from hostler.core.state.events import AuditSealed
from hostler.journal.audit_check import verify
from hostler.journal.audit_log import AuditEntry, AuditQuery, open_audit_log
from hostler.journal.opening import open_journal
from hostler.ports import JournalError
from hostler.server import audit_trail
from hostler.server.audit_folding import REFUSALS
from hostler.server.audit_trail import AuditTrail
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House, house


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    monkeypatch.setattr(audit_trail, "FOLD_S", 0.05)
    async with house(tmp_path) as inside:
        await inside.adopt(2)
        yield inside


async def entries(world: House, number: int = 1, **query: Any) -> list[dict[str, Any]]:
    """The entries that a query leaves, once there are so many."""
    async with asyncio.timeout(30):
        while True:
            found = (await world.operator.get("/v1/audit", params=query))["items"]
            if len(found) >= number:
                return list(found)
            await asyncio.sleep(0.02)


async def test_an_act_is_in_the_audit_when_it_is_answered(world: House) -> None:
    """Mutants: written after the answer; the target as it was typed, not who did it and from where."""
    headers = {"x-request-id": "req-77"}
    status, _ = await world.operator.call(
        "POST", "/v1/nodes/n1/cordon", json={"reason": "a secret-free reason"}, headers=headers
    )
    assert status == 200
    [entry] = (await world.operator.get("/v1/audit", params={"target": "n1"}))["items"]
    token = world.operator.token.split("_")[1]
    told = {k: entry[k] for k in ("person", "role", "token", "verb", "outcome", "status", "method", "chain", "request")}
    assert told == {"person": "ada", "role": "operator", "token": token, "verb": "cordon", "outcome": "done",
                    "status": 200, "method": "POST", "chain": "acts", "request": "req-77"}  # fmt: skip
    assert entry["address"] == "127.0.0.1"
    assert entry["route"] == "/v1/nodes/{node_id}/{verb}"
    intent = await world.operator.get(f"/v1/intents/{entry['intent']}")
    assert intent["verb"] == "cordon"


async def test_what_was_only_tried_or_refused_is_told_apart(world: House) -> None:
    await world.operator.post("/v1/nodes/n0/cordon", {"reason": "try", "dry_run": True})
    await world.operator.post("/v1/nodes/n0/certify", {"reason": "not from production"})
    viewer = world.client(Grant("vic", Role.viewer))
    await viewer.post("/v1/nodes/n0/cordon", {"reason": "may not"})
    await viewer.call("GET", "/v1/audit")
    found = {(row["person"], row["verb"]): row for row in await entries(world, 4, chain="refusals")}
    assert found["ada", "cordon"]["outcome"] == "dry_run"
    assert (found["ada", "certify"]["outcome"], found["ada", "certify"]["status"]) == ("refused", 409)
    assert found["vic", "cordon"]["status"] == 403
    assert found["vic", "audit"]["status"] == 403, "a read that is refused is an entry"
    assert not (await world.operator.get("/v1/audit", params={"chain": "acts", "person": "vic"}))["items"]
    reads = (await world.operator.get("/v1/audit", params={"person": "ada", "verb": "nodes"}))["items"]
    assert not reads, "reads that are answered are none"


async def test_a_strangers_flood_is_a_few_entries(world: House) -> None:
    """Mutants: an entry a request; a new path or token a request makes a new entry without end."""
    for number in range(300):
        token = f"hst_{number:012x}_{'s' * 43}"
        headers = {"Authorization": f"Bearer {token}"}
        async with world.session.post(f"{world.url}/v1/nodes/x{number}/drain", headers=headers, json={}) as answer:
            assert answer.status == 401
    async with asyncio.timeout(30):
        while True:
            found = (await world.operator.get("/v1/audit", params={"chain": "refusals", "limit": 1000}))["items"]
            if sum(row["count"] for row in found) == 300:
                break
            await asyncio.sleep(0.02)
    assert "sssss" not in json.dumps(found)
    assert {row["person"] for row in found} == {""}


async def test_of_strangers_that_differ_only_so_many_are_told_apart(tmp_path: Path) -> None:
    log = open_audit_log(tmp_path / "audit.db")
    now = datetime(2026, 3, 1, tzinfo=UTC)
    trail = AuditTrail(log, "c1", lambda: now)
    blank = AuditEntry("refusals", now, now, "", "", "", "10.0.0.1", "POST", "/x", "x", "", 401, "refused", "r", "c1")
    for number in range(1000):
        trail.refusal(msgspec.structs.replace(blank, address=f"10.0.{number // 250}.{number % 250}"))
    for number in range(30):
        trail.refusal(msgspec.structs.replace(blank, person="vic", target=f"n{number}", status=403))
    task = asyncio.create_task(trail.run())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    found = [row.entry for row in log.listed(AuditQuery(), 1000)]
    strangers = [entry for entry in found if not entry.person]
    assert len(strangers) == REFUSALS["stranger"].together.burst + 1
    assert sum(entry.count for entry in strangers) == 1000
    assert len(found) - len(strangers) == 30, "who is recognised is not crowded out"
    log.close()


async def test_one_tokens_flood_hides_nothing_another_token_did(world: House) -> None:
    """Mutant: one allowance for all tokens, as it was ("several × 66"): bob's refusal stood in it."""
    eve, bob = (world.client(Grant(name, Role.viewer)) for name in ("eve", "bob"))
    for number in range(REFUSALS["person"].each.burst + 66):
        status, _ = await eve.call("POST", f"/v1/nodes/x{number}/drain", json={"reason": "flood"})
        assert status in (403, 404)
    await bob.call("POST", "/v1/nodes/n1/cordon", json={"reason": "may not"})
    status, _ = await world.operator.call("POST", "/v1/nodes/n1/hold", json={"reason": "looking"})
    assert status == 200
    [line] = await entries(world, person="bob")
    told = {name: line[name] for name in ("token", "verb", "target", "status", "count", "address")}
    assert told == {"token": bob.token.split("_")[1], "verb": "cordon", "target": "n1", "status": 403, "count": 1,
                    "address": "127.0.0.1"}  # fmt: skip
    [act] = (await world.operator.get("/v1/audit", params={"chain": "acts", "target": "n1"}))["items"]
    assert (act["person"], act["verb"]) == ("ada", "hold")
    async with asyncio.timeout(60):
        while True:
            found = (await world.operator.get("/v1/audit", params={"person": "eve", "limit": 1000}))["items"]
            if sum(row["count"] for row in found) == REFUSALS["person"].each.burst + 66:
                break
            await asyncio.sleep(0.1)
    (rest,) = (row for row in found if row["target"] == "several")
    assert (rest["count"], rest["token"], rest["verb"]) == (66, eve.token.split("_")[1], "drain")


async def test_a_tokens_acts_that_the_database_does_not_take_leave_the_others_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: one queue for all. Of eve's acts that wait there are 5 at most, and bob's is written."""
    monkeypatch.setattr(audit_trail, "PENDING_EACH", 5)
    monkeypatch.setattr(audit_trail, "PENDING_MOST", 8)
    monkeypatch.setattr(audit_trail, "WRITE_S", 0.01)
    log = open_audit_log(tmp_path / "audit.db")
    now = datetime(2026, 3, 1, tzinfo=UTC)
    trail = AuditTrail(log, "c1", lambda: now)
    act = AuditEntry(
        "acts", now, now, "eve", "operator", "e", "10.0.0.1", "POST", "/x", "x", "", 200, "done", "r", "c1"
    )
    for number in range(10):
        await trail.act(msgspec.structs.replace(act, target=f"n{number}"))
    await trail.act(msgspec.structs.replace(act, person="bob", token="b"))
    assert trail.unwritten == 5
    await trail._write()  # noqa: SLF001 - the database answers again
    assert [row.entry.person for row in log.listed(AuditQuery(), 100)].count("bob") == 1
    log.close()


async def test_an_act_whose_entry_cannot_be_written_is_answered_and_told_in_the_log(world: House) -> None:
    """The act is done by then: to answer that it failed would be a lie."""
    trail = world.app_state.outside.audit

    def full(*_: object) -> None:
        raise JournalError("the disk is full")

    trail.written.append, kept = full, trail.written.append
    status, _ = await world.operator.post("/v1/nodes/n1/cordon", {"reason": "go on"})
    trail.written.append = kept
    assert status == 200
    assert trail.unwritten >= 1


async def test_a_query_that_is_no_query_is_refused(world: House) -> None:
    for query in ({"since": "2026-01-01T00:00:00"}, {"cursor": "1.acts"}, {"cursor": "x.acts.1"}, {"chain": "all"},
                  {"cursor": f"{'9' * 30}.acts.1"}, {"result": "ok"}, {"limit": "0"}):  # fmt: skip
        status, _ = await world.operator.call("GET", "/v1/audit", params=query)
        assert status == 400, query


async def test_the_command_lists_exports_and_pages(world: House, tmp_path: Path) -> None:
    for number in range(3):
        await world.operator.post(f"/v1/nodes/n{number % 2}/hold", {"reason": "=cmd"})
    listed = await cli(world, "audit", "list", "--verb", "hold", "-o", "json")
    assert [row["target"] for row in json.loads(listed)["items"]] == ["n0", "n1", "n0"]
    path = tmp_path / "audit.csv"
    await cli(world, "audit", "export", str(path), "--format", "csv", "--verb", "hold", "--since", "2020-01-01")
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [row["target"] for row in rows] == ["n0", "n1", "n0"]
    lines = await cli(world, "audit", "export", "--person", "ada", "--outcome", "done")
    assert {json.loads(line)["person"] for line in lines.splitlines()} == {"ada"}


async def test_the_journal_seals_what_was_written_and_a_change_of_both_is_found(world: House, tmp_path: Path) -> None:
    """Mutants: seal only once; seal what has not moved again and again."""
    trail = world.app_state.outside.audit
    task = asyncio.create_task(sealing(world.cell, trail.written, 0.02))
    before = trail.written.seals()
    await world.until(lambda: _sealed(world) == before)
    seq = world.cell.view.cell.seq
    await asyncio.sleep(0.2)
    assert world.cell.view.cell.seq == seq, "nothing has moved"
    await world.operator.post("/v1/nodes/n1/hold", {"reason": "later"})
    await world.until(lambda: _sealed(world) == trail.written.seals() != before)
    task.cancel()
    assert trail.written.faults([(seal, datetime.now(UTC)) for seal in _sealed(world)], datetime.now(UTC)) == []


async def cli(world: House, *words: str) -> str:
    """Returns the command's output."""
    code, out, err = await _ran(world, words)
    assert code == 0, err
    return out


async def tried(world: House, *words: str) -> tuple[int, str]:
    """Returns the exit status of a command that may fail, and what it says of that."""
    code, _, err = await _ran(world, words)
    return code, err


async def _ran(world: House, words: tuple[str, ...]) -> tuple[int, str, str]:
    env = {**os.environ, "HOSTLER_SERVER": world.url, "HOSTLER_TOKEN": world.operator.token}
    command = (sys.executable, "-m", "hostler.cli.main", *words)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, env=env, stdout=pipe, stderr=pipe)
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


def _sealed(world: House) -> tuple[Seal, ...]:
    found = [r.event for r in world.cell.journal.records() if isinstance(r.event, AuditSealed)]
    return found[-1].seals if found else ()


def test_verify_says_where_no_log_is(tmp_path: Path) -> None:
    open_journal(tmp_path / "journal.db").close()
    with pytest.raises(JournalError, match="no controller has kept an audit log"):
        verify(tmp_path / "journal.db", datetime.now(UTC))
    open_audit_log(tmp_path / "audit.db").close()
    report = verify(tmp_path / "journal.db", datetime.now(UTC))
    assert (report.chains, report.seals, report.sound) == ((), 0, True)
