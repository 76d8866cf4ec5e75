"""A drill's share of the looks at a BMC: laid over for as long as it runs, told anew by the next, and a silence."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from hostler.core.diagnose.judge import judge
from hostler.core.state.drills import SILENT_S, WINDOW, Drill, DrillFault
from hostler.core.state.model import Facts, Node, Observation
from hostler.core.tables.drills import DRILLS
from hostler.polling.bmc_poller import PollLimits
from hostler.polling.drill_readings import keeps_silent, laid_over
from tests.kit import NOW, a_node
from tests.unit.test_bmc_poller import Cell, Script, watch_until

SOUND: Facts = {"temp_c": 30.0, "temp_limit_c": 90.0, "psu1_health": "ok"}


def drilled(fault: DrillFault) -> Node:
    drill = Drill("d1", fault, "ann", "why", NOW, NOW + timedelta(hours=1), DRILLS[fault].condition, injected_at=NOW)
    return replace(a_node("a"), drill=drill)


@pytest.mark.parametrize("fault", [DrillFault.psu, DrillFault.thermal])
def test_what_is_laid_over_raises_the_drills_condition_and_no_other(fault: DrillFault) -> None:
    """The overlay hides no reading of the BMC's own, and never asks for a protective power-off.

    Mutants: a temperature over its limit; the drill's reading has the name of a real part.
    """
    node = drilled(fault)
    seen = Observation("a", "sensors", "bmc", "bmc", 1, facts={**SOUND, "psu1_health": "failed"}, received=NOW)
    found = [f for f in judge(laid_over(node, seen, NOW), node, None) if f.standing]
    assert {(f.type, f.drill) for f in found} == {(DRILLS[fault].condition, "d1"), ("power.supply", "")}
    late = NOW + WINDOW + timedelta(seconds=1)
    assert laid_over(node, seen, late) is seen
    assert laid_over(a_node("a"), seen, NOW) is seen
    assert node.drill is not None
    assert laid_over(replace(node, drill=replace(node.drill, ended=NOW)), seen, NOW) is seen


async def test_a_second_drill_is_told_of_as_the_first_was() -> None:
    """Mutant: what was heard of the first drill's reading is kept, and the second one's is no news."""
    cell = Cell(drilled(DrillFault.psu))
    reader = Script(a=[SOUND])

    def told() -> int:
        return sum("drill_psu_health" in one.facts for one in cell.seen)

    def over() -> bool:
        if told() == 1 and cell.view.nodes["a"].drill is not None and reader.looks < 200:
            cell.view.nodes["a"], reader.looks = a_node("a"), 1_000
        if reader.looks > 1_005:
            cell.view.nodes["a"] = drilled(DrillFault.psu)
        return told() == 2

    await watch_until(cell, reader, PollLimits(), over)


async def test_a_bmc_that_a_drill_keeps_silent_is_not_asked_and_counts_as_unreachable() -> None:
    """Mutant: it is asked all the same."""
    cell, reader = Cell(drilled(DrillFault.bmc_silent)), Script(a=[SOUND])
    await watch_until(cell, reader, PollLimits(), lambda: any(one.bmc_unreachable for one in cell.told))
    assert reader.looks == 0


def test_the_silence_ends_by_itself() -> None:
    node = drilled(DrillFault.bmc_silent)
    assert keeps_silent(node, NOW)
    assert not keeps_silent(node, NOW + timedelta(seconds=SILENT_S))
    assert not keeps_silent(drilled(DrillFault.psu), NOW)
