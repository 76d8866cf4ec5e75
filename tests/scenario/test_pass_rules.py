"""A SKU's pass rules in a plan: frozen as it is laid down, and passed only by an agent that says it went by them."""

import pytest

from hostler.core.report.explain import explain, text
from hostler.core.state import pass_rules
from hostler.core.state.configuration import Configuration
from hostler.core.state.model import Facts, Operation, Phase, Verdict
from hostler.core.state.operations import RunChecks
from hostler.core.state.pass_rules import RULES_NAMED, PassRules
from tests import kit
from tests.kit import Drive, a_node, configuration

TWO_HOURS, ONE_HOUR = PassRules(hours=2.0), PassRules(hours=1.0)


def ruled(rules: PassRules) -> Configuration:
    return configuration(checks={"suspect": {"hours": rules.hours}})


def in_triage() -> Drive:
    """A node whose plan in triage has just been laid down, under the rules of two hours."""
    return Drive(ruled(TWO_HOURS), [a_node("a", pool="", phase=Phase.triage)])


def suspects(drive: Drive) -> list[RunChecks]:
    acts = (send.operation.act for send in drive.sent if send.how == "perform")
    return [act for act in acts if isinstance(act, RunChecks) and act.profile == "suspect"]


def test_what_is_frozen_is_what_the_sku_said_when_the_plan_was_laid_down() -> None:
    """Mutant: the order is made up when it is sent, and a change in the middle moves the goal."""
    drive = in_triage()
    assert not suspects(drive)
    drive.activate(ruled(ONE_HOUR))
    drive.wait(hours=1)
    assert suspects(drive) == [RunChecks("suspect", rules=TWO_HOURS)]
    assert drive.node("a").phase is not Phase.triage
    told = text(explain(drive.journal, drive.node("a")))
    assert f"pass_rules of its SKU, digest {pass_rules.digest('suspect', TWO_HOURS)}" in told


def test_a_profile_of_which_the_sku_says_nothing_has_no_rules() -> None:
    drive = in_triage()
    drive.wait(hours=1)
    orders = [send.operation.act for send in drive.sent if send.operation.act == RunChecks("burn_in")]
    assert orders
    assert drive.node("a").phase is Phase.production


@pytest.mark.parametrize(
    "facts", [{}, pass_rules.named("suspect", ONE_HOUR), pass_rules.named("burn_in", TWO_HOURS), {RULES_NAMED: True}]
)
def test_an_agent_that_passes_and_does_not_name_the_rules_is_inconclusive(
    facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent of a protocol before, which passes an argument over, or one that went by others. Mutant: believed."""

    def answers(operation: Operation) -> Facts:
        return facts

    monkeypatch.setattr(kit, "seen_all", answers)
    drive = in_triage()
    drive.wait(hours=1)
    node = drive.node("a")
    assert (node.phase, suspects(drive)[0].rules) == (Phase.triage, TWO_HOURS)
    (check,) = (one for one in node.checks if one.profile == "suspect")
    assert check.verdict is Verdict.inconclusive
    assert "upgrade its agent and hostler-check" in check.detail


def test_an_agent_that_cannot_read_the_order_is_inconclusive() -> None:
    """An agent of this protocol that knows no rules refuses the order whole (`agent.controller_client.read_order`)."""
    drive = in_triage()
    drive.script("run_checks", *["refused"] * 100)
    drive.wait(hours=1)
    node = drive.node("a")
    assert node.phase is Phase.triage
    assert "check.inconclusive" in {condition.type for condition in node.conditions}
