"""A network between two designs, drawn: what is planned is no fault, and a fault beside it is still found."""

from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from hostler.core.fabric.components import Component
from hostler.core.fabric.design import Cable, Design, ends
from hostler.core.fabric.design_changes import ways_between
from hostler.core.fabric.design_csv import render_csv
from hostler.core.fabric.discovery import Discovery
from hostler.core.fabric.rail_rule import generate
from hostler.core.fabric.rates import Rate
from hostler.core.fabric.recabling import against
from hostler.core.fabric.validation_report import report
from hostler.core.state.fabrics import (
    DesignVersion,
    DiscoverySource,
    FabricReport,
    PlannedWork,
    Recabling,
    RecablingStage,
)
from hostler.core.state.fabrics import Fabric as Registered
from tests.fabrics import (
    SMALL,
    Fabric,
    half_swap,
    miss,
    move,
    rotate,
    slow,
    surplus,
    swap_at_host,
    swap_at_leaf,
)

OLD = generate(SMALL)
ACTS = (swap_at_host, swap_at_leaf, rotate, move, miss, surplus, half_swap)
STARTS = datetime(2026, 3, 1, 22, tzinfo=UTC)
ENDS = STARTS + timedelta(hours=8)
BEFORE, WITHIN, AFTER = (STARTS + timedelta(hours=hours) for hours in (-1, 1, 9))


class Work:
    """A network, its next design by so many acts, and its cables, which begin as the old design has them."""

    def __init__(self, seed: int, acts: int) -> None:
        self.rng = Random(seed)
        planned = Fabric(OLD, self.rng)
        for act in self.rng.sample(ACTS, acts):
            act(planned)
        rates = {ends(c.a, c.z): c.rate for c in OLD.cables}
        pairs = sorted({ends(a, z) for a, z in planned.links.items()})
        self.new = Design(OLD.devices, tuple(Cable(*pair, rates.get(pair)) for pair in pairs))
        self.ways = list(ways_between(OLD, self.new))
        self.touched = {port.device for way in self.ways for port in way.ports}
        self.cables = Fabric(OLD, self.rng)

    def do(self, way: Component) -> None:
        """A technician does one part of the work."""
        self.pull(way)
        for a, z in way.designed:
            self.cables.join(a, z)

    def pull(self, way: Component) -> None:
        """All old cables of a part are out, and no new one is in."""
        for a, _ in way.found:
            self.cables.pull(a)

    def look(self, now: datetime, *, over: bool = False, found: Discovery | None = None) -> FabricReport:
        """The validation at that moment, as the schedule makes it."""
        found = found or self.cables.discovery()
        version = DesignVersion("new", STARTS, "ann", "two trays")
        before = render_csv(OLD) if over else ""
        work = Recabling(version, STARTS, ENDS, render_csv(self.new), {}, {}, 0, 0, before)
        design = self.new if over else OLD
        fabric = Registered("ib0", render_csv(design), "d", DiscoverySource(), 900.0, {}, 0, 0, (version,), {})
        return report(fabric, design, found, now, against(work, OLD, self.new, found, now))


def planned(seen: FabricReport) -> list[PlannedWork]:
    return [finding.planned for finding in seen.findings]


ACTS_DRAWN = st.integers(1, len(ACTS))
SEEDS = st.integers(0, 2**32)


@given(SEEDS, ACTS_DRAWN)
def test_within_the_window_any_part_may_be_done_and_nothing_is_found(seed: int, acts: int) -> None:
    """Mutants: within the window the old design holds; the new one does; done parts are compared with the old one."""
    work = Work(seed, acts)
    done = work.rng.sample(work.ways, work.rng.randrange(len(work.ways) + 1))
    for way in done:
        work.do(way)
    seen = work.look(WITHIN)
    assert seen.findings == ()
    assert seen.look.work is not None
    assert (seen.look.work.stage, seen.look.work.begun) == (RecablingStage.under_way, 0)
    assert seen.look.work.parts == len(work.ways)
    assert seen.look.work.done >= len(done)


@given(SEEDS, st.integers(1, 3))
def test_a_part_that_is_begun_is_expected_and_a_fault_beside_it_is_not(seed: int, acts: int) -> None:
    """Mutants: everything within the window is expected; a cable that was pulled for the work is ticketed."""
    work = Work(seed, acts)
    begun = [way for way in work.ways if way.found]
    for way in begun:
        work.pull(way)
    fault = next(c for c in OLD.cables if c.a.device.startswith("gpu") and c.a.device not in work.touched)
    work.cables.pull(fault.a)
    seen = work.look(WITHIN)
    other = [finding for finding in seen.findings if finding.planned is PlannedWork.none]
    assert [finding.ports for finding in other] == [tuple(map(str, ends(fault.a, fault.z)))]
    assert set(planned(seen)) <= {PlannedWork.none, PlannedWork.under_way}


@given(SEEDS, ACTS_DRAWN)
def test_work_that_is_done_early_is_told_as_early_and_the_old_design_holds(seed: int, acts: int) -> None:
    """Mutants: early work is no finding; a fault that no new cable explains is called early."""
    work = Work(seed, acts)
    assert work.look(BEFORE).findings == ()
    way = work.rng.choice(work.ways)
    work.do(way)
    seen = work.look(BEFORE)
    assert len(seen.findings) == 1
    laid = bool(way.designed)
    assert planned(seen) == [PlannedWork.early if laid else PlannedWork.none]
    assert ("the new design holds from 2026-03-02 06:00 UTC" in seen.findings[0].headline) == laid


@given(SEEDS, ACTS_DRAWN)
def test_work_that_is_not_done_after_the_window_is_told_as_late_part_by_part(seed: int, acts: int) -> None:
    """Mutants: late work is expected on; a fault against the new design is called late."""
    work = Work(seed, acts)
    left = work.rng.sample(work.ways, work.rng.randrange(len(work.ways) + 1))
    for way in work.ways:
        if way not in left:
            work.do(way)
    seen = work.look(AFTER, over=True)
    assert len(seen.findings) == len(left)
    assert sorted(planned(seen)) == sorted(PlannedWork.late if way.found else PlannedWork.none for way in left)
    for way in left:
        work.do(way)
    assert work.look(AFTER, over=True).findings == ()


def test_a_cable_that_gets_another_rate_may_run_at_either_within_the_window_and_at_the_new_one_after() -> None:
    """Mutant: the rate of the new design is asked for as soon as the window begins."""
    work = Work(1, 1)
    new = Design(OLD.devices, tuple(Cable(c.a, c.z, Rate(4, "NDR")) for c in OLD.cables))
    work.new, work.ways = new, []
    assert work.look(BEFORE).findings == ()
    assert work.look(WITHIN).findings == ()
    slow(work.cables)
    assert [finding.kind for finding in work.look(WITHIN).findings] == ["degraded"]


def test_a_plug_in_a_port_of_neither_design_is_a_fault_within_the_window_too() -> None:
    """Mutant: a finding counts as planned by one of its ports."""
    work = Work(5, 1)
    work.new = Design(OLD.devices, tuple(c for c in OLD.cables if c != OLD.cables[0]))
    work.ways = list(ways_between(OLD, work.new))
    move(work.cables)
    seen = work.look(WITHIN)
    assert planned(seen) == [PlannedWork.none]
