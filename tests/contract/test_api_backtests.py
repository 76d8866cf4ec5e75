"""Backtests over HTTP: real history through other documents, who may ask, what is kept, and what ends one."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from hostler.journal.backtest_files import KEPT, BacktestFiles
from hostler.journal.sqlite import SqliteJournal
from hostler.ports import Batch
from hostler.server.backtests import BacktestFailedError, BacktestQuestion, Backtests, ReplayAnswer
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import DOCUMENTS, HISTORY, House, house
from tests.kit import GPUS, POLICY, Drive, a_node, configuration, pool_document

POOLS = {"train": pool_document(target=4, budget={"count": 2, "percent": 100})}
RECORDED = {"policy.yaml": POLICY, "fleet.yaml": json.dumps({"skus": {"h100": {"gpus": GPUS}}, "pools": POOLS})}
WHY = {"reason": "fewer power cycles"}
PATIENCE_S = 120.0


def write_history(path: Path) -> None:
    """A journal in which two nodes fell ill and were treated."""
    drive = Drive(configuration(POOLS), [a_node(name) for name in "abcd"])
    journal = SqliteJournal(path)
    epoch = journal.acquire("controller")
    journal.append(Batch(tuple(drive.journal)), epoch)
    drive.checks.append(lambda _, ready: journal.append(ready.batch, epoch))
    drive.fault("a", "ecc")
    drive.run()
    drive.wait(days=2)
    drive.fault("b", "off_bus")
    drive.run()
    journal.close()


def on_trial(remedy: str = "triage") -> dict[str, str]:
    """Documents that treat a GPU that fell off the bus otherwise than the recorded policy."""
    tree = yaml.safe_load(POLICY)
    tree["policy"]["rules"]["gpu.fallen_off_bus"]["remedy"] = remedy
    return {**RECORDED, "policy.yaml": yaml.safe_dump(tree)}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    write_history(tmp_path / HISTORY)
    async with house(tmp_path) as inside:
        await inside.operator.post("/v1/config", {"documents": RECORDED, "reason": "as recorded"})
        yield inside


async def ended(world: House, name: str) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE_S):
        while (found := await world.operator.get(f"/v1/backtests/{name}"))["state"] == "running":  # noqa: ASYNC110 - it is asked over HTTP
            await asyncio.sleep(0.05)
    return dict(found)


class Halted:
    """Replays that begin when they are let, and say what they are told to."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.left = 0
        self.says: ReplayAnswer | Exception = ReplayAnswer(why="nothing is recorded in the window")

    async def __call__(self, question: BacktestQuestion) -> ReplayAnswer:
        try:
            await self.go_on.wait()
        finally:
            self.left += 1
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


def halted(world: House, tmp_path: Path) -> Halted:
    """Puts replays that wait in place of the house's own."""
    replays = Halted()
    backtests = Backtests(BacktestFiles(tmp_path / "backtests"), replays, world.app_state.now)
    world.app_state.outside = replace(world.app_state.outside, backtests=backtests)
    return replays


async def test_history_is_replayed_kept_and_read_by_whoever_sees_the_cell(world: House, tmp_path: Path) -> None:
    """Mutants: the answer is of the active policy; the list carries every difference; the diff is of nothing."""
    status, begun = await world.operator.post("/v1/backtests", {"documents": on_trial(), **WHY})
    assert status == 202, begun
    assert (begun["state"], begun["person"], begun["reason"]) == ("running", "ada", WHY["reason"])
    assert begun["against"] == world.cell.view.configuration.sha256
    assert begun["differences"] == ["policy.rules.gpu.fallen_off_bus.remedy: power_cycle → triage"]
    assert begun["documents"] == ["fleet.yaml", "policy.yaml"]
    done = await ended(world, begun["id"])
    assert done["state"] == "done", done["why"]
    (row,) = done["result"]["rows"]
    assert (row["node"], row["kind"], row["recorded"]) == ("b", "changed", "acts power_cycle (immediate)")
    assert done["result"]["config"] == done["sha256"] == begun["sha256"]
    viewer = world.client(Grant("vic", Role.viewer))
    (listed,) = (await viewer.get(f"/v1/backtests?sha256={done['sha256']}"))["items"]
    assert (listed["id"], listed["result"]["rows"], listed["result"]["nodes"]) == (done["id"], [], 1)
    assert (await viewer.get("/v1/backtests?sha256=00"))["items"] == []
    again = Backtests(BacktestFiles(tmp_path / "backtests"), Halted(), world.app_state.now)
    assert [run.id for run in await again.listed()] == [done["id"]]
    (entry,) = (await world.operator.get("/v1/audit?verb=backtest&chain=acts"))["items"]
    assert (entry["person"], entry["target"], entry["status"]) == ("ada", done["sha256"], 202)


async def test_the_window_bounds_what_is_replayed_and_one_without_history_says_so(world: House) -> None:
    """Mutants: the window is not handed on; what the replay refuses is told as an answer."""
    body = {"documents": on_trial(), "since": "2031-01-01T00:00:00Z", **WHY}
    _, begun = await world.operator.post("/v1/backtests", body)
    failed = await ended(world, begun["id"])
    assert (failed["state"], failed["result"]) == ("failed", None)
    assert "nothing is recorded in the window; what it holds runs from 2026-01-01" in failed["why"]
    body = {"documents": on_trial(), "until": "2026-01-02T00:00:00Z", **WHY}
    _, begun = await world.operator.post("/v1/backtests", body)
    early = await ended(world, begun["id"])
    assert (early["state"], early["result"]["nodes"]) == ("done", 0), early["why"]


