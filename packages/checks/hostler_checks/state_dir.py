"""The state directory of a node's checks: one runner at a time, and files that are there whole or not at all.

A file is written beside its place, flushed to the medium, renamed, and the directory flushed: after a loss of power it
holds what it held before or what was written. Each carries the digest of its content.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

MAX_FILE_BYTES = 16 << 20
LOCK = "lock"


class InUseError(Exception):
    """Another runner holds the directory; the message names its process."""


class DamagedError(Exception):
    """A file's content is not what was written; it is kept under the name that the message says."""


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the directory; the kernel lets go of it whatever ends this process. Raises InUseError, OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.pread(handle, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise InUseError(f"{folder} is in use by another run of checks (process {who})") from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(handle)


def signed(body: dict[str, Any]) -> dict[str, Any]:
    """The body with the digest of its canonical form."""
    return {**body, "digest": digest_of(body)}


def digest_of(body: dict[str, Any]) -> str:
    """SHA-256 of the body as JSON with sorted keys, without what it says of its own digest."""
    kept = {name: value for name, value in body.items() if name != "digest"}
    return sha256(json.dumps(kept, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()).hexdigest()


def write(path: Path, body: dict[str, Any]) -> None:
    """Write a signed document so that it lasts. Raises OSError; what was there before is then there still."""
    write_bytes(path, json.dumps(signed(body), indent=1, allow_nan=False).encode())


def write_bytes(path: Path, data: bytes) -> None:
    """As `write`, for bytes."""
    beside = path.with_name(f".{path.name}.new")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    _flush_directory(path.parent)


def read(path: Path) -> dict[str, Any] | None:
    """A document that was written here; None where there is none. Raises DamagedError (it is set aside), OSError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        told = verified(data)
    except ValueError as error:
        kept = set_aside(path, "damaged")
        raise DamagedError(f"{path.name}: {error}; it is kept as {kept}") from None
    return told


def verified(data: bytes) -> dict[str, Any]:
    """A signed document whose digest is right. Raises ValueError."""
    if len(data) > MAX_FILE_BYTES:
        raise ValueError("it is too large")
    try:
        told = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(told, dict) or told.get("digest") != digest_of(told):
        raise ValueError("its digest is not that of its content")
    return told


def set_aside(path: Path, why: str) -> str:
    """Rename a file out of the way, over nothing; its new name."""
    for number in range(1, 1000):
        kept = path.with_name(f"{path.name}.{why}-{number}")
        if not kept.exists():
            path.replace(kept)
            _flush_directory(path.parent)
            return kept.name
    raise OSError(f"{path.parent} holds a thousand {why} files already")


def _flush_directory(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
