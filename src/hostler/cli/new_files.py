"""Writes what commands fetch to a file that was not there before."""

import os
from pathlib import Path

from hostler.cli.command_errors import unusable


def write_new(path: str | Path, data: bytes) -> None:
    """Write a file that its owner alone may read. Raises CommandError where it is there or cannot be written."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise unusable(f"{path} cannot be written: {error.strerror}", "name another file with --to") from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
