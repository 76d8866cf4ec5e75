"""The burst's benchmark takes its nodes from the kernel line back to service, on a real API server."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.xdist_group("kubernetes"), pytest.mark.nightly("a real control plane runs beside it")]
TREE = Path(__file__).parents[2]
SMALL = ("--nodes", "16", "--faults", "3", "--beside", "8", "--gate-s", "0.5")
MUST_NOT = (
    "wrong nodes cordoned, drained or rebooted",
    "remediated before drained",
    "cordoned again after they were back",
)


def _ran(*words: str, within_s: float) -> "subprocess.CompletedProcess[str]":
    """Run the benchmark to its end; its own patience is shorter than ours."""
    return subprocess.run(
        [sys.executable, "-m", "bench", "burst_end_to_end", *words],
        cwd=TREE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(TREE), str(TREE / "packages/checks")))},
        capture_output=True,
        text=True,
        timeout=within_s,
        check=False,
    )


@pytest.mark.usefixtures("control_plane")  # its programs are there, or it is said what is missing
def test_nodes_that_need_a_reboot_serve_again_and_no_other_is_touched() -> None:
    """Mutants: faults that are not fatal cordon their nodes; the reboot does not wait for the drain."""
    ran = _ran(*SMALL, "--reboot-s", "1", "--patience-s", "120", within_s=1_500)
    assert ran.returncode == 0, ran.stderr
    for stage in ("line → detected", "detected → cordoned", "detected → drained", "detected → rebooted"):
        assert len(re.findall(rf"{stage}: P50 .* 3 of 3 seen", ran.stdout)) == 2, ran.stdout
    assert len(re.findall(r"detected → back in service: P50 .* 3 of 3 seen", ran.stdout)) == 2, ran.stdout
    for must_not in MUST_NOT:
        assert re.findall(rf"{must_not} +(\d+)", ran.stdout) == ["0", "0"], ran.stdout


@pytest.mark.usefixtures("control_plane")
def test_where_nothing_moves_it_ends_and_says_which_nodes_wait_for_what() -> None:
    """Machines that never come up again are named. Mutant: the benchmark waits for as long as its caller does."""
    ran = _ran(*SMALL, "--reboot-s", "3600", "--patience-s", "20", within_s=1_500)
    assert ran.returncode == 1, ran.stderr
    assert "nodes that serve again: nothing has moved for 20 s, 3 are left" in ran.stderr
    waits = r"^(n\d{4}) \(production, cordoned, gpu\.reboot_required, reboot at \w+\) waits"
    named = re.findall(waits, ran.stderr, re.MULTILINE)
    assert len(named) == 3, ran.stderr
    assert re.findall(r"detected → drained: P50 .* 3 of 3 seen", ran.stdout), ran.stdout
    assert not re.findall(r"detected → back in service: P50", ran.stdout), ran.stdout


def test_more_faults_than_nodes_are_refused() -> None:
    ran = _ran("--nodes", "10", within_s=60)
    assert ran.returncode == 2
    assert "--nodes must be at least 2200: each fault has its own node" in ran.stderr
