"""Nodes that a sweep passes over need nothing: the cheap and the whole answer agree over long, strange histories."""

import random
from collections.abc import Iterator
from itertools import product
from typing import Any

from msgspec.structs import replace

from hostler.controller.live_updates import next_by_clock
from hostler.controller.wakeups import told
from hostler.core.conditions.own_conditions import is_unlisted
from hostler.core.planning.needs_nothing import needs_nothing
from hostler.core.planning.next_step import next_step
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Rest, Wait
from hostler.core.state.model import Node
from tests.drawing import examples
from tests.kit import Drive
from tests.property.test_any_history import drawn, play, world


def variants(node: Node) -> Iterator[Node]:
    """The node, and as it would be had some of its history been forgotten: what holds for one holds for each."""
    forgotten: tuple[dict[str, Any], ...] = ({"waiting": None}, {"attempts": ()}, {"cordons": ()}, {"conditions": ()})
    for some in product(*(({}, one) for one in forgotten)):
        yield replace(node, **{name: value for one in some for name, value in one.items()})


def judged(drive: Drive) -> int:
    """How many nodes rest; each of them gets the whole answer too."""
    context = DecisionContext(drive.fleet, drive.controller.live, drive.now)
    nodes = [one for name in drive.fleet.nodes for one in variants(drive.node(name))]
    resting = [node for node in nodes if needs_nothing(drive.fleet, node)]
    for node in resting:
        assert next_step(context, node) == Rest(), f"{node.id} is passed over, and needs something"
        if not is_unlisted(context, node):  # of these a sweep itself asks (`sweep_filter`)
            assert next_by_clock(context, node) is None, f"{node.id} is passed over, and the clock has something for it"
    return len(resting)


def unasked(drive: Drive) -> int:
    """How many of those who wait are not asked when something eases; each of them would be told the same again."""
    context = DecisionContext(drive.fleet, drive.controller.live, drive.now)
    waiting, blocked = (drive.fleet.index.members(key) for key in ("waiting", "blocked"))
    in_hands = [drive.node(name) for name in waiting if name not in blocked]
    for node in in_hands:
        answer = next_step(context, node)
        assert isinstance(answer, Wait), f"{node.id} is not asked again, and would go on"
        assert told(node, answer, drive.now) == node.waiting, f"{node.id} is not asked again, and waits for another"
    return len(in_hands)


def test_a_node_that_a_sweep_passes_over_needs_nothing(seed: int) -> None:
    """Mutants: `rests` looks at no cordons; at no attempts; at no holds; at no conditions."""
    chance = random.Random(seed)
    drive = world()
    resting = judged(drive)
    for _ in range(examples(150, quick=40)):
        play(drive, drawn(chance))
        resting += judged(drive)
    assert resting, "somebody rests at first"


def test_a_node_that_is_not_asked_when_something_eases_waits_for_the_same() -> None:
    """Mutant: `is_in_hands` of everybody who waits."""
    in_hands = 0
    for seed in range(examples(8, quick=4)):
        chance, drive = random.Random(seed), world()
        for _ in range(150):
            play(drive, drawn(chance))
            in_hands += unasked(drive)
    assert in_hands, "somebody is in a person's hands"
