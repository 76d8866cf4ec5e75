"""Small runs of the checks' suite for tests: one check with a planted fault, a profile by the command."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hostler_checks.answers import CheckResult
from hostler_checks.catalogue import CHECKS
from hostler_checks.device import TWIN
from hostler_checks.disturbance import Look
from hostler_checks.plants import PERMISSION
from hostler_checks.reference import Reference
from hostler_checks.runner import CheckRunner, Request

PACKAGE = Path(__file__).parents[2] / "packages/checks"
PYTHON = "/usr/bin/python3"
"""Debian's, which may have PyTorch."""
SMALL: dict[str, dict[str, Any]] = {
    "gemm_perf": {"n": 128},
    "gemm_golden": {"n": 96},
    "gemm_abft": {"n": 64},
    "gemm_fp8": {"n": 64},
    "train_replay": {"steps": 4, "every": 2, "width": 16, "blocks": 1, "batch": 2, "length": 8},
    "hbm_bandwidth": {"mib": 8},
    "hbm_pattern": {"mib": 8},
    "pcie_bandwidth": {"mib": 4},
    "thermal_soak": {"n": 96},
    "power_pulse": {"n": 96, "period_s": 0.2},
    "alloc_cycle": {"mib": 4, "cycles": 10},
    "host_memory": {"mib": 8},
    "nvme_fio": {"mib": 4},
    "allreduce": {"mib": 1},
    "pipeline_sendrecv": {"mib": 1, "n": 32},
}
"""Parameters with which a check takes a fraction of a second."""


def quiet(_: bool) -> Look:
    """A node on which nobody else works, whatever this one has to do."""
    return Look(0.0)


def one(name: str, plant: str = "", part: str = "cpu", **more: Any) -> CheckResult:
    """Run one check in its child, small, with a fault planted."""
    spec = CHECKS[name]
    reference: Reference | None = more.pop("reference", None)
    python = more.pop("python", sys.executable)
    params = {**(spec.gpu if part == TWIN else spec.cpu), **SMALL.get(name, {}), **more.pop("params", {})}
    request = Request(spec, part, more.pop("seconds", 0.1), params, plant=plant)
    return CheckRunner(reference, python=python, watch=quiet).run([request], **more)[0]


def planting(patch: pytest.MonkeyPatch) -> None:
    """Permit this process and its children to plant faults."""
    patch.setenv(PERMISSION, "1")
    patch.setenv("PYTHONPATH", str(PACKAGE))
    patch.setenv("OMP_NUM_THREADS", "1")


def command(folder: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `hostler-check run` on the CPU to its end."""
    return subprocess.run(argv(folder, *options), capture_output=True, text=True, check=False, env=env(**variables))


def argv(folder: Path, *options: str) -> list[str]:
    """The command's words."""
    no_checks = folder.with_name(f"{folder.name}.site")
    no_checks.mkdir(parents=True, exist_ok=True)
    fixed = [
        "run",
        "--state",
        str(folder),
        "--device",
        "cpu",
        "--node",
        "n1",
        "--site",
        str(no_checks),
        "-o",
        "json",
    ]
    return [sys.executable, "-m", "hostler_checks.main", *fixed, *options]


def env(**variables: str) -> dict[str, str]:
    """The environment of the command."""
    return {**os.environ, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1", **variables}


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The report that the command printed."""
    assert done.stdout, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report
