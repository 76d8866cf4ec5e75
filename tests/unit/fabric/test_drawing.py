"""Drawings of findings: every kind of fault is drawn as it lies and as designed, within a bound."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from hostler.core.fabric.drawing import MOST_CABLES, Drawing, drawing
from hostler.core.state.fabrics import FabricFindingSeen, FabricReport
from tests.fabric_cell import FabricCell
from tests.fabrics import FAULTS, Fabric, a_fabric, misname_adapters
from tests.kit import Drive


def drawn(cables: Fabric) -> tuple[list[tuple[FabricFindingSeen, Drawing]], FabricReport, FabricCell]:
    cell = FabricCell(Drive(), cables)
    seen = cell.report()
    return [(one, drawing(cell.fabric, one, seen.links)) for one in seen.findings], seen, cell


@pytest.mark.parametrize("fault", [*FAULTS, misname_adapters], ids=lambda fault: fault.__name__)
def test_each_kind_of_finding_is_drawn_by_ports_that_are_there(fault: Callable[[Fabric], object]) -> None:
    """Mutants: a cable between ports that are not drawn; a moved cable that says it stays; a port drawn twice."""
    cables = a_fabric(7)
    fault(cables)
    found, _, _ = drawn(cables)
    for finding, one in found:
        names = [port.port for port in one.ports]
        assert len(names) == len(set(names))
        for cable in (*one.found, *one.designed):
            assert {cable.a, cable.z} <= set(names), finding.kind
        assert {frozenset((c.a, c.z)) for c in one.found if c.stays} == {
            frozenset((c.a, c.z)) for c in one.designed if c.stays
        }
        if finding.kind in ("swapped", "rotated", "moved", "half_swapped", "missing", "unexpected"):
            assert {(c.a, c.z) for c in one.found} != {(c.a, c.z) for c in one.designed}
        if finding.kind == "unexpected":
            assert (len(one.found), len(one.designed)) == (1, 0)
        if finding.kind in ("missing", "dark_device"):
            assert not one.found


def test_a_finding_of_many_cables_draws_so_many_and_counts_the_rest() -> None:
    cables = a_fabric(7)
    _, seen, cell = drawn(cables)
    every = tuple(str(port) for cable in cables.design.cables for port in (cable.a, cable.z))
    wide = FabricFindingSeen("k", "missing", "low", every, tuple(cables.design.devices), (), "", ())
    one = drawing(cell.fabric, wide, seen.links)
    assert (len(one.designed), one.more) == (MOST_CABLES, 112 - MOST_CABLES)
    assert all(cable.stays for cable in one.designed)


def test_a_panel_label_is_read_as_it_is_printed_and_a_hostile_finding_draws_nothing() -> None:
    cables = a_fabric(7)
    _, seen, cell = drawn(cables)
    nobody = FabricFindingSeen("k", "missing", "low", ("x,y\n:1",), ("x,y\n",), (), "", ())
    assert drawing(cell.fabric, nobody, seen.links) == Drawing((), (), (), known=True)
    unseen = drawing(cell.fabric, replace(nobody, ports=("gpu-0001:mlx5_0",), devices=("gpu-0001",)), None)
    assert (unseen.known, unseen.found, len(unseen.designed)) == (False, (), 1)
    assert unseen.ports[0].place.endswith("gpu-0001 port mlx5_0")
