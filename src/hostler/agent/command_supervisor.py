"""Runs one command, and ends all that it started: `limited_command` runs this file as a process of its own.

A process that calls setsid leaves the group that could be killed. Whoever adopts orphans (PR_SET_CHILD_SUBREAPER,
prctl(2)) still gets it as soon as its parent ends. The agent itself adopts nobody: it could not tell them from its own.

Its arguments are the descriptor that is told the command's end, and the command. It ends on SIGTERM, which the kernel
sends too where the agent is gone, once nobody is left; of who hangs in the kernel it waits for the end.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
"""From linux/prctl.h."""
AGAIN_S, RARELY_S, OFTEN = 0.005, 0.5, 200
"""Seconds between looks for who is left, and after how many looks they become rare."""


def main(status: int, command: list[str]) -> None:
    """Run the command and say how it ended, as `subprocess` counts: below 0 a signal."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    adopts = prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0 and prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) == 0
    os.set_inheritable(status, False)
    if not adopts:
        os.write(status, b"its keeper cannot adopt what it starts")
        return
    defaults = (signal.SIGPIPE, signal.SIGXFSZ)  # Python ignores these, and they would be ignored on
    try:
        child = os.posix_spawnp(command[0], command, os.environ, setsid=True, setsigmask=(), setsigdef=defaults)
    except OSError as error:
        os.write(status, f"it cannot be started: {error}".encode())
        return
    for stream in (0, 1, 2):
        os.close(stream)
    while signal.sigwait({signal.SIGTERM, signal.SIGCHLD}) == signal.SIGCHLD:
        for pid, code in _ended():
            if pid == child:
                os.write(status, str(os.waitstatus_to_exitcode(code)).encode())
                os.close(status)
    _end_all()


def _ended() -> Iterator[tuple[int, int]]:
    """Children that have ended, adopted ones too. ChildProcessError of `waitpid` means that there are none at all."""
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            yield found


def _end_all() -> None:
    """Kill until nobody is left; who loses its parent by that is adopted, and killed next."""
    for look in range(sys.maxsize):
        for pid in _children():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(AGAIN_S if look < OFTEN else RARELY_S)


def _children() -> list[int]:
    """List the children of this process; without CONFIG_PROC_CHILDREN, by looking at every process."""
    own = os.getpid()
    try:
        with open(f"/proc/{own}/task/{own}/children", encoding="ascii") as file:  # noqa: PTH123 - pathlib loads longer than all this
            return [int(pid) for pid in file.read().split()]
    except FileNotFoundError:
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _parent(pid) == own]  # noqa: PTH208


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
