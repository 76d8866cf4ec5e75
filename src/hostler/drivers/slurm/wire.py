"""Slurm's JSON → nodes and jobs: the documents of `sinfo`, `squeue` and `scontrol --json` and of slurmrestd.

They differ by version: up to 22.05 a state is a word with flags beside it, later a list of words; numbers came as
numbers, later as {"set", "infinite", "number"}. Both are read. A document that carries errors, lacks its list or has an
entry that cannot be read is refused whole: a controller that hangs answers with an empty list and an error.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import TypeVar

import msgspec
from msgspec import Struct

from hostler.drivers.slurm.hostlist import HostlistError, checked_name, expand
from hostler.drivers.unreadable_answers import unreadable
from hostler.ports import RefusedError, UnreachableError

MAX_NODES = 65_536
MAX_JOBS = 1_000_000
MAX_CHECK_JOBS = 64
MAX_MESSAGE = 4096
MAX_WORDS = 512
"""Characters of a reason or a comment that are kept."""

BASES = frozenset({"UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "ERROR", "MIXED", "FUTURE"})
ENDED = frozenset(
    {
        "PENDING",
        "COMPLETED",
        "CANCELLED",
        "FAILED",
        "TIMEOUT",
        "NODE_FAIL",
        "PREEMPTED",
        "BOOT_FAIL",
        "DEADLINE",
        "OUT_OF_MEMORY",
        "REVOKED",
        "SPECIAL_EXIT",
        "REQUEUED",
        "REQUEUE_FED",
        "REQUEUE_HOLD",
        "RESV_DEL_HOLD",
        "LAUNCH_FAILED",
        "RECONFIG_FAIL",
        "UPDATE_DB",
    }
)
"""States of a job that holds no node, no longer or not yet. Any other state, one that is not known too, holds it."""


class SlurmNode(Struct, frozen=True):
    """A node as Slurm has it. `base` is one of BASES, UNKNOWN where nothing sure is said; `flags` are in capitals.

    `user` set `reason`, as far as Slurm says. `boot` is in seconds of the epoch, 0 where slurmd has not registered.
    `gpus` counts those that are configured.
    """

    name: str
    base: str
    flags: frozenset[str] = frozenset()
    reason: str = ""
    user: str = ""
    comment: str = ""
    boot: int = 0
    gpus: int = 0


class SlurmJob(Struct, frozen=True):
    """A job that holds nodes, or will not let go of them yet (`ending`).

    `nodes` are in Slurm's order; `gpus` are the GPU indexes it uses on each of them, None where Slurm does not say.
    `restarts` counts how often it was requeued: the same id, another run, which `began` then; None: Slurm has no time.
    """

    id: int
    nodes: tuple[str, ...]
    ending: bool = False
    user: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    comment: str = ""
    restarts: int = 0
    requeue: bool = False
    began: datetime | None = None
    gpus: tuple[tuple[int, ...] | None, ...] = ()
    name: str = ""


class CheckJob(Struct, frozen=True):
    """A job of an idle check, over or not: its states in capitals, its comment, and why it waits."""

    id: int
    states: tuple[str, ...]
    comment: str = ""
    reason: str = ""


class _Number(Struct):
    set: bool = True
    infinite: bool = False
    number: float = 0.0


_Words = str | list[str] | None
_Count = float | _Number | None


class _SlurmNode(Struct):
    name: str
    state: _Words
    state_flags: list[str] = []
    reason: str | None = ""
    reason_set_by_user: str | None = ""
    comment: str | None = ""
    boot_time: _Count = 0
    gres: str | None = ""


class _SlurmJob(Struct):
    job_id: int
    job_state: _Words
    nodes: str | None = ""
    user_name: str | None = ""
    user_id: _Count = 0
    account: str | None = ""
    partition: str | None = ""
    qos: str | None = ""
    comment: str | None = ""
    restart_cnt: _Count = 0
    requeue: bool | None = False
    start_time: _Count = 0
    gres_detail: list[str] | None = []
    name: str | None = ""
    state_reason: str | None = ""


class _Nodes(Struct):
    nodes: list[_SlurmNode]
    errors: list[msgspec.Raw] = []


class _Jobs(Struct):
    jobs: list[_SlurmJob]
    errors: list[msgspec.Raw] = []


class _Errors(Struct):
    errors: list[msgspec.Raw] = []


_Document = TypeVar("_Document", _Nodes, _Jobs, _Errors)

_NODES = msgspec.json.Decoder(_Nodes)
_JOBS = msgspec.json.Decoder(_Jobs)
_ERRORS = msgspec.json.Decoder(_Errors)


def settings(body: bytes) -> dict[str, str]:
    """Read the output of `scontrol show config`: lines "Name = value". Raises UnreachableError where there are none."""
    said = (line.partition("=") for line in body.decode(errors="replace").splitlines())
    found = {name.strip(): value.strip()[:MAX_WORDS] for name, sign, value in said if sign}
    if not found:
        raise UnreachableError("`scontrol show config` printed no settings; does slurmctld answer (scontrol ping)?")
    return found


def nodes(document: bytes) -> dict[str, SlurmNode]:
    """All nodes by name. Raises UnreachableError for a document that does not tell all of them."""
    found = _decoded(_NODES, document, "nodes")
    if len(found.nodes) > MAX_NODES:
        raise UnreachableError(
            f"Slurm lists {len(found.nodes)} nodes; more than {MAX_NODES} are not read; split the cluster"
        )
    read = {_named(node.name): _node(node) for node in found.nodes}
    if len(read) != len(found.nodes):
        raise UnreachableError("Slurm lists a node twice; what it says is not used; see scontrol show node")
    return read


def jobs(document: bytes) -> tuple[SlurmJob, ...]:
    """The jobs that hold nodes. Raises UnreachableError for a document that does not tell all of them."""
    found = _decoded(_JOBS, document, "jobs")
    if len(found.jobs) > MAX_JOBS:
        raise UnreachableError(
            f"Slurm lists {len(found.jobs)} jobs; more than {MAX_JOBS} are not read; lower Slurm's MaxJobCount"
        )
    return tuple(read for job in found.jobs if (read := _job(job)) is not None)


def check_jobs(document: bytes, name: str) -> tuple[CheckJob, ...]:
    """Jobs of this very name, over or not, oldest first. Raises UnreachableError for a list that cannot be read.

    Slurm's filters are not relied upon: `squeue --json` of 22.05 lists all jobs whatever name it is asked for.
    """
    listed = _decoded(_JOBS, document, "jobs").jobs
    told = sorted((job for job in listed if job.name == name), key=lambda job: job.job_id)
    return tuple(
        CheckJob(
            job.job_id,
            _words(job.job_state if isinstance(job.job_state, str) else tuple(job.job_state or ())),
            (job.comment or "")[:MAX_MESSAGE],
            _text(job.state_reason),
        )
        for job in told[:MAX_CHECK_JOBS]
    )


def check_done(document: bytes, what: str) -> None:
    """Raise UnreachableError unless the answer to a request carries no errors."""
    _decoded(_ERRORS, document, what)


def _decoded(decoder: msgspec.json.Decoder[_Document], document: bytes, what: str) -> _Document:
    try:
        found = decoder.decode(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unreadable(
            f"Slurm's list of {what}", error, "none of it is used; run `sinfo --json` as Hostler's user"
        ) from error
    if found.errors:
        said = b", ".join(bytes(one) for one in found.errors[:3]).decode(errors="replace")
        raise UnreachableError(
            f"Slurm answered about {what} with an error: {' '.join(said.split())[:300]}; see slurmctld's log"
        )
    return found


def _named(name: str) -> str:
    try:
        return checked_name(name)
    except RefusedError as odd:
        raise UnreachableError(
            f"Slurm lists {name[:80]!r}, which is no node's name; none of the list is used"
            "; correct its NodeName in slurm.conf"
        ) from odd


def _node(node: _SlurmNode) -> SlurmNode:
    """The same object as before where nothing has changed."""
    state = node.state if isinstance(node.state, str) else tuple(node.state or ())
    boot, flags = int(_number(node.boot_time)), tuple(node.state_flags)
    return _node_of(node.name, state, flags, boot, (node.reason, node.reason_set_by_user, node.comment, node.gres))


@lru_cache(maxsize=MAX_NODES)
def _node_of(
    name: str, state: str | tuple[str, ...], flags: tuple[str, ...], boot: int, texts: tuple[str | None, ...]
) -> SlurmNode:
    words = [*_words(state), *(flag.upper() for flag in flags)]
    bases = [word for word in words if word in BASES]
    base = bases[0] if len(bases) == 1 else "UNKNOWN"
    reason, user, comment, gres = (_text(one) for one in texts)
    gpus = sum(count for kind, count in _gres(gres) if kind == "gpu")
    return SlurmNode(name, base, frozenset(w for w in words if w not in BASES), reason, user, comment, boot, gpus)


def _job(job: _SlurmJob) -> SlurmJob | None:
    """The job, None for one that holds no node; the same object as before where nothing has changed."""
    words = _words(job.job_state if isinstance(job.job_state, str) else tuple(job.job_state or ()))
    ending = "COMPLETING" in words
    if not ending and words and all(word in ENDED for word in words):
        return None
    user = job.user_name or f"uid {_number(job.user_id):.0f}"
    texts = (user, job.account, job.partition, job.qos, job.comment, job.name)
    run = (int(_number(job.restart_cnt)), bool(job.requeue), _moment(_number(job.start_time)))
    return _job_of(job.job_id, _all_of(job.nodes), ending, texts, run, tuple(job.gres_detail or ()))


@lru_cache(maxsize=MAX_NODES)
def _job_of(  # noqa: PLR0913 - the key
    number: int,
    hosts: str,
    ending: bool,
    texts: tuple[str | None, ...],
    run: tuple[int, bool, datetime | None],
    details: tuple[str, ...],
) -> SlurmJob | None:
    try:
        names = expand(hosts)
    except HostlistError as odd:
        raise UnreachableError(
            f"job {number} runs on {odd}; none of Slurm's list of jobs is used; see scontrol show job {number}"
        ) from odd
    if not names:
        return None
    told = tuple(gpu_indexes(one) for one in details) if len(details) == len(names) else (None,) * len(names)
    user, account, partition, qos, comment, name = (_text(one) for one in texts)
    return SlurmJob(number, names, ending, user, account, partition, qos, comment, *run, gpus=told, name=name)


@lru_cache(maxsize=1024)
def gpu_indexes(detail: str) -> tuple[int, ...] | None:
    """Read the GPUs of "gpu:h100:2(IDX:0-1)"; None where they are not named, or slices and shares are meant."""
    found: list[int] = []
    for entry in _split(detail):
        kind, _, rest = entry.partition(":")
        if kind in ("mps", "shard") or (kind == "gpu" and _SLICE.search(entry)):
            return None
        if kind != "gpu":
            continue
        match = _INDEXES.search(rest)
        if match is None:
            return None
        for item in match[1].split(","):
            first, _, last = item.partition("-")
            found.extend(range(int(first), int(last or first) + 1))
    return tuple(sorted(set(found))) if found and max(found) < MAX_GPUS else None


MAX_GPUS = 128
_INDEXES = re.compile(r"\(IDX:(\d{1,3}(?:-\d{1,3})?(?:,\d{1,3}(?:-\d{1,3})?)*)\)$")
_SLICE = re.compile(r"\d+g\.\d+gb", re.IGNORECASE)
_COUNT = re.compile(r"(\d{1,9})(?:\(.*\))?$")


@lru_cache(maxsize=1024)
def _gres(text: str) -> tuple[tuple[str, int], ...]:
    """Kinds and counts of "gpu:h100:8,nic:2"."""
    found = []
    for entry in _split(text):
        parts = entry.partition("(")[0].split(":")
        match = _COUNT.match(parts[-1])
        found.append((parts[0], int(match[1]) if match else 0))
    return tuple(found)


def _split(text: str) -> list[str]:
    """At commas outside parentheses."""
    return [entry for entry in re.split(r",(?![^(]*\))", text) if entry] if text else []


@lru_cache(maxsize=1024)
def _words(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """The words of "idle", "MIXED+DRAIN" or several, in capitals."""
    said = value.replace("+", " ").split() if isinstance(value, str) else value
    return tuple(word.upper() for word in said)


def _number(value: _Count) -> float:
    if isinstance(value, _Number):
        return value.number if value.set and not value.infinite else 0.0
    return value or 0.0


def _moment(stamp: float) -> datetime | None:
    """The time of seconds since 1970; None for none (0, as for what has not begun) and for what cannot be one."""
    return datetime.fromtimestamp(stamp, UTC) if 0 < stamp < END_OF_TIME else None


END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


def _text(value: str | None) -> str:
    return (value or "")[:MAX_WORDS]


def _all_of(value: str | None) -> str:
    return "" if value in (None, "None assigned", "(null)") else str(value)
