"""A command of somebody else's: run under a keeper, with limits of time, memory, processor and output."""

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Sequence

from msgspec import Struct

from hostler.agent import command_supervisor

MAX_OUTPUT_BYTES = 64 * 1024
MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_FILES = 64
MAX_LEFT = 8
"""Keepers of what not even SIGKILL ends; with so many, no more are started."""
END_S = 1.0
"""Time to wait until every started process has ended."""
STATUS_BYTES = 512
ERRORS_CHARS = 300
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/"}
_CRASH = re.compile(rb"^(Traceback \(most recent call last\):|(Syntax|Indentation|Tab)Error: )", re.MULTILINE)
"""First line of a Python traceback: the interpreter then exits with 1, as a plug-in's warning does."""
_left: list[subprocess.Popen[bytes]] = []


class CommandLimits(Struct, frozen=True):
    """Seconds by the clock, bytes of address space, seconds of processor."""

    timeout_s: float
    memory_bytes: int
    cpu_s: int


class CommandEnd(Struct, frozen=True):
    """End of a command.

    `trouble` says why there is no answer at all, "" where there is one; `code` < 0 is a signal.

    `crashed`: the interpreter says that the program broke off, whatever it had printed before.
    """

    code: int = 0
    output: bytes = b""
    errors: str = ""
    trouble: str = ""
    crashed: bool = False


def run_bounded(argv: Sequence[str], limits: CommandLimits) -> CommandEnd:
    """Run a command to its end or its limit. Blocks; never raises for what the command does.

    Nothing is given to it but a small environment: no input, no open file, no shell. All that it started is killed at
    the end, in whatever group or session, so that nothing stays behind.
    """
    _left[:] = [child for child in _left if child.poll() is None]
    if len(_left) >= MAX_LEFT:
        return CommandEnd(trouble=f"it is not started: {len(_left)} earlier children still hang")
    status, told = os.pipe()
    try:
        child = subprocess.Popen(  # noqa: S603 - no shell: a check's program, as the operator named it
            (sys.executable, "-I", "-S", command_supervisor.__file__, str(told), *_limited(limits), *argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=(told,),
            cwd="/",
            env=_ENVIRONMENT,
            umask=0o077,
        )
    except OSError as error:
        os.close(status)
        return CommandEnd(trouble=f"it cannot be started: {error}")
    finally:
        os.close(told)
    try:
        return _read(child, status, limits)
    finally:
        os.close(status)
        _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Have the keeper end everybody; one that cannot joins `_left`, to be reaped later."""
    child.terminate()
    for stream in (child.stdout, child.stderr):
        if stream:
            stream.close()
    try:
        child.wait(END_S)
    except subprocess.TimeoutExpired:
        _left.append(child)


def _limited(limits: CommandLimits) -> tuple[str, ...]:
    """util-linux's prlimit sets them and becomes the command: code of ours between fork and exec may deadlock."""
    bounds = (
        f"--as={limits.memory_bytes}",
        f"--cpu={limits.cpu_s}",
        f"--fsize={MAX_FILE_BYTES}",
        f"--nofile={MAX_FILES}",
        "--core=0",
    )
    return ("prlimit", *bounds, "--")


def _read(child: subprocess.Popen[bytes], status: int, limits: CommandLimits) -> CommandEnd:
    """Read output until both streams are closed; a grandchild that keeps them open is as late as the child."""
    assert child.stdout, "a pipe"
    assert child.stderr, "a pipe"
    out, errors = child.stdout.fileno(), child.stderr.fileno()
    said: dict[int, bytearray] = {out: bytearray(), errors: bytearray(), status: bytearray()}
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
                return CommandEnd(trouble=f"it printed more than {MAX_OUTPUT_BYTES >> 10} KiB; it was ended")
    how = bytes(said[status][:STATUS_BYTES]).decode("utf-8", "replace")
    if status in open_ends:
        return CommandEnd(trouble=f"it did not end within {limits.timeout_s:g} s")
    if open_ends:
        return CommandEnd(trouble=f"what it started did not end within {limits.timeout_s:g} s")
    if not how.lstrip("-").isdigit():
        return CommandEnd(trouble=how or "its keeper was ended, how it ended itself is not known")
    complaint = bytes(said[errors]).decode("utf-8", "replace").strip()[-ERRORS_CHARS:]
    return CommandEnd(int(how), bytes(said[out]), complaint, crashed=_CRASH.search(said[errors]) is not None)
