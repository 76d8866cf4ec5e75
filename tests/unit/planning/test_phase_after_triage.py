"""The phase to which triage leads back a node in which nothing was found."""

import pytest
from msgspec.structs import replace

from hostler.core.planning.phase_after_triage import phase_after_triage
from hostler.core.state.configuration import Sku
from hostler.core.state.firmware_updates import FirmwareUpdate
from hostler.core.state.hardware import HardwareManifest
from hostler.core.state.model import Node, Phase, Profile
from hostler.core.state.packed_strings import pairs
from tests.kit import NOW, a_node

SKU = Sku("h100", gpus=8, firmware={"BIOS": "2.0.0"}, updates={"BIOS": FirmwareUpdate(image="http://images/bios")})


def in_triage(came_from: Phase | None, bios: str = "2.0.0", **changed: object) -> Node:
    node = a_node("a", pool="", phase=Phase.triage, handover=None)
    versions = pairs([("BIOS", bios)]) if bios else ()
    return replace(node, came_from=came_from, versions=versions, **changed)


@pytest.mark.parametrize(
    ("came_from", "leads_to"),
    [
        (Phase.initializing, Phase.onboard),
        (Phase.seatrial, Phase.seatrial),
        (Phase.zap_fail, Phase.zap),
        (Phase.test, Phase.test),
        (Phase.production, Phase.test),
        (None, Phase.test),
    ],
)
def test_no_stage_that_is_due_is_passed_over(came_from: Phase | None, leads_to: Phase) -> None:
    """Mutant: triage leads to test whatever the node fell out of, past its inventory or firmware."""
    assert phase_after_triage(in_triage(came_from), SKU) is leads_to


@pytest.mark.parametrize(
    ("bios", "leads_to"),
    [("1.0.0", Phase.zap), ("2.0.0", Phase.test), ("2.1.0", Phase.test), ("", Phase.test)],
    ids=["older", "as wanted", "a downgrade", "not listed"],
)
def test_firmware_that_is_to_be_written_leads_to_zap(bios: str, leads_to: Phase) -> None:
    """Mutant: firmware that nobody has listed sends a node round by zap for ever."""
    assert phase_after_triage(in_triage(Phase.test, bios), SKU) is leads_to


def test_an_unmanaged_node_that_was_delivered_gets_no_firmware() -> None:
    node = in_triage(Phase.production, "1.0.0", profile=Profile.unmanaged, handover=NOW)
    assert phase_after_triage(node, SKU) is Phase.test


def test_without_a_sku_there_is_no_baseline() -> None:
    assert phase_after_triage(in_triage(Phase.test, "1.0.0"), None) is Phase.test


@pytest.mark.parametrize(
    ("shown", "boot", "leads_to"),
    [
        ("Disabled", "a-b1", Phase.zap),
        ("Enabled", "a-b1", Phase.test),
        ("Disabled", "a-b0", Phase.test),
        ("", "a-b1", Phase.test),
    ],
    ids=["another", "as wanted", "read in an earlier boot", "not listed"],
)
def test_a_bios_setting_that_is_to_be_written_leads_to_zap(shown: str, boot: str, leads_to: Phase) -> None:
    """Mutants: a reading of another boot counts; a setting that nobody has read sends a node round by zap for ever."""
    sku = replace(SKU, hardware=HardwareManifest(bios={"SriovEnable": "Enabled"}, writes_bios=True))
    read = pairs([("bmc/bios.SriovEnable", shown)]) if shown else pairs([("bmc/bios.Other", "1")])
    node = in_triage(Phase.test, hardware=read, hardware_boots=(("bmc", boot),), boot_id="a-b1")
    assert phase_after_triage(node, sku) is leads_to
    assert phase_after_triage(node, SKU) is Phase.test
