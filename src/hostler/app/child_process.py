"""Runs a part of Hostler in a process of its own: neither the loop nor its interpreter waits for what it computes."""

import os
import sys
from typing import NamedTuple

from hostler.runtime.bounded_process import run

SAID_MAX = 500
MOST_BYTES = 1 << 30
"""Of what a module writes; it is our own."""


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
    ended = await run(words, environment, None, MOST_BYTES, given)
    return ProcessEnd(ended.code or 0, ended.output, ended.errors[-SAID_MAX:])
