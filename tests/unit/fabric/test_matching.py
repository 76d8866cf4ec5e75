"""Planted faults are found as what they are, and nothing else; mending what the findings say makes the fabric right."""

from collections import Counter
from random import Random

import pytest
from msgspec.structs import replace

from hostler.core.fabric.design import Port
from hostler.core.fabric.discovery import Discovery
from hostler.core.fabric.findings import Grade, Kind
from hostler.core.fabric.instructions import headline, steps, ticket
from hostler.core.fabric.validation import Validation, validate
from hostler.core.state.fabrics import FabricVerdict
from tests.fabrics import (
    FAULTS,
    Fabric,
    a_fabric,
    darken_host,
    exchange_hosts,
    misname_adapters,
    repaired,
    swap_at_host,
)


def judged(fabric: Fabric) -> Validation:
    return validate(fabric.design, fabric.discovery())


def test_a_fabric_as_designed_has_no_finding() -> None:
    seen = judged(a_fabric())
    assert (seen.verdict, seen.findings, seen.renamed, seen.ambiguous) == (FabricVerdict.as_designed, (), (), ())
    assert seen.designed == seen.found == 48 + 64


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("seed", range(5))
def test_each_fault_is_one_finding_of_its_kind(fault: object, seed: int) -> None:
    fabric = a_fabric(seed)
    kind = fault(fabric)  # type: ignore[operator]
    assert [finding.kind for finding in judged(fabric).findings] == [kind]


@pytest.mark.parametrize("seed", range(60))
def test_faults_that_have_nothing_to_do_with_each_other_are_one_finding_each(seed: int) -> None:
    fabric, rng = a_fabric(seed), Random(seed)
    planted = Counter(fault(fabric) for fault in rng.sample(FAULTS, rng.randint(2, 6)))
    seen = judged(fabric)
    assert Counter(finding.kind for finding in seen.findings) == planted
    assert len({finding.key for finding in seen.findings}) == len(seen.findings)


@pytest.mark.parametrize("seed", range(40))
def test_who_does_what_the_findings_say_leaves_a_fabric_as_designed(seed: int) -> None:
    cables = tuple(f for f in FAULTS if f.__name__ not in ("darken_host", "exchange_hosts", "exchange_spines", "refit"))
    fabric, rng = a_fabric(seed), Random(seed)
    for fault in rng.sample(cables, 5):
        fault(fabric)
    repaired(fabric, judged(fabric).findings)
    assert {finding.kind for finding in judged(fabric).findings} <= {Kind.degraded}


def test_the_same_adapters_exchanged_at_each_host_are_one_wrong_map_and_other_faults_are_still_seen() -> None:
    fabric = a_fabric()
    kinds = Counter([misname_adapters(fabric), swap_at_host(fabric), darken_host(fabric)])
    found = judged(fabric).findings
    assert Counter(finding.kind for finding in found) == kinds
    (said,) = (finding for finding in found if finding.kind is Kind.hca_map)
    assert said.text == "mlx5_0 is designed as mlx5_2, mlx5_2 is designed as mlx5_0"
    assert "Move no cable" in ticket(fabric.design, said)


def test_a_swap_is_put_right_at_the_host_and_told_by_its_place() -> None:
    fabric = a_fabric(3)
    swap_at_host(fabric)
    (finding,) = judged(fabric).findings
    assert finding.grade is Grade.high
    assert {port.device for move in finding.repair.moves for port in (move.source, move.target)} == {"gpu-0002"}
    place = fabric.design.devices[finding.repair.moves[0].source.device].place
    assert place in headline(fabric.design, finding)
    first, second = steps(fabric.design, finding)
    assert first.startswith(f"Exchange the plugs in {place} port mlx5_")
    assert second.startswith("Afterwards gpu-")


def test_a_spine_that_is_dark_excuses_the_ports_that_lead_to_it() -> None:
    fabric = a_fabric()
    fabric.silent.add("spine-002")
    (finding,) = judged(fabric).findings
    assert (finding.kind, finding.devices, finding.grade) == (Kind.dark_device, ("spine-002",), Grade.medium)
    assert finding.text == "none of its 16 cables is up"


