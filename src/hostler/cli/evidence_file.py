"""Writes the evidence of a node as a zip, readable by its owner alone."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hostler.cli.command_errors import unusable
from hostler.journal.evidence_zip import zipped


def write(found: Mapping[str, Any], to: str) -> Path:
    """Write a bundle that was put together on demand; an existing file stays. Raises CommandError."""
    return write_bytes(zipped(found["files"], found["made"], found["sha256"]), str(found["node"]), to)


def write_bytes(data: bytes, node: str, to: str) -> Path:
    """Write a zip about a node; an existing file stays. Raises CommandError."""
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in node)
    path = Path(to or f"{safe}-evidence.zip")
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise unusable(f"{path} cannot be written: {error.strerror}", "name another file with --to") from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    return path
