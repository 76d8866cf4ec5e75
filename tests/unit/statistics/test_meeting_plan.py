"""Nodes under leaves meet in groups and pairs: who meets whom, what a planted fault comes to, whom nobody may blame."""

import random
from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.rail_meetings import Rail, Test, fails
from hostler.core.statistics.meeting_plan import GROUP_MOST, MeetingPlan, Seat


def blamed(found: dict[str, str]) -> set[str]:
    return {node for node, word in found.items() if word == "blamed"}


def test_sound_nodes_meet_in_groups_under_their_leaf_and_by_two_across() -> None:
    """Mutants: groups across leaves; pairs alone; each node meets its whole leaf; nobody meets across."""
    rail = Rail([8, 8])
    found = rail.screen(fails())
    assert set(found.values()) == {"sound"}
    assert max(len(members) for members in rail.tests) == GROUP_MOST
    assert all(len(members) == 2 for members in rail.across())
    assert {node for members in rail.across() for node in members} == set(rail.nodes)
    assert len(rail.tests) <= 2 + 8 + 8


def test_no_two_nodes_meet_twice_after_they_have_passed() -> None:
    rail = Rail([20, 13])
    rail.screen(fails())
    pairs = [frozenset((a, b)) for members in rail.tests for a in members for b in members if a < b]
    assert len(pairs) == len(set(pairs))


def test_agents_that_take_two_meet_by_two() -> None:
    """Agents of the version before. Mutant: a group that one of them cannot join."""
    rail = Rail([7], takes=2)
    assert set(rail.screen(fails()).values()) == {"sound"}
    assert {len(members) for members in rail.tests} == {2}


@pytest.mark.parametrize("slow", ["l0.0", "l0.5", "l1.7"])
def test_a_slow_group_is_halved_until_the_node_is_named(slow: str) -> None:
    """Mutants: all of the group are blamed; its halves do not meet; the last pair's other node is blamed."""
    rail = Rail([8, 8])
    found = rail.screen(fails(slow))
    assert blamed(found) == {slow}
    sizes = [len(members) for members in rail.tests if slow in members]
    assert sizes[:3] == [8, 4, 2]
    assert all(word in ("sound", "acquitted") for node, word in found.items() if node != slow), found


def test_a_slow_leaf_blames_no_node() -> None:
    """Mutants: whoever fails beside others is blamed; a failure across is the node's."""
    found = Rail([8, 8, 8]).screen(fails("l1"))
    assert blamed(found) == set()
    assert all(word in ("open", "inconclusive") for node, word in found.items() if node.startswith("l1."))
    assert all(word == "sound" for node, word in found.items() if not node.startswith("l1."))


def test_a_leaf_that_passes_now_and_then_blames_no_node() -> None:
    """Nodes that passed are witnesses against all the others. Mutant: each is judged by itself."""
    exact = fails("l0")

    def test(rng: random.Random, members: Sequence[str]) -> bool:
        return bool(exact(members)) or rng.random() < 0.15

    for seed in range(30):
        found = Rail([24, 8]).screen(partial(test, random.Random(seed)))
        assert blamed(found) == set(), (seed, found)


def test_slow_up_links_are_said_and_blame_no_node() -> None:
    found = Rail([8, 8, 8]).screen(fails("l2^"))
    assert blamed(found) == set()
    assert {word for node, word in found.items() if node.startswith("l2.")} == {"beyond_leaf"}
    assert {word for node, word in found.items() if not node.startswith("l2.")} <= {"sound", "acquitted"}


def test_a_rail_that_is_slow_everywhere_blames_nobody() -> None:
    assert blamed(Rail([8, 8]).screen(lambda _members: False)) == set()


def test_a_node_alone_under_its_leaf_is_passed_across_and_never_blamed_across() -> None:
    """Node, link, leaf or up-links may be it. Mutants: it meets nobody; it is blamed."""
    assert Rail([1, 6]).screen(fails())["l0.0"] == "sound"
    found = Rail([1, 6, 6]).screen(fails("l0.0"))
    assert (found["l0.0"], blamed(found)) == ("inconclusive", set())
    assert set(found.values()) == {"inconclusive", "sound"}


def test_what_passes_across_after_a_failure_proves_nothing_of_the_node() -> None:
    """Tried again and again a node passes in the end. Mutant: each pass across counts, and no failure."""
    plan = MeetingPlan[str]()
    for leaf in "abcd":
        plan.company(Seat(f"{leaf}1", leaf), [Seat(f"{leaf}2", leaf)])
        plan.told((f"{leaf}1", f"{leaf}2"), passed=True)
    plan.told(("a1", "b1"), passed=False)
    plan.told(("a1", "c1"), passed=True)
    plan.told(("a2", "d1"), passed=True)
    standings = {node: plan.standing(node) for node in ("a1", "a2", "c1", "d1")}
    assert standings == {"a1": "passed", "a2": "sound", "c1": "sound", "d1": "sound"}


def test_two_under_a_leaf_are_told_apart_by_others() -> None:
    """The two accuse each other; what passes across proves node, link and leaf. Mutant: both stay open."""
    found = Rail([2, 8]).screen(fails("l0.1"))
    assert found["l0.0"] == "acquitted"
    assert found["l0.1"] in ("open", "inconclusive")
    assert blamed(found) == set()


