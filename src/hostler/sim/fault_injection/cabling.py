"""Injects faults of the compute network: mis-cabling, flaps, dirty optics, dead switches, spoilt discoveries."""

from collections.abc import Callable
from random import Random

from hostler.core.fabric.design import Port
from hostler.core.fabric.rates import Rate
from hostler.sim.fault_injection.injection import InjectionContext
from hostler.sim.network_looks import CONTRADICTORY, CUT, LATE, SHRUNKEN, TWICE
from hostler.sim.world.fault_kinds import KINDS
from hostler.sim.world.port_tools import TROUBLES
from hostler.sim.world.simulated_network import SimulatedNetwork

HOUR_S = 3600.0
FLAPS = (3, 9)
FLAPPING_S = 3 * HOUR_S
AT_BOTH = 0.75
"""Share of flaps that both ends count; the others are a port that was reset, or a counter."""
BY_ITSELF = 0.4
"""Share of dead switches that somebody restarts without being asked."""


def _network(injection: InjectionContext) -> SimulatedNetwork:
    network = injection.world.network
    assert network is not None, "drawn for worlds with a network only"
    return network


def _port(injection: InjectionContext, node: str, chance: Random) -> Port:
    """A port of the node, or of a switch in its place: what happens to spines concerns no node."""
    network = _network(injection)
    device = node if chance.random() < 0.7 else chance.choice(network.switches())
    return chance.choice(network.ports(device))


def cables_swapped(injection: InjectionContext, node: str, chance: Random) -> None:
    """Exchange two plugs of one device."""
    network, port = _network(injection), _port(injection, node, chance)
    network.exchange(port, chance.choice(network.ports(port.device)))


def cable_moved(injection: InjectionContext, node: str, chance: Random) -> None:
    """A plug is put into a free port of the same switch."""
    network = _network(injection)
    port = chance.choice(network.ports(node))
    far = network.links.get(port)
    free = network.free_port(far.device) if far is not None else None
    if free is not None:
        network.join(port, free)


def cable_missing(injection: InjectionContext, node: str, chance: Random) -> None:
    """A plug falls out; sometimes somebody passes by and puts it back."""
    network, port = _network(injection), _port(injection, node, chance)
    far = network.links.get(port)
    network.pull(port)
    if far is not None and chance.random() < BY_ITSELF:

        def back() -> None:
            if port not in network.links and far not in network.links:
                network.join(port, far)

        injection.lasts(chance.uniform(60, 4 * HOUR_S), back)


def cable_degraded(injection: InjectionContext, node: str, chance: Random) -> None:
    """A link trains at fewer or slower lanes than it was designed for."""
    network, port = _network(injection), _port(injection, node, chance)
    rate = chance.choice((Rate(1, "NDR"), Rate(4, "HDR")))
    if (far := network.links.get(port)) is not None:
        network.slow[port] = network.slow[far] = rate


def link_flaps(injection: InjectionContext, node: str, chance: Random) -> None:
    """A link goes down and comes back, several times within hours."""
    network, port = _network(injection), _port(injection, node, chance)
    both = chance.random() < AT_BOTH
    for _ in range(chance.randint(*FLAPS)):
        injection.later(chance.uniform(0, FLAPPING_S), lambda: network.falls(port, both=both))


def optics_dirty(injection: InjectionContext, node: str, chance: Random) -> None:
    """One lane is darker than the others and errs more."""
    network = _network(injection)
    network.dirty[chance.choice(network.ports(node))] = None


def bit_errors(injection: InjectionContext, node: str, chance: Random) -> None:
    """A receiver counts symbol errors, more than the link may."""
    _network(injection).erring[_port(injection, node, chance)] = None


def switch_dies(injection: InjectionContext, _node: str, chance: Random) -> None:
    """A leaf or spine is without power; hosts at a leaf see their port go down."""
    network = _network(injection)
    switch = chance.choice(network.switches())
    network.observe()
    network.dead[switch] = None
    network.observe()
    for port in network.ports(switch):
        if (far := network.links.get(port)) is not None and far.device in injection.world.hosts:
            injection.strikes(chance.uniform(0, 60), KINDS["link_down"], f"dead {switch}", far.device)
    if chance.random() < BY_ITSELF:
        injection.lasts(chance.uniform(HOUR_S / 2, 5 * HOUR_S), lambda: network.revives(switch))


def _spoils(how: str) -> Callable[[InjectionContext, str, Random], None]:
    def spoils(injection: InjectionContext, _node: str, chance: Random) -> None:
        assert injection.looks is not None, "drawn for worlds with a network only"
        injection.looks.spoilt.extend([how] * chance.randint(1, 3))

    return spoils


discovery_late, discovery_cut, discovery_shrunken = _spoils(LATE), _spoils(CUT), _spoils(SHRUNKEN)
discovery_twice, discovery_contradictory = _spoils(TWICE), _spoils(CONTRADICTORY)


def port_tool_fails(injection: InjectionContext, _node: str, chance: Random) -> None:
    """The next resets of ports are not heard, not answered or not told whole, or the port stays down."""
    hand = injection.world.actuators.ports
    assert hand is not None, "drawn for worlds with a network only"
    hand.spoilt.extend(chance.choices(TROUBLES, k=chance.randint(1, 3)))
