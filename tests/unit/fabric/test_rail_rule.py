"""A rail rule makes the tree that its numbers promise, of servers and of NVL72 racks."""

from collections import Counter, defaultdict

import pytest

from hostler.core.fabric import nvl72
from hostler.core.fabric.design import Design, DeviceKind
from hostler.core.fabric.design_csv import parse_csv, render_csv
from hostler.core.fabric.nvl72 import Nvl72Racks
from hostler.core.fabric.rail_rule import RailRule, generate
from hostler.core.state.input_problems import InvalidInputError


def tiers(design: Design) -> Counter[str]:
    """Counts switches by the first word of their names, and hosts."""
    return Counter("host" if d.kind is DeviceKind.host else d.name.partition("-")[0] for d in design.devices.values())


def between(design: Design) -> Counter[tuple[str, str]]:
    """Counts cables by the tiers that they join."""
    word = {n: "host" if d.kind is DeviceKind.host else n.partition("-")[0] for n, d in design.devices.items()}
    return Counter((min(pair), max(pair)) for c in design.cables if (pair := (word[c.a.device], word[c.z.device])))


def ports_used(design: Design) -> Counter[str]:
    """Counts the ports of each device, each of which has one cable only."""
    ports = [port for cable in design.cables for port in (cable.a, cable.z)]
    assert len(set(ports)) == len(ports), "a port is in two cables"
    return Counter(port.device for port in ports)


def test_an_nvl72_has_18_trays_9_switch_trays_and_72_gpus() -> None:
    assert (nvl72.TRAYS, nvl72.SWITCH_TRAYS, nvl72.GPUS, len(nvl72.ADAPTERS)) == (18, 9, 72, 4)
    places = nvl72.units(Nvl72Racks(racks=1))
    assert places == (*range(5, 13), *range(22, 32)), "nine units between them are the switch trays'"


def test_sixteen_scalable_units_of_gb300_have_as_many_switches_as_nvidia_says() -> None:
    """Two tiers: a unit of 8 racks has 8 leaves on 4 rails, two for each; 72 spines of 144 ports use 128 of them.

    Source: NVIDIA, DGX SuperPOD reference architecture with DGX GB300, compute fabric. Mutants: a leaf for each rack;
    trays in the switch trays' units.
    """
    design = generate(RailRule(nvl72=Nvl72Racks(racks=128, per_unit=4), radix=144, spines=72, rate="4xXDR"))
    assert tiers(design) == {"host": 2_304, "leaf": 128, "spine": 72}
    assert between(design) == {("host", "leaf"): 9_216, ("leaf", "spine"): 9_216}
    used = ports_used(design)
    assert {used[name] for name in used if name.startswith("spine")} == {128}
    assert {used[name] for name in used if name.startswith("leaf")} == {144}
    assert len({d.rack for d in design.devices.values() if d.kind is DeviceKind.host}) == 128


def test_a_rack_s_rails_are_aligned() -> None:
    """Each tray's adapter i is one hop from adapter i of every other tray of its unit, and of no other rail."""
    design = generate(RailRule(nvl72=Nvl72Racks(racks=8, per_unit=4), radix=144, spines=72, rate="4xXDR"))
    rails: defaultdict[str, set[str]] = defaultdict(set)
    racks: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for cable in design.cables:
        if design.devices[cable.a.device].kind is DeviceKind.host:
            rails[cable.z.device].add(cable.a.port)
            racks[cable.z.device][design.devices[cable.a.device].rack] += 1
    assert all(len(adapters) == 1 for adapters in rails.values())
    assert all(set(of.values()) == {18} and len(of) == 4 for of in racks.values())


def test_three_tiers_of_nvl72_racks_lose_no_bandwidth_upwards() -> None:
    """128 racks on switches of 64 ports: 18 trays down and 18 links up at each leaf, as many again to the cores."""
    design = generate(RailRule(nvl72=Nvl72Racks(racks=128), radix=64, uplinks=18))
    assert tiers(design) == {"host": 2_304, "leaf": 512, "spine": 288, "core": 144}
    assert between(design) == {("host", "leaf"): 9_216, ("leaf", "spine"): 9_216, ("core", "spine"): 9_216}
    used = ports_used(design)
    assert {used[name] for name in used if name.startswith("leaf")} == {36}
    assert {used[name] for name in used if name.startswith(("spine", "core"))} == {64}


def test_trays_are_named_by_rack_and_tray_and_stand_in_their_units() -> None:
    rule = RailRule(nvl72=Nvl72Racks(racks=2), uplinks=18, spines=9, host_name="r{rack:03d}-t{tray:02d}")
    design = generate(rule)
    last = design.devices["r002-t18"]
    assert (last.rack, last.unit) == ("r02", "31")
    again = parse_csv(render_csv(design).encode(), "nvl72.csv")
    assert again.devices == design.devices


def test_the_last_unit_may_have_fewer_racks_and_a_cell_fewer_than_a_unit() -> None:
    assert tiers(generate(RailRule(nvl72=Nvl72Racks(racks=5, per_unit=4), radix=144, spines=72)))["leaf"] == 8
    assert tiers(generate(RailRule(nvl72=Nvl72Racks(racks=1, per_unit=4), radix=144, spines=72)))["leaf"] == 4


def test_three_tiers_take_as_many_hosts_as_their_cores_have_ports() -> None:
    """Mutant: the limit counts half of a core's ports, and 8,192 hosts of NVIDIA's largest table are refused."""
    assert tiers(generate(RailRule(hosts=2_048))) == {"host": 2_048, "leaf": 512, "spine": 512, "core": 256}
    assert tiers(generate(RailRule(hosts=8_192)))["core"] == 1_024
    with pytest.raises(InvalidInputError, match="at most 8,192 with these switches"):
        generate(RailRule(hosts=8_193))


@pytest.mark.parametrize(
    ("rule", "where"),
    [
        (RailRule(nvl72=Nvl72Racks(racks=1), hosts=18), "hosts"),
        (RailRule(nvl72=Nvl72Racks(racks=1), unit=18), "unit"),
        (RailRule(nvl72=Nvl72Racks(racks=1), adapters=("mlx5_0",)), "adapters"),
        (RailRule(nvl72=Nvl72Racks(racks=4, per_unit=2)), "unit"),
        (RailRule(nvl72=Nvl72Racks(racks=4), uplinks=64), "uplinks"),
        (RailRule(nvl72=Nvl72Racks(racks=4), uplinks=18, spines=5), "spines"),
        (RailRule(hosts=4, spines=-2), "spines"),
        (RailRule(hosts=4, radix=4_096), "radix"),
        (RailRule(hosts=4, host_name="gpu-{:999999999d}"), "host_name"),
        (RailRule(hosts=4, host_name="gpu-{0.__class__}"), "host_name"),
        (RailRule(hosts=4, host_name="gpu-{rack}"), "host_name"),
        (RailRule(hosts=4, host_name="gpu"), "host_name"),
    ],
)
def test_a_rule_that_contradicts_itself_is_refused(rule: RailRule, where: str) -> None:
    """Mutant: a name's width is not bounded, and one line of YAML takes a gigabyte."""
    with pytest.raises(InvalidInputError) as refusal:
        generate(rule)
    assert where in {problem.where for problem in refusal.value.problems}
