"""A backtest from documents and a journal to the answer: `hostler policy backtest`."""

import time
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from hostler.core.policy.documents import parse
from hostler.core.report.backtest_result import Backtest
from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.sim.backtest.backtest_report import report
from hostler.sim.backtest.history import History, opened
from hostler.sim.backtest.replay import Replay


class Question(Struct, frozen=True):
    """Documents of the policy on trial, the journal's path or URL, the folder of its archives, and the window."""

    documents: dict[str, str]
    journal: str
    archive: Path | None = None
    since: datetime | None = None
    until: datetime | None = None


def backtest(question: Question) -> Backtest:
    """Replay, compare, estimate. Nothing is written and nobody is asked.

    Raises InvalidInputError for documents that are not sound and for a window that holds nothing to judge by,
    JournalError for a journal or an archive that cannot be read.
    """
    trial = parse(question.documents)
    with opened(question.journal, question.archive, question.since, question.until) as history:
        began = time.perf_counter()
        replay = Replay(history, trial)
        replay.run()
        _check(question, history, replay)
        return report(replay, history.window, trial, history.fleet, time.perf_counter() - began)


def _check(question: Question, history: History, replay: Replay) -> None:
    """Without observations only what became a condition can be judged; a window without either is no trial."""
    if replay.fidelity.observations:
        return
    window = history.window
    what = f"no raw observation of {window.since:%Y-%m-%d %H:%M} to {window.until:%Y-%m-%d %H:%M} UTC is kept"
    fix = (
        "name the folder they were archived in with --archive" if question.archive is None else "choose another window"
    )
    raise InvalidInputError((Problem(question.journal.rpartition("@")[2], 0, what, fix),))
