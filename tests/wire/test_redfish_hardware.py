"""A BMC's words on links, sockets, drives and BIOS attributes → readings; what is no reading gives none."""

from typing import Any

import pytest

from hostler.drivers.redfish import wire_hardware as wire

GEN5 = {"PCIeInterface": {"LanesInUse": 16, "PCIeType": "Gen5"}}
LINKS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "a device": (GEN5, {"pcie.s": "x16 32 GT/s"}),
    "a processor": ({"SystemInterface": {"PCIe": {"LanesInUse": 8, "PCIeType": "Gen4"}}}, {"pcie.s": "x8 16 GT/s"}),
    "an adapter's controller": ({"Controllers": [{}, GEN5]}, {"pcie.s": "x16 32 GT/s"}),
    "no lanes": ({"PCIeInterface": {"LanesInUse": 0, "PCIeType": "Gen5"}}, {}),
    "null": ({"PCIeInterface": {"LanesInUse": None, "PCIeType": None}}, {}),
    "lanes that no link has": ({"PCIeInterface": {"LanesInUse": 63, "PCIeType": "Gen5"}}, {}),
    "lanes as text": ({"PCIeInterface": {"LanesInUse": "16", "PCIeType": "Gen5"}}, {}),
    "lanes in part": ({"PCIeInterface": {"LanesInUse": 7.5, "PCIeType": "Gen5"}}, {}),
    "a generation that is none": ({"PCIeInterface": {"LanesInUse": 16, "PCIeType": "Gen9"}}, {}),
    "a number for it": ({"PCIeInterface": {"LanesInUse": 16, "PCIeType": 5}}, {}),
    "what it could be alone": ({"PCIeInterface": {"MaxLanes": 16, "MaxPCIeType": "Gen5"}}, {}),
    "a list": ({"PCIeInterface": [GEN5], "Controllers": {"0": GEN5}}, {}),
}
SOCKETS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "a module": ({"CapacityMiB": 65536, "Status": {"State": "Enabled"}}, {"dimm.s": "64 GiB"}),
    "empty": ({"DeviceLocator": "A2", "Status": {"State": "Absent"}}, {"dimm.A2": "empty"}),
    "a size of nothing": ({"CapacityMiB": 0}, {}),
    "null": ({"CapacityMiB": None}, {}),
    "less than nothing": ({"CapacityMiB": -65536}, {}),
    "more than can be": ({"CapacityMiB": 1 << 40}, {}),
    "text": ({"CapacityMiB": "64 GB"}, {}),
}
DRIVES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "well": ({"Status": {"Health": "OK"}}, {"drive.s": "ok"}),
    "well, and failing": (
        {"Status": {"Health": "OK"}, "FailurePredicted": True},
        {"drive.s": "failing: it predicts its failure"},
    ),
    "no word": ({"Status": {"Health": None}}, {}),
    "a prediction that is none": ({"Status": {}, "FailurePredicted": "no"}, {}),
}


@pytest.mark.parametrize("case", LINKS)
def test_a_link_is_its_lanes_in_use_and_its_generation(case: str) -> None:
    """Mutants: what it could be counts as what it is; a number that no link has is one."""
    doc, told = LINKS[case]
    assert wire.link_reading(doc, "s") == told


@pytest.mark.parametrize("case", SOCKETS)
def test_a_socket_has_a_size_or_is_empty_or_says_nothing(case: str) -> None:
    """Mutant: a size of nothing is an empty socket, and a module that is not shown fails its node."""
    doc, told = SOCKETS[case]
    assert wire.socket_reading(doc, "s") == told


@pytest.mark.parametrize("case", DRIVES)
def test_a_drive_that_predicts_its_failure_is_not_well(case: str) -> None:
    doc, told = DRIVES[case]
    assert wire.drive_reading(doc, "s") == told


def test_attributes_are_texts_and_no_password_is_one() -> None:
    """Mutants: a password is kept; what is nested is told as text; they have no end."""
    attributes = {
        "SriovEnable": "Enabled",
        "NumaNodes": 4,
        "SecureBoot": True,
        "SetupPassword": "s3cret",
        "Odd\nName": "x",
        "Nested": {"a": 1},
        "Null": None,
        "Bell": "a\x07b",
    }
    found = wire.bios_readings({"Attributes": attributes})
    assert found["bios.SriovEnable"] == "Enabled"
    assert (found["bios.NumaNodes"], found["bios.SecureBoot"]) == ("4", "true")
    assert str(found["bios.Bell"]).isprintable()
    assert set(found) == {f"bios.{name}" for name in ("SriovEnable", "NumaNodes", "SecureBoot", "Bell")}
    many = wire.bios_readings({"Attributes": {f"A{n:05}": "x" for n in range(2 * wire.MAX_ATTRIBUTES)}})
    assert len(many) == wire.MAX_ATTRIBUTES
    assert wire.bios_readings({"Attributes": ["SriovEnable"]}) == {}
    assert wire.bios_readings({}) == {}
