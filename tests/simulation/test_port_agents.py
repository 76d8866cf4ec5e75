"""Agents that reset their own port in simulated worlds, behind the driver that runs in production: every fate."""

from datetime import timedelta

import pytest

from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.state.operations import ResetPort
from hostler.journal.memory import MemoryJournal
from hostler.ports import UnreachableError
from hostler.sim.bmc.redfish_twin import at_once
from hostler.sim.fault_injection.scenario import draw_wired
from hostler.sim.hostile_worlds import START, build
from hostler.sim.world.port_tools import CUT, STUCK, UNANSWERED, UNHEARD, PortHand
from hostler.sim.world.simulated_network import NAME

pytestmark = pytest.mark.nightly("whole worlds are lived through")

AT_NODES = 4
"""A seed whose network is looked at from nodes, so that agents reset ports."""


class World:
    """A world whose network was looked at, and an order to reset a node's port."""

    def __init__(self, fate: str) -> None:
        self.injection = build(draw_wired(AT_NODES), MemoryJournal())
        self.injection.drive.run(START + timedelta(minutes=20))
        controller, hand = self.injection.drive.controller, self.injection.world.actuators.ports
        assert controller is not None
        assert hand is not None
        fleet, network = controller.fleet, self.injection.world.network
        assert fleet.fabrics[NAME].source.nodes
        assert network is not None
        self.hand: PortHand = hand
        self.hand.spoilt.clear()
        self.hand.spoilt.extend([fate] if fate else [])
        self.before = len(hand.resets)
        self.node: Node = next(n for n in fleet.nodes.values() if n.profile.value == "managed" and self._up(n.id))
        port = network.ports(self.node.id)[0]
        act = ResetPort(NAME, str(port), str(network.designed[port]))
        now = self.injection.world.site.recorded
        self.order = Operation("op-1", act, self.node.id, "plan-1", 0, now, now + timedelta(minutes=10), attempt=1)

    def _up(self, node: str) -> bool:
        network = self.injection.world.network
        assert network is not None
        ports = network.ports(node)
        as_designed = all(network.is_lit(p) and network.links.get(p) == network.designed[p] for p in ports)
        return as_designed and self.injection.world.hosts[node].heard

    @property
    def resets(self) -> int:
        return len(self.hand.resets) - self.before

    def perform(self) -> Outcome:
        return at_once(self.hand.driver.perform(self.order, self.node))

    def seen(self) -> str:
        try:
            return at_once(self.hand.driver.observe(self.order, self.node)).result
        except UnreachableError:
            return "unreachable"

    def wait(self, seconds: float) -> None:
        clock = self.injection.world.clock
        clock.now += timedelta(seconds=seconds)


def test_a_reset_is_done_once_its_port_has_trained_and_an_order_that_comes_twice_resets_once() -> None:
    """Mutants: done at once, while the port trains; a repeated order takes the link down again."""
    world = World("")
    with pytest.raises(UnreachableError, match="is not active yet"):
        world.perform()
    (reset,) = world.hand.resets[world.before :]
    assert reset.port.device == world.node.id
    world.wait(60)
    assert (world.seen(), world.perform().result) == ("done", "done")
    assert world.resets == 1


@pytest.mark.parametrize(
    ("fate", "said", "resets", "soon", "later"),
    [
        (UNHEARD, "never fetched", 0, "not_done", "not_done"),
        (UNANSWERED, "is not active yet", 1, "unreachable", "done"),
        (CUT, "is not active yet", 1, "unreachable", "done"),
        (STUCK, "is not active yet", 1, "unreachable", "unreachable"),
        ("late", "did not answer", 1, "unreachable", "done"),
    ],
)
def test_what_an_agent_does_not_say_is_observed(fate: str, said: str, resets: int, soon: str, later: str) -> None:
    """Mutants: an order that never came is done as the port is active; a late answer's order is sent again."""
    world = World(fate)
    with pytest.raises(UnreachableError, match=said):
        world.perform()
    assert (world.resets, world.seen()) == (resets, soon)
    world.wait(600)
    assert (world.seen(), world.resets) == (later, resets)


@pytest.mark.parametrize("fate", ["busy", "refused"])
def test_an_agent_that_is_busy_or_may_not_act_resets_nothing(fate: str) -> None:
    world = World(fate)
    assert world.perform().result == fate
    assert (world.resets, world.seen()) == (0, "not_done")
