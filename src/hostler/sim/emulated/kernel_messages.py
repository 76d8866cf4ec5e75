"""A named pipe into the kernels of an emulated fleet: a line "NODE MESSAGE" is logged by that node's kernel."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from hostler.logs.structured import logger

NAME = "kernel-messages"
LINE_MOST = 4_096
"""Bytes that a pipe takes in one piece (PIPE_BUF on Linux): lines of several writers do not mix."""

log = logger()


class KernelMessages:
    """Reads the pipe on the event loop, from `open` to `close`. `say` takes (node, message); KeyError: no such node."""

    def __init__(self, path: Path, say: Callable[[str, str], None]) -> None:
        self._path = path
        self._say = say
        self._pipe = -1
        self._rest = b""

    def open(self) -> None:
        """Make the pipe anew, and read it whenever somebody writes."""
        self._path.unlink(missing_ok=True)
        os.mkfifo(self._path, 0o600)
        self._pipe = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        asyncio.get_running_loop().add_reader(self._pipe, self._read)

    def close(self) -> None:
        """Stop reading, and take the pipe away."""
        if self._pipe >= 0:
            asyncio.get_running_loop().remove_reader(self._pipe)
            os.close(self._pipe)
            self._pipe = -1
            self._path.unlink(missing_ok=True)

    def _read(self) -> None:
        *lines, self._rest = (self._rest + os.read(self._pipe, LINE_MOST)).split(b"\n")
        self._rest = self._rest[:LINE_MOST]
        for line in filter(None, lines):
            node, _, message = line.decode("utf-8", "replace").partition(" ")
            try:
                self._say(node, message)
            except KeyError:
                log.warning("kernel_message_for_no_node", node=node[:64], instead="write NODE MESSAGE, a line each")
