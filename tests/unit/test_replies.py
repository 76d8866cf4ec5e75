"""Meanings of a driver's reply: only passed is passed, and only an answer to this attempt is one."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import Replied
from hostler.core.state import events as e
from hostler.core.state.model import Operation, Outcome, Verdict
from hostler.core.state.requalification import has_proven_itself
from tests.kit import Drive, a_node, configuration, pool_document, seen_all

ALONE = configuration({"train": pool_document(target=1)})


def checking() -> tuple[Drive, Operation]:
    """A node whose GPUs were reset, and whose gate check is out."""
    drive = Drive(ALONE, [a_node("a")])
    drive.ask("reset-gpu", "a")
    while drive.pending[0].operation.kind != "run_checks":
        drive.now += timedelta(seconds=1)
        drive.serve(drive.pending.pop(0))
    return drive, drive.pending.pop(0).operation


def reply(drive: Drive, operation: Operation, attempt: int, **facts: Any) -> None:
    outcome = Outcome(operation.id, "a", "done", "as told", {**seen_all(operation), **facts}, attempt=attempt)
    drive.step(Replied(outcome))


def test_a_check_that_passed_lets_the_node_go_on() -> None:
    drive, operation = checking()
    reply(drive, operation, 1, verdict="passed")
    drive.run()
    assert has_proven_itself(drive.node("a"))
    assert "a" not in drive.cordoned


def test_a_check_that_failed_is_a_condition_and_proves_nothing() -> None:
    """Mutant: failed counts as passed."""
    drive, operation = checking()
    reply(drive, operation, 1, verdict="failed")
    assert "check.failed" in {c.type for c in drive.node("a").conditions}
    assert not has_proven_itself(drive.node("a"))
    assert "uncordon" not in drive.operations("a")


@pytest.mark.parametrize("verdict", ["inconclusive", "stale", "never_verified", "PASSED", "", None, 1, True])
def test_what_is_not_passed_proves_nothing_and_what_did_not_fail_has_not_failed(verdict: Any) -> None:
    """Mutants: inconclusive counts as passed; whatever has not failed does; an unknown word is passed, or failed."""
    drive, operation = checking()
    reply(drive, operation, 1, verdict=verdict)
    (recorded,) = drive.events(e.CheckRecorded, "a")
    known = isinstance(verdict, str) and verdict in set(Verdict)
    assert recorded.check.verdict is (Verdict(verdict) if known else Verdict.inconclusive)
    assert not drive.events(e.ConditionRaised, "a") or "check.failed" not in {
        c.type for c in drive.node("a").conditions
    }
    assert not has_proven_itself(drive.node("a"))
    assert "uncordon" not in drive.operations("a")
    assert "a" in drive.cordoned


@pytest.mark.parametrize("result", ["failed", "refused"])
def test_a_check_that_could_not_be_made_has_no_verdict(result: str) -> None:
    """Mutant: the verdict of an outcome that is not done is believed."""
    drive, operation = checking()
    outcome = Outcome(operation.id, "a", result, "as told", {**seen_all(operation), "verdict": "passed"})
    drive.step(Replied(outcome))
    assert not has_proven_itself(drive.node("a"))
    assert "uncordon" not in drive.operations("a")


@pytest.mark.parametrize("attempt", [1, 3])
def test_the_answer_to_another_attempt_is_not_taken(attempt: int) -> None:
    """The first try's answer may come after the second has begun. Mutants: attempts are not compared, or by `<`."""
    drive, operation = checking()
    drive.controller._record_all((e.OperationStarted(replace(operation, attempt=2)),), "test")  # noqa: SLF001 - tried again, by whatever
    drive.fleet.merge()
    before = len(drive.journal)
    reply(drive, operation, attempt, verdict="passed")
    assert drive.journal[before:] == []
    assert drive.node("a").operation is not None
    reply(drive, operation, 2, verdict="passed")
    drive.run()
    assert "a" not in drive.cordoned
