"""Files that are there whole or not at all, in a folder that one process at a time writes to."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from hostler.ports import JournalError


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Make the folder and keep others from writing to it; what a cut-off predecessor left unfinished goes."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise JournalError(
            f"the archive {folder} cannot be written: {error.strerror}; let Hostler's user write there, and make room"
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for unfinished in folder.glob(".*.part"):
            unfinished.unlink()
        yield
    except BlockingIOError as error:
        raise JournalError(f"somebody else is writing to the archive {folder}: try again when it is done") from error
    except OSError as error:
        raise JournalError(
            f"the archive {folder} cannot be written, nothing was removed: {error}"
            "; let Hostler's user write there, and make room"
        ) from error
    finally:
        os.close(lock)


def unfinished(path: Path) -> Path:
    """Path of a file until it is whole."""
    return path.with_name(f".{path.name}.part")


def create(path: Path) -> BinaryIO:
    """Open a new file that its owner alone reads and writes, whatever the umask is; one of that name goes."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def publish(path: Path) -> None:
    """Give the unfinished file its name, once all of it is on the disk; it replaces one of that name."""
    sync(unfinished(path))
    unfinished(path).rename(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Return when what was written to the file, or which names the folder holds, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
