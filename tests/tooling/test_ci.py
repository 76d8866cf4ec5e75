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


@pytest.mark.parametrize("script", sorted(path for path in (HOUSE / "scripts").iterdir() if not path.suffix))
def test_a_script_of_the_set_up_is_read_by_its_shell(script: Path) -> None:
    """Mutant: an apostrophe in the list of packages, which ends its quotation."""
    if script.is_file() and script.read_bytes().startswith(b"#!/usr/bin/env bash"):
        read = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True, check=False)
        assert (read.returncode, read.stderr) == (0, "")


ESSENTIAL = {"util-linux"}
"""Packages that no Debian lacks."""


def test_what_a_skip_asks_to_install_is_on_the_list_of_system_packages() -> None:
    """Mutant: a package that the tests came to need is not on it, so that a fresh machine skips them."""
    listed = set(re.findall(r"^([a-z0-9.+-]+)\s*\|", (HOUSE / "scripts/system-packages").read_text(), re.MULTILINE))
    commands = re.compile(r"apt-get install((?: (?:--[a-z-]+|[a-z0-9][a-z0-9+.-]*))+)")
    sources = [path.read_text() for path in (HOUSE / "tests").rglob("*.py")]
    asked = {name for text in sources for words in commands.findall(text) for name in words.split()}
    asked = {name for name in asked if not name.startswith("--")}
    assert len(asked) > 15
    assert asked - listed - ESSENTIAL == set()