def test_two_cables_between_the_same_switches_in_each_others_ports_cost_nothing() -> None:
    fabric = a_fabric()
    one, other = (port for port in fabric.ports("leaf-001-1") if fabric.links[port].device == "spine-001")
    far, off = fabric.pull(one), fabric.pull(other)
    fabric.join(one, off)
    fabric.join(other, far)
    (finding,) = judged(fabric).findings
    assert (finding.kind, finding.grade) == (Kind.swapped, Grade.low)


def test_a_shrunken_look_and_a_partial_one_conclude_nothing() -> None:
    fabric = a_fabric()
    swap_at_host(fabric)
    whole = fabric.discovery()
    half = Discovery(whole.devices, whole.links, "the tool was cut off")
    fabric.silent = {"spine-001", "spine-002", "spine-003", "gpu-0001", "gpu-0002", "gpu-0003", "gpu-0004"}
    for seen in (validate(fabric.design, half), judged(fabric)):
        assert seen.verdict in (FabricVerdict.partial, FabricVerdict.shrunken)
        assert seen.findings == ()
        assert seen.why


def test_a_look_that_lost_most_cables_of_a_small_network_concludes_nothing() -> None:
    """Two dark devices explain it, as an island would. Mutants: their cables do not count; one dark leaf is lost."""
    fabric = a_fabric()
    leaves = {"leaf-001-1", "leaf-001-2"}
    hosts = {far.device for port, far in fabric.links.items() if port.device in leaves and far.device in fabric.hosts()}
    cables = tuple(one for one in fabric.design.cables if {one.a.device, one.z.device} <= leaves | hosts)
    devices = {name: one for name, one in fabric.design.devices.items() if name in leaves | hosts}
    small = replace(fabric.design, cables=cables, devices=devices)
    others = fabric.design.devices.keys() - devices.keys()
    fabric.silent = {*others, "leaf-001-1"}
    (dark,) = validate(small, fabric.discovery()).findings
    assert (dark.kind, dark.devices) == (Kind.dark_device, ("leaf-001-1",))
    fabric.silent.add(min(hosts))
    seen = validate(small, fabric.discovery())
    assert (seen.verdict, seen.findings) == (FabricVerdict.shrunken, ())
    assert f"of {len(cables)} cables have no link" in seen.why
    off = frozenset({min(hosts)})
    assert validate(small, replace(fabric.discovery(), off=off)).verdict is FabricVerdict.differs


def test_hosts_without_power_say_nothing_against_a_look() -> None:
    """Of a new site half is not switched on yet. Mutants: they count as lost; whatever else is dark counts no more."""
    fabric = a_fabric()
    fabric.silent = off = set(fabric.hosts()[:6])
    lost = fabric.discovery()
    assert validate(fabric.design, lost).verdict is FabricVerdict.shrunken
    seen = validate(fabric.design, replace(lost, off=frozenset(off)))
    assert (seen.verdict, Counter(one.kind for one in seen.findings)) == (FabricVerdict.differs, {Kind.dark_device: 6})
    fabric.silent = off | {"spine-001", "spine-002", "spine-003", "spine-004"}
    seen = validate(fabric.design, replace(fabric.discovery(), off=frozenset(off)))
    assert seen.verdict is FabricVerdict.shrunken
    assert seen.why.startswith(f"4 of {len(fabric.design.devices) - 6} devices")


def test_two_adapters_of_one_name_are_told_and_neither_is_believed() -> None:
    fabric = a_fabric()
    fabric.descriptions[Port("gpu-0001", "mlx5_0")] = "gpu-0002 mlx5_0"
    seen = judged(fabric)
    assert seen.ambiguous == ("gpu-0002:mlx5_0",)
    assert {finding.kind for finding in seen.findings} == {Kind.unidentified}


def test_hosts_in_each_others_place_are_found_behind_a_wrong_map_of_adapters() -> None:
    """With half of the adapters misnamed too few links of a host name the one in whose place it stands.

    Mutant: places are looked for once, before the map is known; two hosts are four exchanged cables then.
    """
    fabric = a_fabric(162)
    misname_adapters(fabric)
    exchange_hosts(fabric)
    assert {finding.kind for finding in judged(fabric).findings} == {Kind.hca_map, Kind.swapped_devices}
