"""Answers of checks: verdicts become records, and end or raise conditions. Only passed is passed."""

from collections.abc import Iterator
from typing import NamedTuple, assert_never

from msgspec.structs import replace

from hostler.controller.reply_effect import ReplyEffect, again
from hostler.core.conditions import golden_bits, meeting_blame, unanswered_checks
from hostler.core.conditions.lifecycle import stand
from hostler.core.diagnose import Finding
from hostler.core.diagnose.gate.told_bits import read_bits, without_bits
from hostler.core.planning.idle_checks import PROFILE
from hostler.core.planning.meeting_calls import partners_wanted
from hostler.core.planning.outcomes import conclude
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.meetings import blames_node, standings
from hostler.core.state.model import CheckResult, Evidence, Node, Operation, Outcome, Verdict
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.verdicts import ENDS, StepEnd, verdict_of

ATTEMPTS = 3


def checked(context: DecisionContext, node: Node, operation: Operation, outcome: Outcome) -> ReplyEffect:
    """Only passed is passed, only failed is failed. What says neither is tried again, and then leaves its step open.

    One that was tried before is not tried at once: it has its pauses (`unanswered_checks`).
    """
    profile = unanswered_checks.profile_of(operation.act)
    compared = beside_others(context, node, profile, outcome)
    outcome, bits = compared.outcome, compared.events
    verdict = verdict_of(outcome)
    recorded = e.CheckRecorded(node.id, CheckResult(profile, verdict, context.now, outcome.detail[:500]))
    match ENDS[verdict]:
        case StepEnd.passed:
            told = _verified(node, profile)
        case StepEnd.failed:
            told = (*_wanting(context, node, profile, outcome), *_conclusive(node, profile))
        case StepEnd.open:
            if _may_try_again(operation, node, profile) and not compared.objection:
                return ReplyEffect((recorded, *bits, e.OperationStarted(again(operation, node, context.now))))
            return ReplyEffect((*bits, *conclude(context, node, operation, outcome)))
        case other:
            assert_never(other)
    closed = _closed(context.fleet, node, profile, f"{profile} {verdict}")
    return ReplyEffect((recorded, *bits, *told, *closed, *conclude(context, node, operation, outcome)))


def _may_try_again(operation: Operation, node: Node, profile: str) -> bool:
    return operation.attempt < ATTEMPTS and unanswered_checks.standing(node, profile) is None


class BesideOthers(NamedTuple):
    """An outcome as what it tells of others leaves it, what that comes to, and why it cannot be called passed."""

    outcome: Outcome
    events: tuple[e.Event, ...]
    objection: str


def beside_others(context: DecisionContext, node: Node, profile: str, outcome: Outcome) -> BesideOthers:
    """The outcome beside peers' bits, and beside the nodes that it met.

    A blame by meetings is answered by meetings: without them what has passed is inconclusive.
    """
    compared = beside_goldens(context, node, profile, outcome)
    met = meeting_blame.heard(context, node, profile, outcome.facts)
    if not met.objection:
        return compared._replace(events=(*compared.events, *met.events))
    bare, objection = compared.outcome, met.objection
    if verdict_of(bare) is Verdict.passed:
        objection = f"{objection}; {partners_wanted(context.fleet, node)}"
        detail = f"{objection}; {bare.detail}"[:500]
        bare = replace(bare, facts={**bare.facts, "verdict": Verdict.inconclusive.value}, detail=detail)
    return BesideOthers(bare, (*compared.events, *met.events), compared.objection or objection)


def beside_goldens(context: DecisionContext, node: Node, profile: str, outcome: Outcome) -> BesideOthers:
    """The outcome as the bits that it tells leave it, and what they come to.

    Bits that differ from peers' are never passed: inconclusive until a witness has spoken, failed once it has convicted
    the node. Bits that cannot be read are inconclusive too.
    """
    told, unreadable = read_bits(outcome.facts)
    heard = golden_bits.heard(context, node, profile, told)
    bare = replace(outcome, facts=without_bits(outcome.facts))
    objection = heard.objection or unreadable
    if not objection or verdict_of(outcome) is Verdict.failed:
        return BesideOthers(bare, heard.events, objection)
    verdict = Verdict.failed if heard.convicted else Verdict.inconclusive
    detail = f"{objection}; {outcome.detail}"[:500]
    changed = replace(bare, facts={**bare.facts, "verdict": verdict.value}, detail=detail)
    return BesideOthers(changed, heard.events, objection)


def _conclusive(node: Node, profile: str) -> Iterator[e.Event]:
    """A check that has failed is inconclusive no more."""
    if (condition := unanswered_checks.standing(node, profile)) is not None:
        yield e.ConditionCleared(node.id, condition.id, "observation", f"{profile} failed")


def _closed(fleet: Fleet, node: Node, profile: str, why: str) -> Iterator[e.Event]:
    """The ticket that asked for an answer is closed by it."""
    if (ticket := unanswered_checks.ticket_of(fleet, node, profile)) is not None:
        yield e.TicketClosed(ticket.id, why, "hostler")


def _wanting(context: DecisionContext, node: Node, profile: str, outcome: Outcome) -> tuple[e.Event, ...]:
    """The condition of a check that has failed; where meetings alone failed it, their blame is that condition."""
    if blames_node(standings(outcome.facts)):
        return ()
    severity, text = CONDITIONS["check.failed"].severity, f"{profile} failed: {outcome.detail}"[:500]
    finding = Finding("check.failed", severity, text, f"check:{profile}")
    event = stand(node, finding, Evidence(context.now, "check", finding.text), node.boot_id)
    return (event,) if event else ()


def idle_checked(context: DecisionContext, node: Node, operation: Operation, outcome: Outcome) -> tuple[e.Event, ...]:
    """An idle check has ended. Inconclusive (pre-empted, refused, gone) accuses nobody and is not tried again."""
    outcome, bits, _ = beside_others(context, node, PROFILE, outcome)
    verdict = verdict_of(outcome)
    detail = outcome.detail or ("" if outcome.result == "done" else f"the check came to nothing: {outcome.result}")
    recorded = e.CheckRecorded(node.id, CheckResult(PROFILE, verdict, context.now, detail[:500]))
    told: tuple[e.Event, ...] = ()
    if verdict is Verdict.passed:
        told = _verified(node, PROFILE)
    elif verdict is Verdict.failed:
        told = _wanting(context, node, PROFILE, replace(outcome, detail=detail))
    finished = Outcome(operation.id, node.id, outcome.result, detail)
    return (recorded, *bits, *told, *conclude(context, node, operation, finished))


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
