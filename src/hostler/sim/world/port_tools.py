"""The tools that read and reset ports of a simulated network, behind the driver that runs in production."""

from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from random import Random

from msgspec import Struct

from hostler.core.fabric.design import Port
from hostler.core.fabric.discovery import FoundPort
from hostler.core.state.fabrics import DiscoverySource
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node
from hostler.core.state.operations import DiscoverFabric
from hostler.drivers.infiniband.diagnostics import PortAct
from hostler.drivers.infiniband.port_resets import PortResetter, Refused
from hostler.ports import OperationDriver
from hostler.sim.world import port_agents
from hostler.sim.world.simulated_network import SimulatedNetwork
from hostler.sim.world.world_context import Site

TRAINS_S = (1.0, 40.0)
"""How long a port takes to train after a reset. An estimate: no real one has been seen."""
STUCK_S = 90 * 86_400.0
UNHEARD, UNANSWERED, CUT, STUCK = "unheard", "unanswered", "cut", "stuck"
TROUBLES = (UNHEARD, UNANSWERED, CUT, STUCK, *port_agents.FATES)
"""Fates of a reset: its tool hangs before or after the port has heard it, its page is cut off, the port stays down.

Those of `port_agents` are of agents alone; a tool on the controller's host takes them for none.
"""


class PortReset(Struct, frozen=True):
    """A reset that took place: when, of which port, where its cable really led, and whether that was ever otherwise."""

    at: datetime
    port: Port
    far: Port | None
    moved: bool


class PortHand:
    """Reads and resets ports for the `driver`, by tools of the controller's host or by the nodes' agents.

    `spoilt`: fates of the next resets; `resets`: those that took place.
    """

    def __init__(
        self, site: Site, network: SimulatedNetwork, hosts: Mapping[str, port_agents.Host], chance: Random
    ) -> None:
        self._agents = port_agents.SimulatedPortAgents(site, hosts, self._fate, chance)
        self._agents.reset = self._take_down
        self.spoilt: deque[str] = deque()
        self.resets: list[PortReset] = []
        self.driver = PortResetter(self, self, Fleet, lambda _node, _act: "nobody has connected it", lambda _fabric: {})
        self._site = site
        self._network = network
        self._chance = chance
        self._ports = {network.found(port): port for port in network.designed}

    def connect(
        self, fleet: Callable[[], Fleet], refused: Refused, places: Callable[[str], Mapping[str, FoundPort]]
    ) -> None:
        """Give these tools to the driver that runs in production."""
        self.driver = PortResetter(self, self, fleet, refused, places)

    def hand(self) -> OperationDriver | None:
        """The hosts' agents, each for its own port."""
        return self._agents

    async def page(self, node: Node, wanted: DiscoverFabric) -> str:
        """Page of the node's agent about its own port. Raises NoPageError."""
        port = self._agents.own_port(node, wanted)
        self._network.observe()
        return self._page(port)

    async def port(self, _how: DiscoverySource, at: FoundPort, act: PortAct) -> str:
        """Page of the tool. Raises ValueError where it prints nothing."""
        port = self._ports[at]
        self._network.observe()
        if port.device in self._network.dead:
            raise ValueError("`smpquery` ended with 255: the switch does not answer")
        return self._page(port) if act == "query" else self._reset(port)

    def _page(self, port: Port) -> str:
        up = self._network.is_lit(port)
        states = ("Active", "LinkUp") if up else ("Down", "Polling")
        return "LinkState:.......................{}\nPhysLinkState:...................{}\n".format(*states)

    def _reset(self, port: Port) -> str:
        fate = self._fate()
        if fate == UNHEARD:
            raise ValueError("`ibportstate` did not end within 20 s")
        self._take_down(port, fate)
        if fate == UNANSWERED:
            raise ValueError("`ibportstate` did not end within 20 s")
        page = f"Initial Switch PortInfo:\n\nAfter PortInfo set:\n{self._page(port)}"
        return page[: self._chance.randrange(25)] if fate == CUT else page

    def _fate(self) -> str:
        return self.spoilt.popleft() if self.spoilt else ""

    def _take_down(self, port: Port, fate: str) -> None:
        """The reset takes place: the link is down until the port has trained again, if it ever does."""
        network = self._network
        self.resets.append(PortReset(self._site.recorded, port, network.links.get(port), port in network.wrong_at))
        trains_s = STUCK_S if fate == STUCK else self._chance.uniform(*TRAINS_S)
        network.trains(port, self._site.clock.now + timedelta(seconds=trains_s))
