"""Numbers from outside have bounds: at the edge they are refused, and nothing that is kept stops a snapshot."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hostler.controller.observation_intake import of_observation
from hostler.core.conditions.lifecycle import stand
from hostler.core.diagnose import Finding
from hostler.core.state.events import ConditionRaised, ConditionUpdated
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Evidence, Observation, Outcome, Severity
from hostler.core.state.number_limits import (
    COUNT_MOST,
    FLOAT_MOST,
    INTEGER_LEAST,
    INTEGER_MOST,
    TOTAL_MOST,
    outside,
    within,
)
from hostler.core.state.scopes import text_hook
from tests.kit import NOW, a_node, configuration

SOUND = Observation("n0", "kernel_log", "agent", "s1", 1)
HUGE = 10**30


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"count": HUGE}, "count: an integer of 100 bits is out of bounds"),
        ({"count": 0}, "count: 0 is out of bounds, it is 1 to 1000000000"),
        ({"count": COUNT_MOST + 1}, "count"),
        ({"sequence": 2**53}, "sequence"),
        ({"sequence": 0}, "sequence"),
        ({"age_s": -1.0}, "age_s"),
        ({"age_s": 1e12}, "age_s"),
        ({"age_s": math.nan}, "age_s"),
        ({"facility": -1}, "facility"),
        ({"facility": HUGE}, "facility"),
        ({"facts": {"a": 1, "power_w": HUGE}}, "facts['power_w']"),
        ({"facts": {"x": -(2**63) - 1}}, "facts['x']"),
        ({"facts": {"x": math.inf}}, "facts['x']"),
    ],
)
def test_each_number_has_its_bound_and_is_named(changes: dict[str, Any], named: str) -> None:
    """Mutants: a field left out of `_bounds`; `<=` against a NaN turned round; facts not looked at."""
    assert outside(replace(SOUND, **changes)).startswith(named)


@pytest.mark.parametrize(
    "changes",
    [
        {"count": COUNT_MOST, "sequence": 2**53 - 1, "age_s": 86_400.0 * 3650, "facility": 2**31 - 1},
        {"facts": {"a": INTEGER_MOST, "b": INTEGER_LEAST, "c": FLOAT_MOST, "d": True, "e": None, "f": "1" * 99}},
    ],
)
def test_what_a_device_can_measure_is_taken(changes: dict[str, Any]) -> None:
    assert outside(replace(SOUND, **changes)) == ""


def test_an_outcomes_numbers_have_bounds_too() -> None:
    said = Outcome("o", "n0", "done")
    assert outside(said) == ""
    assert outside(replace(said, attempt=HUGE)).startswith("attempt")
    assert outside(replace(said, facts={"x": HUGE})).startswith("facts['x']")


@given(st.dictionaries(st.text(max_size=5), st.none() | st.booleans() | st.integers() | st.floats() | st.text()))
def test_what_is_kept_can_be_encoded(facts: Any) -> None:
    """Mutant: INTEGER_MOST 2**64."""
    kept = within(facts)
    assert kept.keys() == facts.keys()
    msgspec.msgpack.encode(kept)


def test_a_condition_counts_up_to_its_bound() -> None:
    """Mutant: the sum without `min`."""
    node, finding = a_node("n0"), Finding("gpu.xid_unknown", Severity.warning, "again")
    raised = stand(node, finding, Evidence(NOW, "agent", "", facts={"x": HUGE}), "b", HUGE)
    assert isinstance(raised, ConditionRaised)
    assert (raised.condition.count, raised.condition.evidence[0].facts["x"]) == (TOTAL_MOST, "an integer of 100 bits")
    worse = Finding("gpu.xid_unknown", Severity.critical, "again")
    node = replace(node, conditions=(raised.condition,))
    again = stand(node, worse, Evidence(NOW, "agent", ""), "b", COUNT_MOST)
    assert isinstance(again, ConditionUpdated)
    assert again.condition.count == TOTAL_MOST


LINES = (
    "NVRM: Xid (PCI:0000:3b:00): {n}, pid={n}, name=python3, Graphics Exception",
    "nvidia-nvswitch{n}: SXid (PCI:0000:c1:00.0): {n}, Non-fatal, Link {n} egress",
    "Out of memory: Killed process {n} (python3) total-vm:{n}kB",
    "{{1}}[Hardware Error]: CPU {n}: Machine Check: {n} Bank {n}: {n}",
    "nvme{n}: I/O {n} QID {n} timeout, aborting",
    "EXT4-fs error (device nvme{n}n1): ext4_find_entry:{n}: inode #{n}: comm ls: reading",
    "message repeated {n} times: [NVRM: Xid (PCI:0000:3b:00): 79, pid={n}]",
)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("digits", [20, 300, 3_000])
def test_a_line_full_of_digits_leaves_nothing_that_cannot_be_kept(line: str, digits: int) -> None:
    """Mutant: `stand` keeps the facts as they are. A program may write any digits into the kernel log."""
    text = line.replace("{{", "{").replace("}}", "}").replace("{n}", "9" * digits)[:4096]
    seen = replace(SOUND, text=text, facility=0, received=NOW)
    for caused in of_observation(Fleet(configuration()), a_node("n0"), seen):
        msgspec.msgpack.encode(caused.event, enc_hook=text_hook)
