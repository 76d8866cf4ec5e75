"""kill -9 of controller or agent at any moment: nothing acknowledged is lost, and no operation is done twice.

The emulated BMCs and the agents' machines count; the journal and the spools are read past Hostler.
"""

import asyncio
import random
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from hostler.cli.exit_codes import ExitCode
from hostler.journal.check import check
from hostler.sim.bmc.request_faults import RequestFaultRule
from tests.end_to_end.kill_world import (
    POLICY,
    POLL_S,
    POOLS,
    SLOW,
    Box,
    Served,
    Witness,
    World,
    check_bmc,
    check_operations,
    check_spool,
    counted,
    lines,
    until,
    world,
)
from tests.end_to_end.processes import HOSTLER, run

pytestmark = pytest.mark.nightly("processes are started and ended for minutes")

MOMENTS = (
    "operation_started cordon",
    "operation_started collect_evidence",
    "operation_started power_off",
    "operation_started power_on",
    "operation_finished power_on",
    "boot_observed",
    "operation_started run_checks",
    "check_recorded",
    "plan_ended",
)
"""A power cycle, commit by commit."""


@pytest.mark.parametrize(
    "moments", [pytest.param(MOMENTS[3:5], marks=pytest.mark.smoke), pytest.param(MOMENTS)], ids=["two", "all"]
)
async def test_a_controller_killed_after_each_commit_still_cycles_the_power_once(
    tmp_path: Path, moments: tuple[str, ...]
) -> None:
    """One machine's remedy is cut off after each of its commits, the other's before its BMC was ever asked.

    Mutants: a start that performs what is outstanding instead of observing it; one that forgets to observe.
    """
    async with world(tmp_path, machines=2) as cell, witnessed(cell, seed=0), talking(cell, seed=0):
        (box, mute), before = cell.boxes, cell.journal.last()
        box.machine.delays = SLOW
        mute.faults.add(RequestFaultRule(path="*/Systems/n2", method="GET", latency_s=30.0, times=0))
        await request(cell, mute, "power-cycle")
        await recorded(cell, mute, "operation_started power_off", before)
        await cell.served.kill()
        mute.faults.clear()
        assert not mute.machine.counts, "its BMC was asked already: the test came too late"
        await cell.served.start()
        await request(cell, box, "power-cycle")
        for moment in moments:
            await recorded(cell, box, moment, before)
            await asked(cell, box, before)
            await cell.restart()
        await cell.returned(before)
        judge(cell, cycles=1)


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_controller_killed_at_random_moments_loses_nothing(tmp_path: Path, seed: int) -> None:
    """Mutant: answers given before the commit."""
    draw = random.Random(seed)
    async with world(tmp_path, machines=2) as cell, witnessed(cell, seed), talking(cell, seed):
        before = cell.journal.last()
        for box in cell.boxes:
            await request(cell, box, "power-cycle")
        for number in range(12):
            await asyncio.sleep(draw.uniform(0.0, 1.5 if number < 6 else 6.0))
            await cell.restart()
            if all("plan_ended" in cell.labels(box.name, before) for box in cell.boxes):
                break
        await cell.returned(before)
        judge(cell, cycles=1)


async def test_a_reply_lost_together_with_the_controller_costs_no_second_actuation(tmp_path: Path) -> None:
    """The BMC does the work, drops the answer, and the controller dies before it knows.

    Mutant: a power operation that is sent again where its reply is missing.
    """
    async with world(tmp_path) as cell:
        box, before = cell.boxes[0], cell.journal.last()
        box.machine.delays = SLOW
        for kind in ("ForceOff", "On"):
            box.faults.clear()
            box.faults.add(RequestFaultRule(path="*/ComputerSystem.Reset", method="POST", drop="after"))
            if kind == "ForceOff":
                await request(cell, box, "power-cycle")
            await until(lambda kind=kind: box.machine.counts[kind], f"{kind} at the BMC")  # type: ignore[misc]
            await cell.restart()
        await cell.returned(before)
        judge(cell, cycles=1)


async def test_an_agent_killed_at_random_moments_loses_no_line_and_acts_once(tmp_path: Path) -> None:
    """One machine's agent dies in the middle of its GPU reset, one's in the middle of its check, all at random.

    Mutants: a mark written after its act; a lost reset that counts as not done; a log position saved apart from its
    lines.
    """
    draw = random.Random(3)
    async with world(tmp_path, machines=3, time_scale=20) as cell:
        before = cell.journal.last()
        async with talking(cell, seed=3) as told:
            for box in cell.boxes:
                await request(cell, box, "reset-gpu")
            for box, act in zip(cell.boxes, ("gpu_reset", "run_checks"), strict=False):
                await until(lambda box=box, act=act: act in _kinds(box), f"{act} of {box.name}")  # type: ignore[misc]
                await box.kill_agent()
            for _ in range(10):
                await asyncio.sleep(draw.uniform(0.0, 0.8))
                await draw.choice(cell.boxes).kill_agent()
        for box in cell.boxes:
            await recorded(cell, box, "plan_ended", before)
            await until(lambda box=box: counted(cell, box) == told[box.name], f"every line of {box.name}")  # type: ignore[misc]
            check_operations(cell, box)
            check_spool(cell, box)
        resets = [act["operation"] for act in cell.boxes[0].acts() if act["kind"] == "gpu_reset"]
        assert len(resets) == 1, "a GPU reset that was cut off was done again"


