"""A served cell beside a real Slurm: who works is named, a drain waits for it, and a person's resume is a hold."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.end_to_end.served import NODE, Served, served_beside
from tests.slurm import RealSlurm

PATIENCE_S = 90.0


@pytest.fixture
async def served(slurm: RealSlurm, tmp_path: Path) -> AsyncIterator[Served]:
    (tmp_path / "ci.yaml").write_text(f"commands: {{slurm_conf: {slurm.conf}}}\nperiod_s: 0.5\n")
    how = ["--slurm", f"ci={tmp_path / 'ci.yaml'}"]
    async with served_beside(tmp_path, "ci", {"slurm": "gpu001"}, how, PATIENCE_S) as world:
        yield world


async def test_a_drain_waits_for_a_job_by_name_and_a_persons_resume_holds_it_off(
    slurm: RealSlurm, served: Served
) -> None:
    number = await slurm.submit("gpu001")
    await served.say("node", "drain", NODE, "--reason", "new kernel")
    await served.until(f"job {number} of root runs here and may not be interrupted")
    state = await slurm.state("gpu001")
    assert (state.base, sorted(state.flags), state.reason[:14]) == ("MIXED", ["DRAIN"], "hostler: drain")

    await slurm.admin("gpu001", "RESUME")
    await served.until("somebody, by scontrol holds n1: lifted our cordon in cluster ci")
    assert "DRAIN" not in (await slurm.state("gpu001")).flags  # not fought

    (hold,) = await served.overrides()
    await served.say("hold", "release", hold, "--reason", "go on")
    await served.until(f"job {number} of root runs here and may not be interrupted")
    assert "DRAIN" in (await slurm.state("gpu001")).flags
    assert await served.overrides() == []

    slurm.run("scancel", str(number))
    await served.until('"plan":null')
    await served.say("node", "uncordon", NODE, "--reason", "kernel is new")
    await slurm.until(lambda: slurm.run("sinfo", "-h", "-n", "gpu001", "-p", "main", "-o", "%T").strip() == "idle")
