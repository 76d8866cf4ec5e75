"""A child process that may hang: run with a deadline, killed with its group, never waited for beyond it.

Vendor tools and libraries hang in the kernel when hardware fails, and then not even SIGKILL ends them.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence

from msgspec import Struct

MAX_ABANDONED = 8
"""Children that even SIGKILL does not end; with so many, no more are started."""
REAP_S = 1.0
"""How long a killed child is waited for."""
_abandoned: list[subprocess.Popen[bytes]] = []


class Finished(Struct, frozen=True):
    """How a child ended. `code` is negative for a signal; `output` and `errors` as it wrote them."""

    code: int
    output: bytes
    errors: str


class HungError(Exception):
    """The child did not end in time. What it was doing may still happen."""


def run(argv: Sequence[str], deadline_s: float) -> Finished:
    """Run a fixed command. Raises HungError past the deadline, OSError where it cannot be started."""
    _abandoned[:] = [child for child in _abandoned if child.poll() is None]
    if len(_abandoned) >= MAX_ABANDONED:
        raise HungError(f"{argv[0]} is not started: {len(_abandoned)} earlier children still hang")
    child = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        output, errors = child.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        _abandon(child)
        raise HungError(f"{argv[0]} did not end within {deadline_s:g} s") from None
    return Finished(child.returncode, output, errors.decode("utf-8", "backslashreplace").strip()[-500:])


def _abandon(child: subprocess.Popen[bytes]) -> None:
    """Kill the whole group and close our ends; one that hangs in the kernel is remembered and reaped later."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    for stream in (child.stdout, child.stderr):
        if stream:
            stream.close()
    try:
        child.wait(REAP_S)
    except subprocess.TimeoutExpired:
        _abandoned.append(child)
