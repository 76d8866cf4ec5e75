"""A SKU is made of a golden node, passes the checks of a configuration, and tells where another node differs."""

from typing import Any

import pytest
import yaml

from hostler.controller.inputs import AgentHeard
from hostler.core.policy import documents
from hostler.core.report.sku_from_node import SkuDraft, not_golden, sku_differences, sku_from_node
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import Facts
from tests.kit import POLICY
from tests.scenario.test_hardware_step import AGENT, BMC, SENSORS, Bench


def draft_of(bench: Bench) -> SkuDraft:
    assert not not_golden(bench.fleet, bench.node("a"))
    return sku_from_node(bench.fleet, bench.node("a"))


def differences(bench: Bench) -> list[tuple[str, str, str, str, str]]:
    context = DecisionContext(bench.fleet, bench.controller.live, bench.now)
    rows = sku_differences(context, bench.node("a"))
    return [(r.aspect, r.verdict, r.slot, r.expected, r.found) for r in rows if r.verdict != "passed"]


def test_a_golden_node_makes_a_sku_that_is_taken_as_it_is_and_that_the_node_passes() -> None:
    """Mutants: a kind is left out; a reading is written so that nothing passes it; the document is refused."""
    bench = Bench({**AGENT, "memory_kib": 62 * 2**20}, BMC, SENSORS)
    draft = draft_of(bench)
    text = yaml.safe_dump({"skus": {draft.name: draft.sku}, "pools": {}})
    config = documents.parse({"policy.yaml": POLICY, "skus.yaml": text})
    sku = config.skus["h100"]
    assert (sku.gpus, sku.gpu_model, sku.parts, sku.memory_gib) == (1, "H100", {"nic": 1, "drive": 1, "psu": 6}, 64)
    assert sku.hardware is not None
    assert sku.hardware.pcie == {"gpu0": "x16 32 GT/s", "nic0": "x16 32 GT/s"}
    assert sku.hardware.bios == {"SriovEnable": "Enabled", "NumaNodes": "4", "BootMode": "Uefi"}
    assert sku.hardware.neighbours == {"eth0": "tor-{rack} Ethernet7"}
    assert sku.hardware.memory_gib == {"DIMM_A1": 64, "DIMM_A2": 0}
    assert (sku.hardware.drives, sku.hardware.serials, sku.hardware.sensors_s) == (True, True, 900)
    assert any("supplies_needed" in note for note in draft.notes)
    bench.activate(config)
    bench.minutes(10)
    assert {row[0] for row in differences(bench)} == {"sensors"}, "all but what takes its time"
    bench.minutes(10)
    assert bench.node("a").phase != "seatrial", bench.said()


OTHERS: dict[str, tuple[Facts, Facts, tuple[str, str, str, str, str]]] = {
    "a narrow link": (
        {"pcie.gpu0": "x8 32 GT/s"},
        {},
        ("pcie", "failed", "gpu0", "x16 32 GT/s", "x8 32 GT/s by the agent"),
    ),
    "another setting": ({}, {"bios.SriovEnable": "Disabled"}, ("bios", "failed", "SriovEnable", "Enabled", "Disabled")),
    "a drive that fails": (
        {"drive.nvme0n1": "failing: media is read-only"},
        {},
        ("drives", "failed", "nvme0n1", "ok", "failing: media is read-only"),
    ),
    "a blank serial": ({"dmi.product_serial": ""}, {}, ("serials", "failed", "DMI", "S-a", "a blank one")),
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_node_differs_in_words(other: str) -> None:
    """Mutants: the slot is not named; expected and found are exchanged; what passes is told as different."""
    agent, bmc, row = OTHERS[other]
    bench = Bench({**AGENT, **agent}, {**BMC, **bmc}, SENSORS)
    bench.minutes(20)
    assert differences(bench) == [row]


def bad(**agent: Any) -> SkuDraft:
    return draft_of(Bench({n: v for n, v in {**AGENT, **agent}.items() if v is not None}, BMC, SENSORS))


def test_what_the_node_does_not_show_is_left_out_and_said() -> None:
    """A golden node with gaps makes no manifest that nothing passes. Mutants: an unknown link is written down; a drive
    that fails is golden; a missing tool is silent."""
    assert "gpu0" not in bad(**{"pcie.gpu0": "x16 Unknown"}).sku["hardware"]["pcie"]
    assert "drives" not in bad(**{"drive.nvme0n1": "failing: media is read-only"}).sku["hardware"]
    blank = bad(**{"dmi.product_serial": ""})
    assert "serials" not in blank.sku["hardware"]
    assert any("registered serial number" in note for note in blank.notes)
    deaf = bad(**{"lldp.eth0": None, "unread.lldp": "lldpctl is not installed (package lldpd)"})
    assert "neighbours" not in deaf.sku["hardware"]
    assert "lldp: lldpctl is not installed (package lldpd)" in deaf.notes


def test_a_node_that_nobody_has_seen_in_its_present_boot_is_no_example() -> None:
    """Mutant: what was read before the restart is written down."""
    bench = Bench(AGENT, BMC, SENSORS)
    bench.boots["a"] += 1
    bench.step(AgentHeard("a", "a-b2"))
    assert "no inventory of its present boot" in not_golden(bench.fleet, bench.node("a"))