async def test_a_corrupt_tail_is_not_started_on(tmp_path: Path) -> None:
    """Mutant: a start that drops the record that does not match and goes on."""
    served = Served(tmp_path, *documents(tmp_path))
    try:
        await served.start()
        await served.ask("/v1/intents", {"act": {"verb": "hold"}, "target": "fleet", "reason": "the last record"})
        last = served.journal.last()
    finally:
        await served.stop()
    with closing(sqlite3.connect(served.journal.path)) as db, db:
        body = db.execute("SELECT body FROM records WHERE seq = ?", (last,)).fetchone()[0]
        spoiled = body.replace(b"the last record", b"the lost record")
        assert spoiled != body
        db.execute("UPDATE records SET body = ? WHERE seq = ?", (spoiled, last))
    before = served.journal.records()
    for argv in (served.argv, served.argv[: served.argv.index("--config")]):
        code, said = await run(*argv)
        assert code == ExitCode.unavailable, said
        assert f"record {last} is corrupt" in said
        assert "hostler journal check" in said
    assert served.journal.records() == before, "what was refused was changed"
    code, said = await run(HOSTLER, "journal", "check", str(served.journal.path))
    assert code == ExitCode.unsound
    assert f"records 1 to {last - 1} are valid" in said
    assert f"record {last} is corrupt" in said


async def test_a_malformed_configuration_is_refused_whole_and_the_running_one_stays(tmp_path: Path) -> None:
    """Mutant: sections activated one by one."""
    paths = documents(tmp_path)
    served = Served(tmp_path, *paths)
    good = {"policy.yaml": POLICY.read_text(), "pools.yaml": POOLS}
    bad = good | {"policy.yaml": good["policy.yaml"].replace("remedy: power_cycle", "remedy: power_cicle", 1)}
    line = next(n for n, text in enumerate(bad["policy.yaml"].splitlines(), 1) if "power_cicle" in text)
    try:
        await served.start()
        _, active = await served.get("/v1/config")
        for dry_run in (True, False):
            status, told = await served.post("/v1/config", {"documents": bad, "reason": "a slip", "dry_run": dry_run})
            assert status == 422
            (problem,) = told["problems"]
            assert (problem["file"], problem["line"]) == ("policy.yaml", line)
            assert "power_cicle" in problem["what"]
            assert "power_cycle" in problem["instead"]
        assert await served.get("/v1/config") == (200, active)
        await served.kill()
        documents(tmp_path, bad["policy.yaml"])
        before = served.journal.last()
        code, said = await run(*served.argv)
        assert code == ExitCode.usage, said
        assert f"policy.yaml:{line}: no remedy 'power_cicle'; write one of" in said
        assert "Traceback" not in said
        assert served.journal.last() == before, "a refused start left records"
        served.argv = served.argv[: served.argv.index("--config")]
        await served.start()
        assert (await served.get("/v1/config"))[1] == active
    finally:
        await served.stop()


@asynccontextmanager
async def witnessed(cell: World, seed: int) -> AsyncIterator[None]:
    """Reports and asks meanwhile; at the end what was acknowledged is compared with the journal."""
    witness = Witness(cell.served, seed)
    await witness.begin()
    try:
        yield
    except BaseException:
        await witness.end()
        raise
    await witness.check()


@asynccontextmanager
async def talking(cell: World, seed: int) -> AsyncIterator[dict[str, Counter[str]]]:
    """The kernels of all machines log meanwhile; gives what each has logged, by line."""
    told: dict[str, Counter[str]] = {box.name: Counter() for box in cell.boxes}

    async def talk() -> None:
        for line in lines(seed):
            for box in cell.boxes:
                box.ring.say(line)
                told[box.name][line] += 1
            await asyncio.sleep(5 * POLL_S)

    task = asyncio.create_task(talk())
    try:
        yield told
    finally:
        task.cancel()
        await asyncio.wait([task])


async def request(cell: World, box: Box, verb: str) -> None:
    """Ask for a remedy in a person's name."""
    body = {"reason": "a test that kills", "key": f"{verb}-{box.name}", "act": {"now": True}}
    await cell.served.ask(f"/v1/nodes/{box.name}/{verb}", body)


async def recorded(cell: World, box: Box, moment: str, after: int) -> None:
    await until(lambda: moment in cell.labels(box.name, after), f"{moment} of {box.name}")


async def asked(cell: World, box: Box, after: int) -> None:
    """Waits until recorded power acts reach the BMC: one that was not asked is asked again after its 30 s only."""
    recorded = cell.labels(box.name, after)
    for kind, reset in (("power_off", "ForceOff"), ("power_on", "On")):
        if f"operation_started {kind}" in recorded:
            await until(lambda reset=reset: box.machine.counts[reset], f"{reset} at the BMC")  # type: ignore[misc]


def judge(cell: World, cycles: int) -> None:
    """Judges what must hold whenever the controller was killed."""
    assert check(str(cell.journal.path)).sound
    for box in cell.boxes:
        check_bmc(box, cycles)
        check_operations(cell, box)
        check_spool(cell, box)


def documents(directory: Path, policy: str = "") -> list[str]:
    """Configuration files, with the default policy or another."""
    (directory / "policy.yaml").write_text(policy or POLICY.read_text())
    (directory / "pools.yaml").write_text(POOLS)
    return [str(directory / "policy.yaml"), str(directory / "pools.yaml")]


def _kinds(box: Box) -> set[str]:
    return {act["kind"] for act in box.acts()}
