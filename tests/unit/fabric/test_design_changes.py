"""Acts that a new design asks of a technician are the fewest, and make the new design of the old one."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hostler.core.fabric import design_changes
from hostler.core.fabric.design import Cable, Design, ends
from hostler.core.fabric.design_changes import COMES, GOES, MOVES, RATE, DesignChanges, changes
from hostler.core.fabric.rail_rule import generate
from hostler.core.fabric.rates import Rate
from tests.fabrics import SMALL, Fabric, half_swap, miss, move, rotate, surplus, swap_at_host, swap_at_leaf

OLD = generate(SMALL)
ACTS = (swap_at_host, swap_at_leaf, rotate, move, miss, surplus, half_swap)


def redesigned(seed: int, count: int) -> Design:
    """The design after so many independent changes of its cables."""
    cables = Fabric(OLD, Random(seed))
    for act in cables.rng.sample(ACTS, count):
        act(cables)
    pairs = sorted({ends(a, z) for a, z in cables.links.items()})
    rates = {ends(c.a, c.z): c.rate for c in OLD.cables}
    return Design(OLD.devices, tuple(Cable(*pair, rates.get(pair)) for pair in pairs))


def pairs_of(design: Design) -> set[frozenset[str]]:
    """Names both ends of each cable."""
    return {frozenset((str(c.a), str(c.z))) for c in design.cables}


def done(old: Design, found: DesignChanges) -> set[frozenset[str]]:
    """The old design's cables after every listed act was done."""
    cables = pairs_of(old)
    for one in found.changes:
        if one.change in (MOVES, GOES):
            cables.remove(frozenset((one.a, one.before if one.change == MOVES else one.z)))
    for one in found.changes:
        if one.change in (MOVES, COMES):
            assert frozenset((one.a, one.z)) not in cables
            cables.add(frozenset((one.a, one.z)))
    return cables


@given(st.integers(0, 2**32), st.integers(0, len(ACTS)))
def test_the_acts_make_the_new_design_of_the_old_one(seed: int, count: int) -> None:
    """Mutants: a plug is moved from where it goes; a cable of a ring is told twice."""
    new = redesigned(seed, count)
    found = changes(OLD, new)
    assert done(OLD, found) == pairs_of(new)
    assert sum(found.counts.values()) == len(found.changes) <= len(pairs_of(OLD) ^ pairs_of(new))
    back = changes(new, OLD)
    assert done(new, back) == pairs_of(OLD)
    assert back.counts.get(COMES, 0) == found.counts.get(GOES, 0)
    again = replace(new, cables=tuple(Random(seed).sample(new.cables, len(new.cables))))
    assert changes(OLD, again) == found, "the order of lines makes no difference"


def test_two_exchanged_plugs_are_two_moves_and_touch_one_host_and_two_leaves() -> None:
    """Mutant: an exchange is told as two cables that go and two that come."""
    cables = Fabric(OLD, Random(3))
    swap_at_host(cables)
    found = changes(OLD, replace(OLD, cables=tuple(Cable(*ends(a, z)) for a, z in cables.links.items() if a < z)))
    assert found.counts[MOVES] == 2
    assert not {COMES, GOES} & found.counts.keys()


def test_a_host_that_comes_brings_its_cables_and_a_rate_is_told_with_both_values() -> None:
    less = generate(replace(SMALL, hosts=11))
    found = changes(less, OLD)
    assert found.counts == {"device comes": 1, COMES: 4}
    assert (found.hosts, found.racks) == (("gpu-0012",), ("net", "r03"))
    assert found.summary == "device comes: 1, cable comes: 4; at 1 hosts and 4 switches in 2 racks"
    slow, *rest = OLD.cables
    found = changes(OLD, replace(OLD, cables=(replace(slow, rate=Rate(4, "EDR")), *rest)))
    (rate,) = found.changes
    assert (rate.change, rate.before, rate.rate) == (RATE, "4xHDR", "4xEDR")
    assert changes(OLD, OLD).summary == "both designs are the same"


def test_of_designs_that_have_nothing_in_common_the_first_changes_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(design_changes, "SHOWN_MOST", 10)
    found = changes(OLD, generate(replace(SMALL, host_name="other-{:02d}")))
    assert (len(found.changes), found.more) == (10, sum(found.counts.values()) - 10)
