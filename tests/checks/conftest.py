"""Shared by tests of the suite on PyTorch: Debian's Python, which has it, and a path on which that finds our code."""

import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.checks.suite_runs import PACKAGE, PYTHON

HOW = "apt-get install --no-install-recommends python3-torch libopenblas0-pthread"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path for Debian's Python: our code, and the one requirement that Debian has no package of."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "hostler_checks").symlink_to(PACKAGE / "hostler_checks")
    (folder / "array_api_compat").symlink_to(Path(sysconfig.get_path("purelib")) / "array_api_compat")
    asked = subprocess.run([PYTHON, "-c", "import torch, numpy, yaml"], capture_output=True, check=False)
    if asked.returncode:
        pytest.skip(f"no PyTorch under {PYTHON}: {HOW}")
    return folder
