"""Slurm by its own commands, for controllers whose REST can only read: each is executed, never handed to a shell."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
from pathlib import Path

from msgspec import Struct

from hostler.drivers.slurm import wire
from hostler.drivers.slurm.hostlist import checked_name
from hostler.drivers.slurm.transport import Change, failure
from hostler.drivers.slurm.wire import SlurmJob, SlurmNode
from hostler.ports import RefusedError, UnreachableError

MAX_OUTPUT = 256 * 1024 * 1024
"""5,000 nodes write 7 MB; what is longer than this is no list of nodes."""

MAX_ERRORS = 64 * 1024
AT_ONCE = 8
"""Commands under way. slurmctld serves each in a thread of its own, and its users are served by the same ones."""

REAP_S = 1.0
"""How long a killed command is waited for."""

SHOW_NODES_SINCE = (23, 2)
"""From then on `scontrol` writes JSON, and `sinfo` no longer lists nodes one by one."""

_VERSION = re.compile(rb"slurm\S* (\d{2})\.(\d{1,2})\.")


class Commands(Struct, frozen=True, forbid_unknown_fields=True):
    """Where Slurm's commands are: the directory ("": on the PATH), the slurm.conf they read, and what each may take."""

    slurm_conf: str = ""
    directory: str = ""
    timeout_s: float = 15.0


class CommandTransport:
    """A Transport by `sinfo`, `squeue`, `scontrol` and `scancel`, run as this process's user.

    Nothing of this process's environment reaches them: variables as SQUEUE_PARTITION would shorten what they tell.
    """

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._limit = asyncio.Semaphore(AT_ONCE)
        self._version: tuple[int, int] | None = None
        self._environment = {"LC_ALL": "C", "PATH": os.defpath}
        if commands.slurm_conf:
            self._environment["SLURM_CONF"] = commands.slurm_conf

    async def nodes(self) -> dict[str, SlurmNode]:
        if await self._at_least(SHOW_NODES_SINCE):
            return wire.nodes(await self._run("scontrol", "show", "nodes", "--json"))
        return wire.nodes(await self._run("sinfo", "--json"))

    async def jobs(self) -> tuple[SlurmJob, ...]:
        return wire.jobs(await self._run("squeue", "--json"))

    async def settings(self) -> dict[str, str]:
        return wire.settings(await self._run("scontrol", "show", "config"))

    async def update(self, node: str, change: Change) -> None:
        words = [f"NodeName={checked_name(node)}"]
        words += [f"State={change.state}"] if change.state else []
        words += [f"Reason={change.reason}"] if change.reason is not None else []
        words += [f"Comment={change.comment}"] if change.comment is not None else []
        await self._run("scontrol", "update", *words)

    async def signal(self, job: int) -> None:
        await self._run("scancel", "--ctld", "--full", "--signal=TERM", str(job))

    async def cancel(self, job: int) -> None:
        await self._run("scancel", "--ctld", str(job))

    async def requeue(self, job: int) -> None:
        await self._run("scontrol", "requeue", str(job))

    async def reboot(self, node: str, reason: str) -> None:
        words = ("reboot", "ASAP", "nextstate=DOWN", f"reason={reason}", checked_name(node))
        await self._run("scontrol", *words)

    async def _at_least(self, version: tuple[int, int]) -> bool:
        if self._version is None:
            said = await self._run("sinfo", "--version")
            found = _VERSION.match(said)
            if found is None:
                raise RefusedError(f"`sinfo --version` says {said[:80]!r}, which is no version of Slurm's")
            self._version = (int(found[1]), int(found[2]))
        return self._version >= version

    async def _run(self, command: str, *words: str) -> bytes:
        """The whole output of a command that succeeded. Raises PortError; nothing of it runs on then."""
        async with self._limit:
            try:
                async with asyncio.timeout(self._commands.timeout_s):
                    return await self._execute(command, *words)
            except TimeoutError as late:
                raise UnreachableError(
                    f"`{command}` did not end within {self._commands.timeout_s:g} s; "
                    "does slurmctld answer (scontrol ping)?"
                ) from late

    async def _execute(self, command: str, *words: str) -> bytes:
        child = await self._begin(command, *words)
        try:
            assert child.stdout is not None
            assert child.stderr is not None
            output, errors = await asyncio.gather(
                _limited(child.stdout, MAX_OUTPUT), _limited(child.stderr, MAX_ERRORS)
            )
            code = await child.wait()
        finally:
            if child.returncode is None:
                await _kill(child)
        said = " ".join(errors.decode(errors="replace").split())[:300]
        if code:
            raise failure(f"`{command} {' '.join(words)[:120]}`", said or f"exit status {code}")
        if len(output) >= MAX_OUTPUT:
            raise UnreachableError(f"`{command}` wrote more than {MAX_OUTPUT >> 20} MiB; none of it is read")
        return output

    async def _begin(self, command: str, *words: str) -> asyncio.subprocess.Process:
        directory = self._commands.directory
        path = str(Path(directory) / command) if directory else shutil.which(command, path=os.environ.get("PATH"))
        if path is None:
            raise RefusedError(
                f"there is no `{command}` on the PATH: install Slurm's client commands, or reach it by REST"
            )
        try:
            return await asyncio.create_subprocess_exec(
                path,
                *words,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise RefusedError(f"`{path}` cannot be run: {error}") from error


async def _kill(child: asyncio.subprocess.Process) -> None:
    """End it with all that it has started; one that not even this ends is not waited for."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(REAP_S):
            await child.wait()


async def _limited(stream: asyncio.StreamReader, most: int) -> bytes:
    """What the stream holds, `most` bytes of it; the rest is read and dropped, so that its writer can end."""
    found = bytearray()
    while chunk := await stream.read(1 << 20):
        found += chunk[: most - len(found)]
    return bytes(found)
