"""Slow pairs, and the part of the network that is blamed for them: planted, and found by random pairs."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hostler.core.fabric.design import Design, Port
from hostler.core.fabric.discovery import NO_PORT
from hostler.core.fabric.path_blame import PairResult, PathVerdict, judge_pairs
from hostler.core.fabric.rail_rule import RailRule, generate
from hostler.core.fabric.routes import NO_ROUTES, Routes
from hostler.core.state.links import LinkCheck

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ADAPTERS = ("mlx5_0", "mlx5_1", "mlx5_2")
DESIGN = generate(RailRule(hosts=24, adapters=ADAPTERS, unit=6, radix=16, spines=8, rate="4xNDR"))
HOSTS = [name for name in DESIGN.devices if name.startswith("gpu")]
LEAVES = [name for name in DESIGN.devices if name.startswith("leaf")]
SPINES = [name for name in DESIGN.devices if name.startswith("spine")]
LEAF_OF = {str(port): far.device for c in DESIGN.cables for port, far in ((c.a, c.z), (c.z, c.a))}
FAST, HALF = 372.0, 190.0
PORT_OF = [f"{host}:{rail}" for host in HOSTS for rail in ADAPTERS]

NUMBER_OF = {name: number for number, name in enumerate(PORT_OF, start=1)}
"""LIDs of the hosts' ports."""


def forwarded(seed: int) -> Routes:
    """Tables in which each leaf sends to each LID by a drawn up-link, and each spine down to its leaf."""
    chance = Random(seed)
    far: dict[str, Port] = {}
    above: dict[str, dict[int, Port]] = {name: {} for name in (*LEAVES, *SPINES)}
    for cable in DESIGN.cables:
        for here, there in ((cable.a, cable.z), (cable.z, cable.a)):
            if here.device in above:
                above[here.device][int(here.port)] = there
            else:
                far[str(here)] = there
    routes = Routes(far, above, lids=NUMBER_OF, why="")
    tables = {}
    for name, ports in above.items():
        ups = [int(port.port) for port in routes.up_links(name)]
        down = {str(port): number for number, port in ports.items()}
        table = bytearray([NO_PORT]) * (len(NUMBER_OF) + 1)
        for host, lid in NUMBER_OF.items():
            leaf = [number for number, port in ports.items() if port.device == LEAF_OF[host]]
            table[lid] = down.get(host) or chance.choice(leaf if name in SPINES else ups)
        tables[name] = bytes(table)
    return replace(routes, tables=tables)


ADAPTIVE = replace(forwarded(0), tables={}, lids={}, adaptive=True, why="its switches choose")


class Network:
    """Random pairs within each rail, and what they reach with these parts slow: host's ports, switches, up-links."""

    def __init__(self, seed: int, *slow: str, routes: Routes = NO_ROUTES, rounds: int = 6) -> None:
        self.chance = Random(seed)
        self.slow = frozenset(slow)
        self.routes = routes
        self.ways = forwarded(seed) if routes.why else routes
        self.results = [
            self._result(f"{a}:{rail}", f"{z}:{rail}")
            for _ in range(rounds)
            for rail in ADAPTERS
            for a, z in self._pairs()
        ]

    def _pairs(self) -> list[tuple[str, str]]:
        order = HOSTS[:]
        self.chance.shuffle(order)
        return list(zip(order[::2], order[1::2], strict=True))

    def _result(self, a: str, z: str) -> PairResult:
        way = self.ways.between(a, z, NOW)
        assert way is not None, "the tables have a way between any two"
        passed = {a, z, f"rail-{a.rpartition(':')[2]}"} | {port.device for port in way} | {str(port) for port in way}
        reached = HALF if passed & self.slow else FAST + self.chance.uniform(-8, 8)
        return PairResult(a, z, reached, NOW)

    def judged(self, design: Design = DESIGN) -> PathVerdict:
        return judge_pairs(design.cables, self.results, self.routes)

    def blamed(self) -> set[str]:
        """Ports of links, switches and rails."""
        found = set()
        for fault in self.judged().faults:
            assert fault.check is LinkCheck.slow
            host = next((port for port in (fault.a, fault.z) if port.startswith("gpu")), "")
            found |= {*fault.ports} if fault.host else {host or fault.switch}
        return found


@pytest.mark.parametrize("seed", range(20))
def test_a_slow_link_or_adapter_is_blamed_and_nothing_else(seed: int) -> None:
    """Mutants: a fast pair does not clear; the leaf is blamed for one of its links; one slow pair is enough."""
    port = f"{Random(seed).choice(HOSTS)}:mlx5_1"
    assert Network(seed, port).blamed() == {port}


