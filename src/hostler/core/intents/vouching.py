"""A person's word where no check answers: it passes, once; or the node goes to its vendor."""

from hostler.core.conditions import unanswered_checks
from hostler.core.intents.ask import Ask, Granted, RefusalError, node_of
from hostler.core.intents.lifecycle import move
from hostler.core.state import events as e
from hostler.core.state.model import CheckResult, Phase, Verdict
from hostler.core.tables.verdicts import Conviction


def vouch(ask: Ask) -> Granted:
    """The person has looked at what no check answers: the step passes this once, in the person's name.

    What a check has found faulty no word makes sound.
    """
    node, intent = node_of(ask), ask.intent
    profile, plan = intent.args.get("profile", ""), node.plan
    asked = unanswered_checks.profile_at(plan) if plan is not None else ""
    if plan is None or not asked or unanswered_checks.standing(node, asked) is None:
        raise RefusalError(f"{node.id} waits for no answer that a person could give; see `hostler node get {node.id}`")
    if profile != asked:
        raise RefusalError(f"{node.id} waits for {asked}, not for '{profile}': give --profile {asked}")
    if node.operation is not None:
        raise RefusalError(f"{node.id}: {asked} is being tried again just now; wait for its answer")
    word = f"{intent.person} vouches: {intent.reason}"
    passed = CheckResult(asked, Verdict.passed, ask.scene.now, word[:500], intent.person)
    recorded = () if asked == unanswered_checks.SANITISE else (e.CheckRecorded(node.id, passed),)
    ended = unanswered_checks.answered(ask.scene.fleet, node, asked, intent.person, word)
    return f"{asked} of {node.id} passes on your word, this once", (
        *recorded,
        *ended,
        e.PlanAdvanced(node.id, plan.id, plan.index + 1),
    )


def send_to_vendor(ask: Ask) -> Granted:
    """The node goes to its vendor because a person says so."""
    node, intent = node_of(ask), ask.intent
    why = f"{intent.person}: {intent.reason}"
    moved = move(ask, node, (Phase.triage, Phase.rma), why, Conviction(why, intent.person))
    return f"{node.id} goes to its vendor on your word", moved
