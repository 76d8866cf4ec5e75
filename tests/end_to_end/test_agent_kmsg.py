"""The agent's real process on the real kernel log: a line written to /dev/kmsg arrives, once, with its provenance."""

import asyncio
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bench import kmsg
from hostler.core.state.model import Observation
from tests.contract.agent_world import DEADLINE_S, FakeController, served
from tests.end_to_end.real_path import read_up

KMSG = Path("/dev/kmsg")
MAX_RSS_KIB = 56 * 1024

pytestmark = [
    pytest.mark.nightly("processes are started and ended for minutes"),
    pytest.mark.xdist_group("kernel_log"),
    pytest.mark.skipif(
        not os.access(KMSG, os.R_OK | os.W_OK),
        reason="/dev/kmsg cannot be written: run as root, in a container with --privileged",
    ),
]


@asynccontextmanager
async def agent(url: str, directory: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """The agent as systemd would start it; it must end by itself after SIGTERM, in good order."""
    (directory / "token").write_text("secret")
    (directory / "token").chmod(0o600)
    argv = ["--node", "n1", "--server", url, "--token-file", f"{directory}/token", "--state-dir", f"{directory}/state"]
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "hostler.agent.main", *argv)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), DEADLINE_S) in (0, -signal.SIGKILL)


def say(line: str) -> None:
    """Write a record as any root process may."""
    KMSG.write_text(line)


def written(fake: FakeController, mark: str) -> list[Observation]:
    return [item for item in fake.kept if mark in item.text]


@pytest.mark.smoke
async def test_a_line_of_user_space_arrives_once_and_as_such(tmp_path: Path) -> None:
    fake, mark = FakeController(), secrets.token_hex(8)
    read_up(tmp_path / "state")
    async with served(fake) as url:
        async with agent(url, tmp_path):
            await fake.until(lambda: fake.heartbeats)
            say(f"<3>NVRM: Xid (PCI:0000:4c:00): 79, pid=1, hostler test {mark}\n")
            await fake.until(lambda: written(fake, mark))
        async with agent(url, tmp_path) as process:
            await fake.until(lambda: [i.facts.get("event") for i in fake.kept].count("started") == 2)
            say(f"<0>EDAC MC0: hostler test, again {mark}\n")
            await fake.until(lambda: len(written(fake, mark)) == 2)
            process.kill()
            await process.wait()
        async with agent(url, tmp_path):
            await fake.until(lambda: [i.facts.get("event") for i in fake.kept].count("started") == 3)
            say(f"mlx5_core hostler test, the last {mark}\n")
            await fake.until(lambda: len(written(fake, mark)) == 3)
    first, second, third = written(fake, mark)
    assert [item.text.split(" ")[0] for item in (first, second, third)] == ["NVRM:", "EDAC", "mlx5_core"]
    assert {item.facility for item in (first, second, third)} == {1}
    assert 0 <= first.age_s < DEADLINE_S
    assert first.count == 1


async def test_the_process_stays_small(tmp_path: Path) -> None:
    fake = FakeController()
    async with served(fake) as url, agent(url, tmp_path):
        await fake.until(lambda: any(item.kind == "inventory" for item in fake.kept) and len(fake.heartbeats) > 1)
    assert int(str(fake.heartbeats[-1]["rss_kib"])) < MAX_RSS_KIB


async def test_faults_of_every_family_in_a_kernel_log_become_conditions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The agent's process, a served cell, and sixty kinds of fault, each found and named; `bench/kmsg.py` has more.

    Mutant: the uploader waits for its next round.
    """
    found = await kmsg.measured(tmp_path, 60)
    with capsys.disabled():
        total = found.total
        sys.stdout.write(f"\n  kernel line → condition heard: P50 {total.p50_ms:.0f} ms, P99 {total.p99_ms:.0f} ms\n")
    assert found.misses == ()
    assert found.misnamed == ()
    assert found.total.found == 60
    assert {row.family for row in found.families} >= {"Xid", "SXid", "PCI Express", "the kernel"}
