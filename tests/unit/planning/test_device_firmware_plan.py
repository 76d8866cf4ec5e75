"""Components that the node's agent writes: what is laid down for them, what is refused, and whom nobody writes to."""

from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.diagnose import Finding
from hostler.core.diagnose.firmware import judge_firmware
from hostler.core.diagnose.inventory import judge_inventory
from hostler.core.planning.firmware_plan import devices_to_verify, firmware_rows, firmware_steps, to_verify
from hostler.core.policy.firmware_documents import firmware_problems
from hostler.core.policy.rack_documents import rack_problems
from hostler.core.state.configuration import Sku
from hostler.core.state.firmware_updates import FirmwareStage, FirmwareUpdate
from hostler.core.state.model import Condition, Evidence, Node, Observation, Part, Phase, Profile, Severity
from hostler.core.state.operations import DeviceBaseline, VerifyDeviceFirmware, VerifyFirmware, WriteDeviceFirmware
from hostler.core.state.packed_strings import pairs
from hostler.core.state.racks import RackManifest
from tests.kit import NOW, a_node

SHA, URL = "a" * 64, "http://images/x"


def drives(**more: Any) -> FirmwareUpdate:
    asked = FirmwareUpdate(image=URL, sha256=SHA, via="agent", tool="nvme", models=("KCD8",))
    return replace(asked, **more)


def cards(**more: Any) -> FirmwareUpdate:
    return drives(**{"tool": "flint", "models": ("MCX7",)} | more)


def a_sku(**updates: FirmwareUpdate) -> Sku:
    return Sku("h100", gpus=8, firmware=dict.fromkeys(updates, "2.0"), updates=updates)


def a_node_in_zap(profile: Profile = Profile.managed, **versions: str) -> Node:
    node = a_node("a", pool="", phase=Phase.zap, handover=None, profile=profile)
    return replace(node, versions=pairs(sorted(versions.items())))


def laid(node: Node, sku: Sku) -> list[str]:
    told = []
    for step in firmware_steps(node, sku):
        match step.act:
            case WriteDeviceFirmware(component=component, version=version):
                told.append(f"agent:{component}={version}")
            case VerifyDeviceFirmware() | VerifyFirmware() as act:
                told.append(f"{act.kind}[{' '.join(act.wanted)}]")
            case act:
                told.append(act.kind)
    return told


def test_what_the_agent_writes_is_named_down_to_model_slot_and_image() -> None:
    """Mutants: `models` or `slots` are left out; a managed node's adapters are spared."""
    how = drives(slots=("nvme0n1",), allowed=("1.9",), downgrade=True)
    (step,) = firmware_steps(a_node_in_zap(), a_sku(drives=how))
    assert step.act == WriteDeviceFirmware(
        "drives", "nvme", ("KCD8",), "2.0", URL, SHA, ("2.0", "1.9"), slots=("nvme0n1",), downgrade=True
    )
    wanted = devices_to_verify(a_node_in_zap(), a_sku(drives=how))
    assert wanted == {"drives": DeviceBaseline("nvme", ("KCD8",), ("2.0", "1.9"), ("nvme0n1",))}


def test_an_order_is_activated_and_verified_by_whoever_can_read_it() -> None:
    """Mutants: a BMC is asked for what it does not list; the agent is asked while the machine is off."""
    bios = FirmwareUpdate(image=URL, sha256=SHA, order=0, activate="none", power="off")
    sku = a_sku(BIOS=bios, drives=drives(order=0, activate="ac_cycle"), nics=cards(order=1))
    assert laid(a_node_in_zap(), sku) == [
        "power_off",
        "update_firmware",
        "power_on",
        "wait_boot",
        "agent:drives=2.0",
        "power_off",
        "ac_cycle",
        "power_on",
        "wait_boot",
        "reset_bmc",
        "verify_firmware[BIOS]",
        "verify_device_firmware[drives]",
        "agent:nics=2.0",
    ]
    assert list(to_verify(a_node_in_zap(), sku)) == ["BIOS"]


def test_intermediate_versions_are_passed_through() -> None:
    """Mutant: the agent is handed the last image at once."""
    how = drives(through=(FirmwareStage("1.5", "http://images/1.5", SHA),))
    told = laid(a_node_in_zap(drives="1.0"), a_sku(drives=how))
    assert told[0] == "agent:drives=1.5"
    assert told[-2:] == ["verify_device_firmware[drives]", "agent:drives=2.0"]
    assert laid(a_node_in_zap(drives="1.5"), a_sku(drives=how))[0] == "agent:drives=2.0"


def test_what_was_verified_is_not_written_again_until_it_drifts() -> None:
    """A drive that was swapped shows in the condition alone. Mutant: the record of the drive before counts."""
    node, sku = a_node_in_zap(drives="2.0"), a_sku(drives=drives())
    assert laid(node, sku) == []
    seen = Evidence(NOW, "agent", "drives runs 1.0", facts={"versions": "1.0,1.1"})
    drifted = Condition(
        "a/firmware.drift/drives", "firmware.drift", "a", Severity.warning, NOW, NOW, "observation", "hostler", "drives"
    )
    node = replace(node, conditions=(replace(drifted, evidence=(seen,)),))
    assert laid(node, sku) == ["agent:drives=2.0"]
    (row,) = firmware_rows(node, sku)
    assert (row.reported, row.act) == ("1.0", "write")


