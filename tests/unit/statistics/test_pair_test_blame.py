"""Nodes that come and go meet in pairs: who meets whom, whom the results blame, and at which cost."""

import random
from collections.abc import Callable

import pytest

from hostler.core.statistics.pair_test_blame import NOTHING_MOST, PairScreen, PairStanding


def screen(nodes: list[str], test: Callable[[str, str], bool | None]) -> tuple[dict[str, PairStanding], int, int]:
    """Rounds of disjoint pairs among nodes that all wait, until nobody is to meet anybody: standings, tests, rounds."""
    found, tests, rounds = PairScreen[str](), 0, 0
    while True:
        free, pairs = dict.fromkeys(nodes), list[tuple[str, str]]()
        for node in (one for one in nodes if found.standing(one).is_open):
            if node in free and (other := found.partner(node, free)) is not None:
                pairs.append((node, other))
                del free[node], free[other]
        if not pairs:
            return {node: found.standing(node) for node in nodes}, tests, rounds
        for a, b in pairs:
            found.told((a, b), passed=test(a, b))
        tests, rounds = tests + len(pairs), rounds + 1


def names(count: int) -> list[str]:
    return [f"n{number}" for number in range(count)]


def test_with_exact_tests_exactly_the_bad_are_blamed() -> None:
    """Mutants: the first partner of a bad node is blamed; a suspect is a witness; suspects meet each other."""
    found, tests, rounds = screen(names(64), lambda a, b: not {a, b} & {"n3", "n40"})
    assert {name for name, one in found.items() if one.is_blamed} == {"n3", "n40"}
    assert {name for name, one in found.items() if one.is_sound and one.was_suspect} >= {"n2", "n41"}
    assert not any(one.is_open for one in found.values())
    assert tests < 64 + 16
    assert rounds <= 8


def test_of_two_nodes_neither_is_blamed_and_they_meet_once() -> None:
    found, tests, _ = screen(names(2), lambda _a, _b: False)
    assert tests == 1
    assert all(one.is_suspect and one.is_open for one in found.values())


def test_where_nobody_passes_nobody_is_blamed() -> None:
    """A broken switch. Mutant: a node that met nobody is a witness."""
    found, _, _ = screen(names(17), lambda _a, _b: False)
    assert not any(one.is_blamed for one in found.values())


def test_a_partner_that_never_comes_makes_nobody_a_suspect_and_is_given_up() -> None:
    """Mutant: nothing is a failure; the two are brought together for ever."""
    found, tests, _ = screen(names(8), lambda a, b: None if "n5" in (a, b) else True)
    assert found["n5"] == PairScreen[str]().standing("n5")
    assert all(one.is_sound and not one.was_suspect for name, one in found.items() if name != "n5")
    assert tests < 8 * 3


def test_an_odd_one_out_meets_the_others() -> None:
    found, _, _ = screen(names(9), lambda a, b: "n8" not in (a, b))
    assert found["n8"].is_blamed
    assert all(one.is_sound for name, one in found.items() if name != "n8")


@pytest.mark.parametrize("told", [True, False, None])
def test_a_node_that_passed_stays_a_witness_whatever_is_told_beside_bad_nodes(told: bool | None) -> None:
    """Mutant: a witness is blamed by the suspects that it was brought together with."""
    found = PairScreen[str]()
    for other in ("b", "c"):
        found.told(("a", other), passed=True)
    for number in range(5):
        for count in range(3):
            found.told((f"s{number}", f"w{number}{count}"), passed=True)
            found.told((f"s{number}", f"v{number}{count}"), passed=False)
        for witness in ("b", "c", "a"):
            found.told((f"s{number}", witness), passed=told)
    assert not any(found.standing(node).is_blamed for node in "abc")


def test_the_same_two_do_not_meet_again_once_they_have_told() -> None:
    found = PairScreen[str]()
    for a, b, passed in (("a", "b", True), ("s", "t", False), ("s", "a", False)):
        found.told((a, b), passed=passed)
    assert found.partner("s", ["a", "b", "t"]) == "b"
    assert found.partner("b", ["a", "new", "s"]) == "new"
    assert found.partner("nobody", []) is None


def test_who_is_blamed_meets_nobody_and_two_sound_nodes_have_nothing_to_tell() -> None:
    found = PairScreen[str]()
    for a, b in (("a", "b"), ("c", "d"), ("a", "c"), ("b", "d")):
        found.told((a, b), passed=True)
    for witness in "abcd":
        found.told(("x", witness), passed=False)
    assert found.standing("x").is_blamed
    assert found.partner("x", ["new"]) is None
    assert found.partner("new", ["x"]) is None
    assert found.partner("b", ["c"]) is None
    assert found.partner("new", ["c"]) == "c"


def test_a_node_whose_meetings_all_come_to_nothing_is_given_up_and_stays_open() -> None:
    """Mutant: it uses every other node's time; one that told in between is given up too."""
    found = PairScreen[str]()
    for number in range(NOTHING_MOST):
        assert found.partner("mute", ["new"]) == "new"
        found.told(("mute", f"n{number}"), passed=None)
    assert found.partner("mute", ["new"]) is None
    assert found.partner("new", ["mute"]) is None
    assert found.standing("mute").is_open
    found.told(("mute", "n0"), passed=True)
    assert found.partner("mute", ["new"]) == "new"


def test_512_nodes_that_come_one_after_the_other_cost_what_the_rounds_of_pairing_cost() -> None:
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
    assert caught >= 37
    assert all(512 < tests < 620 and rounds < 14 for tests, rounds in cost), cost
