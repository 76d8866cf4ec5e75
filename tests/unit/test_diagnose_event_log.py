"""Meanings of a BMC's event log: moments that stay visible, never health, never a conviction by themselves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hostler.core.diagnose.judge import judge
from hostler.core.diagnose.sensor_hysteresis import SENSOR_RULES
from hostler.core.state.model import Facts, Observation, Phase, Severity
from hostler.core.tables.conditions import CONDITIONS
from tests.kit import a_node, configuration

NODE = a_node("n1")
SKU = configuration().skus["h100"]


def entry(text: str, **facts: str | int | None) -> Observation:
    return Observation("n1", "event_log", "bmc_log", "bmc_log", 1, NODE.boot_id, text=text, facts=dict(facts))


@pytest.mark.parametrize(
    ("word", "severity"),
    [
        ("critical", Severity.degraded),
        ("WARNING", Severity.warning),
        ("melted", Severity.warning),
        (None, Severity.warning),
    ],
)
def test_an_entry_is_as_grave_as_the_bmc_says_and_an_unknown_word_is_a_warning(
    word: str | None, severity: Severity
) -> None:
    """Mutant: an unknown word is routine."""
    (finding,) = judge(entry("PSU1 lost its input", severity=word, sensor="GPU3 Temp"), NODE, SKU)
    assert (finding.type, finding.severity, finding.part, finding.standing) == ("bmc.event", severity, "n1-G3", True)


def test_routine_entries_say_nothing_and_lost_ones_are_told() -> None:
    assert judge(entry("powered on", severity="ok"), NODE, SKU) == ()
    lost = judge(entry("powered on", severity="ok", lost=12), NODE, SKU)
    assert [finding.type for finding in lost] == ["bmc.log_overrun"]


@given(
    st.text(max_size=400),
    st.dictionaries(
        st.sampled_from(["severity", "lost", "sensor", "entry"]),
        st.one_of(st.none(), st.text(), st.integers(), st.floats(), st.booleans()),
    ),
)
def test_no_entry_ends_a_condition_or_disturbs_anybody(text: str, facts: Facts) -> None:
    """Mutant: an entry "deasserted" clears."""
    policy = configuration().policy
    for finding in judge(Observation("n1", "event_log", "bmc_log", "bmc_log", 1, text=text, facts=facts), NODE, SKU):
        assert finding.standing
        assert policy.rules[finding.type].remedy == ""


def test_every_condition_that_a_sensor_can_raise_has_its_rule_as_data() -> None:
    """Mutant: a row is missing; its looks are then a KeyError in the watch."""
    facts: Facts = {
        "a_c": 99.0,
        "b_c": 300.0,
        "leak_x": "warning",
        "leak_y": "critical",
        "fan1_health": "critical",
        "psu1_health": "warning",
        "power_redundancy_health": "critical",
        "cooling_redundancy_health": "warning",
    }
    parts: Facts = {"health:gpu:GPU_1": "critical", "health:drive:1": "critical", "intrusion:1": "hardwareintrusion"}
    alone: Facts = {"health:system:1": "critical"}  # told only where no part is as unwell
    versions: Facts = {"firmware.BIOS": "0"}
    told = (("sensors", facts), ("part_health", parts), ("part_health", alone), ("firmware", versions))
    sku = replace(SKU, firmware={"BIOS": "1"})
    node = replace(NODE, phase=Phase.production)
    found = [
        finding
        for kind, said in told
        for finding in judge(Observation("n1", kind, "bmc", "bmc", 1, facts=said), node, sku)
    ]
    assert {finding.type for finding in found if finding.standing} == SENSOR_RULES.keys()
    assert SENSOR_RULES.keys() <= CONDITIONS.keys()
