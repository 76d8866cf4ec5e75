"""Conditions, catalogue and default policy hold together."""

from importlib import resources

import pytest

from hostler.core.diagnose.nvlink5 import UNITS
from hostler.core.diagnose.xid_catalog import XIDS
from hostler.core.policy.documents import parse
from hostler.core.state.configuration import REMEDIES, Policy
from hostler.core.state.model import Severity
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.recipes import RECIPES

LAST_CODE = 173


@pytest.fixture(scope="module")
def policy() -> Policy:
    text = resources.files("hostler.core.policy").joinpath("default_policy.yaml").read_text("utf-8")
    return parse({"default_policy.yaml": text}).policy


def test_every_condition_has_an_answer_and_every_answer_a_condition(policy: Policy) -> None:
    assert set(policy.rules) == set(CONDITIONS)


def test_every_condition_says_what_ends_it() -> None:
    for kind in CONDITIONS.values():
        assert (kind.expires_s is not None) == (kind.clears == "age"), kind.type
        assert kind.meaning.endswith(".")
        assert kind.investigate.endswith(".")


def test_what_says_nothing_against_the_hardware_disturbs_nobody(policy: Policy) -> None:
    for kind in CONDITIONS.values():
        if kind.severity is Severity.info:
            assert policy.rules[kind.type].remedy == "", kind.type


def test_catastrophes_and_they_alone_cut_power_for_protection(policy: Policy) -> None:
    protected = {name for name, rule in policy.rules.items() if rule.remedy == "protective_power_off"}
    assert protected == {k.type for k in CONDITIONS.values() if k.severity is Severity.catastrophic}
    assert CONDITIONS["cooling.leak"].clears == "operator"


def test_absence_alone_convicts_nobody(policy: Policy) -> None:
    assert policy.rules["agent.lost"].confirm
    assert not RECIPES[policy.rules["bmc.unreachable"].remedy].disruptive


def test_pending_remedies_doom_no_work(policy: Policy) -> None:
    for name, rule in policy.rules.items():
        if rule.remedy and rule.timing == "pending":
            assert rule.dooms == "none", name


def test_the_ladder_has_a_limit_on_every_rung(policy: Policy) -> None:
    assert tuple(policy.rungs) == REMEDIES
    for rung in policy.rungs.values():
        assert rung.attempts >= 1
        assert rung.window_s > 0


def test_every_catalogue_code_has_an_action_and_a_condition() -> None:
    assert set(XIDS) == set(range(1, LAST_CODE + 1))
    for entry in XIDS.values():
        assert entry.action, entry.code
        assert entry.meaning, entry.code
        assert entry.condition in CONDITIONS, entry.code


def test_the_catalogues_word_never_weighs_more_here() -> None:
    """Mutant: map Xid 45, which follows from other codes, to reset_required; one tenant then resets a fleet."""
    gentle = {"IGNORE", "RESTART_APP", "WORKFLOW_XID_45"}
    own = {63: "gpu.row_remap_pending", 94: "gpu.ecc_contained"}
    for entry in XIDS.values():
        if entry.action in gentle and entry.code not in own:
            assert CONDITIONS[entry.condition].severity <= Severity.warning, entry.code


def test_no_code_that_asks_for_a_reset_is_shrugged_off() -> None:
    for entry in XIDS.values():
        if entry.severity in {"gpu_reset", "node_reboot"}:
            assert CONDITIONS[entry.condition].severity is Severity.critical, entry.code


def test_nvlink5_units_are_told_apart_by_name_or_number() -> None:
    keys = [(unit.xid, unit.names, unit.v1, unit.v2) for unit in UNITS]
    assert len(set(keys)) == len(keys)
    for unit in UNITS:
        assert bool(unit.by_status) != bool(unit.by_reason), unit.names