@pytest.mark.parametrize("seed", range(10))
def test_a_host_that_is_slow_by_all_its_ports_is_one_fault_and_its_nodes(seed: int) -> None:
    """Mutants: three links are blamed, each with a ticket; two ports that are slow of three are the host's."""
    host = Random(seed).choice(HOSTS)
    ports = [f"{host}:{rail}" for rail in ADAPTERS]
    (fault,) = Network(seed, *ports).judged().faults
    assert (fault.bearer, fault.host, fault.switch) == (f"node {host} by all its ports", host, "")
    assert sorted(fault.ports) == ports
    some = Network(seed, *ports[:2])
    assert some.blamed() == set(ports[:2])
    assert not any(one.host for one in some.judged().faults)


def test_one_port_that_is_fast_clears_its_host_however_seldom_it_was_tested() -> None:
    """Mutant: one fast pair of twelve is a test that passed wrongly."""
    network = Network(2, "gpu-0001:mlx5_0", "gpu-0001:mlx5_1")
    mine = [r for r in network.results if "gpu-0001:mlx5_2" in (r.a, r.z)]
    network.results = [r for r in network.results if r not in mine[1:]]
    assert network.blamed() == {"gpu-0001:mlx5_0", "gpu-0001:mlx5_1"}


@pytest.mark.parametrize("seed", range(20))
def test_a_slow_leaf_is_one_fault_and_not_one_of_each_host(seed: int) -> None:
    """Mutants: the smallest part is taken before the one that explains most; its rail is blamed."""
    leaf = Random(seed).choice(LEAVES)
    network = Network(seed, leaf)
    assert network.blamed() == {leaf}
    (fault,) = network.judged().faults
    assert len(fault.links) == 6
    assert all(leaf in key for key in fault.links)


@pytest.mark.parametrize("seed", range(10))
def test_a_slow_rail_is_one_fault(seed: int) -> None:
    (fault,) = Network(seed, "rail-mlx5_2").judged().faults
    assert (fault.bearer, len(fault.links)) == ("rail mlx5_2", 24)


@pytest.mark.parametrize("seed", range(20))
def test_a_slow_spine_is_blamed_where_the_routes_are_known(seed: int) -> None:
    """Mutants: the up-link with most slow pairs is blamed instead; each leaf that it serves."""
    spine = Random(seed).choice(SPINES)
    network = Network(seed, spine, routes=forwarded(seed))
    assert network.blamed() == {spine}
    (fault,) = network.judged().faults
    assert fault.bearer == f"switch {spine}"
    assert all(spine in key for key in fault.links)


def test_a_slow_up_link_is_blamed_and_neither_its_leaf_nor_its_spine() -> None:
    """Two links are rivals, and nobody is blamed, where every pair over one goes on over the other."""
    decided = 0
    for seed in range(20):
        routes = forwarded(seed)
        port = Random(seed).choice(routes.up_links(Random(seed).choice(LEAVES)))
        far = routes.above[port.device][int(port.port)]
        verdict = Network(seed, str(port), str(far), routes=routes, rounds=30).judged()
        assert all({str(port), str(far)} == {fault.a, fault.z} for fault in verdict.faults)
        assert verdict.faults or verdict.undecided
        decided += len(verdict.faults)
    assert decided >= 15


@pytest.mark.parametrize("seed", range(10))
def test_with_routes_links_and_leaves_are_blamed_as_without(seed: int) -> None:
    port, leaf = f"{Random(seed).choice(HOSTS)}:mlx5_1", Random(seed).choice(LEAVES)
    assert Network(seed, port, routes=forwarded(seed)).blamed() == {port}
    assert Network(seed, leaf, routes=forwarded(seed)).blamed() == {leaf}


def test_adaptive_routing_blames_no_spine_and_says_so() -> None:
    """Mutant: a way by the tables is believed though each packet chooses."""
    verdict = Network(1, *SPINES, routes=ADAPTIVE).judged()
    assert verdict.faults == ()
    assert verdict.undecided[0].endswith("the switches above the leaves; its switches choose")
    one = Network(1, SPINES[0], routes=ADAPTIVE).judged()
    assert not any(fault.switch in SPINES for fault in one.faults)


@pytest.mark.parametrize("seed", range(5))
def test_under_adaptive_routing_the_up_links_of_a_leaf_are_one_part(seed: int) -> None:
    """Mutants: the leaf is blamed, within which pairs are fast; each up-link is a fault."""
    leaf = Random(seed).choice(LEAVES)
    ups = [str(port) for port in forwarded(seed).up_links(leaf)]
    far = [
        str(ADAPTIVE.above[leaf][int(port.rpartition(":")[2])]) for port in ups
    ]  # what others send to the leaf comes by the spines' ports
    (fault,) = Network(seed, *ups, *far, routes=ADAPTIVE, rounds=12).judged().faults
    assert (fault.bearer, len(fault.links)) == (f"all up-links of {leaf}", len(ups))
    again = Network(seed, routes=ADAPTIVE, rounds=12).judged()
    assert fault.key in again.fast


