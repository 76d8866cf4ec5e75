"""Nodes that come and go meet in pairs: who meets whom, whom the results blame, and at which cost."""

import random
from collections.abc import Callable

import pytest

from hostler.core.statistics.pair_screen import UNKNOWN, PairScreen, PairStanding


def screen(nodes: list[str], test: Callable[[str, str], bool | None]) -> tuple[dict[str, PairStanding], int, int]:
    """Rounds of disjoint pairs among nodes that all wait, until nobody is to meet anybody: standings, tests, rounds."""
    found, tests, rounds = PairScreen(), 0, 0
    while True:
        free, pairs = dict.fromkeys(nodes), list[tuple[str, str]]()
        for node in nodes:
            if node in free and (other := found.partner(node, free)):
                pairs.append((node, other))
                del free[node], free[other]
        if not pairs:
            return {node: found.standing(node) for node in nodes}, tests, rounds
        for a, b in pairs:
            found.told(a, b, passed=test(a, b))
        tests, rounds = tests + len(pairs), rounds + 1


def names(count: int) -> list[str]:
    return [f"n{number}" for number in range(count)]


def test_with_exact_tests_exactly_the_bad_are_blamed() -> None:
    """Mutants: the first partner of a bad node is blamed; a suspect is a witness."""
    found, tests, rounds = screen(names(64), lambda a, b: not {a, b} & {"n3", "n40"})
    assert {name for name, one in found.items() if one.is_blamed} == {"n3", "n40"}
    assert {name for name, one in found.items() if one.is_acquitted} == {"n2", "n41"}
    assert (tests, rounds) == (32 + 2 * 2 + 2 * 3, 4)


def test_of_two_nodes_neither_is_blamed_and_they_meet_once() -> None:
    found, tests, _ = screen(names(2), lambda _a, _b: False)
    assert tests == 1
    assert all(one.suspect and one.is_open for one in found.values())


def test_where_nobody_passes_nobody_is_blamed() -> None:
    found, _, _ = screen(names(16), lambda _a, _b: False)
    assert not any(one.is_blamed for one in found.values())


def test_a_partner_that_never_comes_makes_nobody_a_suspect_and_is_given_up() -> None:
    """Mutant: nothing is a failure; the two are brought together for ever."""
    found, tests, _ = screen(names(8), lambda a, b: None if "n5" in (a, b) else True)
    assert found["n5"] == UNKNOWN
    assert all(one.sound for name, one in found.items() if name != "n5")
    assert tests < 8 * 3


def test_an_odd_one_out_meets_a_sound_node() -> None:
    """Failing beside a sound node counts from the first."""
    found, _, _ = screen(names(9), lambda a, b: "n8" not in (a, b))
    assert found["n8"].is_blamed
    assert all(one.sound for name, one in found.items() if name != "n8")


@pytest.mark.parametrize("told", [True, False, None])
def test_a_sound_node_stays_sound_whatever_is_told_beside_it(told: bool | None) -> None:
    """Mutant: a witness is blamed by the suspects that it was brought together with."""
    found = PairScreen()
    found.told("a", "b", passed=True)
    for number in range(5):
        found.told("a", f"s{number}", passed=told)
    assert found.standing("a") == PairStanding(sound=True)


def test_the_same_two_do_not_meet_again_once_they_have_told() -> None:
    found = PairScreen()
    for a, b, passed in (("a", "b", True), ("s", "t", False), ("s", "a", False)):
        found.told(a, b, passed=passed)
    assert found.partner("s", ["a", "b", "t"]) == "b"
    assert found.partner("a", ["s"]) == ""
    assert found.partner("b", ["new", "s"]) == "s"
    assert found.partner("nobody", []) == ""


def test_512_nodes_by_one_pass_cost_what_the_rounds_of_pairing_cost_and_no_innocent_is_blamed() -> None:
    """4 bad, 1 % of tests fail wrongly and 10 % pass wrongly, as of `pairing`."""
    rng, caught, innocent, cost = random.Random(1), 0, 0, list[tuple[int, int]]()
    for _ in range(10):
        nodes = rng.sample(names(512), 512)
        bad = frozenset(rng.sample(nodes, 4))

        def test(a: str, b: str, bad: frozenset[str] = bad) -> bool:
            return rng.random() < 0.1 if bad & {a, b} else rng.random() >= 0.01

        found, tests, rounds = screen(nodes, test)
        blamed = {name for name, one in found.items() if one.is_blamed}
        caught, innocent = caught + len(blamed & bad), innocent + len(blamed - bad)
        cost.append((tests, rounds))
    assert innocent == 0
    assert caught >= 30
    assert all(256 < tests < 330 and rounds < 8 for tests, rounds in cost), cost
