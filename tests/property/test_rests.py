"""What a sweep passes over needs nothing: the cheap answer and the whole one agree over long, strange histories."""

import random
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.answers import Rest
from hostler.core.model import Node
from hostler.core.plan import next_step, wakes_at
from hostler.core.rest import rests
from hostler.core.scene import Scene
from tests.kit import Drive
from tests.property.test_any_history import drawn, play, world


def variants(node: Node) -> Iterator[Node]:
    """The node, and as it would be had some of its history been forgotten: what holds for one holds for each."""
    forgotten: tuple[dict[str, Any], ...] = ({"waiting": None}, {"attempts": ()}, {"cordons": ()}, {"conditions": ()})
    for some in product(*(({}, one) for one in forgotten)):
        yield replace(node, **{name: value for one in some for name, value in one.items()})


def judged(drive: Drive) -> int:
    """How many nodes rest; each of them gets the whole answer too."""
    scene = Scene(drive.fleet, drive.controller.present, drive.now)
    nodes = [one for name in drive.fleet.nodes for one in variants(drive.node(name))]
    resting = [node for node in nodes if rests(drive.fleet, node)]
    for node in resting:
        assert isinstance(next_step(scene, node), Rest), f"{node.id} is passed over, and needs something"
        assert wakes_at(scene, node) is None, f"{node.id} is passed over, and the clock has something for it"
    return len(resting)


@pytest.mark.parametrize("seed", range(8))
def test_a_node_that_a_sweep_passes_over_needs_nothing(seed: int) -> None:
    """Mutants: `rests` looks at no cordons; at no attempts; at no holds; at no conditions."""
    chance = random.Random(seed)
    drive = world()
    resting = judged(drive)
    for _ in range(150):
        play(drive, drawn(chance))
        resting += judged(drive)
    assert resting, "somebody rests at first"
