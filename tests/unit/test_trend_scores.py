"""Results of findings, as the journal tells them: failed checks and returns to vendors, and nothing else."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hostler.core.state import events as e
from hostler.core.state.model import Condition, Phase, Severity
from hostler.journal.opening import existing_database
from hostler.journal.sqlite import SqliteJournal
from hostler.ports import Batch, JournalError
from hostler.runtime.trend_scores import failures
from tests.contract.journal_samples import START, of_events

AN_HOUR = timedelta(hours=1)


def a_condition(node: str, kind: str) -> e.ConditionRaised:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    return e.ConditionRaised(Condition(f"{node}-{kind}", kind, node, Severity.critical, now, now, "operator", "x"))


def a_move(node: str, after: Phase) -> e.PhaseChanged:
    return e.PhaseChanged(node, Phase.triage, after, "", None)


def a_journal(path: Path, *events: e.Event) -> Path:
    journal = SqliteJournal(path)
    journal.append(Batch(records=of_events(events)), journal.acquire("a"))
    journal.close()
    return path


def test_a_failed_check_and_a_return_to_the_vendor_are_failures(tmp_path: Path) -> None:
    """Mutants: any condition counts; any move counts; a check that is inconclusive counts."""
    path = a_journal(
        tmp_path / "journal.db",
        a_condition("n1", "check.failed"),
        a_condition("n2", "check.inconclusive"),
        a_condition("n3", "gpu.thermal"),
        a_move("n4", Phase.rma),
        a_move("n5", Phase.production),
    )
    with existing_database(path) as database:
        assert [node for node, _ in failures(database, START - AN_HOUR)] == ["n1", "n4"]


def test_what_was_before_is_left_out(tmp_path: Path) -> None:
    path = a_journal(tmp_path / "journal.db", a_condition("n1", "check.failed"))
    with existing_database(path) as database:
        assert failures(database, START + 24 * 365 * AN_HOUR) == ()


def test_a_journal_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(JournalError), existing_database(tmp_path / "none.db") as database:
        failures(database, START)
