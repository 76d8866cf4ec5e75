"""All-reduce over torch.distributed: gloo between processes on a CPU, NCCL between GPUs; the sums must be exact.

Bus bandwidth is 2 (n - 1) / n of the bytes over the time, as nccl-tests count it.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hostler_checks.answers import Answer
from hostler_checks.device import UnableError, torch_or_none
from hostler_checks.plants import clock_factor
from hostler_checks.work import Work, median

TIMEOUT_S = 30.0
MAX_RANKS, MAX_TURNS = 32, 10_000
FLIPS = ("bit_flip", "flaky_bit")
"""Plants that change a number: of ranks of one machine in the second, between nodes in the one that is told to."""


def allreduce(work: Work) -> Answer:
    """Start the ranks, each a process of its own; a rank that is late is as bad as one that is gone."""
    torch, backend, ranks = backend_and_ranks(work)
    asked = {"backend": backend, "ranks": ranks, "mib": work.params["mib"]}
    with tempfile.TemporaryDirectory() as folder:
        told = run_ranks(work, __name__, asked, Path(folder))
    faults = tuple(f"rank {rank}: {one['fault']}" for rank, one in enumerate(told) if one["fault"])
    slowest = max(median(one["times"]) for one in told) * clock_factor(work.plant, work.check)
    size = int(work.params["mib"]) << 20
    readings = {"bus_gb_s": size * 2 * (ranks - 1) / ranks / slowest / 1e9}
    answer = work.answer(f"{backend}, {ranks} ranks, {size >> 20} MiB", readings, faults=faults)
    if backend == "nccl":
        answer.stack["device"] = str(torch.cuda.get_device_name(0))
    answer.stack.update({"torch": str(torch.__version__), "backend": backend, "ranks": str(ranks)})
    return answer


def backend_and_ranks(work: Work) -> tuple[Any, str, int]:
    """PyTorch, and how many ranks meet by which backend: one a GPU, or processes on a CPU. Raises UnableError."""
    torch = torch_or_none()
    if torch is None:
        raise UnableError("no PyTorch: install hostler-checks[torch]")
    gpus = int(torch.cuda.device_count()) if torch.cuda.is_available() else 0
    backend, ranks = ("nccl", gpus) if gpus else ("gloo", int(work.params["ranks"]) or 2)
    if not 2 <= ranks <= MAX_RANKS:
        raise UnableError(f"{work.check} needs 2 to {MAX_RANKS} ranks, there are {ranks}")
    return torch, backend, ranks


def run_ranks(work: Work, module: str, asked: Mapping[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Run the module's ranks, as many as `asked` says, and take what each printed. Raises UnableError."""
    base = {**asked, "store": str(folder / "store"), "seconds": work.seconds, "plant": work.plant}
    children = [
        subprocess.Popen(
            (sys.executable, "-m", module, json.dumps({**base, "rank": rank})),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"GLOO_SOCKET_IFNAME": "lo", **os.environ},
        )
        for rank in range(asked["ranks"])
    ]
    try:
        return [_told(rank, child, work.seconds + 2 * TIMEOUT_S) for rank, child in enumerate(children)]
    finally:
        for child in children:
            child.kill()
            child.communicate()


def _told(rank: int, child: subprocess.Popen[bytes], limit_s: float) -> dict[str, Any]:
    try:
        output, errors = child.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise UnableError(f"rank {rank} did not end in {limit_s:g} s") from None
    try:
        told: dict[str, Any] = json.loads(output.splitlines()[-1])
    except (ValueError, IndexError):
        last = (errors.decode("utf-8", "replace").strip().splitlines() or [f"it ended with {child.returncode}"])[-1]
        raise UnableError(f"rank {rank} broke off: {last[:200]}") from None
    return told


def rank_main(asked: dict[str, Any]) -> dict[str, Any]:
    """One rank: whole numbers that fp32 sums exactly, so every element must be the sum over all ranks."""
    torch, place = join_ranks(asked)
    rank, flips = int(asked["rank"]), asked["plant"] in FLIPS
    group = Group(rank, int(asked["ranks"]), place, int(asked["mib"]), flips=rank == 1 and flips)
    times, fault = sum_up(torch, group, float(asked["seconds"]))
    torch.distributed.destroy_process_group()
    return {"times": times, "fault": fault}


def join_ranks(asked: Mapping[str, Any]) -> tuple[Any, str]:
    """Join the group in a rank's own process: PyTorch, and the device of this rank."""
    import datetime as dt  # noqa: PLC0415 - ranks alone

    import torch  # noqa: PLC0415
    import torch.distributed as dist  # noqa: PLC0415

    rank, ranks = int(asked["rank"]), int(asked["ranks"])
    place = f"cuda:{rank}" if asked["backend"] == "nccl" else "cpu"
    if place != "cpu":
        torch.cuda.set_device(rank)
    limit = dt.timedelta(seconds=TIMEOUT_S)
    dist.init_process_group(
        asked["backend"], init_method=f"file://{asked['store']}", rank=rank, world_size=ranks, timeout=limit
    )
    return torch, place


@dataclass(frozen=True, slots=True)
class Group:
    """One rank's place in a group that sums `mib` MiB, on the device `place`. `flips`: a test has it spoil a number."""

    rank: int
    ranks: int
    place: str
    mib: int
    flips: bool


def sum_up(torch: Any, group: Group, seconds: float) -> tuple[list[float], str]:
    """Seconds of each sum over all ranks until `seconds` are over, and what is wrong; all go on, or all stop.

    Of more than one sum the first is left out: it warms up.
    """
    dist, place, words = torch.distributed, group.place, (group.mib << 20) // 4
    times: list[float] = []
    fault, turn, going = "", 0, True
    while going:
        held = summands(torch, words, place, group.rank + turn % 64)
        if group.flips:
            held[words // 2] += 1
        began = time.perf_counter()
        dist.all_reduce(held)
        if place != "cpu":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
        fault = is_wrong(torch, held, group.ranks, turn, place)
        turn += 1
        votes = torch.tensor([float(sum(times) < seconds and not fault and turn < MAX_TURNS)], device=place)
        dist.all_reduce(votes)
        going = bool(votes.item() == group.ranks)
    return times[1:] or times, fault


def summands(torch: Any, words: int, place: str, more: int) -> Any:
    """Whole numbers that fp32 sums exactly over as many ranks as meet."""
    return torch.arange(words, device=place, dtype=torch.float32) % 1024 + more


def is_wrong(torch: Any, held: Any, ranks: int, turn: int, place: str) -> str:
    """Count the sums over all ranks that are wrong, "" where none is."""
    base = torch.arange(len(held), device=place, dtype=torch.float32) % 1024
    expected = base * ranks + ranks * (ranks - 1) / 2 + ranks * (turn % 64)
    bad = (held != expected).nonzero().flatten()
    return f"{len(bad)} sums are wrong, the first at {int(bad[0])}" if len(bad) else ""


if __name__ == "__main__":
    print(json.dumps(rank_main(json.loads(sys.argv[1]))))
