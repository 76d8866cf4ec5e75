"""The gate's tests of the host: a few seconds of memory, disk and clock. The same everywhere.

Run as a child process (`python -m hostler.agent.checks.host_stress DIRECTORY`), so that its memory is given back and
a hang is the caller's deadline. A harness that cannot measure says inconclusive, never passed.
"""

import errno
import hashlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from hostler.core.diagnose.gate.readings import GateLook
from hostler.core.state.model import Facts, Verdict

MEMORY_BYTES = 64 * 1024 * 1024
DISK_BYTES = 16 * 1024 * 1024
CLOCK_READINGS = 100_000
_BLOCK = 1024 * 1024
_PATTERNS = (0x00, 0xFF, 0x55, 0xAA, 0x0F, 0xF0)
_NO_MEASUREMENT = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT}


class StressResult(Struct, frozen=True):
    """Answer of one check. `detail` is one sentence for people, `facts` what was looked at, part by part."""

    verdict: Verdict
    detail: str
    facts: Facts = {}


def tests(directory: Path) -> list[GateLook]:
    """Run all tests, each with what it said."""
    said = {
        "memory": memory(MEMORY_BYTES),
        "disk": disk(directory, DISK_BYTES),
        "clock": clock(time.monotonic_ns, CLOCK_READINGS),
    }
    return [GateLook(name, report.verdict, report.detail) for name, report in said.items()]


def memory(size: int) -> StressResult:
    """Write patterns and their complements into `size` bytes and read them back."""
    try:
        cells = bytearray(size)
    except MemoryError:
        return StressResult(Verdict.inconclusive, f"{size >> 20} MiB could not be allocated")
    for pattern in _PATTERNS:
        block = bytes((pattern,)) * _BLOCK
        for at in range(0, size, _BLOCK):
            cells[at : at + _BLOCK] = block
        wrong = [at for at in range(0, size, _BLOCK) if cells[at : at + _BLOCK] != block]
        if wrong:
            return StressResult(Verdict.failed, f"pattern {pattern:#04x} came back changed in {len(wrong)} MiB")
    return StressResult(Verdict.passed, f"{size >> 20} MiB, {len(_PATTERNS)} patterns")


def disk(directory: Path, size: int) -> StressResult:
    """Write `size` bytes, flush them to the medium, drop them from the page cache, and read them back."""
    path = directory / f"gate-{os.getpid()}.tmp"
    try:
        expected = _write(path, size)
        found = _digest(path)
    except OSError as error:
        verdict = Verdict.inconclusive if error.errno in _NO_MEASUREMENT else Verdict.failed
        return StressResult(verdict, f"{error.strerror} in {directory}")
    finally:
        path.unlink(missing_ok=True)
    if found != expected:
        return StressResult(Verdict.failed, f"{size >> 20} MiB written to {directory} came back changed")
    return StressResult(Verdict.passed, f"{size >> 20} MiB written and read back")


def clock(read: Callable[[], int], readings: int) -> StressResult:
    """The monotonic clock (nanoseconds) never goes back and does not stand still."""
    first = last = read()
    for _ in range(readings):
        now = read()
        if now < last:
            return StressResult(Verdict.failed, f"the monotonic clock went back by {last - now} ns")
        last = now
    if last == first:
        return StressResult(Verdict.failed, f"the monotonic clock stood still for {readings} readings")
    return StressResult(Verdict.passed, f"{readings} readings in order")


def _write(path: Path, size: int) -> str:
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for at in range(0, size, _BLOCK):
            block = hashlib.sha256(at.to_bytes(8, "big")).digest() * (_BLOCK // 32)
            digest.update(block)
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return digest.hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(tests(Path(sys.argv[1]))))
