"""Waiting nodes stand in the order of the GPU-hours that they cost, on the front page and in lists."""

from datetime import timedelta
from typing import Any, cast

from hostler.core.state.configuration import Configuration
from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import Blocker, Node, Part, Waiting
from hostler.core.state.ways_out import observed
from hostler.runtime.cell_controllers import ControllerHealth
from hostler.server.cell_view import CellView
from hostler.server.fleet_status import FleetStatus, status
from hostler.server.recent_changes import Changes
from hostler.server.tokens import Grant, Identity, Role
from tests.kit import NOW, a_node, configuration


class Standing:
    """The cell as it stands, for a screen."""

    name, version, role = "c1", "1", "active"

    def __init__(self, fleet: Fleet) -> None:
        self.view, self.live = fleet, LiveState()

    def health(self) -> ControllerHealth:
        return ControllerHealth("active", 1, 1, 0, 0.0, "", ok=True)


def waiting(name: str, hours: float, text: str = "full", **fields: Any) -> Node:
    wait = Waiting("reboot", NOW - timedelta(hours=hours), (Blocker("budget", "pool:train", text, observed("room")),))
    return a_node(name, waiting=wait, **fields)


def shown(config: Configuration, *nodes: Node, parts: dict[str, int] | None = None) -> FleetStatus:
    fleet = Fleet(config)
    for node in nodes:
        fleet.put_node(node.id, node)
    for name, number in (parts or {}).items():
        for gpu in range(number):
            fleet.parts.put(f"{name}-G{gpu}", Part(f"{name}-G{gpu}", "gpu", "H100", f"gpu{gpu}", node=name))
    fleet.merge()
    ada = Identity("t1", Grant("ada", Role.operator))
    return status(cast(CellView, Standing(fleet)), ada, NOW, Changes(None, {}, ()))


def test_the_queue_is_sorted_by_gpu_hours_and_not_by_age() -> None:
    """Mutants: the oldest first; a node that lost GPUs counts for those that are left; unknown counts as the most."""
    nodes = (waiting("old", 30, sku="other"), waiting("some", 5), waiting("most", 7), waiting("few", 20, sku="found"))
    told = shown(configuration(), *nodes, parts={"most": 1, "few": 2})
    assert [(row.node, row.gpus, row.gpu_hours) for row in told.stuck] == [
        ("most", 8, 56.0),
        ("few", 2, 40.0),
        ("some", 8, 40.0),
        ("old", None, None),
    ]


def test_a_group_has_the_sum_of_its_nodes_and_says_of_how_many_it_is_unknown() -> None:
    """Mutants: groups by their oldest; a node of unknown GPUs is left out of the count."""
    nodes = (
        waiting("a", 100, "one of them", sku="other"),
        waiting("b", 2, "many"),
        waiting("c", 1, "many"),
        waiting("d", 90, "many", sku="other"),
    )
    told = shown(configuration(), *nodes)
    assert [(row.text, row.gpu_hours, row.unknown, row.nodes) for row in told.waits] == [
        ("many", 24.0, 1, 3),
        ("one of them", 0.0, 1, 1),
    ]


def test_a_wait_that_begins_after_now_has_cost_nothing() -> None:
    """A clock that went back. Mutant: below zero."""
    assert [row.gpu_hours for row in shown(configuration(), waiting("a", -2)).stuck] == [0.0]
