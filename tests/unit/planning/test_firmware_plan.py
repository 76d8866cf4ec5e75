"""From what a BMC reported to the baseline: what is written, in which order, and what makes it run."""

import pytest
from msgspec.structs import replace

from hostler.core.planning.firmware_plan import firmware_rows, firmware_steps, to_verify
from hostler.core.state.configuration import Sku
from hostler.core.state.firmware_updates import FirmwareStage, FirmwareUpdate
from hostler.core.state.firmware_versions import is_older
from hostler.core.state.model import Node, Phase, Profile
from hostler.core.state.operations import PullCords, ResetBmc, VerifyFirmware, WriteFirmware
from hostler.core.state.packed_strings import pairs
from tests.kit import NOW, a_node

SHA = "a" * 64


def how(**more: object) -> FirmwareUpdate:
    return FirmwareUpdate(image="http://images/x", sha256=SHA, **more)  # type: ignore[arg-type]


def a_sku(firmware: dict[str, str], **updates: FirmwareUpdate) -> Sku:
    return Sku("h100", gpus=8, firmware=firmware, updates=updates)


def reporting(**versions: str) -> Node:
    node = a_node("a", pool="", phase=Phase.zap, handover=None)
    return replace(node, versions=pairs(sorted((k.replace("__", ":"), v) for k, v in versions.items())))


def laid(node: Node, sku: Sku) -> list[str]:
    """Steps in short: what is written as NAME=VERSION, what is verified in brackets."""
    told = []
    for step in firmware_steps(node, sku):
        match step.act:
            case WriteFirmware(component=component, version=version):
                told.append(f"{component}={version}")
            case VerifyFirmware(wanted=wanted):
                told.append(f"[{' '.join(wanted)}]")
            case act if act == ResetBmc() or not isinstance(act, ResetBmc):
                told.append(act.kind)
    return told


@pytest.mark.parametrize(
    ("reported", "act"),
    [
        ({"BIOS": "2.0.0"}, "none"),
        ({"bios": "2.0.0"}, "none"),
        ({"BIOS": "1.9.9"}, "none"),
        ({"BIOS": "1.0.0"}, "write"),
        ({}, "write"),
        ({"BIOS": "1.0.0", "staged__BIOS": "2.0.0"}, "activate"),
        ({"BIOS": "1.0.0", "recovery__BIOS": "2.0.0"}, "write"),
        ({"BIOS": "2.1.0"}, "refuse"),
        ({"BIOS": "two"}, "refuse"),
    ],
)
def test_each_component_is_told_by_what_runs_and_not_by_what_is_staged_or_spare(
    reported: dict[str, str], act: str
) -> None:
    """Mutants: staged or recovery counts as running; a newer version is written over; spelling matters."""
    sku = a_sku({"BIOS": "2.0.0"}, BIOS=how(allowed=("1.9.9",)))
    (row,) = firmware_rows(reporting(**reported), sku)
    assert (row.act, row.staged, row.recovery) == (
        act,
        reported.get("staged__BIOS", ""),
        reported.get("recovery__BIOS", ""),
    )


def test_orders_are_written_one_after_the_other_and_share_their_deepest_activation() -> None:
    """Mutants: one activation a component; the next order begins unverified; the shallowest is taken."""
    sku = a_sku(
        {"BMC": "2", "CPLD": "2", "FPGA": "2", "BIOS": "2"},
        BMC=how(order=0, activate="bmc_reset"),
        CPLD=how(order=1, activate="ac_cycle", power="off"),
        FPGA=how(order=1, activate="none"),
        BIOS=how(order=2),
    )
    assert laid(reporting(), sku) == [
        *("BMC=2", "reset_bmc", "[BMC]"),
        *("power_off", "CPLD=2", "FPGA=2", "ac_cycle", "power_on", "wait_boot", "[CPLD FPGA]"),
        "BIOS=2",
    ], "the last power cycle is the recipe's own"
    assert laid(reporting(BMC="2", CPLD="2", FPGA="2", BIOS="2"), sku) == []


def test_outlets_are_the_deepest_activation() -> None:
    """Mutant: the BMC's own AC cycle stands for them."""
    sku = a_sku(
        {"CPLD": "2", "FPGA": "2"}, CPLD=how(order=1, activate="outlet_cycle"), FPGA=how(order=1, activate="ac_cycle")
    )
    assert laid(reporting(), sku) == [
        *("CPLD=2", "FPGA=2", "power_off", "outlet_cycle", "power_on", "wait_boot", "[CPLD FPGA]")
    ]


