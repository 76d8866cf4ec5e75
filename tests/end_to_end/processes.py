"""Processes that end with the test that started them, and free ports for them to listen on."""

import asyncio
import random
import socket
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import aiohttp

from tests.tied_processes import tied

HOSTLER = str(Path(sys.executable).parent / "hostler")
"""The installed command, as a person or systemd runs it."""

ENDS_WITHIN_S = 60.0


PORTS = range(20_000, 32_000)
"""Below what the system gives to outgoing connections, so that a server which is down keeps its port."""


def free_port() -> int:
    """A port that nobody listens on, and that is given to nobody else as long as this test process lives."""
    while True:
        port = random.choice(PORTS)
        with closing(socket.socket()) as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            _claim(port)
            return port


def _claim(port: int) -> None:
    """Other test processes see that it is taken, also before anything listens there. Raises OSError where it is.

    A name in Linux's abstract namespace lasts as long as the socket that has it, which nobody closes here.
    """
    if sys.platform == "linux":
        with closing(socket.socket(socket.AF_UNIX)) as name:
            name.bind(f"\0hostler-test-port-{port}")
            name.detach()


async def spawn(*argv: str, log: Path) -> Process:
    """A child whose output goes to the log; whoever starts it ends it."""
    with log.open("ab") as out:
        return await asyncio.create_subprocess_exec(*tied(*argv), stdout=out, stderr=out)


async def run(*argv: str) -> tuple[int, str]:
    """Run a command to its end: its exit status, and all that it said."""
    child = await asyncio.create_subprocess_exec(*argv, stdout=PIPE, stderr=STDOUT)
    said, _ = await asyncio.wait_for(child.communicate(), ENDS_WITHIN_S)
    assert child.returncode is not None
    return child.returncode, said.decode()


async def end(child: Process) -> None:
    """Ask the child to end, and make it end."""
    if child.returncode is None:
        child.terminate()
    try:
        await asyncio.wait_for(child.wait(), ENDS_WITHIN_S)
    except TimeoutError:
        child.kill()
        await child.wait()


async def answers(session: aiohttp.ClientSession, url: str, within_s: float, child: Process | None = None) -> None:
    """Return once the address answers 200. Raises TimeoutError; a child that has ended is not waited for."""
    async with asyncio.timeout(within_s):
        while True:
            assert child is None or child.returncode is None, f"{url} does not answer: its server ended"
            try:
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)


@asynccontextmanager
async def process(*argv: str, log: Path) -> AsyncIterator[Process]:
    """A child of ours that ends with us."""
    child = await spawn(*argv, log=log)
    try:
        yield child
    finally:
        await end(child)
