"""Reads what the kernel shows as files under /sys and /proc; what is not there, or may not be read, is empty."""

from pathlib import Path

MAX_READ = 64 * 1024


def bytes_of(path: Path, limit: int = MAX_READ) -> bytes:
    """The first `limit` bytes of the file."""
    try:
        with path.open("rb") as file:
            return file.read(limit)
    except OSError:
        return b""


def text_of(path: Path, limit: int = MAX_READ) -> str:
    """The file's beginning as text, without the white space around it."""
    return bytes_of(path, limit).decode("utf-8", "replace").strip()


def children_of(path: Path) -> list[Path]:
    """The entries of the directory."""
    try:
        return list(path.iterdir())
    except OSError:
        return []
