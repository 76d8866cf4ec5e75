"""Replays history through another policy in a process of its own, which gives way to everything else on this machine.

What it reads is the journal as it stood at one moment; it writes nothing. Documents come to it on standard input and
the journal's place in its environment, so neither a file's name nor a login is in its command line.
"""

import asyncio
import os
import resource
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hostler.app.child_process import run_module
from hostler.core.state.durations import duration
from hostler.core.state.input_problems import InvalidInputError
from hostler.ports import JournalError
from hostler.server.backtests import ROWS_KEPT, BacktestFailedError, BacktestQuestion, ReplayAnswer
from hostler.sim.backtest.backtest_run import Question, backtest

NICE = 19
"""The lowest priority: the loop, and whatever else computes here, comes first."""
LIMIT_S = 4 * 3600.0
"""A replay that takes longer is ended: it makes some 30,000 steps a second on an idle core."""
MEMORY_BYTES = 4 * 1024**3


class ReplayOrder(Struct, frozen=True):
    """Order to the process, on its standard input: a question, and the archive's folder, "" for none."""

    question: BacktestQuestion
    archive: str = ""


class BacktestProcess(Struct, frozen=True):
    """Makes a process for each replay of this journal (a file or URL), with the archive's folder, "" for none."""

    journal: str
    archive: str = ""
    limit_s: float = LIMIT_S

    async def __call__(self, question: BacktestQuestion) -> ReplayAnswer:
        """Have the question answered. Raises BacktestFailedError. Cancelled, it kills the process first."""
        order = msgspec.json.encode(ReplayOrder(question, self.archive))
        try:
            async with asyncio.timeout(self.limit_s):
                end = await run_module(__name__, journal=self.journal, given=order)
        except TimeoutError as late:
            raise BacktestFailedError(
                f"it was not done within {duration(self.limit_s)}; choose a shorter time"
            ) from late
        if end.status:
            raise BacktestFailedError(f"its process ended with status {end.status}: {end.reason}")
        try:
            return await asyncio.to_thread(msgspec.json.decode, end.said, type=ReplayAnswer)
        except msgspec.DecodeError as error:
            raise BacktestFailedError(f"its process answered what nobody can read: {error}") from error


def answered(order: ReplayOrder, journal: str) -> ReplayAnswer:
    """Replay, and keep as many differences as are shown. Blocks, for as long as it takes."""
    asked = order.question
    archive = Path(order.archive) if order.archive else None
    try:
        found = backtest(Question(asked.documents, journal, archive, asked.since, asked.until))
    except (InvalidInputError, JournalError) as error:
        return ReplayAnswer(why=str(error))
    except MemoryError:
        return ReplayAnswer(why="it took more memory than it may have; choose a shorter time")
    return ReplayAnswer(replace(found, rows=found.rows[:ROWS_KEPT]), len(found.rows))


def main() -> None:
    """Answer the order on standard input, giving way to everything else."""
    os.nice(NICE)
    with suppress(OSError):  # where the kernel runs out of memory, this process is what it ends
        Path("/proc/self/oom_score_adj").write_text("1000")
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=ReplayOrder)
    sys.stdout.buffer.write(msgspec.json.encode(answered(order, os.environ["HOSTLER_JOURNAL"])))


if __name__ == "__main__":
    main()
