"""A command of somebody else's: run in a group of its own, with limits of time, memory, processor and output."""

import os
import select
import subprocess
import time
from collections.abc import Sequence

from msgspec import Struct

from hostler.agent.child import end_group

MAX_OUTPUT_BYTES = 64 * 1024
MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_FILES = 64
MAX_LEFT = 8
"""Children that not even SIGKILL ends; with so many, no more are started."""
ERRORS_CHARS = 300
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/"}
_left: list[subprocess.Popen[bytes]] = []


class Limits(Struct, frozen=True):
    """Seconds by the clock, bytes of address space, seconds of processor."""

    timeout_s: float
    memory_bytes: int
    cpu_s: int


class Ended(Struct, frozen=True):
    """How it ended. `trouble` says why there is no answer at all, "" where there is one; `code` < 0 is a signal."""

    code: int = 0
    output: bytes = b""
    errors: str = ""
    trouble: str = ""


def run_bounded(argv: Sequence[str], limits: Limits) -> Ended:
    """Run a command to its end or its limit. Blocks; never raises for what the command does.

    Nothing is given to it but a small environment: no input, no open file, no shell. Its whole group is killed at the
    end, so that nothing stays behind.
    """
    _left[:] = [child for child in _left if child.poll() is None]
    if len(_left) >= MAX_LEFT:
        return Ended(trouble=f"it is not started: {len(_left)} earlier children still hang")
    try:
        child = subprocess.Popen(
            (*_limited(limits), *argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd="/",
            env=_ENVIRONMENT,
            umask=0o077,
        )
    except OSError as error:
        return Ended(trouble=f"it cannot be started: {error}")
    try:
        return _read(child, limits)
    finally:
        end_group(child, _left)


def _limited(limits: Limits) -> tuple[str, ...]:
    """util-linux's prlimit sets them and becomes the command: code of ours between fork and exec may deadlock."""
    bounds = (
        f"--as={limits.memory_bytes}",
        f"--cpu={limits.cpu_s}",
        f"--fsize={MAX_FILE_BYTES}",
        f"--nofile={MAX_FILES}",
        "--core=0",
    )
    return ("prlimit", *bounds, "--")


def _read(child: subprocess.Popen[bytes], limits: Limits) -> Ended:
    """Its output until both streams are closed; a grandchild that keeps them open is as late as the child."""
    assert child.stdout, "a pipe"
    assert child.stderr, "a pipe"
    said: dict[int, bytearray] = {child.stdout.fileno(): bytearray(), child.stderr.fileno(): bytearray()}
    out, errors = list(said)
    open_ends = set(said)
    waiting = select.poll()  # select() knows no descriptor above 1023
    for end in said:
        waiting.register(end, select.POLLIN)
    until = time.monotonic() + limits.timeout_s
    while open_ends and (left_s := until - time.monotonic()) > 0:
        for end, _ in waiting.poll(left_s * 1000):
            chunk = os.read(end, 65_536)
            if not chunk:
                open_ends.discard(end)
                waiting.unregister(end)
            said[end] += chunk
            if len(said[end]) > MAX_OUTPUT_BYTES:
                return Ended(trouble=f"it printed more than {MAX_OUTPUT_BYTES >> 10} KiB; it was ended")
    try:
        code = child.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return Ended(trouble=f"it did not end within {limits.timeout_s:g} s")
    if open_ends:
        return Ended(trouble=f"what it started did not end within {limits.timeout_s:g} s")
    complaint = bytes(said[errors]).decode("utf-8", "replace").strip()[-ERRORS_CHARS:]
    return Ended(code, bytes(said[out]), complaint)
