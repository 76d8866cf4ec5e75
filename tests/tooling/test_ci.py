"""CI's entries: each is there to be run, and calls only what the Makefile has."""

import os
import re
import subprocess
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2]
TARGETS = set(re.findall(r"^([a-z-]+):", (HOUSE / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize(("entry", "targets"), [("run", {"test"}), ("nightly", {"test-fabric", "fabric-soak"})])
def test_an_entry_of_ci_calls_targets_that_the_makefile_has(entry: str, targets: set[str]) -> None:
    """Mutants: the nightly entry leaves out the network of three tiers; a target is renamed in one of both places."""
    path = HOUSE / ".ci" / entry
    assert os.access(path, os.X_OK)
    assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0
    (called,) = re.findall(r"^exec timeout \S+ \S+ make (.+)$", path.read_text(), re.MULTILINE)
    assert set(called.split()) == targets <= TARGETS
