"""The second person, verb by verb: harm decides, and what is gentle never waits, however much it names."""

import pytest

from hostler.controller.inputs import IntentAsked
from hostler.core.intents.intent_decision import HANDLERS
from hostler.core.state.verbs.every import VERBS
from tests.kit import intent_of
from tests.unit.test_approvals import SIZE, fleet

GENTLE = frozenset({
    # keeps things as they are
    "cordon", "deny-request", "hold", "pause", "reject", "stop-rollout",
    "uncordon", "withdraw-request", "withdraw-remediator",
    # the second person's own word
    "approve-request",
    # protects, or is about what serves nobody
    "advance-rma", "certify", "clear-condition", "close-rma", "close-ticket", "confirm-clock", "count-stock", "debug",
    "edit-rma", "end-work", "onboard", "open-rma", "power-off", "rebind", "retire", "rma-return", "rma-send",
    "triage", "vouch", "zap-again",
    # says something, and disturbs no node
    "claim-ticket", "hand-over-ticket", "locate", "unlocate",
    "add-item-file", "add-manual-test-file", "add-ticket-file", "admit", "adopt",
    "answer-maintenance", "rack-bring-up", "rack-call-off", "rack-certify", "rebind-asset", "asset-sound",
    "renew-asset-certificate", "renew-asset-login",
    "cancel-recabling", "enter-manual-test", "move-recabling", "plan-recabling",
    "fail-inspection", "register", "register-assets", "register-fabric", "remove-fabric", "renew-certificate",
    "renew-login", "inspect", "deploy", "clean", "replace-instance", "end-drill",
    "report-remediators", "retire-golden", "schedule-manual-test", "sign-manual-test", "tick-item",
    "tick-manual-test", "tick-stop", "validate-fabric", "walk-findings",
})  # fmt: skip
"""Verbs that no number of nodes makes wait: they disturb nobody. (What `rebind` sends where is asked for by itself.)"""

HARMFUL = frozenset({
    # begins something on nodes
    "consent", "drain", "power-cycle", "reboot", "release-node", "request-replacement", "reset-gpu", "start-drill",
    "return-for-maintenance", "start-work", "update-firmware",
    # lets go on what waits, or loosens what decides
    "accept-remediator", "activate", "approve", "call-off", "cancel-maintenance", "close-incident", "mode", "release",
    "release-brake", "release-restore", "resume", "schedule-maintenance", "treat-individually",
})  # fmt: skip
"""Verbs that wait where they would disturb more nodes than one person may."""


def test_every_verb_is_one_or_the_other() -> None:
    """Mutants: a new verb that disturbs is in no table; a cordon counts the nodes that it names."""
    disturb = {verb for verb, kind in VERBS.items() if HANDLERS[kind].disturbs}
    assert disturb == HARMFUL
    assert set(VERBS) - disturb == GENTLE


@pytest.mark.parametrize("verb", ["cordon", "hold", "pause"])
def test_a_gentle_act_on_the_whole_pool_is_done_at_once(verb: str) -> None:
    """Mutant: the twentieth node of a cordon waits for somebody who sleeps."""
    drive = fleet()
    for target in ("pool:train", "rack:r0", "rack:r1"):
        reply = drive.ask(verb, target)
        assert reply.granted, reply.text
        assert "approval" not in reply.detail
    assert not drive.fleet.approvals
    drive.run()
    if verb == "cordon":
        assert sum(bool(drive.node(f"n{number:02d}").cordons) for number in range(SIZE)) == SIZE


def test_a_gentle_act_leaves_the_measure_of_what_one_person_may_disturb() -> None:
    """Mutant: who has cordoned a rack may reboot no node of it."""
    drive = fleet()
    assert drive.ask("cordon", "pool:train").granted
    assert drive.ask("reboot", "n03").granted
    assert "approval" in drive.ask("reboot", "rack:r1").detail


def test_gentle_is_said_before_it_is_done_as_well() -> None:
    """Mutant: the dry run speaks of an approval that nobody will ask for."""
    drive = fleet()
    intent = intent_of("i-dry", "cordon", "pool:train", "ann", "because", drive.now, dry_run=True)
    reply = drive.step(IntentAsked(9, intent)).replies[0]
    assert "approval" not in reply.detail
    assert "second person" not in reply.text
