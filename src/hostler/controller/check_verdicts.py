"""Answers of checks: verdicts become records, and end or raise conditions. Only passed is passed."""

from collections.abc import Iterator
from typing import assert_never

from hostler.controller.reply_effect import ReplyEffect, again
from hostler.core.conditions import unanswered_checks
from hostler.core.conditions.lifecycle import stand
from hostler.core.diagnose import Finding
from hostler.core.planning.idle_checks import PROFILE
from hostler.core.planning.outcomes import conclude
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import CheckResult, Evidence, Node, Operation, Outcome, Verdict
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.verdicts import ENDS, StepEnd, verdict_of

ATTEMPTS = 3


def checked(context: DecisionContext, node: Node, operation: Operation, outcome: Outcome) -> ReplyEffect:
    """Only passed is passed, only failed is failed. What says neither is tried again, and then leaves its step open.

    One that was tried before is not tried at once: it has its pauses (`unanswered_checks`).
    """
    profile = unanswered_checks.profile_of(operation.act)
    verdict = verdict_of(outcome)
    recorded = e.CheckRecorded(node.id, CheckResult(profile, verdict, context.now, outcome.detail[:500]))
    match ENDS[verdict]:
        case StepEnd.passed:
            told = _verified(node, profile)
        case StepEnd.failed:
            told = (*_wanting(context, node, profile, outcome.detail), *_conclusive(node, profile))
        case StepEnd.open:
            if operation.attempt < ATTEMPTS and unanswered_checks.standing(node, profile) is None:
                return ReplyEffect((recorded, e.OperationStarted(again(operation, node, context.now))))
            return ReplyEffect(conclude(context, node, operation, outcome))
        case other:
            assert_never(other)
    closed = _closed(context.fleet, node, profile, f"{profile} {verdict}")
    return ReplyEffect((recorded, *told, *closed, *conclude(context, node, operation, outcome)))


def _conclusive(node: Node, profile: str) -> Iterator[e.Event]:
    """A check that has failed is inconclusive no more."""
    if (condition := unanswered_checks.standing(node, profile)) is not None:
        yield e.ConditionCleared(node.id, condition.id, "observation", f"{profile} failed")


def _closed(fleet: Fleet, node: Node, profile: str, why: str) -> Iterator[e.Event]:
    """The ticket that asked for an answer is closed by it."""
    if (ticket := unanswered_checks.ticket_of(fleet, node, profile)) is not None:
        yield e.TicketClosed(ticket.id, why, "hostler")


def _wanting(context: DecisionContext, node: Node, profile: str, detail: str) -> tuple[e.Event, ...]:
    severity, text = CONDITIONS["check.failed"].severity, f"{profile} failed: {detail}"[:500]
    finding = Finding("check.failed", severity, text, f"check:{profile}")
    event = stand(node, finding, Evidence(context.now, "check", finding.text), node.boot_id)
    return (event,) if event else ()


def idle_checked(context: DecisionContext, node: Node, operation: Operation, outcome: Outcome) -> tuple[e.Event, ...]:
    """An idle check has ended. Inconclusive (pre-empted, refused, gone) accuses nobody and is not tried again."""
    verdict = verdict_of(outcome)
    detail = outcome.detail or ("" if outcome.result == "done" else f"the check came to nothing: {outcome.result}")
    recorded = e.CheckRecorded(node.id, CheckResult(PROFILE, verdict, context.now, detail[:500]))
    told: tuple[e.Event, ...] = ()
    if verdict is Verdict.passed:
        told = _verified(node, PROFILE)
    elif verdict is Verdict.failed:
        told = _wanting(context, node, PROFILE, detail)
    finished = Outcome(operation.id, node.id, outcome.result, detail)
    return (recorded, *told, *conclude(context, node, operation, finished))


_THOROUGH = ("suspect", "burn_in")


def _verified(node: Node, profile: str) -> tuple[e.Event, ...]:
    """A passed check ends what it disproves: its own failure; a thorough one ends the failure of every check.

    The gate after a remedy ends what the idle check had found: should it come back, the ladder counts it.
    """
    answered = [f"check:{profile}"]
    if profile == "gate" and node.plan is not None and node.plan.touched:
        answered.append(f"check:{PROFILE}")
    return tuple(
        e.ConditionCleared(node.id, c.id, "observation", f"{profile} passed")
        for c in node.conditions
        if c.type in ("check.failed", "check.inconclusive")
        and (profile in _THOROUGH or c.part.partition("/")[0] in answered)
    )
