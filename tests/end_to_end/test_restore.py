"""The drill: a cell goes on after its backup, is lost, comes back from the backup, and does nothing by itself.

The emulated BMCs and the agents' machines count what was done to them; journal and spools are read past Hostler.
"""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hostler.cli.exit_codes import ExitCode
from hostler.sim.bmc.request_faults import RequestFaultRule
from tests.end_to_end.kill_world import SLOW, Box, World, check_spool, until, world
from tests.end_to_end.processes import HOSTLER, run

pytestmark = pytest.mark.nightly("processes are started and ended for minutes")

PATIENCE_S = 90.0
DIFFERENCES = 8
"""Faults that the drill brings about, in all."""

QUIET_S = 12.0
"""Longer than a poll of every BMC and two heartbeats of every agent."""


async def request(cell: World, node: str, verb: str, **more: Any) -> None:
    body = {"reason": "the drill", "key": f"{verb}-{node}", "act": {"now": True, **more}}
    await cell.served.ask(f"/v1/nodes/{node}/{verb}", body)


async def released(cell: World, **args: Any) -> tuple[int, Any]:
    body = {"act": {"verb": "release-restore", **args}, "target": "fleet", "reason": "looked at it"}
    return await cell.served.post("/v1/intents", body)


async def phase_of(cell: World, node: str) -> str:
    _, seen = await cell.served.get(f"/v1/nodes/{node}")
    return str(seen["node"]["phase"])


async def differences(cell: World) -> dict[str, list[tuple[str, str, str]]]:
    """Node → what, as the journal has it, as it is now."""
    _, page = await cell.served.get("/v1/restore/nodes")
    return {
        row["id"]: sorted((d["what"], d["journal"], d["reality"]) for d in row["differences"]) for row in page["items"]
    }


def touched(boxes: list[Box]) -> list[tuple[int, int]]:
    """How often each BMC was made to act, and each machine."""
    return [(sum(box.machine.counts.values()), len(box.acts())) for box in boxes]


def epochs_heard(cell: World) -> dict[str, int]:
    """The epochs that the agents have heard, by node: a restored controller must be above all of them."""
    found = {}
    for box in cell.boxes:
        with closing(sqlite3.connect(box.directory / "state/marks.sqlite")) as operation_log:
            row = operation_log.execute("SELECT value FROM epoch").fetchone()
        found[box.name] = row[0] if row else 0
    return found


async def go_on_after_the_backup(cell: World, backup: Path) -> None:
    """A plan is cut in two by the backup; then it ends, a node is power-cycled, a GPU is swapped, a node retires."""
    cut, cycled, swapped, retired = cell.boxes
    cut.machine.delays = SLOW
    before = cell.journal.last()
    await request(cell, cut.name, "power-cycle")
    await until(lambda: "operation_started power_off" in cell.labels(cut.name, before), "a power cycle under way")
    code, said = await run(HOSTLER, "journal", "export", str(cell.journal.path), str(backup))
    assert code == ExitCode.ok, said
    for box in (cut, cycled, swapped, retired):
        box.ring.say(f"nvme nvme0: said after the backup on {box.name}")
    await request(cell, cycled.name, "power-cycle")
    await request(cell, retired.name, "return-for-maintenance")
    (swapped.directory / "gpu").write_text("NEW-GPU")
    await swapped.kill_agent()
    for box in (cut, cycled):
        await until(lambda box=box: "plan_ended" in cell.labels(box.name, before), f"{box.name}'s plan ends")  # type: ignore[misc]
    await until(lambda: "phase_changed" in cell.labels(retired.name, before), "triage")
    await until(lambda: any(r.name == "part_moved" for r in cell.journal.records(before)), "the swapped GPU is seen")
    await cell.served.ask(f"/v1/nodes/{retired.name}/retire", {"reason": "worn out", "key": "retire"})
    for box in (cut, cycled, swapped):
        said = f"said after the backup on {box.name}"
        await until(lambda b=box, s=said: s in json.dumps(cell.journal.observed(b.name)), said)  # type: ignore[misc]
    await retired.stop_agent()
    retired.faults.add(RequestFaultRule(drop="before", times=0))