def test_a_member_that_says_nothing_convicts_nobody_and_the_others_go_on_as_a_smaller_group() -> None:
    """Mutants: silence is a failed test; all of the group begin by two; the silent one is waited for for ever."""
    rail = Rail([8])
    rail.silent = {"l0.3"}
    found = rail.screen(fails())
    assert found.pop("l0.3") == "open"
    assert set(found.values()) == {"sound"}
    assert set(rail.tests[1]) == set(rail.nodes) - {"l0.3"}
    assert sum("l0.3" in members for members in rail.tests) <= 6


def test_a_group_that_comes_to_nothing_without_anybody_silent_is_halved() -> None:
    """A liar tells another rate than the others. Mutant: the same eight meet for ever."""
    rail = Rail([8])
    found = rail.screen(lambda members: None if "l0.2" in members else True)
    assert found.pop("l0.2") == "open"
    assert set(found.values()) == {"sound"}


def test_slow_together_and_fast_apart_blames_nobody() -> None:
    """Congestion. Mutant: those of a failed group stay suspects."""
    found = Rail([8]).screen(lambda members: len(members) < 8)
    assert blamed(found) == set()
    assert set(found.values()) <= {"sound", "acquitted"}


def test_a_node_that_may_not_load_links_between_leaves_meets_nobody_across() -> None:
    """Outside its pool's windows. Mutant: only the one that asks is looked at."""
    plan = MeetingPlan[str]()
    for leaf in "ab":
        plan.company(Seat(f"{leaf}1", leaf), [Seat(f"{leaf}2", leaf)])
        plan.told((f"{leaf}1", f"{leaf}2"), passed=True)
    may, may_not = Seat("a1", "a"), Seat("b1", "b", may_leave=False)
    assert plan.company(may, [may_not]) == ()
    assert plan.company(may_not, [may]) == ()
    assert plan.company(may, [Seat("b1", "b")]) == ("b1",)


def test_whoever_has_just_come_waits_for_a_group_and_then_meets_whom_there_is() -> None:
    plan = MeetingPlan[str]()
    new, others = Seat("a", takes=8, gathers=True), [Seat("b", takes=8), Seat("c", takes=8)]
    assert plan.company(new, others) == ()
    assert plan.company(Seat("a", takes=8), others) == ("b", "c")
    assert plan.company(Seat("a", takes=8), others[:1]) == ("b",)
    assert plan.company(Seat("a", takes=2, gathers=True), others[:1]) == ("b",)


LEAVES = st.lists(st.sampled_from([1, 2, 3, 4, 7, 8, 9, 17]), min_size=1, max_size=4)
"""Leaves crowded around the sizes of groups, of pairs, and of who is alone."""


@given(leaves=LEAVES, number=st.integers(0, 60), exact=st.booleans(), seed=st.integers(0, 10_000))
def test_one_bad_node_among_sound_ones_is_the_only_one_blamed(
    leaves: list[int], number: int, exact: bool, seed: int
) -> None:
    """Nodes are not blamed by tests that answer wrongly whom three passing nodes have not accused.

    Mutants: a group's failure counts for each; a partner of the bad node is blamed; a failure across counts.
    """
    rail, rng = Rail(leaves), random.Random(seed)
    bad = rail.nodes[number % len(rail.nodes)]
    truth = fails(bad)

    def test(members: Sequence[str]) -> bool:
        passed = bool(truth(members))
        return passed if exact else (passed or rng.random() < 0.1)

    found = rail.screen(test)
    assert blamed(found) <= {bad}
    size = leaves[int(bad.partition(".")[0][1:])]
    if exact and size >= 7:
        assert blamed(found) == {bad}
    if exact:
        assert all(word not in ("beyond_leaf", "inconclusive") for node, word in found.items() if node != bad), found


@given(
    leaves=LEAVES,
    shared=st.sampled_from(["leaf", "up", "rail"]),
    number=st.integers(0, 3),
    miss=st.sampled_from([0.0, 0.1]),
    seed=st.integers(0, 10_000),
)
def test_what_nodes_share_blames_none_of_them(
    leaves: list[int], shared: str, number: int, miss: float, seed: int
) -> None:
    """A slow leaf, slow up-links, a slow rail, under leaves of any size. Mutants: see above."""
    rng, leaf = random.Random(seed), f"l{number % len(leaves)}"
    everywhere = [f"l{one}" for one in range(len(leaves))]
    truth = fails(*{"leaf": [leaf], "up": [f"{leaf}^"], "rail": everywhere}[shared])
    found = Rail(leaves).screen(lambda members: bool(truth(members)) or rng.random() < miss)
    assert blamed(found) == set(), found


@pytest.mark.nightly("512 nodes")
def test_512_nodes_cost_far_fewer_tests_in_groups_than_by_two() -> None:
    """4 bad under 16 leaves, 1 % of tests fail wrongly and 10 % pass wrongly; each meets across too."""
    caught, innocent, cost = 0, 0, list[int]()
    for seed in range(8):
        rail, rng = Rail([32] * 16), random.Random(seed)
        bad = set(rng.sample(rail.nodes, 4))
        truth = fails(*bad)

        def test(members: Sequence[str], truth: Test = truth, rng: random.Random = rng) -> bool:
            return rng.random() >= 0.01 if truth(members) else rng.random() < 0.1

        found = blamed(rail.screen(test))
        caught, innocent = caught + len(found & bad), innocent + len(found - bad)
        cost.append(len(rail.tests))
    assert innocent == 0
    assert caught >= 28
    assert max(cost) < 480, cost
