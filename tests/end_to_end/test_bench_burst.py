"""The burst's benchmark still takes its nodes from the kernel line back to service, on a real API server."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.xdist_group("kubernetes"), pytest.mark.nightly("a real control plane runs beside it")]
TREE = Path(__file__).parents[2]
SMALL = ("--nodes", "16", "--faults", "3", "--beside", "8", "--reboot-s", "1", "--gate-s", "0.5")


@pytest.mark.usefixtures("control_plane")  # its programs are there, or it is said what is missing
def test_nodes_that_need_a_reboot_serve_again_and_no_other_is_touched() -> None:
    """Mutants: faults that are not fatal cordon their nodes; the reboot does not wait for the drain."""
    ran = subprocess.run(
        [sys.executable, "-m", "bench", "burst_end_to_end", *SMALL],
        cwd=TREE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(TREE), str(TREE / "packages/checks")))},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert len(re.findall(r"line → back: P50 .* 3 of 3 seen", ran.stdout)) == 2, ran.stdout
    for must_not in ("wrong nodes cordoned or rebooted", "rebooted before drained"):
        assert re.findall(rf"{must_not} +(\d+)", ran.stdout) == ["0", "0"], ran.stdout


def test_more_faults_than_nodes_are_refused() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "bench", "burst_end_to_end", "--nodes", "10"],
        cwd=TREE,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 2
    assert "--nodes must be at least 2200: each fault has its own node" in ran.stderr