async def test_only_who_may_configure_the_cell_begins_one_and_no_customer_reads_one(world: House) -> None:
    _, begun = await world.operator.post("/v1/backtests", {"documents": on_trial(), **WHY})
    for role, tenant, pool, reads in (
        (Role.viewer, "", "", 200),
        (Role.technician, "", "", 200),
        (Role.tenant, "acme", "", 403),
        (Role.operator, "", "alpha", 403),
    ):
        who = world.client(Grant("eve", role, tenant=tenant, pool=pool))
        assert (await who.post("/v1/backtests", {"documents": on_trial(), **WHY}))[0] == 403
        assert (await who.post(f"/v1/backtests/{begun['id']}/cancel", WHY))[0] == 403
        assert (await who.call("GET", "/v1/backtests"))[0] == reads
        assert (await who.call("GET", f"/v1/backtests/{begun['id']}"))[0] == reads
    await ended(world, begun["id"])


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ({"documents": {"fleet.yaml": "pools: {alpha: {sku: nope}}\n"}}, 422, "problems"),
        ({"documents": {}}, 422, "documents"),
        ({"documents": {"policy.yaml": POLICY}, "since": "2026-01-01T00:00:00"}, 422, "since"),
        ({"documents": {"policy.yaml": POLICY}, "since": "yesterday"}, 422, "since"),
        ({"documents": {"policy.yaml": POLICY}, "where": "there"}, 422, "where"),
    ],
)
async def test_what_is_wrong_is_refused_before_anything_runs(
    world: House, body: dict[str, Any], status: int, told: str
) -> None:
    answered, problem = await world.operator.post("/v1/backtests", {**body, **WHY})
    assert (answered, problem["status"]) == (status, status)
    assert told in json.dumps(problem)
    assert (await world.operator.get("/v1/backtests"))["items"] == []


async def test_one_runs_at_a_time_and_is_ended_by_a_person(world: House, tmp_path: Path) -> None:
    """Mutants: the second runs too; what was cancelled goes on; who cancelled is not kept."""
    replays = halted(world, tmp_path)
    body = {"documents": DOCUMENTS, **WHY}
    _, begun = await world.operator.post("/v1/backtests", body)
    bob = world.client(Grant("bob", Role.operator))
    status, refused = await bob.post("/v1/backtests", body)
    assert (status, refused["facts"]) == (409, {"backtest": begun["id"]})
    assert (await bob.post("/v1/backtests/b-none/cancel", WHY))[0] == 404
    status, over = await bob.post(f"/v1/backtests/{begun['id']}/cancel", {"reason": "the night shift needs it"})
    assert (status, over["state"], over["ended_by"], over["why"]) == (
        200,
        "cancelled",
        "bob",
        "the night shift needs it",
    )
    assert replays.left == 1
    assert (await bob.post(f"/v1/backtests/{begun['id']}/cancel", WHY))[0] == 409
    assert (await bob.post("/v1/backtests", body))[0] == 202
    await world.app_state.outside.backtests.close()
    (_, latest) = (await bob.get("/v1/backtests"))["items"]
    assert (latest["state"], latest["ended_by"], latest["why"]) == (
        "cancelled",
        "",
        "the controller that ran it was stopped",
    )


async def test_a_replay_that_breaks_says_what_broke_and_the_next_may_run(world: House, tmp_path: Path) -> None:
    replays = halted(world, tmp_path)
    replays.go_on.set()
    replays.says = BacktestFailedError("its process ended with status -9: ")
    _, begun = await world.operator.post("/v1/backtests", {"documents": DOCUMENTS, **WHY})
    failed = await ended(world, begun["id"])
    assert (failed["state"], failed["why"]) == ("failed", "its process ended with status -9: ")
    assert (await world.operator.post("/v1/backtests", {"documents": DOCUMENTS, **WHY}))[0] == 202


async def test_the_oldest_answers_go_and_a_damaged_one_is_said_to_be(world: House, tmp_path: Path) -> None:
    """Mutants: answers are kept for ever; the newest goes; half an answer is shown as one."""
    replays = halted(world, tmp_path)
    replays.go_on.set()
    names = []
    for _ in range(KEPT + 2):
        _, begun = await world.operator.post("/v1/backtests", {"documents": DOCUMENTS, **WHY})
        names.append(begun["id"])
        await ended(world, begun["id"])
    listed = (await world.operator.get("/v1/backtests?limit=1000"))["items"]
    assert [row["id"] for row in listed] == names[2:]
    assert len(list((tmp_path / "backtests").iterdir())) == KEPT
    assert datetime.fromisoformat(listed[-1]["ended"]) >= datetime.fromisoformat(listed[-1]["asked"])
    damaged = tmp_path / "backtests" / f"{names[-1]}.jsonl"
    damaged.write_bytes(damaged.read_bytes()[:40])
    assert (await world.operator.call("GET", f"/v1/backtests/{names[-1]}"))[0] == 503
    assert (await world.operator.call("GET", f"/v1/backtests/{names[0]}"))[0] == 404
    assert (await world.operator.call("GET", "/v1/backtests/..%2Ftokens"))[0] == 404


async def test_an_answer_that_cannot_be_kept_says_so_until_the_next(world: House, tmp_path: Path) -> None:
    """Mutant: it is gone as if it had never been asked for."""
    replays = halted(world, tmp_path)
    (tmp_path / "backtests").write_text("a file where the folder would be")
    replays.go_on.set()
    _, begun = await world.operator.post("/v1/backtests", {"documents": DOCUMENTS, **WHY})
    failed = await ended(world, begun["id"])
    assert failed["state"] == "failed"
    assert "cannot be written" in failed["why"]
