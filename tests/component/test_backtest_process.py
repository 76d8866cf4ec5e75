"""The process that replays history: it gives way to everything else, ends with its time, and leaves nobody behind."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hostler.app.backtest_process import NICE, BacktestProcess
from hostler.server.backtests import BacktestFailedError, BacktestQuestion
from tests.kit import POLICY

pytestmark = pytest.mark.nightly("processes are started and ended for minutes")

PATIENCE_S = 60.0
QUESTION = BacktestQuestion({"policy.yaml": POLICY})


def children() -> set[int]:
    found = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {int(pid) for pid in found}


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - the kernel tells nobody
            await asyncio.sleep(0.01)


def told_of(pid: int, what: str) -> str:
    return Path(f"/proc/{pid}/{what}").read_text().strip()


async def test_it_runs_at_the_lowest_priority_and_is_the_first_to_go_without_memory() -> None:
    """Mutants: the loop's own priority; who holds the fleet goes first."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "hostler.app.backtest_process", stdin=asyncio.subprocess.PIPE, stderr=-3
    )
    try:
        await until(lambda: os.getpriority(os.PRIO_PROCESS, child.pid) == NICE)
        await until(lambda: told_of(child.pid, "oom_score_adj") == "1000")
    finally:
        child.kill()
        await child.wait()


async def test_what_takes_too_long_is_ended_and_gone(tmp_path: Path) -> None:
    """Mutant: its time is over, and it goes on."""
    before = children()
    with pytest.raises(BacktestFailedError, match="not done within"):
        await BacktestProcess(str(tmp_path / "journal.db"), limit_s=0.05)(QUESTION)
    assert children() <= before


async def test_one_that_is_cancelled_is_gone_when_that_is_answered(tmp_path: Path) -> None:
    before = children()
    running = asyncio.create_task(BacktestProcess(str(tmp_path / "journal.db"))(QUESTION))
    await until(lambda: not children() <= before)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert children() <= before


async def test_a_journal_that_is_not_there_is_an_answer_and_its_login_is_in_no_command_line(tmp_path: Path) -> None:
    """Mutant: the place of the journal is an argument, which every user of the machine may read."""
    before = children()
    place = str(tmp_path / "secret-of-the-journal.db")
    running = asyncio.create_task(BacktestProcess(place)(QUESTION))
    await until(lambda: not children() <= before)
    (pid,) = children() - before
    assert "secret-of-the-journal" not in told_of(pid, "cmdline")
    answer = await running
    assert answer.result is None
    assert "secret-of-the-journal.db" in answer.why
