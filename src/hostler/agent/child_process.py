"""A child process that may hang: run with a deadline, killed with its group, never waited for beyond it.

Vendor tools and libraries hang in the kernel when hardware fails, and then not even SIGKILL ends them.
"""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import NamedTuple

MAX_ABANDONED = 8
"""Children that even SIGKILL does not end; with so many, no more are started."""
REAP_S = 1.0
"""Time to wait for a killed child."""
MAX_STUCK = 2
"""As MAX_ABANDONED, of one companion."""
MAX_ANSWER, READ_BYTES, PROGRESS_BYTES = 4 * 1024 * 1024, 65_536, 120
_abandoned: list[subprocess.Popen[bytes]] = []


class Finished(NamedTuple):
    """Exit of a child process. `code` is negative for a signal; `output` and `errors` as it wrote them."""

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
    child = subprocess.Popen(  # noqa: S603 - no shell: each word is one argument of a program that the caller names
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        output, errors = child.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        end_group(child, _abandoned)
        raise HungError(f"{argv[0]} did not end within {deadline_s:g} s") from None
    return Finished(child.returncode, output, errors.decode("utf-8", "backslashreplace").strip()[-500:])


def end_group(child: subprocess.Popen[bytes], hanging: list[subprocess.Popen[bytes]]) -> None:
    """Kill the whole group and close our ends; one that hangs in the kernel joins `hanging`, to be reaped later."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    for stream in (child.stdout, child.stderr):
        if stream:
            stream.close()
    try:
        child.wait(REAP_S)
    except subprocess.TimeoutExpired:
        hanging.append(child)


class DiedError(Exception):
    """A companion ended instead of answering; another one is started by the next question."""


class Companion:
    """A child that answers questions, a line of JSON each, until it hangs or dies; the next question starts another.

    Asked by one thread at a time; `close` may come from another and ends the question. A child that even SIGKILL does
    not end is left behind, MAX_STUCK of them at most: with so many, no more are started until one has ended.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = argv
        self._child: subprocess.Popen[bytes] | None = None
        self._stuck: list[subprocess.Popen[bytes]] = []
        self._progress = os.memfd_create("doing")

    def ask(self, question: str, deadline_s: float) -> bytes:
        """The answer. Raises HungError past the deadline or with too many stuck, DiedError, OSError."""
        child = self._child or self._start()
        assert child.stdin is not None
        try:
            child.stdin.write(question.encode() + b"\n")
            child.stdin.flush()
            return self._answer(child, time.monotonic() + deadline_s)
        except BrokenPipeError:
            raise self._died(child) from None
        except TimeoutError:
            self._end()
            raise HungError(f"no answer within {deadline_s:g} s") from None

    @property
    def doing(self) -> str:
        """Announcement by the child of the call it is about to make; it announces each call that may hang."""
        return os.pread(self._progress, PROGRESS_BYTES, 0).split(b"\0", 1)[0].decode("utf-8", "replace")

    @property
    def pid(self) -> int | None:
        """The running child's, None where none runs."""
        return self._child.pid if self._child else None

    def close(self) -> None:
        """End the child. What it held is free once this returns, unless it hangs in the kernel."""
        if self._child:
            self._end()

    def _start(self) -> subprocess.Popen[bytes]:
        self._stuck = [child for child in self._stuck if child.poll() is None]
        if len(self._stuck) >= MAX_STUCK:
            raise HungError(f"not started: {len(self._stuck)} earlier children still hang")
        os.pwrite(self._progress, b"\0" * PROGRESS_BYTES, 0)
        self._child = subprocess.Popen(  # noqa: S603 - no shell: our own reader
            (*self._argv, str(self._progress)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=(self._progress,),
        )
        return self._child

    def _answer(self, child: subprocess.Popen[bytes], until_s: float) -> bytes:
        assert child.stdout is not None
        wire = child.stdout.fileno()
        waiting = select.poll()
        waiting.register(wire, select.POLLIN)
        answer = bytearray()
        while not answer.endswith(b"\n"):
            left_s = until_s - time.monotonic()
            if left_s <= 0 or len(answer) > MAX_ANSWER or not waiting.poll(left_s * 1000):
                raise TimeoutError
            got = os.read(wire, READ_BYTES)
            if not got:
                raise self._died(child)
            answer += got
        return bytes(answer)

    def _died(self, child: subprocess.Popen[bytes]) -> DiedError:
        self._end()
        return DiedError(f"the child ended with {child.returncode} while at: {self.doing or 'its start'}")

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        with contextlib.suppress(OSError):
            child.stdin.close() if child.stdin else None
        try:
            child.wait(0)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        if child.stdout:
            child.stdout.close()
        try:
            child.wait(REAP_S)
        except subprocess.TimeoutExpired:
            self._stuck.append(child)
