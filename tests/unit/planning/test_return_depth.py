"""Depth of the test on a node's return: each row of the table, and what nobody has said."""

import pytest

from hostler.core.planning.return_depth import after_hands, return_depth, steps
from hostler.core.state import operations as op
from hostler.core.state.fleet import Fleet
from hostler.core.state.repairs import RepairAction, RepairDone, RepairedPart
from hostler.core.state.rma_cases import CaseKind, CaseStep, RmaCase, TakenStep
from hostler.core.tables.recipes import StepRow
from hostler.core.tables.repair_tests import ROWS, Depth, DepthRow, row_of
from tests.kit import NOW, a_node

WHOLE = StepRow(op.RunChecks("burn_in"), 172_800)
CHECKS = {Depth.inventory: [], Depth.gate: ["gate"], Depth.short_burn_in: ["suspect"], Depth.full_burn_in: ["burn_in"]}
EXPECTED = {
    ("swapped", "fan"): "inventory", ("swapped", "psu"): "gate", ("swapped", "cable"): "gate",
    ("swapped", "drive"): "short_burn_in", ("swapped", "nic"): "short_burn_in", ("swapped", "dpu"): "short_burn_in",
    ("swapped", "memory"): "short_burn_in", ("swapped", "bmc"): "gate", ("swapped", "cooling"): "full_burn_in",
    ("swapped", "cpu"): "full_burn_in", ("swapped", "gpu"): "full_burn_in", ("swapped", "nvswitch"): "full_burn_in",
    ("swapped", "baseboard"): "full_burn_in", ("swapped", "chassis"): "full_burn_in",
    ("reseated", "fan"): "inventory", ("reseated", "psu"): "inventory", ("reseated", "cable"): "gate",
    ("reseated", "drive"): "gate", ("reseated", "nic"): "gate", ("reseated", "dpu"): "gate",
    ("reseated", "memory"): "short_burn_in", ("reseated", "gpu"): "full_burn_in", ("reseated", "cpu"): "full_burn_in",
    ("cleaned", "fan"): "inventory", ("cleaned", "cable"): "gate", ("cleaned", "nic"): "gate",
    ("cleaned", "cooling"): "short_burn_in",
    **{("inspected", part.value): "inventory" for part in RepairedPart},
}  # fmt: skip


DRAWN = {
    *(("unsaid", part) for part in ("", *(part.value for part in RepairedPart))),
    *((action, part) for action in ("cleaned", "reseated", "swapped") for part in ("", "cable", "nic", "dpu")),
    *((action, part) for action in ("cleaned", "reseated", "swapped") for part in ("baseboard", "chassis")),
    *(("cleaned", part) for part in ("psu", "drive", "memory", "cpu", "gpu", "nvswitch", "bmc")),
    *(("reseated", part) for part in ("nvswitch", "bmc", "cooling")),
}  # fmt: skip
"""After which hands a cable may lie elsewhere: of what no row knows anything may have been done."""


def repaired(*done: tuple[str, str]) -> tuple[RepairDone, ...]:
    return tuple(RepairDone(RepairAction(action), part, NOW, "tess") for action, part in done)


def profiles(*done: tuple[str, str], fleet: Fleet | None = None) -> list[str]:
    node = a_node("a", pool="", repairs=repaired(*done))
    laid = steps(fleet or Fleet(), node, WHOLE)
    return [row.act.profile for row in laid if isinstance(row.act, op.RunChecks)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.action}-{row.part}")
def test_each_row(row: DepthRow) -> None:
    """The table against one written by another hand. Mutant: any row's depth."""
    assert row.depth.name == EXPECTED[row.action.value, row.part.value]
    assert row.why
    assert profiles((row.action, row.part)) == CHECKS[row.depth]


@pytest.mark.parametrize(
    ("done", "laid"),
    [
        (("swapped", "cable"), [op.VerifyCabling(), op.RunChecks("gate")]),
        (("swapped", "fan"), []),
        (("inspected", "cable"), []),
    ],
)
def test_a_cable_that_was_drawn_is_validated_before_the_test(done: tuple[str, str], laid: list[op.AnyAct]) -> None:
    """Mutants: a repaired cable is trusted to lie where it lay; a look draws plugs."""
    assert [row.act for row in steps(Fleet(), a_node("a", pool="", repairs=repaired(done)), WHOLE)] == laid


def test_no_row_is_missing_or_doubled() -> None:
    assert len(ROWS) == len(EXPECTED) == len({(row.action, row.part) for row in ROWS})


@pytest.mark.parametrize("done", [(), (("unsaid", ""),), (("swapped", "warp_core"),), (("cleaned", "gpu"),)])
def test_what_nobody_says_or_no_row_knows_is_tested_whole(done: tuple[tuple[str, str], ...]) -> None:
    """Mutants: an unknown part is tested by the gate; no word is the lightest test."""
    assert profiles(*done) == ["burn_in"]


def test_the_deepest_of_several_counts() -> None:
    """Mutants: the last one counts; hands that say nothing are left out."""
    assert profiles(("swapped", "memory"), ("swapped", "fan")) == ["suspect"]
    assert profiles(("unsaid", ""), ("swapped", "fan")) == ["burn_in"]


@pytest.mark.parametrize("part", ["", *RepairedPart])
@pytest.mark.parametrize("action", RepairAction)
def test_a_spare_is_held_against_its_sku_after_hands_and_tested_as_deep(action: RepairAction, part: str) -> None:
    """Every action on every part. Mutants: a light repair leaves the manifest out; a row without a depth is gated."""
    spare = a_node("a", pool="", repairs=repaired((action.value, part)))
    laid = [row.act for row in after_hands(Fleet(), spare, StepRow(op.VerifyInventory(), 900, each="hands"))]
    depth = EXPECTED.get((action.value, str(part)), "full_burn_in")
    deep = [op.RunChecks(profile) for profile in CHECKS[Depth[depth]] if profile != "gate"]
    drawn = [op.VerifyCabling()] if (action.value, str(part)) in DRAWN else []
    assert laid == [op.VerifyInventory(), op.VerifyHardware(), *drawn, *deep]


def test_who_was_not_touched_by_hands_is_gated_alone() -> None:
    assert after_hands(Fleet(), a_node("a"), StepRow(op.VerifyInventory(), 900, each="hands")) == ()


def test_a_part_that_is_still_to_be_exchanged_asks_for_everything() -> None:
    """A fan was exchanged, the GPU was not. Mutant: only what was done is looked at."""
    fleet = Fleet()
    case = RmaCase("c", "a", CaseKind.on_site_swap, "G3", "gpu", NOW, (TakenStep(CaseStep.requested, NOW, "x"),))
    fleet.put_rma_case("c", case)
    assert profiles(("swapped", "fan"), fleet=fleet) == ["burn_in"]
    assert return_depth(fleet, a_node("a", repairs=repaired(("swapped", "fan")))) is Depth.full_burn_in
    assert row_of(RepairAction.swapped, "fan") is not None
