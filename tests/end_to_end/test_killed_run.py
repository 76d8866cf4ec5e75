"""Programs that tests start are gone once the run that started them is killed."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.boot_guest import QEMU, missing
from tests.software_tpm import missing_for_tpm

pytestmark = pytest.mark.nightly("processes are started and ended for minutes")

RUN = """
import asyncio, sys
from pathlib import Path
from tests.boot_guest import Guest
from tests.software_tpm import SoftwareTpm

async def run(folder):
    tpm, guest = SoftwareTpm(folder / "tpm", in_a_machine=True), Guest("52:54:00:00:00:01", "S1", folder / "console")
    await tpm.start()
    guest.tpm = tpm.control
    await guest.power_on("http://10.0.2.2:1/")
    print("started", flush=True)
    await asyncio.sleep(600)

asyncio.run(run(Path(sys.argv[1])))
"""
"""A run of tests with a machine in QEMU and its TPM."""


def children(pid: int) -> dict[int, str]:
    """Children of a process, with the program that each runs."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {int(child): Path(f"/proc/{child}/comm").read_text().strip() for child in listed}


def runs(pid: int) -> bool:
    """Whether the process still runs; one that has ended and is not yet reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_a_machine_and_its_tpm_end_with_the_run_that_is_killed(tmp_path: Path, how: signal.Signals) -> None:
    """Mutant: they are started untied, and go on with nobody to end them."""
    if why := missing() or missing_for_tpm():
        pytest.skip(why)
    run = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", RUN, str(tmp_path)),
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert run.stdout is not None
    assert await asyncio.wait_for(run.stdout.readline(), 60) == b"started\n"
    async with asyncio.timeout(10):
        while sorted((started := children(run.pid)).values()) != [QEMU[:15], "swtpm"]:  # noqa: ASYNC110 - the same
            await asyncio.sleep(0.02)
    try:
        run.send_signal(how)
        async with asyncio.timeout(10):
            await run.wait()
            while any(map(runs, started)):  # noqa: ASYNC110 - the kernel tells nobody of an orphan's end
                await asyncio.sleep(0.02)
    finally:
        for pid in filter(runs, started):
            os.kill(pid, signal.SIGKILL)
