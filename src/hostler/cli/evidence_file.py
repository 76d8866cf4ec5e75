"""Writes the evidence of a node as a zip, and certificates that it was sanitised."""

from hashlib import sha256
from pathlib import Path

from hostler.cli.command_errors import unusable
from hostler.cli.new_files import write_new


def write_zip(data: bytes, node: str, to: str) -> Path:
    """Write a zip about a node, by default to NODE-evidence.zip; an existing file stays. Raises CommandError."""
    return _written(data, node, to, "-evidence.zip")


def write_certificate(data: bytes, node: str, digest: str, to: str) -> Path:
    """Write a certificate whose SHA-256 is this one; an existing file stays. Raises CommandError."""
    if sha256(data).hexdigest() != digest:
        raise unusable(f"the server sent other bytes than {digest[:12]}", "ask again, or another controller")
    return _written(data, node, to, f"-{digest[:12]}.json")


def _written(data: bytes, node: str, to: str, ending: str) -> Path:
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in node)
    path = Path(to or f"{safe}{ending}")
    write_new(path, data)
    return path
