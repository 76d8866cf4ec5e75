"""A node whose disk is full or read-only: its agent goes on, says so, and sends what it sees.

The agents are real processes with a tmpfs of 1 MiB each as their disk, the cell is a real `hostler serve`.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from hostler.server.tokens import Grant, Role
from tests.adversary.attacked import PATIENCE_S, Served, attacked
from tests.adversary.test_one_token import documents
from tests.end_to_end.processes import process

pytestmark = pytest.mark.nightly("processes are started and ended for minutes")

XID = "NVRM: Xid (PCI:0000:4c:00): 79, pid=1234, name=python3, GPU has fallen off the bus."
FALLEN, COLLECTOR = "gpu.fallen_off_bus", "agent.collector_failed"
TICKS = os.sysconf("SC_CLK_TCK")
WATCHED_S = 5.0
SPINNING = 0.5
"""Of a core; an agent that does nothing but try again takes all of it."""


@contextmanager
def small_disk(where: Path, size: str = "1m") -> Iterator[Path]:
    """A disk of 1 MiB, or of another size. Skips where nothing may be mounted."""
    where.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(where)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"a tmpfs cannot be mounted ({mounted.stderr.strip()}): run as root with CAP_SYS_ADMIN")
    try:
        yield where
    finally:
        subprocess.run(["umount", "--lazy", str(where)], check=True)


def fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    assert os.statvfs(disk).f_bavail == 0


def remount(disk: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)


class Watched:
    """One node: its disk, its kernel log, its agent, and what the cell says of it."""

    def __init__(self, served: Served, operator: str, node: str, folder: Path, disk: Path) -> None:
        self._served = served
        self._operator = operator
        self._node = node
        self.disk = disk
        self._log = folder / f"{node}.log"
        self._kmsg = folder / f"{node}.kmsg"
        os.mkfifo(self._kmsg, 0o600)
        self._written = 0
        self._writer = os.open(self._kmsg, os.O_RDWR)
        self._token = folder / f"{node}.token"
        self._token.touch(mode=0o600)
        self._token.write_text(served.token(Grant(f"agent-{node}", Role.agent, node=node)))
        self.pid = 0

    async def begin(self, stack: AsyncExitStack) -> None:
        argv = ["-m", "hostler.agent.main", "--node", self._node, "--server", self._served.url, "--dcgm", ""]
        argv += ["--token-file", str(self._token), "--state-dir", str(self.disk), "--kernel-log", str(self._kmsg)]
        self.pid = (await stack.enter_async_context(process(sys.executable, *argv, log=self._log))).pid

    def say(self, line: str) -> None:
        os.write(self._writer, f"3,{self._written},{int(time.monotonic() * 1e6)},-;{line}\n".encode())
        self._written += 1

    def conditions(self) -> list[dict[str, Any]]:
        status, answer = self._served.ask("GET", f"/v1/nodes/{self._node}/conditions", self._operator)
        assert status == 200, answer
        return list(answer["items"])

    async def until(self, kind: str, part: str = "", *, stands: bool = True) -> None:
        """Until the condition stands, or stands no more."""
        end = time.monotonic() + PATIENCE_S
        while True:
            found = await asyncio.to_thread(self.conditions)
            if stands == any(one["type"] == kind and part in one["part"] for one in found):
                return
            assert time.monotonic() < end, (kind, part, stands, found, self._log.read_text()[-2_000:])
            await asyncio.sleep(0.2)

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def close(self) -> None:
        os.close(self._writer)


async def test_an_agent_goes_on_on_a_disk_that_takes_nothing(tmp_path: Path) -> None:
    """Full from the start, read-only from the start, full while it runs: a fault arrives, the disk's state too, and
    that it takes writes again.

    Mutants: the agent ends where the spool or the marks cannot be opened; it tries again without a pause; an order is
    waited for by a task that the marks' error ends; the disk is not tried again; nobody is told.
    """
    async with AsyncExitStack() as stack:
        disks = stack.enter_context(ExitStack())
        cases = {n: disks.enter_context(small_disk(tmp_path / n)) for n in ("full", "readonly", "fills")}
        served = await stack.enter_async_context(attacked(tmp_path, *documents(tmp_path)))
        ann = served.token(Grant("ann", Role.operator))
        nodes = [{"id": name, "sku": "this", "pool": "train"} for name in cases]
        status, answer = served.ask("POST", "/v1/adopt", ann, {"nodes": nodes, "reason": "test"})
        assert status == 200, answer
        agents = {name: Watched(served, ann, name, tmp_path, disk) for name, disk in cases.items()}
        for one in agents.values():
            stack.callback(one.close)
        fill(cases["full"])
        remount(cases["readonly"], "ro")
        for one in agents.values():
            await one.begin(stack)
        agents["fills"].say(XID)
        await agents["fills"].until(FALLEN)
        fill(cases["fills"])
        for name, one in agents.items():
            one.say(XID if name != "fills" else "EXT4-fs error (device sda1): ext4_find_entry:1455: reading directory")
            await one.until(FALLEN)
            await one.until(COLLECTOR, "spool")
        for name in ("full", "readonly"):
            await agents[name].until(COLLECTOR, "marks")
        before, at = {name: one.cpu_s() for name, one in agents.items()}, time.monotonic()
        await asyncio.sleep(WATCHED_S)
        for name, one in agents.items():
            share = (one.cpu_s() - before[name]) / (time.monotonic() - at)
            assert share < SPINNING, f"{name}: {share:.2f} of a core"
        (cases["full"] / "filler").unlink()
        (cases["fills"] / "filler").unlink()
        remount(cases["readonly"], "rw")
        for one in agents.values():
            one.say("EXT4-fs error (device sdb1): ext4_find_entry:1455: reading directory")
            await one.until(COLLECTOR, "spool", stands=False)
            await one.until(COLLECTOR, "marks", stands=False)
            await one.until(FALLEN)
