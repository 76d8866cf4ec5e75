"""Programs from PyPI that tests start beside us: a venv each in the user's cache, made once, no dependency of ours."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

INSTALL_S = 600.0


class MissingError(Exception):
    """A program cannot be installed here; the text says why."""


def installed(name: str, packages: Sequence[str]) -> Path:
    """The folder of these packages' programs, installed where they are not yet. Raises MissingError."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "hostler-tests" / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            made = (sys.executable, "-m", "venv", str(folder))
            for argv in (made, (f"{folder}/bin/pip", "install", "-q", *packages)):
                done = subprocess.run(argv, capture_output=True, text=True, timeout=INSTALL_S, check=False)
                if done.returncode:
                    raise MissingError(f"{' '.join(packages)} from PyPI: {done.stderr.strip()[-300:]}")
            (folder / "whole").touch()
    return folder / "bin"