@pytest.mark.parametrize("name", ["rails", "ConnectX-7", "storage"])
@pytest.mark.parametrize("infiniband", [None, True])
def test_an_infiniband_adapter_of_an_unmanaged_node_is_never_written(name: str, infiniband: bool | None) -> None:
    """By whatever name, flint writes adapters. Mutants: the name alone decides; the agent's way is not asked."""
    node, sku = a_node_in_zap(Profile.unmanaged), a_sku(**{name: cards(infiniband=infiniband)})
    (row,) = firmware_rows(node, sku)
    assert (row.act, "never written" in row.why) == ("leave", True)
    assert laid(node, sku) == []
    assert devices_to_verify(node, sku) == {}


def test_an_ethernet_adapter_of_an_unmanaged_node_is_looked_at_before_it_is_written() -> None:
    """The SKU's word is not enough. Mutant: the agent is not told to look."""
    sku = a_sku(rails=cards(infiniband=False))
    for profile in Profile:
        (step,) = firmware_steps(a_node_in_zap(profile), sku)
        assert isinstance(step.act, WriteDeviceFirmware)
        assert step.act.spares_infiniband is (profile is Profile.unmanaged)
    delivered = replace(a_node_in_zap(Profile.unmanaged), handover=NOW)
    assert laid(delivered, sku) == []
    assert laid(delivered, a_sku(drives=drives())) == []


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (drives(tool=None), "an agent has no tool for it"),
        (drives(models=()), "it names no models"),
        (drives(models=tuple(f"M{n}" for n in range(65))), "`models` are 65"),
        (drives(slots=("x" * 129,)), "`slots` are 1, or one is too long"),
        (drives(models=(" ",)), "it names no models"),
        (drives(image="", sha256=""), "an agent has no image for it"),
        (drives(sha256="x"), "has no sha256"),
        (drives(activate="none"), "activation 'none' does not make it run"),
        (drives(activate="bmc_reset"), "activation 'bmc_reset' does not make it run"),
        (drives(power="off"), "are a BMC's"),
        (drives(push=True), "are a BMC's"),
        (drives(targets=("/redfish/v1/x",)), "are a BMC's"),
        (drives(order=1, needs={"BIOS": "1.0"}), "a BMC alone can be asked that"),
        (drives(via="bmc"), "`tool` is for what an agent writes"),
        (FirmwareUpdate(slots=("nvme0n1",)), "`slots` is for what an agent writes"),
    ],
)
def test_what_no_agent_could_do_is_refused_before_any_node_is_taken_for_it(how: FirmwareUpdate, said: str) -> None:
    sku = a_sku(BIOS=FirmwareUpdate(image=URL, sha256=SHA), drives=how)
    assert said in next(p.what for p in firmware_problems(sku))
    assert not list(firmware_problems(a_sku(BIOS=FirmwareUpdate(image=URL, sha256=SHA), drives=drives())))


def test_no_agent_runs_on_a_racks_asset() -> None:
    rack = RackManifest(switch_firmware={"drives": "2.0"}, updates={"drives": drives()})
    said = [one.what for one in rack_problems(replace(a_sku(), rack=rack))]
    assert any("no agent runs on a rack's asset" in what for what in said), said


def test_a_bmcs_component_cannot_need_what_an_agent_writes() -> None:
    """A BMC does not list it, and would refuse. Mutant: only the other direction is refused."""
    sku = a_sku(BIOS=FirmwareUpdate(image=URL, sha256=SHA, order=1, needs={"drives": "2.0"}), drives=drives())
    assert "a BMC alone can be asked that" in next(p.what for p in firmware_problems(sku))


@pytest.mark.parametrize(("version", "standing"), [("1.0", True), ("2.0", False)])
def test_an_inventory_shows_the_drift_of_the_parts_that_are_named(version: str, standing: bool) -> None:
    """Mutants: another model's version drifts; so does that of another kind; a BMC's spelling of a version counts."""
    parts = tuple(
        Part(serial, kind, model, slot, runs)
        for serial, kind, model, slot, runs in (
            ("S0", "drive", "KCD8", "nvme0n1", version),
            ("S1", "drive", "PM9", "nvme1n1", "0.1"),
            ("M0", "nic", "KCD8", "mlx5_0", "0.1"),
        )
    )
    seen = Observation("a", "inventory", "agent", "s1", 1, "a-b1", parts=parts, received=NOW)
    found = judge_inventory(seen, replace(a_node("a"), phase=Phase.production), a_sku(drives=drives()))
    drift: list[Finding] = [one for one in found if one.type == "firmware.drift"]
    assert [(one.part, one.standing) for one in drift] == [("drives", standing)]
    node, sku = replace(a_node("a"), phase=Phase.production), a_sku(drives=drives())
    by_bmc = replace(seen, source="bmc", facts={"firmware.drives": "0.1"})
    judged = [*judge_inventory(by_bmc, node, sku), *judge_firmware(by_bmc, node, sku)]
    assert "firmware.drift" not in {one.type for one in judged}