async def test_a_restored_cell_compares_and_touches_nothing_until_it_is_released(tmp_path: Path) -> None:
    """Mutants: a copy that is opened like any journal; what was under way is sent again; epochs go on by one."""
    backup = tmp_path / "backup.jsonl"
    async with world(tmp_path, machines=4) as cell:
        cut, cycled, swapped, retired = cell.boxes
        await go_on_after_the_backup(cell, backup)
        await cell.served.kill()
        done, epochs = touched(cell.boxes), epochs_heard(cell)
        aside = tmp_path / "lost"
        aside.mkdir()
        for file in cell.journal.path.parent.glob("journal.db*"):
            file.rename(aside / file.name)
        code, said = await run(HOSTLER, "journal", "import", str(cell.journal.path), str(backup))
        assert code == ExitCode.ok, said
        copied = cell.journal.last()
        await cell.served.start()
        assert [r.name for r in cell.journal.records(copied)][1:3].count("journal_restored") == 1
        await until(lambda: compared(cell, copied) == 3, "three nodes are heard")
        for box in (cut, cycled, swapped):
            box.ring.say(f"nvme nvme0: said after the restore on {box.name}")
        await asyncio.sleep(QUIET_S)
        async with asyncio.timeout(PATIENCE_S):  # what was under way is observed later each time while nobody can tell
            while not any(d[0] == "operation" for d in (await differences(cell))[cut.name]):  # noqa: ASYNC110 - it is elsewhere
                await asyncio.sleep(0.5)
        assert touched(cell.boxes) == done, "something was done to a machine before anybody released it"
        names = {r.name for r in cell.journal.records(copied)}
        assert not names & {"operation_started", "plan_recorded", "plan_advanced", "plan_ended"}, names
        found = await differences(cell)
        async with asyncio.timeout(PATIENCE_S):  # what agents tell of themselves comes one by one
            while sum(len(told) for told in found.values()) < DIFFERENCES:
                await asyncio.sleep(0.5)
                found = await differences(cell)
        ahead = {name: [d for d in told if d[0] == "cursor"] for name, told in found.items()}
        assert [name for name, told in ahead.items() if len(told) == 1] == ["n1", "n2", "n3"], ahead
        assert all("sent again" in reality for told in ahead.values() for _, _, reality in told)
        assert {name: [d for d in told if d[0] != "cursor"] for name, told in found.items()} == {
            cut.name: [("boot", "n1-boot-1", "n1-boot-2"), ("operation", "power_off under way", "not done")],
            cycled.name: [("boot", "n2-boot-1", "n2-boot-2")],
            swapped.name: [("inventory", "gpu n3-GPU0", "gone"), ("inventory", "no NEW-GPU", "here")],
            retired.name: [],
        }
        for box in (cut, cycled, swapped):
            check_spool(cell, box)
        code, said = await command(cell, "restore", "show")
        assert code == ExitCode.ok
        assert "3 of 4 nodes heard" in said
        assert "1 unheard" in said
        status, refused = await released(cell)
        assert status == 409
        assert f"1 of 4 nodes have not been heard since the restore: {retired.name}" in refused["detail"]
        code, said = await command(cell, "restore", "release", "--unheard", "1", "--reason", "looked at it")
        assert code == ExitCode.ok, said
        await until(lambda: "plan_ended" in cell.labels(cut.name, copied), "the plan that the backup cut in two ends")
        assert await phase_of(cell, cut.name) == await phase_of(cell, cycled.name) == "production"
        assert epochs_heard(cell)[cut.name] > max(epochs.values())
        assert len(cut.acts()) > done[0][1], (
            "its agent obeys the restored controller: its epoch is above the lost one's"
        )


async def command(cell: World, *words: str) -> tuple[int, str]:
    """A command of a person's, as they would type it."""
    token = cell.journal.path.parent / "operator-in-test"
    token.write_text(cell.served.operator)
    return await run(HOSTLER, *words, "--server", cell.served.url, "--token-file", str(token))


def compared(cell: World, after: int) -> int:
    """How many nodes were heard; one may be compared again before anybody has counted it."""
    heard = [r for r in cell.journal.records(after) if r.name == "node_compared" and r.body.get("heard")]
    return len({record.body["node"] for record in heard})
