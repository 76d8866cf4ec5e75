"""Slurm by its own commands, for controllers whose REST can only read: each is executed, never handed to a shell."""

import asyncio
import os
import re
import shutil
import tempfile
from pathlib import Path

from msgspec import Struct

from hostler.core.state.durations import duration
from hostler.drivers.slurm import wire
from hostler.drivers.slurm.hostlist import checked_name
from hostler.drivers.slurm.transport import Change, CheckSubmission, failure
from hostler.drivers.slurm.wire import CheckJob, SlurmJob, SlurmNode
from hostler.ports import RefusedError, UnreachableError
from hostler.runtime.bounded_process import Ended, run

MAX_OUTPUT = 256 * 1024 * 1024
"""5,000 nodes write 7 MB; what is longer than this is no list of nodes."""

AT_ONCE = 8
"""Commands under way. slurmctld serves each in a thread of its own, and its users are served by the same ones."""

SHOW_NODES_SINCE = (23, 2)
"""From then on `scontrol` writes JSON, and `sinfo` no longer lists nodes one by one."""

_VERSION = re.compile(rb"slurm\S* (\d{2})\.(\d{1,2})\.")


class Commands(Struct, frozen=True, forbid_unknown_fields=True):
    """Place of Slurm's commands: the directory ("": on the PATH), the slurm.conf they read, and their time limits."""

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
        """All nodes, by name."""
        if await self._at_least(SHOW_NODES_SINCE):
            return wire.nodes(await self._run("scontrol", "show", "nodes", "--json"))
        return wire.nodes(await self._run("sinfo", "--json"))

    async def jobs(self) -> tuple[SlurmJob, ...]:
        """All jobs that are not over."""
        return wire.jobs(await self._run("squeue", "--json"))

    async def check_jobs(self, name: str) -> tuple[CheckJob, ...]:
        """Jobs of this name, also those that have ended in the last minutes (`MinJobAge`)."""
        return wire.check_jobs(await self._run("squeue", "--json", "--states=all", f"--name={name}"), name)

    async def submit_check(self, job: CheckSubmission) -> None:
        """Submit it with `sbatch`, which takes the script from a file that is gone afterwards."""
        words = [f"--partition={job.partition}", f"--nodelist={checked_name(job.node)}", f"--job-name={job.name}"]
        words += ["--nodes=1", "--exclusive", "--mem=0", "--no-requeue", "--open-mode=truncate", "--output=/dev/null"]
        words += [f"--time={job.minutes}", f"--deadline=now+{job.minutes + 1}minutes", "--chdir=/", "--export=NIL"]
        with tempfile.NamedTemporaryFile("w", prefix="hostler-check-") as file:
            file.write(job.script)
            file.flush()
            await self._run("sbatch", "--parsable", *words, file.name)

    async def settings(self) -> dict[str, str]:
        """Settings of slurm.conf, by name."""
        return wire.settings(await self._run("scontrol", "show", "config"))

    async def update(self, node: str, change: Change) -> None:
        """Change a node's state, reason or comment."""
        words = [f"NodeName={checked_name(node)}"]
        words += [f"State={change.state}"] if change.state else []
        words += [f"Reason={change.reason}"] if change.reason is not None else []
        words += [f"Comment={change.comment}"] if change.comment is not None else []
        await self._run("scontrol", "update", *words)

    async def signal(self, job: int) -> None:
        """Send TERM to all steps of the job."""
        await self._run("scancel", "--ctld", "--full", "--signal=TERM", str(job))

    async def cancel(self, job: int) -> None:
        """Cancel the job."""
        await self._run("scancel", "--ctld", str(job))

    async def requeue(self, job: int) -> None:
        """Put the job back into the queue."""
        await self._run("scontrol", "requeue", str(job))

    async def reboot(self, node: str, reason: str) -> None:
        """Have the node rebooted as soon as its jobs are over; it comes back down."""
        words = ("reboot", "ASAP", "nextstate=DOWN", f"reason={reason}", checked_name(node))
        await self._run("scontrol", *words)

    async def _at_least(self, version: tuple[int, int]) -> bool:
        if self._version is None:
            said = await self._run("sinfo", "--version")
            found = _VERSION.match(said)
            if found is None:
                raise RefusedError(
                    f"`sinfo --version` says {said[:80]!r}, which is not a version of Slurm"
                    "; install Slurm's own sinfo first on the PATH"
                )
            self._version = (int(found[1]), int(found[2]))
        return self._version >= version

    async def _run(self, command: str, *words: str) -> bytes:
        """The whole output of a command that succeeded. Raises PortError; nothing of it runs on then."""
        async with self._limit:
            ended = await self._execute(command, *words)
        if ended.code is None:
            raise UnreachableError(
                f"`{command}` did not end within {duration(self._commands.timeout_s)}"
                "; does slurmctld answer (scontrol ping)?"
            )
        if ended.code:
            said = ended.errors[:300] or f"exit status {ended.code}"
            raise failure(f"`{command} {' '.join(words)[:120]}`", said)
        if ended.cut:
            raise UnreachableError(
                f"`{command}` wrote more than {MAX_OUTPUT >> 20} MiB; none of it is read"
                "; is this the right Slurm cluster?"
            )
        return ended.output

    async def _execute(self, command: str, *words: str) -> Ended:
        directory = self._commands.directory
        path = str(Path(directory) / command) if directory else shutil.which(command, path=os.environ.get("PATH"))
        if path is None:
            raise RefusedError(
                f"there is no `{command}` on the PATH: install Slurm's client commands, or reach it by REST"
            )
        try:
            return await run((path, *words), self._environment, self._commands.timeout_s, MAX_OUTPUT)
        except (OSError, ValueError) as error:
            raise RefusedError(f"`{path}` cannot be run: {error}; make it executable for Hostler's user") from error
