"""Work of others on the node while a check ran: processor time, and processes that compute on its GPUs.

A slow reading that was taken beside it says nothing of the node. The node is looked at before and after a check, when
none of the check's own children is left: what computes on a GPU then is another's. What cannot be read excuses nothing.
"""

import os
import re
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hostler_checks import bounded_child
from hostler_checks.answers import clean

MOST_SHARE = 0.1
"""Share of the check's processors that others may keep busy: the agent, an exporter. Our judgement."""
PROC = Path("/proc")
APPS = ("nvidia-smi", "--query-compute-apps=pid,gpu_uuid,process_name", "--format=csv,noheader")
APPS_S, APPS_TOLD = 10.0, 3
NAME_CHARS = 48
_SERVERS = frozenset({"nvidia-cuda-mps-server"})
"""Programs that hold a GPU for their clients, which are listed beside them, and compute nothing themselves."""
_APP = re.compile(r"(\d{1,10}), ((?:GPU|MIG)-[0-9A-Za-z/-]{1,80}), (.+)")
_USER, _NICE, _STOLEN = 0, 1, 7
_TICKS_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Look:
    """The node at one moment.

    `user_s` is what all programs, guests and other tenants of the host have used on the processors that a check may
    have, `own_s` the share of checks; None is unknown. `processes` has each one's name and seconds; `computing` is
    who computes on a GPU.
    """

    at_s: float
    cores: int = 1
    user_s: float | None = None
    own_s: float = 0.0
    processes: dict[int, tuple[str, float]] = field(default_factory=dict)
    computing: tuple[str, ...] = ()


Watch = Callable[[bool], Look]
"""Looks at the node, and at its GPUs where that is asked for."""


def look(gpus: bool) -> Look:
    """Look at this node. It is asked for when no child of a check is left. Never raises."""
    own = [resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    processors = os.sched_getaffinity(0)
    return Look(
        time.monotonic(),
        len(processors),
        user_s(_text(PROC / "stat"), processors),
        sum(own),
        _processes(),
        _computing() if gpus else (),
    )


def between(before: Look, after: Look) -> str:
    """Say who worked beside a check, in words for an operator; "" for nobody, or where it is not known."""
    if apps := [*dict.fromkeys((*before.computing, *after.computing))]:
        more = f" and {len(apps) - APPS_TOLD} more" if len(apps) > APPS_TOLD else ""
        return f"{', '.join(apps[:APPS_TOLD])}{more} computed on a GPU"
    spent_s = after.at_s - before.at_s
    if before.user_s is None or after.user_s is None or spent_s <= 0 or before.cores != after.cores:
        return ""
    others = (after.user_s - before.user_s - (after.own_s - before.own_s)) / spent_s
    if others <= MOST_SHARE * after.cores:
        return ""
    return f"others kept {others:.1f} of {after.cores} processors busy{_busiest(before, after)}"


def user_s(stat: str, processors: set[int]) -> float | None:
    """Seconds of programs on these processors since the boot, of the text of /proc/stat; None where it is no such."""
    ticks, found = 0, 0
    try:
        for line in stat.splitlines():
            name, *words = line.split()
            if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in processors:
                ticks += sum(_ticks(words[column]) for column in (_USER, _NICE, _STOLEN))
                found += 1
    except (ValueError, IndexError):
        return None
    return ticks / _TICKS_S if found == len(processors) else None


def computing(output: str, code: int) -> tuple[str, ...] | None:
    """Read who computes on GPUs of nvidia-smi's list; None where it is none. An empty list is nobody."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if code or not all(_APP.fullmatch(line) for line in lines):
        return None
    told = [match.groups() for line in lines if (match := _APP.fullmatch(line))]
    apps = [(int(pid), name.rpartition("/")[2], gpu) for pid, gpu, name in told]
    return tuple(
        f"{clean(name, NAME_CHARS)} (pid {pid}, {clean(gpu, 12)})" for pid, name, gpu in apps if name not in _SERVERS
    )


def _computing() -> tuple[str, ...]:
    ended = bounded_child.run(APPS, APPS_S, {"LANG": "C", "PATH": os.environ.get("PATH", "")})
    is_cut = len(ended.tail) >= bounded_child.TAIL_BYTES
    lines = ended.tail.partition("\n")[2] if is_cut else ended.tail
    return () if ended.trouble else computing(lines, ended.code) or ()


def _busiest(before: Look, after: Look) -> str:
    """The process that used most; "" where none is seen to have, as all have ended or are another tenant's."""
    seen = ((pid, used) for pid, (_, used) in after.processes.items() if pid != os.getpid())
    spent = {pid: used - before.processes.get(pid, ("", 0.0))[1] for pid, used in seen}
    most = max(spent, key=lambda pid: spent[pid], default=0)
    if not spent or spent[most] <= 0:
        return ""
    return f", the most {clean(after.processes[most][0], NAME_CHARS)} (pid {most})"


def _processes() -> dict[int, tuple[str, float]]:
    """Name and seconds of each process; who ends meanwhile is none."""
    found: dict[int, tuple[str, float]] = {}
    for place in PROC.glob("[0-9]*"):
        head, _, tail = _text(place / "stat").rpartition(")")
        words = tail.split()
        if len(words) > 12 and words[11].isdigit():
            found[int(place.name)] = (head.partition("(")[2], int(words[11]) / _TICKS_S)
    return found


def _ticks(word: str) -> int:
    if not word.isdigit():
        raise ValueError("no number of ticks")
    return int(word)


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace")
    except OSError:
        return ""
