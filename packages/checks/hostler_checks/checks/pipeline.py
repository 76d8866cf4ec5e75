"""A pipeline of ranks as training has them: each takes a batch from the one before, works, and sends it on.

Bits are exact: each rank knows what it must be given, and the first that is given something else names the hop. A rank
whose own work takes much longer than the others' is named as well; what all of them wait for is the way between.
"""

import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hostler_checks.answers import Answer
from hostler_checks.checks.collectives import FLIPS, backend_and_ranks, join_ranks, run_ranks
from hostler_checks.plants import clock_factor
from hostler_checks.work import Work, median

BATCHES, MAX_TURNS = 8, 10_000
"""Batches that follow each other before the ranks agree to go on; the first of them fills the pipeline."""
SLOW_RATIO = 3.0
"""A rank is slow whose work takes so many times as long as the others' middle: for catastrophes, as floors are."""


def sendrecv(work: Work) -> Answer:
    """Start the ranks, each a process of its own, and put together what they measured."""
    torch, backend, ranks = backend_and_ranks(work)
    asked = {"mib": work.params["mib"], "n": work.params["n"]}
    with tempfile.TemporaryDirectory() as folder:
        told = run_ranks(work, __name__, {"backend": backend, "ranks": ranks, **asked}, Path(folder))
    size = int(work.params["mib"]) << 20
    pace_s = median(told[-1]["paces"]) * clock_factor(work.plant, work.check)
    works = [min(one["works"]) for one in told]  # at its best: what else wants a processor slows some of them
    readings = {"pipe_gb_s": size / pace_s / 1e9, "slowest_rank_ratio": max(ratios(works))}
    looked = f"{backend}, {ranks} ranks, {size >> 20} MiB a batch"
    faults = tuple(one["fault"] for one in told if one["fault"])[:1]  # ranks behind it are given what it passed on
    answer = work.answer(looked, readings, faults=faults, slowness=tuple(slow_ranks(works)))
    if backend == "nccl":
        answer.stack["device"] = str(torch.cuda.get_device_name(0))
    answer.stack.update({"torch": str(torch.__version__), "backend": backend, "ranks": str(ranks)})
    return answer


def ratios(works: list[float]) -> list[float]:
    """For each rank how many times as long its work takes as the middle of the others'."""
    return [one / max(median(works[:rank] + works[rank + 1 :]), 1e-12) for rank, one in enumerate(works)]


def slow_ranks(works: list[float]) -> list[str]:
    """Words on each rank that is slower than the others; nothing where they are alike."""
    return [
        f"rank {rank} works {ratio:.3g} times as long as the others' middle"
        for rank, ratio in enumerate(ratios(works))
        if ratio > SLOW_RATIO
    ]


@dataclass(frozen=True, slots=True)
class Place:
    """One rank's place in the pipeline, on the device `place`; `words` fp32 numbers a batch, products of n x n."""

    rank: int
    ranks: int
    place: str
    words: int
    n: int
    plant: str


def rank_main(asked: dict[str, Any]) -> dict[str, Any]:
    """One rank: seconds between batches, seconds of its own work, and what it was given wrongly."""
    torch, place = join_ranks(asked)
    here = Place(
        int(asked["rank"]),
        int(asked["ranks"]),
        place,
        (int(asked["mib"]) << 20) // 4,
        int(asked["n"]),
        str(asked["plant"]),
    )
    told = _flow(torch, here, float(asked["seconds"]))
    torch.distributed.destroy_process_group()
    return told


def _flow(torch: Any, here: Place, seconds: float) -> dict[str, Any]:
    dist, until = torch.distributed, time.monotonic() + seconds
    stage = Stage(torch, here)
    turn, going = 0, True
    while going:
        stage.turn(turn)
        turn += 1
        votes = torch.tensor([float(time.monotonic() < until and not stage.fault and turn < MAX_TURNS)])
        votes = votes.to(here.place)
        dist.all_reduce(votes)
        going = bool(votes.item() == here.ranks)
    return {"paces": stage.paces or [0.0], "works": stage.works, "fault": stage.fault}


class Stage:
    """A rank's stage. Batches are whole numbers that fp32 holds exactly; each stage adds one to every number."""

    def __init__(self, torch: Any, here: Place) -> None:
        self.paces: list[float] = []
        self.works: list[float] = []
        self.fault = ""
        self._torch, self._here = torch, here
        if here.place == "cpu":
            torch.set_num_threads(1)  # all work is of the thread whose time is counted
        self._pattern = torch.arange(here.words, device=here.place, dtype=torch.float32) % 1024
        self._held = [torch.empty_like(self._pattern) for _ in range(2)]
        self._matrix = torch.ones((here.n, here.n), device=here.place)
        self._factor = clock_factor(here.plant, "") if here.plant == "stall" and here.rank == 1 else 1.0

    def turn(self, turn: int) -> None:
        """Pass BATCHES on. While one is on its way to the next rank the other buffer takes the following one."""
        here, dist, sent, before = self._here, self._torch.distributed, None, 0.0
        for number in range(BATCHES):
            held, batch = self._held[number % 2], turn * BATCHES + number
            if here.rank:
                dist.recv(held, here.rank - 1)
                self._sync()
                now = time.perf_counter()
                self.paces += [now - before] * (number > 0)
                before = now
                self._look(held, batch)
            else:
                self._torch.add(self._pattern, batch % 64, out=held)
            self.work(held)
            if sent is not None:
                sent.wait()
            sent = dist.isend(held, here.rank + 1) if here.rank + 1 < here.ranks else None
        if sent is not None:
            sent.wait()

    def _look(self, held: Any, batch: int) -> None:
        here = self._here
        if here.plant in FLIPS and here.rank == 1:
            held[here.words // 2] += 1
        bad = (held != self._pattern + (batch % 64 + here.rank)).nonzero().flatten()
        if len(bad) and not self.fault:
            self.fault = (
                f"{len(bad)} of the numbers that rank {here.rank} was given by rank {here.rank - 1} are wrong"
                f", the first at {int(bad[0])}"
            )

    def work(self, held: Any) -> None:
        """Do the stage's own work on a batch, and keep how long it took."""
        self._sync()
        began = self._now()
        held += 1
        self._matrix = self._torch.matmul(self._matrix, self._matrix).clamp_(max=1.0)
        self._sync()
        self.works.append((self._now() - began) * self._factor)

    def _now(self) -> float:
        """Seconds of this rank's own work: of a CPU, which ranks share, only the time that it had counts."""
        return time.thread_time() if self._here.place == "cpu" else time.perf_counter()

    def _sync(self) -> None:
        if self._here.place != "cpu":
            self._torch.cuda.synchronize()


if __name__ == "__main__":
    print(json.dumps(rank_main(json.loads(sys.argv[1]))))
