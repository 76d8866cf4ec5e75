"""A child process with a deadline: its answer comes through a pipe of its own, and whatever else it does is bounded."""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MAX_ANSWER_BYTES, MAX_OUTPUT_BYTES, TAIL_BYTES, READ_BYTES = 1 << 20, 1 << 20, 2000, 1 << 16
REAP_S = 2.0
"""Time to wait for a killed child; one that hangs in the kernel is left behind."""
POLL_S = 0.1
MAX_HANGING = 8
"""Children that not even SIGKILL ended; with so many, no more are started."""
_hanging: list[subprocess.Popen[bytes]] = []
ANSWER_FD, PARENT = "HOSTLER_CHECKS_ANSWER_FD", "HOSTLER_CHECKS_PARENT"


@dataclass(frozen=True)
class ChildEnd:
    """End of a child. `trouble` says why it was ended by us, "" where it ended by itself; `code` < 0 is a signal."""

    code: int = 0
    answer: bytes = b""
    tail: str = ""
    trouble: str = ""
    seconds: float = 0.0


class _Reader:
    """Bytes from the child's pipes, bounded. `output` holds the last bytes that it printed, `answer` all of them."""

    def __init__(self, printed: int, answered: int) -> None:
        self._answered = answered
        self._selector = selectors.DefaultSelector()
        for pipe in (printed, answered):
            os.set_blocking(pipe, False)
            self._selector.register(pipe, selectors.EVENT_READ)
        self.answer, self.output = bytearray(), bytearray()
        self._printed = 0

    def wait(self, seconds: float) -> str:
        """Read what comes within `seconds`; says what is too much."""
        for key, _ in self._selector.select(seconds):
            self._take(key.fd)
        if self._printed > MAX_OUTPUT_BYTES:
            return f"it printed more than {MAX_OUTPUT_BYTES >> 20} MiB"
        if len(self.answer) > MAX_ANSWER_BYTES:
            return f"its answer is longer than {MAX_ANSWER_BYTES >> 20} MiB"
        return ""

    def drain(self) -> str:
        """Read what is there already, when the child has ended."""
        for _ in range(64):
            before = len(self.answer) + self._printed
            if (much := self.wait(0)) or len(self.answer) + self._printed == before:
                return much
        return ""

    def close(self) -> None:
        self._selector.close()

    def _take(self, pipe: int) -> None:
        with contextlib.suppress(BlockingIOError):
            got = os.read(pipe, READ_BYTES)
            if not got:
                self._selector.unregister(pipe)
            elif pipe == self._answered:
                self.answer += got
            else:
                self._printed += len(got)
                self.output = (self.output + got)[-TAIL_BYTES:]


def run(
    argv: Sequence[str], deadline_s: float, environment: Mapping[str, str], stop: threading.Event | None = None
) -> ChildEnd:
    """Run a child to its end, at most `deadline_s` seconds of the monotonic clock, or until `stop` is set.

    The child writes its answer to the descriptor that ANSWER_FD names. Its whole process group is ended with it.
    Never raises: a program that cannot be started is trouble.
    """
    began = time.monotonic()
    _hanging[:] = [child for child in _hanging if child.poll() is None]
    if len(_hanging) >= MAX_HANGING:
        return ChildEnd(code=-1, trouble=f"it is not started: {len(_hanging)} earlier children hang in the kernel")
    printed, print_end = os.pipe()
    answered, answer_end = os.pipe()
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=print_end,
            stderr=print_end,
            pass_fds=(answer_end,),
            start_new_session=True,
            env={**environment, ANSWER_FD: str(answer_end), PARENT: str(os.getpid())},
        )
    except OSError as error:
        for pipe in (printed, answered, print_end, answer_end):
            os.close(pipe)
        return ChildEnd(code=-1, trouble=f"{argv[0]} cannot be started: {error.strerror}")
    os.close(print_end)
    os.close(answer_end)
    reader = _Reader(printed, answered)
    try:
        trouble = _watch(child, reader, began + deadline_s, stop) or reader.drain()
        trouble = _ended(child) or trouble
        return ChildEnd(
            child.returncode if child.returncode is not None else -1,
            bytes(reader.answer[: MAX_ANSWER_BYTES + 1]),
            bytes(reader.output).decode("utf-8", "replace"),
            f"{trouble}, at a deadline of {deadline_s:g} s" if trouble == _HUNG else trouble,
            time.monotonic() - began,
        )
    finally:
        reader.close()
        os.close(printed)
        os.close(answered)


_HUNG = "it hung"


def _watch(child: subprocess.Popen[bytes], reader: _Reader, until: float, stop: threading.Event | None) -> str:
    """Read until the child has ended; why it must be ended, "" where it did by itself."""
    while child.poll() is None:
        if much := reader.wait(POLL_S):
            return much
        if time.monotonic() >= until:
            return _HUNG
        if stop is not None and stop.is_set():
            return "it was called off"
    return ""


def _ended(child: subprocess.Popen[bytes]) -> str:
    """Kill the group, whoever of it is left; says where even that does not end the child."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    try:
        child.wait(REAP_S)
    except subprocess.TimeoutExpired:
        _hanging.append(child)
        return "it hangs in the kernel: SIGKILL did not end it"
    return ""
