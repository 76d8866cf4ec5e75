"""The controller's disk of 150 MB is filled by one agent's token: people and records keep their reserve.

The cell is a real `hostler serve` on a tmpfs, the witness node's agent a real process.
"""

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from hostler.runtime.disk_room import MIB
from hostler.server.tokens import Grant, Role
from tests.adversary.attacked import PATIENCE_S, Served, attacked, tolerable_s
from tests.adversary.test_agent_disks import FALLEN, XID, Watched, fill, small_disk
from tests.adversary.test_one_token import documents

pytestmark = pytest.mark.nightly("processes are started, and a disk is filled, for a minute")

SIZE = "150m"
FLOOD_S = 45.0
LINE = "x" * 4_000
LINES = 230
"""Observations of a post: as much as one may have."""
WATCHED_S = 12.0
"""More than twice as long as a lease lasts."""


class Readiness:
    """Looks at `/readyz` in a thread: each change of role, and what it said of the disk."""

    def __init__(self, served: Served) -> None:
        self.roles: list[str] = []
        self.statuses: set[int] = set()
        self.disk = ""
        self._served = served
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self.over.wait(0.05):
            with suppress(OSError):
                status, answer = self._served.ask("GET", "/readyz", "")
                self.statuses.add(status)
                self.disk = answer["disk"]
                if self.roles[-1:] != [answer["role"]]:
                    self.roles.append(answer["role"])

    def begin_again(self) -> None:
        self.roles, self.statuses = [], set()


@contextmanager
def readiness(served: Served) -> Iterator[Readiness]:
    looks = Readiness(served)
    looks.thread.start()
    try:
        yield looks
    finally:
        looks.over.set()
        looks.thread.join(PATIENCE_S)


def post(number: int) -> dict[str, Any]:
    line = {"node": "n1", "source": "agent", "spool": "s", "kind": "kernel_log", "text": LINE}
    seen = [{**line, "sequence": number * LINES + i} for i in range(1, LINES + 1)]
    return {"node": "n1", "spool": "s", "boot_id": "b", "observations": seen}


def flood(served: Served, token: str) -> tuple[int, int, Any]:
    """Posts until one is refused for want of room: how many were taken, and the refusal."""
    number, end = 0, time.monotonic() + FLOOD_S
    while time.monotonic() < end:
        status, answer = served.ask("POST", "/v1/agent/observations", token, post(number))
        if status == 503 and answer["error"] == "no_room":
            return number, status, answer
        number += status == 200
    return number, 0, None


def ballast(disk: Path, left: int) -> Path:
    """A file that leaves so many bytes."""
    file = disk / "ballast"
    with file.open("wb") as out:
        while (free := os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize) > left:
            out.write(b"x" * min(MIB, free - left))
            out.flush()
    return file


async def until(told: Any, what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not await asyncio.to_thread(told):
        assert time.monotonic() < end, what
        await asyncio.sleep(0.1)


def cordon(served: Served, operator: str, node: str) -> tuple[int, float, Any]:
    began = time.monotonic()
    body = {"reason": "the disk is attacked"}
    status, answer = served.ask("POST", f"/v1/nodes/{node}/cordon", operator, body)
    return status, time.monotonic() - began, answer


async def test_observations_leave_the_reserve_to_people_and_a_full_disk_is_one_state(tmp_path: Path) -> None:
    """One token posts until it is refused; then the disk is filled by others to its last byte, and freed again.

    Mutants: observations are taken while there is any room; those that waited when it ran short are recorded; what was
    refused is acknowledged; the log of SQLite takes the reserve when it is folded in; a full disk has the controller
    take the lease anew after each failure.
    """
    async with AsyncExitStack() as stack:
        disk = stack.enter_context(small_disk(tmp_path / "data", SIZE))
        served = await stack.enter_async_context(attacked(tmp_path, *documents(tmp_path)))
        ann = served.token(Grant("ann", Role.operator))
        nodes = [{"id": name, "sku": "this", "pool": "train"} for name in ("n1", "n2", "n3", "n4")]
        status, answer = served.ask("POST", "/v1/adopt", ann, {"nodes": nodes, "reason": "test"})
        assert status == 200, answer
        token = served.token(Grant("agent-n1", Role.agent, node="n1"))
        (tmp_path / "n2").mkdir()
        sound = Watched(served, ann, "n2", tmp_path, tmp_path / "n2")
        stack.callback(sound.close)
        looks = stack.enter_context(readiness(served))
        kept = ballast(disk, 110 * MIB)
        taken, status, refused = await asyncio.to_thread(flood, served, token)
        by_flood = status == 503
        if not by_flood:  # its source has a budget: others have to use the rest
            kept.unlink()
            kept = ballast(disk, 30 * MIB)
            await until(lambda: looks.disk, "the disk is low")
            status, refused = served.ask("POST", "/v1/agent/observations", token, post(taken))
        assert (status, refused["error"]) == (503, "no_room")
        assert "kept for records and acts" in refused["detail"]
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        await sound.begin(stack)
        sound.say(XID)
        took_s = 0.0
        for node in ("n3", "n4"):
            status, took_s, answer = await asyncio.to_thread(cordon, served, ann, node)
            assert status == 200, answer
            assert took_s < tolerable_s(1.0), took_s
        await asyncio.sleep(WATCHED_S)
        sys.stdout.write(
            f"\n{taken} posts of 0.9 MB taken, refused by the flood itself: {by_flood}; {free // MIB} MiB left then, "
            f"cordon {took_s * 1000:.0f} ms, roles {looks.roles}, /readyz {looks.statuses}: {looks.disk}\n"
        )
        assert (looks.roles, looks.statuses) == (["active"], {200})
        assert "no observations are taken" in looks.disk
        assert not any(one["type"] == FALLEN for one in sound.conditions()), "refused, so it cannot be known yet"

        kept.unlink()
        await sound.until(FALLEN)
        await until(lambda: not looks.disk, "the disk has room again")
        status, answer = served.ask("POST", "/v1/agent/observations", token, post(taken))
        assert (status, answer["acknowledged"]) == (200, (taken + 1) * LINES), answer

        await full_for_good(served, ann, looks, disk)
        changes = [line for line in (tmp_path / "log").read_text().splitlines() if "role_changed" in line]
        assert len(changes) <= 6, changes


async def full_for_good(served: Served, ann: str, looks: Readiness, disk: Path) -> None:
    """Fills it to the last byte, has it stand so, and frees it again."""
    looks.begin_again()
    fill(disk)
    await until(lambda: "standby" in looks.roles, "it stops acting")
    await asyncio.sleep(WATCHED_S)
    status, answer = served.ask("GET", "/readyz", "")
    assert (status, answer["role"]) == (503, "standby")
    assert "is full" in answer["why"]
    assert looks.roles in (["active", "standby"], ["standby"]), "in one state"
    status, _, answer = await asyncio.to_thread(cordon, served, ann, "n2")
    assert status == 503, answer
    (disk / "filler").unlink()
    await until(lambda: looks.roles[-1] == "active", "it goes on by itself")
    status, _, answer = await asyncio.to_thread(cordon, served, ann, "n2")
    assert status == 200, json.dumps(answer)
