"""Injects faults of what lies between nodes that meet, and agents that answer meetings badly."""

from collections.abc import Iterable
from random import Random

from hostler.sim.fault_injection.injection import InjectionContext
from hostler.sim.world.meeting_agents import FATES, SLOW, MeetingAgents, WayFault, leaves_of
from hostler.sim.world.simulated_network import ADAPTERS

WRONG = 0.6
"""Share of faults that change sums; others are slow, which shows beside six that are not."""


def node_wrong(injection: InjectionContext, node: str, chance: Random) -> None:
    """The node itself: by each of its ports, until its vendor has had it."""
    injection.host(node).ailed = True
    _agents(injection).is_bad(node, injection.host(node).repairs, _fault(chance))


def port_wrong(injection: InjectionContext, node: str, chance: Random) -> None:
    """An adapter or a cable: by one port."""
    _lasts(injection, [f"{node}:{chance.choice(ADAPTERS)}"], chance)


def leaf_wrong(injection: InjectionContext, node: str, chance: Random) -> None:
    """A leaf of one rail, or those of all rails at which the node is: each of its nodes fails by each of its ports."""
    found = list(_leaves(injection, node))
    _lasts(injection, found if chance.random() < 0.6 else found[:1], chance)


def up_links_wrong(injection: InjectionContext, node: str, chance: Random) -> None:
    """All up-links of these leaves, as where they lead to one wrong spine."""
    found = [f"{leaf}^" for leaf in _leaves(injection, node)]
    _lasts(injection, found if chance.random() < 0.7 else found[:1], chance)


def answers_badly(injection: InjectionContext, node: str, chance: Random) -> None:
    """The node's agent is late, lies, tells twice, measures nothing, or never comes."""
    agents = _agents(injection)
    agents.fates[node] = chance.choice(FATES)


def _leaves(injection: InjectionContext, node: str) -> Iterable[str]:
    network = injection.world.network
    assert network is not None, "nodes meet in wired worlds"
    return leaves_of(network, node)


def _lasts(injection: InjectionContext, places: list[str], chance: Random) -> None:
    """Wrong for the whole of the hostile time: burn-ins take most of it."""
    agents, fault = _agents(injection), _fault(chance)
    agents.faults |= dict.fromkeys(places, fault)


def _fault(chance: Random) -> WayFault:
    return WayFault(0.0 if chance.random() < WRONG else SLOW)


def _agents(injection: InjectionContext) -> MeetingAgents:
    agents = injection.world.actuators.meetings
    assert agents is not None, "nodes meet in worlds that were built for it"
    return agents
