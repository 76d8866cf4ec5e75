"""Run another's command as a child: under a deadline, with an end to what it writes, gone with all that it started.

Not asyncio's own children: one whose start is cancelled before its pipes are connected is waited for without end
(CPython issue 119710). Its caller would never end, nor would a process that is told to stop at that moment.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import IO

from msgspec import Struct

REAP_S = 1.0
"""How long a killed command is waited for."""

MAX_ERRORS = 64 * 1024
"""Bytes of standard error that are kept."""
CHUNK = 1 << 20
Child = subprocess.Popen[bytes]
_killed: list[Child] = []
"""Killed, and not gone when nobody waited any longer; looked at again when the next one is started."""


class Ended(Struct, frozen=True):
    """How it ended. `code` is None where its time was over and it was killed; `cut`: it wrote more than was kept."""

    code: int | None
    output: bytes = b""
    errors: str = ""
    cut: bool = False


Take = Callable[[bytes], Awaitable[None]]
"""Taker of what a command writes, piece by piece; the command waits while a piece is taken."""


async def run(
    words: tuple[str, ...], environment: Mapping[str, str], limit_s: float | None, most: int, given: bytes = b""
) -> Ended:
    """Run it without a shell, with `given` as its input, and keep `most` bytes of what it writes.

    `limit_s` None: it has no end but its own and its caller's. Raises OSError, ValueError.
    """
    output = bytearray()

    async def keep(piece: bytes) -> None:
        output.extend(piece)

    ended = await run_into(words, environment, limit_s, most, keep, given)
    return Ended(ended.code, bytes(output), ended.errors, ended.cut)


async def run_into(  # noqa: PLR0913 - those of `run`, and who takes what it writes
    words: tuple[str, ...],
    environment: Mapping[str, str],
    limit_s: float | None,
    most: int,
    take: Take,
    given: bytes = b"",
) -> Ended:
    """Run it as `run` does, and hand on the first `most` bytes of what it writes as they come; none are kept."""
    errors = bytearray()
    _killed[:] = [one for one in _killed if one.poll() is None]

    async def note(piece: bytes) -> None:
        errors.extend(piece)

    code, cut = None, False
    async with _pipe() as (output, writes), _pipe() as (told, tells):
        with _input(given) as reads:
            child = subprocess.Popen(  # noqa: ASYNC220, S603 - it stops the loop as long as asyncio's, which does the same
                words, env=dict(environment), stdin=reads, stdout=writes, stderr=tells, start_new_session=True
            )
        try:
            writes.close()
            tells.close()
            async with asyncio.timeout(limit_s):
                cut, _ = await asyncio.gather(_hand_on(output, take, most), _hand_on(told, note, MAX_ERRORS))
                code = await ended(child)
        except TimeoutError:
            code, cut = None, False
        finally:
            if child.poll() is None:
                _killed.append(child)
                await _kill(child)
    return Ended(code, b"", " ".join(errors.decode(errors="replace").split()), cut)


@asynccontextmanager
async def _pipe() -> AsyncIterator[tuple[asyncio.StreamReader, IO[bytes]]]:
    """A pipe's end to read from, and its other end; both are closed in the end.

    The transport alone closes the end that it reads from: libuv aborts the process for a file that is closed under it.
    """
    reads, writes = (os.fdopen(one, mode, 0) for one, mode in zip(os.pipe(), ("rb", "wb"), strict=True))
    with writes:
        stream = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), reads)
        except BaseException:
            reads.close()
            raise
        try:
            yield stream, writes
        finally:
            transport.close()


@contextlib.contextmanager
def _input(given: bytes) -> Iterator[IO[bytes] | int]:
    """The command's input: a file without a name, so that nobody has to hand it on; none where nothing is given."""
    if not given:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        yield file


async def ended(child: Child) -> int:
    """Wait for the end of the child; its exit status."""
    if child.returncode is not None:
        return child.returncode
    loop = asyncio.get_running_loop()
    gone: asyncio.Future[None] = loop.create_future()
    watched = os.pidfd_open(child.pid)
    loop.add_reader(watched, _end, gone)
    try:
        await gone
    finally:
        loop.remove_reader(watched)
        os.close(watched)
    return child.wait()


def _end(gone: asyncio.Future[None]) -> None:
    if not gone.done():
        gone.set_result(None)


async def stop_child(child: Child, within_s: float) -> None:
    """Have a child that was told to end do so within this time, and kill it then; a child that ended is reaped."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await ended(child)
    if child.poll() is None:
        child.kill()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(REAP_S):
                await ended(child)


async def _kill(child: Child) -> None:
    """End it with all that it has started; what not even this ends is not waited for."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(REAP_S):
            await ended(child)


async def _hand_on(stream: asyncio.StreamReader, take: Take, most: int) -> bool:
    """Read to the end, hand on the beginning, and drop what is beyond, so that its writer can end. True: some was."""
    left, cut = most, False
    while chunk := await stream.read(CHUNK):
        cut = cut or len(chunk) > left
        if left:
            await take(chunk[:left])
        left = max(0, left - len(chunk))
    return cut
