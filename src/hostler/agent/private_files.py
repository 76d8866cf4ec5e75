"""Files of the agent that nobody else may read: what it keeps, and the token that it is known by."""

import os
from pathlib import Path

OTHERS = 0o077


def make_private(path: Path) -> None:
    """Make the file where it is not there, its folder too, and take it from all others. Raises OSError.

    SQLite gives its -wal and -shm the mode of the file itself. A folder that is there already stays as it is.
    """
    path.parent.mkdir(0o700, parents=True, exist_ok=True)
    if path.exists() and not path.stat().st_mode & OTHERS:
        return
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.fchmod(file, 0o600)
    finally:
        os.close(file)
    for suffix in ("-wal", "-shm"):
        if (beside := path.with_name(path.name + suffix)).exists():
            beside.chmod(0o600)


def require_private(path: Path) -> None:
    """Raises PermissionError, which names the command that mends it, for a file that others can read."""
    if path.stat().st_mode & OTHERS:
        raise PermissionError(f"{path}: others can read it or write to it; chmod 600 {path}")
