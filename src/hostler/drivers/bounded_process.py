"""Run another's command as a child: under a deadline, with an end to what it writes, gone with all that it started."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

REAP_S = 1.0
"""How long a killed command is waited for."""

MAX_ERRORS = 64 * 1024
"""Bytes of standard error that are kept."""


class Ended(Struct, frozen=True):
    """How it ended. `code` is None where its time was over and it was killed; `cut`: it wrote more than was kept."""

    code: int | None
    output: bytes = b""
    errors: str = ""
    cut: bool = False


Take = Callable[[bytes], Awaitable[None]]
"""Taker of what a command writes, piece by piece; the command waits while a piece is taken."""


async def run(words: tuple[str, ...], environment: Mapping[str, str], limit_s: float, most: int) -> Ended:
    """Run it without a shell and without input; keep `most` bytes of what it writes. Raises OSError, ValueError."""
    output = bytearray()

    async def keep(piece: bytes) -> None:
        output.extend(piece)

    ended = await run_into(words, environment, limit_s, most, keep)
    return Ended(ended.code, bytes(output), ended.errors, ended.cut)


async def run_into(
    words: tuple[str, ...], environment: Mapping[str, str], limit_s: float, most: int, take: Take
) -> Ended:
    """Run it as `run` does, and hand on the first `most` bytes of what it writes as they come; none are kept."""
    child = await asyncio.create_subprocess_exec(
        *words,
        env=dict(environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    errors = bytearray()

    async def note(piece: bytes) -> None:
        errors.extend(piece)

    assert child.stdout is not None
    assert child.stderr is not None
    try:
        async with asyncio.timeout(limit_s):
            cut, _ = await asyncio.gather(_hand_on(child.stdout, take, most), _hand_on(child.stderr, note, MAX_ERRORS))
            code: int | None = await child.wait()
    except TimeoutError:
        code, cut = None, False
    finally:
        if child.returncode is None:
            await _kill(child)
    return Ended(code, b"", " ".join(errors.decode(errors="replace").split()), cut)


async def _kill(child: asyncio.subprocess.Process) -> None:
    """End it with all that it has started, and close what it wrote to; what not even this ends is not waited for."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(REAP_S):
            await child.communicate()


async def _hand_on(stream: asyncio.StreamReader, take: Take, most: int) -> bool:
    """Read to the end, hand on the beginning, and drop what is beyond, so that its writer can end. True: some was."""
    left, cut = most, False
    while chunk := await stream.read(1 << 20):
        cut = cut or len(chunk) > left
        if left:
            await take(chunk[:left])
        left = max(0, left - len(chunk))
    return cut
