"""Slow pairs, and the part of the network that is blamed for them: planted, and found by random pairs."""

from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.core.fabric.design import Design
from hostler.core.fabric.path_blame import PairResult, PathVerdict, judge_pairs
from hostler.core.fabric.rail_rule import RailRule, generate
from hostler.core.state.links import LinkCheck

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ADAPTERS = ("mlx5_0", "mlx5_1", "mlx5_2")
DESIGN = generate(RailRule(hosts=24, adapters=ADAPTERS, unit=6, radix=16, spines=8, rate="4xNDR"))
HOSTS = [name for name in DESIGN.devices if name.startswith("gpu")]
LEAVES = [name for name in DESIGN.devices if name.startswith("leaf")]
SPINES = [name for name in DESIGN.devices if name.startswith("spine")]
LEAF_OF = {str(port): far.device for c in DESIGN.cables for port, far in ((c.a, c.z), (c.z, c.a))}
FAST, HALF = 372.0, 190.0


class Network:
    """Random pairs within each rail, and what they reach with these parts slow."""

    def __init__(self, seed: int, *slow: str, routes: bool = False, rounds: int = 6) -> None:
        self.chance = Random(seed)
        self.slow = frozenset(slow)
        self.routes = routes
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
        leaves = {LEAF_OF[a], LEAF_OF[z]}
        spine = self.chance.choice(SPINES) if len(leaves) > 1 else ""
        passed = {a, z, *leaves, spine, f"rail-{a.rpartition(':')[2]}"}
        reached = HALF if passed & self.slow else FAST + self.chance.uniform(-8, 8)
        return PairResult(a, z, reached, NOW, (spine,) if self.routes and spine else ())

    def judged(self, design: Design = DESIGN) -> PathVerdict:
        return judge_pairs(design.cables, self.results)

    def blamed(self) -> set[str]:
        """Ports of links, switches and rails."""
        found = set()
        for fault in self.judged().faults:
            assert fault.check is LinkCheck.slow
            host = next((port for port in (fault.a, fault.z) if port.startswith("gpu")), "")
            found.add(host or fault.switch)
        return found


@pytest.mark.parametrize("seed", range(20))
def test_a_slow_link_or_adapter_is_blamed_and_nothing_else(seed: int) -> None:
    """Mutants: a fast pair does not clear; the leaf is blamed for one of its links; one slow pair is enough."""
    port = f"{Random(seed).choice(HOSTS)}:mlx5_1"
    assert Network(seed, port).blamed() == {port}


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


@pytest.mark.parametrize("seed", range(10))
def test_a_slow_spine_is_blamed_where_the_routes_are_known(seed: int) -> None:
    spine = Random(seed).choice(SPINES)
    assert Network(seed, spine, routes=True).blamed() == {spine}


@pytest.mark.parametrize("seed", range(10))
def test_without_routes_a_slow_spine_blames_nobody(seed: int) -> None:
    """Mutant: whoever had two slow pairs by chance is blamed."""
    verdict = Network(seed, SPINES[0]).judged()
    assert verdict.faults == ()
    assert verdict.undecided


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
    """One in a hundred is slow by chance, one in ten of a slow link's is fast."""
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
    network.results = [PairResult(r.z, r.a, r.gbps, r.at, r.via) for r in reversed(network.results)]
    again = network.judged()
    assert [(f.key, f.links) for f in told.faults] == [(f.key, f.links) for f in again.faults]


def test_a_network_that_is_slow_as_a_whole_is_its_rails_and_not_each_link() -> None:
    """Everything is below its rate. Mutants: nothing is slow where the median is; each link is tried against each."""
    network = Network(1, *(f"rail-{adapter}" for adapter in ADAPTERS))
    assert network.blamed() == {f"rail-{adapter}" for adapter in ADAPTERS}
