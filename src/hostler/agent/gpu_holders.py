"""Processes that hold a GPU open: those with one of its device files, from /proc, and those the driver lists."""

import re
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

MOST = 32
"""Holders that are named; more are counted."""
_POD = re.compile(r"pod([0-9a-f]{8}[-_][0-9a-f_-]{27})")
_CONTAINER = re.compile(r"([0-9a-f]{12})[0-9a-f]{52}")
_UNIT = re.compile(r"([A-Za-z0-9@:_.\\-]+\.(?:service|scope))$")
_JOB = re.compile(r"job_(\d+)")


class Holder(Struct, frozen=True):
    """A process that holds a GPU. `of` is its unit, container or Slurm job, "" where it is in none."""

    pid: int
    comm: str
    of: str = ""

    def __str__(self) -> str:
        return f"{self.comm or 'a process'} (pid {self.pid}{f', {self.of}' if self.of else ''})"


def holders(proc: Path, devices: Iterable[str], listed: Iterable[int] = ()) -> tuple[Holder, ...]:
    """Every process that has one of these device files open, and those whose ids are listed, by id.

    Who ends meanwhile is none. `proc` is where the kernel shows its processes.
    """
    wanted = frozenset(devices)
    found = [pid for entry in proc.iterdir() if entry.name.isdigit() and (pid := int(entry.name))]
    pids = {pid for pid in found if _opens(proc / str(pid), wanted)} | {pid for pid in listed if pid in found}
    return tuple(Holder(pid, _comm(proc / str(pid)), _home(proc / str(pid))) for pid in sorted(pids))


def named(found: tuple[Holder, ...]) -> tuple[str, ...]:
    """The first holders in words, and how many more there are."""
    more = (f"{len(found) - MOST} more",) if len(found) > MOST else ()
    return (*(str(holder) for holder in found[:MOST]), *more)


def _opens(process: Path, devices: frozenset[str]) -> bool:
    try:
        return any(_target(fd) in devices for fd in (process / "fd").iterdir())
    except OSError:
        return False


def _target(fd: Path) -> str:
    try:
        return str(fd.readlink())
    except OSError:
        return ""


def _comm(process: Path) -> str:
    try:
        return (process / "comm").read_text(errors="backslashreplace").strip()[:64]
    except OSError:
        return ""


def _home(process: Path) -> str:
    """Name the process's place by its control group."""
    try:
        text = (process / "cgroup").read_text(errors="backslashreplace")
    except OSError:
        return ""
    path = text.strip().splitlines()[-1].rpartition(":")[2] if text.strip() else ""
    if job := _JOB.search(path):
        return f"Slurm job {job[1]}"
    container, pod = _CONTAINER.search(path), _POD.search(path)
    if pod:
        return f"pod {pod[1].replace('_', '-')}" + (f", container {container[1]}" if container else "")
    if container:
        return f"container {container[1]}"
    return next((m[1] for part in reversed(path.split("/")) if (m := _UNIT.search(part))), "")
