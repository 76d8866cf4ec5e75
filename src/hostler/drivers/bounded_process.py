"""Run another's command as a child: under a deadline, with an end to what it writes, gone with all that it started."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping

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


async def run(words: tuple[str, ...], environment: Mapping[str, str], limit_s: float, most: int) -> Ended:
    """Run it without a shell and without input; keep `most` bytes of what it writes. Raises OSError, ValueError."""
    child = await asyncio.create_subprocess_exec(
        *words,
        env=dict(environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    output, errors = bytearray(), bytearray()
    assert child.stdout is not None
    assert child.stderr is not None
    try:
        async with asyncio.timeout(limit_s):
            cut, _ = await asyncio.gather(_keep(child.stdout, output, most), _keep(child.stderr, errors, MAX_ERRORS))
            code: int | None = await child.wait()
    except TimeoutError:
        code, cut = None, False
    finally:
        if child.returncode is None:
            await _kill(child)
    return Ended(code, bytes(output), " ".join(errors.decode(errors="replace").split()), cut)


async def _kill(child: asyncio.subprocess.Process) -> None:
    """End it with all that it has started, and close what it wrote to; what not even this ends is not waited for."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(REAP_S):
            await child.communicate()


async def _keep(stream: asyncio.StreamReader, kept: bytearray, most: int) -> bool:
    """Read to the end and keep the beginning; what is beyond is dropped, so that its writer can end. True: some was."""
    cut = False
    while chunk := await stream.read(1 << 20):
        cut = cut or len(chunk) > most - len(kept)
        kept += chunk[: most - len(kept)]
    return cut
