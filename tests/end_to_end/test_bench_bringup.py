"""The bring-up benchmark's machines still answer what Hostler asks of them, down to their erasing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly("processes are started and ended for minutes")

SMALL = {"BENCH_MACHINES": "3", "BENCH_WITHIN_S": "3", "BENCH_FASTER": "400"}


def test_its_machines_come_to_production() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "bench", "bringup"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, **SMALL},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"operations a machine +12 ", ran.stdout), ran.stdout