def test_cords_are_deeper_than_outlets_and_the_technician_is_told_what_runs_then() -> None:
    """Mutants: the outlets of the PDUs stand for them; the step ends as soon as that of an outlet; it names nothing."""
    sku = a_sku(
        {"CPLD": "2", "FPGA": "2"}, CPLD=how(order=1, activate="unplug"), FPGA=how(order=1, activate="outlet_cycle")
    )
    assert laid(reporting(), sku) == [
        *("CPLD=2", "FPGA=2", "power_off", "unplug", "power_on", "wait_boot", "[CPLD FPGA]")
    ]
    (asked,) = (step for step in firmware_steps(reporting(), sku) if isinstance(step.act, PullCords))
    assert (asked.act, asked.deadline_s) == (PullCords(("CPLD", "FPGA")), 6 * 3600)


def test_versions_in_between_are_passed_through_unless_they_are_behind() -> None:
    """Mutants: they are skipped; they are written although the node is further on."""
    stages = (FirmwareStage("1.5", "http://images/a", SHA), FirmwareStage("1.8", "http://images/b", SHA))
    sku = a_sku({"BMC": "2.0"}, BMC=how(through=stages, activate="bmc_reset"))
    passed = ["reset_bmc", "[BMC]"]
    assert laid(reporting(BMC="1.0"), sku) == ["BMC=1.5", *passed, "BMC=1.8", *passed, "BMC=2.0", *passed]
    assert laid(reporting(BMC="1.6"), sku) == ["BMC=1.8", *passed, "BMC=2.0", *passed]
    assert laid(reporting(BMC="1.8"), sku) == ["BMC=2.0", *passed]
    between = [
        s.act.wanted["BMC"] for s in firmware_steps(reporting(BMC="1.0"), sku) if isinstance(s.act, VerifyFirmware)
    ]
    assert between == [("1.5", "1.8", "2.0"), ("1.8", "1.5", "2.0"), ("2.0",)]


def test_an_unmanaged_node_gets_firmware_at_its_first_delivery_only() -> None:
    """Mutants: it is treated like a managed one; what is not written is verified all the same."""
    sku = a_sku({"BIOS": "2"}, BIOS=how())
    first = replace(reporting(BIOS="1"), profile=Profile.unmanaged)
    assert laid(first, sku) == ["BIOS=2"]
    later = replace(first, handover=NOW)
    assert (laid(later, sku), to_verify(later, sku)) == ([], {})
    assert firmware_rows(later, sku)[0].act == "leave"
    assert laid(replace(later, profile=Profile.managed), sku) == ["BIOS=2"]


@pytest.mark.parametrize(
    ("name", "declared", "written"),
    [
        ("ConnectX-7", None, False),
        ("HCA_0", None, False),
        ("nic", None, False),
        ("nic3", None, False),
        ("Adapter4", True, False),
        ("ConnectX-7", False, True),
        ("BMC", None, True),
    ],
)
def test_infiniband_adapters_of_an_unmanaged_node_are_never_written(
    name: str, declared: bool | None, written: bool
) -> None:
    """Mutants: first delivery is enough; only what is declared counts; a name outweighs what is declared."""
    sku = a_sku({name: "2"}, **{name: how(infiniband=declared)})
    node = replace(reporting(**{name: "1"}), profile=Profile.unmanaged)
    assert bool(laid(node, sku)) is written
    assert bool(to_verify(node, sku)) is written
    assert laid(replace(node, profile=Profile.managed), sku) == [f"{name}=2"]


@pytest.mark.parametrize(
    ("one", "other", "older"),
    [
        ("1.9", "1.10", True),
        ("1.10", "1.9", False),
        ("1.0", "1.0.0", False),
        ("1.0", "1.0.1", True),
        ("U24", "U30", True),
        ("1.0", "1.0rc1", None),
        ("", "1", None),
        ("a1", "b1", None),
        ("9" * 5000, "1", False),
    ],
)
def test_versions_are_ordered_by_their_numbers_or_not_at_all(one: str, other: str, older: bool | None) -> None:
    assert is_older(one, other) is older
