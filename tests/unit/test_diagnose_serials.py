"""Serial numbers: what is a placeholder, and by what parts are known whose numbers do not tell them apart."""

import pytest

from hostler.core.conditions.inventory_changes import of_inventory
from hostler.core.diagnose.judge import judge
from hostler.core.diagnose.part_health import part_subjects
from hostler.core.diagnose.serials import doubtful, identified, meaningful
from hostler.core.state.model import Facts, Observation, Part
from tests.kit import NOW, Drive, a_node, configuration, pool_document

PLACEHOLDERS = (
    *("", "  ", "N/A", "n/a ", "NA", "None", "null", "0", "000000000000", "0x00000000", "FFFFFFFFFFFF", "XXXX", "...."),
    *("To Be Filled By O.E.M.", "<Unknown>", "Default string", "0123456789", "Not Specified", "System Serial Number"),
    *("00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "00000000-0000-0000-0000-000000000000", "\x00\x00", "*****", "no dimm"),
)


@pytest.mark.parametrize("text", PLACEHOLDERS)
def test_a_placeholder_is_no_serial_number(text: str) -> None:
    """Mutant: "N/A" is taken as it is; a part of that number is then in every machine of the fleet."""
    assert meaningful(text) == ""


@pytest.mark.parametrize(
    ("text", "serial"),
    [("  1650224031785 ", "1650224031785"), ("MT2242X00105\x00", "MT2242X00105"), ("F0001", "F0001"), ("0E1", "0E1")],
)
def test_padding_is_no_part_of_a_number(text: str, serial: str) -> None:
    assert meaningful(text) == serial


def gpus(*serials: str) -> tuple[Part, ...]:
    return tuple(Part(serial, "gpu", "H100", f"GPU_{number}") for number, serial in enumerate(serials))


def test_two_gpus_that_show_one_number_stay_two_and_are_known_by_slot() -> None:
    """Mutant: a serial seen twice counts once; a board with two GPUs is then one GPU short."""
    kept = identified(gpus("A1", "SHARED", "SHARED", "N/A"), "SN1")
    assert [part.serial for part in kept] == ["A1", "GPU_1@SN1", "GPU_2@SN1", "GPU_3@SN1"]
    assert doubtful(gpus("A1", "SHARED", "SHARED", "N/A")) == {
        "gpu": "GPU_1, GPU_2 show one serial number, SHARED; GPU_3 show none"
    }
    assert doubtful(gpus("A1", "A2")) == {}


def test_what_is_listed_twice_is_one_and_a_board_does_not_take_its_parts_number() -> None:
    """Mutants: drives' namespaces count as drives; a module that shows its GPU's number takes that away."""
    twice = Part("D1", "drive", slot="nvme0n1"), Part("D1", "drive", slot="nvme0n2")
    board = Part("A1", "module", slot="HGX_ProcessorModule_0")
    assert identified((*twice, board, *gpus("A1")), "SN1") == (twice[0], *gpus("A1"))
    assert identified((Part("", "gpu"),), "SN1") == ()


def test_parts_without_numbers_are_counted_and_a_condition_says_that_slots_stand_for_them() -> None:
    """Mutant: the condition is not raised; nobody learns that a swap of such a part is not seen."""
    sku = configuration().skus["h100"]
    node = a_node("a")
    shared = gpus(*(["X"] * sku.gpus))
    found = {
        f.type: f for f in judge(Observation("a", "inventory", "bmc", "s", 1, parts=shared), node, sku) if f.standing
    }
    assert found.keys() == {"inventory.serial_unclear"}
    assert found["inventory.serial_unclear"].part == "gpu"
    own = gpus(*(f"A{n}" for n in range(sku.gpus)))
    findings = judge(Observation("a", "inventory", "bmc", "s", 1, parts=own), node, sku)
    assert ("inventory.serial_unclear", False) in {(f.type, f.standing) for f in findings}


def test_a_bmc_without_numbers_takes_none_back_that_the_agent_has_read() -> None:
    """Mutant: `_told` keeps every kind; each look of the BMC then moves all GPUs to the shelf."""
    drive = Drive(configuration({"train": pool_document(target=1, modes={"*": "observe"})}), [a_node("a")])
    real = tuple(Part(f"R{n}", "gpu", "H100", f"gpu{n}") for n in range(8))
    drive.observe("a", "inventory", source="agent", parts=real)
    fleet = drive.controller.fleet
    assert {serial for _, serial in drive.node("a").slots} == {part.serial for part in real}
    blank = Observation("a", "inventory", "bmc", "s", 9, parts=gpus(*([""] * 8)))
    assert list(of_inventory(fleet, drive.node("a"), blank, NOW)) == []


def test_words_about_parts_that_show_one_number_are_of_two_parts() -> None:
    """Mutant: the shared number is taken for the part; one GPU's word is then also the other's."""
    facts: Facts = {
        **{f"health:gpu:GPU_{n}": word for n, word in enumerate(("ok", "critical"))},
        **{f"serial:gpu:GPU_{n}": "SHARED" for n in range(2)},
    }
    node = a_node("a", slots=(("GPU_0", "GPU_0@SN1"), ("GPU_1", "GPU_1@SN1")))
    told = part_subjects(Observation("a", "part_health", "bmc", "bmc", 1, facts=facts), node, None)
    assert {part: any(f.standing for f in subject.findings) for part, subject in told.items()} == {
        "GPU_0@SN1": False,
        "GPU_1@SN1": True,
    }
