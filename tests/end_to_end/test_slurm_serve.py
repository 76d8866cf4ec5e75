"""A served cell beside a real Slurm: who works is named, a drain waits for it, and a person's resume is a hold."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.end_to_end.served import NODE, POLICY, Served, served_beside
from tests.slurm import RealSlurm

pytestmark = pytest.mark.nightly("a real Slurm runs beside it")

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


CHECK = """#!/bin/sh
# Plays the suite: it works until somebody comes, or answers at once.
while [ $# -gt 1 ]; do [ "$1" = --message ] && said=$2; shift; done
: > {folder}/check-began
while [ -e {folder}/check-works ]; do sleep 0.1; done
exec > "$said"
echo '{{"verdict": "passed", "detail": "1 GPU", "readings": {{"gemm_perf|bf16_tflops": {{"cuda:0": 741.5}}}}}}'
"""


@pytest.mark.smoke
async def test_an_idle_node_is_checked_by_a_job_and_a_customer_takes_its_place(
    slurm: RealSlurm, tmp_path: Path
) -> None:
    """An hour is fifteen seconds here, and a check may take twice that: a loaded machine brings the customer in time.

    Mutants: the customer waits, or is cancelled; no reading comes.
    """
    program, works = slurm.folder / "hostler-check", slurm.folder / "check-works"
    program.write_text(CHECK.format(folder=slurm.folder))
    program.chmod(0o755)
    works.touch()
    place = f"checks: {{partition: hostler, program: {program}, state: {slurm.folder}}}\n"
    (tmp_path / "ci.yaml").write_text(f"commands: {{slurm_conf: {slurm.conf}}}\nperiod_s: 0.5\n{place}")
    policy = re.sub(r"(?m)^  time_scale: .*$", "  time_scale: 240", POLICY.read_text())
    policy, slots = re.subn(
        r"slots: \{period_s: 3600, (.*)limit_s: 1500,", r"slots: {period_s: 7200, \1limit_s: 6900,", policy
    )
    assert slots == 1
    (tmp_path / "policy.yaml").write_text(policy)
    how = ["--slurm", f"ci={tmp_path / 'ci.yaml'}"]
    async with served_beside(tmp_path, "ci", {"slurm": "gpu001"}, how, PATIENCE_S, tmp_path / "policy.yaml") as served:
        await served.say("pool", "mode", "train", "act", "--remedy", "idle_check", "--reason", "try it")
        await slurm.until((slurm.folder / "check-began").exists, PATIENCE_S)
        customer = await slurm.submit("gpu001", gpus=8)
        await served.until('"verdict":"inconclusive"')
        said = [one["detail"] for one in json.loads(await served.read(f"/v1/nodes/{NODE}"))["node"]["checks"]]
        # Slurm is asked for jobs and for nodes in two calls: a job that begins between them shows as busy cores alone.
        assert said in (
            ["pre-empted: a customer's job took the node"],
            [f"called off: job {customer} has come"],
            ["called off: a job that Slurm does not show to us has come"],
        )
        state = slurm.run("squeue", "-h", "--states=all", "-j", str(customer), "-o", "%T").strip()
        assert state == "RUNNING"
        slurm.run("scancel", str(customer))
        works.unlink()
        await served.until('"verdict":"passed"')
        code, told = await served.tell("node", "explain", NODE)
        assert code == 0
        assert "gemm_perf.bf16_tflops 741.5 (cuda:0)" in told
        await served.until('"metric":"gemm_perf.bf16_tflops"', f"/v1/nodes/{NODE}/trends")
