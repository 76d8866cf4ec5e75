"""Words that the console's grid is coloured by: what nobody can say is unknown, and never healthy."""

from datetime import timedelta
from typing import Any

import pytest

from hostler.core.report.grid_words import (
    UNKNOWN,
    age_word,
    check_word,
    firmware_word,
    group_of,
    word_of,
)
from hostler.core.state.assets import Position
from hostler.core.state.configuration import Configuration, Policy, Sku
from hostler.core.state.firmware_updates import FirmwareUpdate
from hostler.core.state.fleet import Fleet
from hostler.core.state.grid_names import Colouring, Grouping
from hostler.core.state.model import CheckResult, Phase, Verdict
from hostler.core.state.packed_strings import pairs
from hostler.core.tables.phases import PHASES
from tests.kit import CLUSTER, NOW, a_node

POLICY = Policy({}, {})
SKU = Sku(
    name="h100", gpus=8, firmware={"BIOS": "1.10", "HGX_FW": "7"}, updates={"HGX_FW": FirmwareUpdate(allowed=("6",))}
)


def hours(number: float) -> timedelta:
    return timedelta(hours=number)


@pytest.mark.parametrize(
    ("age", "word"), [(0, "under_half"), (0.99, "under_half"), (1, "over_half"), (1.99, "over_half"), (2, "over_limit")]
)
def test_a_deadline_is_the_limit_of_a_stay(age: float, word: str) -> None:
    """Mutants: the phase's usual limit where the node was given one of its own; a limit counts as kept at its end."""
    node = a_node("a", phase=Phase.zap, phase_since=NOW, deadline=NOW + hours(2))
    assert age_word(node, POLICY, NOW + hours(age)) == word


def test_without_a_deadline_the_usual_stay_counts_from_the_last_word_for_it() -> None:
    """Mutants: production is told as young for ever; a stay that a person granted anew stays over."""
    usual_s = PHASES[Phase.registered].usual_s
    assert usual_s
    node = a_node("a", phase=Phase.registered, phase_since=NOW)
    late = NOW + timedelta(seconds=usual_s)
    assert age_word(node, POLICY, late) == "over_limit"
    granted = a_node("a", phase=Phase.registered, phase_since=NOW, stay_granted=late)
    assert age_word(granted, POLICY, late) == "under_half"
    assert age_word(a_node("b"), POLICY, late) == "no_limit"


@pytest.mark.parametrize(
    ("versions", "word"),
    [
        ({"bios": "1.10", "hgx-fw": "7"}, "at_baseline"),
        ({"BIOS": "1.10", "HGX_FW": "6"}, "at_baseline"),
        ({"BIOS": "1.9", "HGX_FW": "7"}, "not_at_baseline"),
        ({"BIOS": "1.9"}, "not_at_baseline"),
        ({"BIOS": "1.10"}, UNKNOWN),
        ({"BIOS": "1.10", "HGX_FW": ""}, UNKNOWN),
        ({}, UNKNOWN),
    ],
)
def test_firmware_is_at_the_baseline_where_all_of_it_is_known_to_be(versions: dict[str, str], word: str) -> None:
    """Mutants: a version that was not reported counts as good; a version that is allowed as behind."""
    assert firmware_word(a_node("a", versions=pairs(versions.items())), SKU) == word


def test_without_a_sku_nothing_is_known_and_without_a_baseline_nothing_is_behind() -> None:
    assert firmware_word(a_node("a"), None) == UNKNOWN
    assert firmware_word(a_node("a"), Sku(name="h100", gpus=8)) == "no_baseline"


def test_the_last_check_counts() -> None:
    """Mutants: any that passed; the one that is listed last; a node that was never checked has passed."""
    older, newer = (CheckResult("full", Verdict.passed, NOW), CheckResult("quick", Verdict.failed, NOW + hours(1)))
    assert check_word(a_node("a", checks=(newer, older))) == "failed"
    assert check_word(a_node("a", checks=())) == UNKNOWN


def test_each_colouring_has_words_of_its_own() -> None:
    fleet = Fleet(Configuration(POLICY, skus={"h100": SKU}))
    node: Any = a_node("a")
    found = {colouring: word_of(colouring, fleet, NOW, {"a": 37}.get)(node) for colouring in Colouring}
    expected = {"phase": "", "age": "no_limit", "tenant": "acme", "firmware": UNKNOWN, "check": UNKNOWN}
    assert found == {**expected, "drift": "0.37"}
    assert word_of(Colouring.tenant, fleet, NOW, lambda _node: None)(a_node("b", "")) == ""


def test_who_was_not_judged_has_no_drift_score() -> None:
    """Mutant: 0.00, so that a node that nobody looked at is the healthiest of all."""
    fleet = Fleet(Configuration(POLICY, skus={"h100": SKU}))
    scores = {"a": 0, "b": 100}
    word = word_of(Colouring.drift, fleet, NOW, scores.get)
    assert [word(a_node(name)) for name in ("a", "b", "c")] == ["0.00", "1.00", UNKNOWN]


def test_a_node_is_in_one_group_of_each_kind_or_in_none() -> None:
    """Mutants: rows of one name at two sites are one; a node without a row is in a row called after its site."""
    node = a_node("a", position=Position("c1", site="ams", row="3", rack="r10"))
    found = {by: group_of(by, node) for by in Grouping}
    assert found == {"rack": "r10", "row": "ams / 3", "site": "ams", "pool": "train", "cluster": CLUSTER}
    bare = a_node("b", "", position=Position("c1", site="ams"))
    assert {by: group_of(by, bare) for by in Grouping} == {
        "rack": "",
        "row": "",
        "site": "ams",
        "pool": "",
        "cluster": "",
    }
