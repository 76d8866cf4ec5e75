"""Use of a node: people's processes, processes that hold a GPU, and processor time of others. Read from /proc.

An idle check yields to all of them. The agent's own children and the platform's services use nothing.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from hostler.agent.gpu_holders import holders
from hostler.core.state.model import RESET_CLIENTS

PEOPLE_FROM, PEOPLE_TO = 1000, 60_000
"""User ids of people, where /etc/login.defs does not say (Debian's and Red Hat's own)."""
MONITORS = frozenset({"nvidia-persiste", "nv-hostengine", "nv-fabricmanage", "dcgm-exporter", "nvidia-smi"})
"""Programs that hold GPUs and compute nothing, as the kernel cuts their names."""
LOAD_S = 5.0
"""Time over which processor time of others is counted."""
LOAD_SHARE = 8
"""One core in so many, and one at least, may be busy with others: an update, a backup. Our judgement."""
_KERNEL_THREAD = 0x0020_0000
"""PF_KTHREAD of linux/sched.h."""
_TICKS_S = os.sysconf("SC_CLK_TCK")


class UseLimits(Struct, frozen=True):
    """Limits of what an idle check bears. `beside`: programs and units that may run there, whoever's they are.

    `cores`: how many cores others may keep busy, 0 for one in LOAD_SHARE.
    """

    beside: tuple[str, ...] = ()
    cores: float = 0.0


class _Process(Struct, frozen=True):
    pid: int
    parent: int
    comm: str
    ticks: int
    uid: int


class NodeUse:
    """Looks at processes. `root` is the file system that shows them, `own` the process that ours descend from."""

    def __init__(self, root: Path, own: int, limits: UseLimits = UseLimits()) -> None:  # noqa: B008 - frozen
        self._root = root
        self._own = own
        self._beside = frozenset((*limits.beside, *RESET_CLIENTS))
        self._cores = limits.cores or max(1.0, (os.cpu_count() or 1) / LOAD_SHARE)
        self._people = _people(root)
        self._before: tuple[float, dict[int, int]] | None = None

    def taken(self) -> str:
        """Say who uses the node now; "" for nobody. The load of others is known from the second look on."""
        found = list(_processes(self._root / "proc"))
        others = _without_own(found, self._own)
        return self._person(others) or self._holder(others) or self._load(others)

    def _person(self, others: list[_Process]) -> str:
        for one in others:
            if one.uid in self._people and one.comm not in self._beside and not self._is_let(one):
                return f"{one.comm or 'a process'} (pid {one.pid}) of user {one.uid} runs there"
        return ""

    def _is_let(self, one: _Process) -> bool:
        """Tell whether its unit may run there, or is a person's service manager, which outlives the login."""
        path = _control_group(self._root / "proc" / str(one.pid))
        return path.endswith(f"user@{one.uid}.service/init.scope") or bool(self._beside & {*path.split("/")})

    def _holder(self, others: list[_Process]) -> str:
        devices = [f"/dev/{one.name}" for one in (self._root / "dev").glob("nvidia[0-9]*")]
        if not devices:
            return ""
        ours = {one.pid for one in others}
        for one in holders(self._root / "proc", devices):
            if one.pid in ours and not (MONITORS | self._beside) & {one.comm, one.of}:
                return f"{one} holds a GPU"
        return ""

    def _load(self, others: list[_Process]) -> str:
        now_s, ticks = time.monotonic(), {one.pid: one.ticks for one in others}
        if self._before is None:
            self._before = now_s, ticks
        began_s, before = self._before
        if now_s - began_s < LOAD_S:
            return ""
        self._before = now_s, ticks
        spent = {pid: used - before.get(pid, 0) for pid, used in ticks.items()}
        busy = sum(used for used in spent.values() if used > 0) / _TICKS_S / (now_s - began_s)
        if busy <= self._cores:
            return ""
        most = max(others, key=lambda one: spent[one.pid])
        return f"others keep {busy:.1f} cores busy, the most {most.comm} (pid {most.pid})"


def _without_own(found: list[_Process], own: int) -> list[_Process]:
    """The processes but `own`, those that it has started, and those that these have."""
    parents = {one.pid: one.parent for one in found}
    ours = {own}
    for one in found:
        line = list[int]()
        at = one.pid
        while at in parents and at not in ours and len(line) < len(found):
            line.append(at)
            at = parents[at]
        if at in ours:
            ours.update(line)
    return [one for one in found if one.pid not in ours]


def _processes(proc: Path) -> Iterator[_Process]:
    """Processes that are no thread of the kernel and no zombie; who ends meanwhile is none."""
    for place in proc.iterdir():
        if not place.name.isdigit():
            continue
        try:
            told = (place / "stat").read_text(errors="backslashreplace")
            uid = int((place / "status").read_text(errors="backslashreplace").partition("\nUid:")[2].split()[1])
            head, _, tail = told.rpartition(")")
            words = tail.split()
            if words[0] in "ZX" or int(words[6]) & _KERNEL_THREAD:
                continue
            yield _Process(int(place.name), int(words[1]), head.partition("(")[2], int(words[11]) + int(words[12]), uid)
        except (OSError, ValueError, IndexError):
            continue


def _control_group(process: Path) -> str:
    try:
        text = (process / "cgroup").read_text(errors="backslashreplace").strip()
    except OSError:
        return ""
    return text.splitlines()[-1].rpartition(":")[2] if text else ""


def _people(root: Path) -> range:
    """User ids that are given to people."""
    told = {"UID_MIN": PEOPLE_FROM, "UID_MAX": PEOPLE_TO}
    try:
        lines = (root / "etc/login.defs").read_text(errors="backslashreplace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        words = line.split()
        if len(words) == 2 and words[0] in told and words[1].isdigit():
            told[words[0]] = int(words[1])
    return range(told["UID_MIN"], told["UID_MAX"] + 1)
