"""Runs a part of Hostler in a process of its own: neither the loop nor its interpreter waits for what it computes."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from typing import NamedTuple

SAID_MAX = 500


class ProcessEnd(NamedTuple):
    """Exit status of a process, and its output; `reason` is the end of what it wrote to standard error."""

    status: int
    said: bytes
    reason: str


async def run_module(module: str, *arguments: str, journal: str, given: bytes = b"") -> ProcessEnd:
    """Runs a Python module to its end, with `given` as its standard input. Cancelled, it kills the process first.

    The journal's address stands in the environment, where a list of processes does not show it.
    """
    environment = {**os.environ, "HOSTLER_JOURNAL": journal}
    words = (sys.executable, "-m", module, *arguments)
    child = await asyncio.create_subprocess_exec(*words, env=environment, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    try:
        said, wrong = await child.communicate(given)
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    return ProcessEnd(child.returncode or 0, said, wrong.decode(errors="replace").strip()[-SAID_MAX:])
