"""Backtests that people ask of the server: one runs at a time beside the loop, and what came of the latest is kept."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.report.backtest_result import Backtest, DifferenceRow
from hostler.journal.backtest_files import BacktestFiles
from hostler.logs.structured import logger
from hostler.ports import JournalError

log = logger()

T = TypeVar("T")

ROWS_KEPT = 2_000
"""Differences that are kept of an answer, the earliest; the sums are of all."""
WHY_MAX = 2_000


class BacktestQuestion(Struct, frozen=True):
    """Documents on trial, and the window of history: all that is kept where a moment is None."""

    documents: dict[str, str]
    since: datetime | None = None
    until: datetime | None = None


class BacktestFailedError(Exception):
    """A replay that came to nothing, with the reason for people."""


class ReplayAnswer(Struct, frozen=True):
    """Answer of a replay with the differences that are kept, of `rows` in all; or `why` there is none."""

    result: Backtest | None = None
    rows: int = 0
    why: str = ""


Replayer = Callable[[BacktestQuestion], Awaitable[ReplayAnswer]]
"""Replays history and answers; raises BacktestFailedError. Cancelled, it leaves nothing running."""


class BacktestRun(Struct, frozen=True, kw_only=True):
    """A backtest that somebody asked for. `sha256`: the configuration on trial; `against`: the active one of then.

    `documents` are their names, `differences` what the trial changes, a line for each value. `since` and `until` are
    as asked, null for all that is kept. `result` is null until the state is done; its rows are in the answer about
    one. `rows_left_out`: differences beyond the 2,000 that are kept. `why`: what made it fail, or why it was cancelled.
    """

    id: str
    state: Literal["running", "done", "failed", "cancelled"] = "running"
    sha256: str
    against: str
    documents: tuple[str, ...]
    differences: tuple[str, ...]
    person: str
    reason: str
    asked: datetime
    since: datetime | None = None
    until: datetime | None = None
    ended: datetime | None = None
    ended_by: str = ""
    why: str = ""
    rows_left_out: int = 0
    result: Backtest | None = None


class Backtests:
    """Backtests of one controller: at most one that runs, and the answers that are kept."""

    def __init__(self, files: BacktestFiles, replay: Replayer, now: Callable[[], datetime]) -> None:
        self.running: BacktestRun | None = None
        self._files = files
        self._replay = replay
        self._now = now
        self._task: asyncio.Task[None] | None = None
        self._ender = ("", "")
        self._unkept: tuple[BacktestRun, ...] = ()

    def begin(self, run: BacktestRun, question: BacktestQuestion) -> None:
        """Begin what was asked for, while no other runs."""
        assert self.running is None, "one at a time: the route refuses the second"
        self.running, self._ender, self._unkept = run, ("", ""), ()
        self._task = asyncio.create_task(self._answer(run, question))

    async def cancel(self, person: str, why: str) -> None:
        """End the one that runs, and return when its process is gone."""
        self._ender = (person, why)
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def close(self) -> None:
        """End the one that runs, as this controller ends."""
        if self.running is not None:
            await self.cancel("", "the controller that ran it was stopped")

    async def listed(self) -> list[BacktestRun]:
        """Every backtest, the newest first, without the rows of their answers. Raises JournalError."""
        kept = await asyncio.to_thread(self._kept)
        return [*((self.running,) if self.running else self._unkept), *kept]

    async def found(self, name: str) -> BacktestRun | None:
        """The backtest with all its rows, None where there is none of that name. Raises JournalError."""
        for run in (self.running, *self._unkept):
            if run is not None and run.id == name:
                return run
        return await asyncio.to_thread(self._whole, name)

    def _kept(self) -> list[BacktestRun]:
        return [_read(line, BacktestRun) for line in self._files.summaries()]

    def _whole(self, name: str) -> BacktestRun | None:
        parts = self._files.get(name)
        if parts is None:
            return None
        run = _read(parts[0], BacktestRun)
        rows = _read(parts[1], tuple[DifferenceRow, ...])
        return replace(run, result=replace(run.result, rows=rows)) if run.result is not None else run

    async def _answer(self, run: BacktestRun, question: BacktestQuestion) -> None:
        try:
            ended = _ended(run, await self._replay(question))
        except BacktestFailedError as error:
            ended = replace(run, state="failed", why=str(error)[:WHY_MAX])
        except asyncio.CancelledError:
            person, why = self._ender
            ended = replace(run, state="cancelled", ended_by=person, why=why[:WHY_MAX])
        try:
            await asyncio.shield(asyncio.to_thread(self._keep, replace(ended, ended=self._now())))
        except JournalError as error:
            log.warning("backtest_not_kept", backtest=run.id, reason=str(error))
            self._unkept = (replace(run, state="failed", ended=self._now(), why=str(error)[:WHY_MAX]),)
        finally:
            self.running = None

    def _keep(self, run: BacktestRun) -> None:
        rows = run.result.rows if run.result is not None else ()
        summary = run if run.result is None else replace(run, result=replace(run.result, rows=()))
        self._files.put(run.id, msgspec.json.encode(summary), msgspec.json.encode(rows))


def _ended(run: BacktestRun, answer: ReplayAnswer) -> BacktestRun:
    if answer.result is None:
        return replace(run, state="failed", why=answer.why[:WHY_MAX])
    rows = answer.result.rows[:ROWS_KEPT]
    return replace(run, state="done", result=replace(answer.result, rows=rows), rows_left_out=answer.rows - len(rows))


def _read(line: bytes, kind: type[T]) -> T:
    """A part of a kept answer. Raises JournalError where this version cannot read it."""
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.DecodeError as error:
        raise JournalError(f"a kept backtest cannot be read: {error}") from error
