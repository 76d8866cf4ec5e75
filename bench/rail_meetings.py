"""Nodes under leaves meet by one rail, in groups and by two: what is found, at which cost, and whether innocents are.

`python -m bench rail_meetings`: 512 nodes under 16 leaves, of which 4 or a leaf or its up-links are slow; 1 % of tests
fail wrongly and 10 % pass wrongly. Intervals are Wilson's, 95 %.
"""

import os
import random
from collections.abc import Callable, Sequence

from bench.trends import BAD, MISS, WRONG_FAIL, share
from hostler.core.statistics.meeting_plan import GROUP_MOST, MeetingPlan, Seat

LEAVES, UNDER, SCREENINGS = 16, 32, 100
ROUNDS_MOST = 60

Test = Callable[[Sequence[str]], bool | None]


class Rail:
    """Nodes of one rail that all wait; `leaves`: how many are under each leaf. A node is named "LEAF.NUMBER".

    `silent` members of meetings never tell. `tests` are those that were made, in `rounds` of disjoint ones.
    """

    def __init__(self, leaves: Sequence[int], takes: int = GROUP_MOST) -> None:
        self.plan = MeetingPlan[str]()
        self.nodes = [f"l{leaf}.{number}" for leaf, count in enumerate(leaves) for number in range(count)]
        self.takes = takes
        self.tests: list[tuple[str, ...]] = []
        self.silent: set[str] = set()
        self.rounds = 0

    def screen(self, test: Test) -> dict[str, str]:
        """Rounds of meetings until nobody is to meet anybody: how each node stands. Raises AssertionError for ever."""
        alone = set[str]()
        while self.rounds < ROUNDS_MOST:
            met = self._round(alone)
            if not met and alone == set(self.nodes):
                return {node: self.plan.standing(node) for node in self.nodes}
            alone = set() if met else set(self.nodes)
            for members in met:
                quiet = [node for node in members if node in self.silent]
                self.plan.told(members, passed=None if quiet else test(members), silent=quiet)
            self.tests += met
            self.rounds += bool(met)
        raise AssertionError(f"after {ROUNDS_MOST} rounds they still meet: {self.tests[-4:]}")

    def across(self) -> list[tuple[str, ...]]:
        """Tests of nodes of different leaves."""
        return [members for members in self.tests if len({node.partition(".")[0] for node in members}) > 1]

    def _round(self, alone: set[str]) -> list[tuple[str, ...]]:
        free, met = dict.fromkeys(self.nodes), list[tuple[str, ...]]()
        for node in self.nodes:
            if node not in free or not (self.plan.wants(node) or node in alone):
                continue
            seats = [self._seat(one, alone=one in alone) for one in free]
            if others := self.plan.company(self._seat(node, alone=node in alone), seats):
                met.append((node, *others))
                for one in met[-1]:
                    del free[one]
        return met

    def _seat(self, node: str, *, alone: bool) -> Seat[str]:
        return Seat(node, node.partition(".")[0], self.takes, alone)


def fails(*slow: str) -> Test:
    """Tests that are exact: what goes through one of these is slow; a leaf "l1", its up-links "l1^", a node "l1.2"."""

    def test(members: Sequence[str]) -> bool:
        leaves = {node.partition(".")[0] for node in members}
        through = {*members, *leaves, *(f"{leaf}^" for leaf in leaves if len(leaves) > 1)}
        return through.isdisjoint(slow)

    return test


def main() -> str:
    """Print the table."""
    load = os.getloadavg()[0]
    head = (
        "| slow | meetings | bad nodes found | tests under leaves, across | rounds: mean, most | innocents blamed in |"
    )
    lines = [f"{LEAVES} leaves of {UNDER} nodes, {SCREENINGS} screenings a row", "", head, "|---|---|---|---|---|---|"]
    lines += [_row(f"{BAD} nodes", takes, lambda rng, nodes: rng.sample(nodes, BAD)) for takes in (GROUP_MOST, 2)]
    lines.append(_row("a leaf", GROUP_MOST, lambda _rng, _nodes: ["l3"]))
    lines.append(_row("a leaf's up-links", GROUP_MOST, lambda _rng, _nodes: ["l3^"]))
    lines.append(_row("a leaf, and 4 nodes", GROUP_MOST, lambda rng, nodes: ["l3", *rng.sample(nodes[-320:], BAD)]))
    return "\n".join((*lines, "", f"load {load:.1f} to {os.getloadavg()[0]:.1f}"))


def _row(name: str, takes: int, draw: Callable[[random.Random, list[str]], list[str]]) -> str:
    rng = random.Random(1)
    hit = sought = under = across = rounds = most = wrong = 0
    for _ in range(SCREENINGS):
        rail = Rail([UNDER] * LEAVES, takes)
        slow = draw(rng, rail.nodes)
        bad = {one for one in slow if "." in one}
        found = rail.screen(_wrong_now_and_then(rng, fails(*slow)))
        blamed = {node for node, word in found.items() if word == "blamed"}
        hit, sought, wrong = hit + len(blamed & bad), sought + len(bad), wrong + bool(blamed - bad)
        crossed = len(rail.across())
        under, across = under + len(rail.tests) - crossed, across + crossed
        rounds, most = rounds + rail.rounds, max(most, rail.rounds)
    row = (
        name,
        f"groups of up to {takes}" if takes > 2 else "by two",
        share(hit, sought) if sought else "none is bad",
        f"{under / SCREENINGS:.0f}, {across / SCREENINGS:.0f}",
        f"{rounds / SCREENINGS:.1f}, {most}",
        f"{wrong}: {share(wrong, SCREENINGS, percent=True)}",
    )
    return f"| {' | '.join(row)} |"


def _wrong_now_and_then(rng: random.Random, truth: Test) -> Test:
    return lambda members: rng.random() >= WRONG_FAIL if truth(members) else rng.random() < MISS