def test_results_from_before_the_tables_changed_have_no_way() -> None:
    """Mutant: what was measured over the old ways blames a switch of the new ones."""
    later = replace(forwarded(3), since=NOW + timedelta(seconds=1))
    assert Network(3, SPINES[0], routes=forwarded(3)).blamed() == {SPINES[0]}
    network = Network(3, SPINES[0], routes=forwarded(3))
    assert judge_pairs(DESIGN.cables, network.results, later).faults == ()


@pytest.mark.parametrize("seed", range(10))
def test_without_routes_a_slow_spine_blames_nobody_and_says_so(seed: int) -> None:
    """Mutant: whoever had two slow pairs by chance is blamed."""
    verdict = Network(seed, SPINES[0]).judged()
    assert verdict.faults == ()
    assert verdict.undecided[0].endswith("the routes of this network are not read: register it with --routes")


def test_all_spines_are_undecided_and_told_as_what_lies_above_the_leaves() -> None:
    """Mutant: the rails are blamed, through which pairs within a leaf are fast."""
    verdict = Network(3, *SPINES).judged()
    assert verdict.faults == ()
    assert "none within one" in verdict.undecided[0]


@given(st.integers(0, 2**32), st.sets(st.sampled_from([f"{h}:{a}" for h in HOSTS for a in ADAPTERS]), max_size=4))
def test_whatever_is_slow_nobody_innocent_is_blamed(seed: int, ports: set[str]) -> None:
    """Links, drawn anywhere. Mutant: a partner that was tested beside slow ones alone is blamed."""
    assert Network(seed, *ports, rounds=5).blamed() <= ports


@given(st.integers(0, 2**32))
def test_results_that_are_wrong_now_and_then_blame_no_switch_and_no_rail(seed: int) -> None:
    """By chance one in a hundred is slow, one in ten of a slow link's is fast."""
    network = Network(seed, "gpu-0001:mlx5_0", rounds=8)
    chance = Random(seed)
    network.results = [r if chance.random() > 0.01 else PairResult(r.a, r.z, HALF, NOW) for r in network.results]
    assert not any(fault.switch for fault in network.judged().faults)


def test_one_slow_pair_decides_nothing() -> None:
    results = [PairResult("gpu-0001:mlx5_0", "gpu-0002:mlx5_0", HALF, NOW)]
    verdict = judge_pairs(DESIGN.cables, results)
    assert (verdict.faults, len(verdict.undecided)) == ((), 1)


def test_what_came_to_nothing_what_is_impossible_and_strangers_count_nothing() -> None:
    """Mutants: a test without a result is slow; one beyond the link's rate is fast."""
    others = ("gpu-0002:mlx5_0", "gpu-0003:mlx5_0", "gpu-0004:mlx5_0")
    nothing = [PairResult("gpu-0001:mlx5_0", other, None, NOW) for other in others]
    beyond = [PairResult("gpu-0005:mlx5_0", other, 900.0, NOW) for other in others]
    strangers = [PairResult("gpu-0001:mlx5_0", "elsewhere:mlx5_0", HALF, NOW) for _ in range(5)]
    verdict = judge_pairs(DESIGN.cables, [*nothing, *beyond, *strangers])
    assert (verdict.faults, verdict.fast) == ((), frozenset())
    assert verdict.undecided == (
        "3 results are beyond the rate of their link (gpu-0005:mlx5_0 to gpu-0002:mlx5_0: 900 Gbit/s)",
    )


def test_the_order_of_results_and_of_ends_changes_nothing() -> None:
    network = Network(5, LEAVES[2], "gpu-0020:mlx5_0")
    told = network.judged()
    network.results = [PairResult(r.z, r.a, r.gbps, r.at) for r in reversed(network.results)]
    again = network.judged()
    assert [(f.key, f.links) for f in told.faults] == [(f.key, f.links) for f in again.faults]


def test_a_network_that_is_slow_as_a_whole_is_its_rails_and_not_each_link() -> None:
    """All pairs are below their rate. Mutants: nothing is slow where the median is; each link is tried against each."""
    network = Network(1, *(f"rail-{adapter}" for adapter in ADAPTERS))
    assert network.blamed() == {f"rail-{adapter}" for adapter in ADAPTERS}
