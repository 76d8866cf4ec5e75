"""Writes the evidence of a node as a zip."""

from pathlib import Path

from hostler.cli.new_files import write_new


def write_zip(data: bytes, node: str, to: str) -> Path:
    """Write a zip about a node, by default to NODE-evidence.zip; an existing file stays. Raises CommandError."""
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in node)
    path = Path(to or f"{safe}-evidence.zip")
    write_new(path, data)
    return path
