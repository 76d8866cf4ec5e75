"""Nodes in service that a new firmware baseline is still to be written to."""

import pytest
from msgspec.structs import replace

from hostler.core.planning.firmware_waves import DRIFT, behind, brings
from hostler.core.planning.what_if import disturbed, supposing
from hostler.core.state.configuration import Configuration
from hostler.core.state.model import Node, Phase
from tests.kit import a_node, configuration, pool_document
from tests.unit.planning.values import a_condition, a_context, idle


def with_bios(version: str, mode: str = "act") -> Configuration:
    made = configuration({"train": pool_document(target=2, modes={"*": mode})})
    sku = replace(made.skus["h100"], firmware={"BIOS": version}, images={"BIOS": "http://images/bios"})
    return replace(made, skus={**made.skus, "h100": sku}, sha256=f"sha of {version}")


OLD, NEW = with_bios("1.0.0"), with_bios("2.0.0")
NODE = a_node("a", firmware=(("BIOS", "1.0.0"),))


def test_only_a_changed_baseline_of_a_sku_that_stays_brings_one() -> None:
    assert brings(OLD, NEW, "h100")
    assert not brings(OLD, OLD, "h100")
    assert not brings(OLD, NEW, "another")


@pytest.mark.parametrize(
    ("node", "mode", "is_behind"),
    [
        (NODE, "act", True),
        (a_node("a", firmware=(("BIOS", "2.0.0"),)), "act", False),
        (a_node("a"), "act", False),
        (replace(a_node("a"), conditions=(a_condition(DRIFT),)), "act", True),
        (NODE, "propose", False),
        (replace(NODE, phase=Phase.triage), "act", False),
    ],
    ids=["older", "there already", "never listed", "seen off it", "only proposed", "out of service"],
)
def test_who_lags_behind_is_written_to_by_itself_and_is_known_to_be_off(node: Node, mode: str, is_behind: bool) -> None:
    """Mutants: a version that nobody has listed counts; nodes that are only proposed for hold a wave for days."""
    context = idle(a_context(node), "a")
    after = supposing(context, with_bios("2.0.0", mode))
    assert behind(after, OLD, [node]) == (("a",) if is_behind else ())


def test_an_activation_says_whom_a_new_baseline_disturbs() -> None:
    """Mutant: only conditions that stand already are looked at, and nobody is foreseen."""
    context = idle(a_context(NODE), "a")
    context.fleet.configurations.put("active", OLD)
    assert disturbed(context, NEW) == ("a",)
    assert disturbed(context, OLD) == ()


def test_without_a_rule_that_writes_nobody_waits_for_a_wave() -> None:
    """Mutant: a site that writes firmware by hand has its configuration held for three days."""
    rules = {**NEW.policy.rules, DRIFT: replace(NEW.policy.rules[DRIFT], remedy="")}
    silent = replace(NEW, policy=replace(NEW.policy, rules=rules))
    context = idle(a_context(NODE), "a")
    assert behind(supposing(context, silent), OLD, [NODE]) == ()
