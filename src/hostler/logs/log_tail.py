"""Reads the end of another program's log: bounded and in whole lines, whatever was written there."""

from pathlib import Path

MOST_BYTES = 2**20
"""Bytes from the end that are read: some 8,000 lines of opensm's."""
MOST_LINE = 1_000
"""Characters of a line that are kept."""


def tail(path: Path, most: int = MOST_BYTES) -> list[str]:
    """Whole lines among the last `most` bytes. Raises OSError.

    The first is left out where the file is longer, as it may be cut off; a line without an end is not read yet.
    """
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - most))
        lines = stream.read(most).split(b"\n")
    whole = lines[1:-1] if size > most else lines[:-1]
    return [line[:MOST_LINE].decode(errors="replace") for line in whole]
