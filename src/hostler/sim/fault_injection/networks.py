"""Injects faults of what many nodes share: switches, racks, feeds, NVLink domains, coolant, rollouts, the scheduler."""

from random import Random

from hostler.core.state.verbs.activation import Activate
from hostler.sim import cell_shapes
from hostler.sim.fault_injection.injection import InjectionContext
from hostler.sim.fault_injection.machines import supply_of
from hostler.sim.world.fault_kinds import KINDS, LEAK, NVLINK5, FaultKind
from hostler.sim.world.people import Errand

HOUR_S = 3600.0
SPREAD_S = 60.0
"""Within so long all nodes of a shared part show its fault."""


def agent_cut_off(injection: InjectionContext, node: str, chance: Random) -> None:
    """The node's management port: neither agent nor BMC is reached, and its work runs on."""
    _sever(injection, [node], chance)


def management_outage(injection: InjectionContext, node: str, chance: Random) -> None:
    """A management switch: a whole row looks dead and is not."""
    _sever(injection, injection.neighbours(node, "leaf"), chance)


def _sever(injection: InjectionContext, nodes: list[str], chance: Random) -> None:
    hosts = [injection.host(name) for name in nodes]
    for host in hosts:
        host.sever()

    def mended() -> None:
        for host in hosts:
            host.mend()

    injection.lasts(chance.uniform(300, 3 * HOUR_S), mended)


def leaf_switch(injection: InjectionContext, node: str, chance: Random) -> None:
    """All links of a leaf go down; they are up again when the switch is."""
    _share(injection, injection.neighbours(node, "leaf"), KINDS["link_down"], chance)


def nvlink_switch(injection: InjectionContext, node: str, chance: Random) -> None:
    """A switch tray of an NVLink domain: every GPU of the domain says so, and no reset of one helps."""
    kind = NVLINK5[0] if injection.shape.kind == "rack" else KINDS["nvlink"]
    _share(injection, injection.neighbours(node, "nvlink"), kind, chance)


def _share(injection: InjectionContext, nodes: list[str], kind: FaultKind, chance: Random) -> None:
    world = injection.world
    struck = [node for node in nodes if chance.random() < 0.9]
    for node in struck:
        injection.strikes(chance.uniform(0, SPREAD_S), kind, "shared", node)

    def mended() -> None:
        for node in struck:
            world.hosts[node].ends("shared")

    injection.lasts(chance.uniform(1200, 4 * HOUR_S), mended)


def rack_dark(injection: InjectionContext, node: str, chance: Random) -> None:
    """Both feeds of a rack: servers and BMCs are dark, and the servers stay off when power is back."""
    hosts = [injection.host(name) for name in injection.neighbours(node, "rack")]
    now = injection.world.clock.now
    for host in hosts:
        host.loses_power(now)

    def restored() -> None:
        for host in hosts:
            host.regains_power(injection.world.clock.now)

    injection.lasts(chance.uniform(120, 2 * HOUR_S), restored)


def feed_lost(injection: InjectionContext, node: str, chance: Random) -> None:
    """A feed of two feeds: every node on it shows a supply without input and runs on."""
    lasts_s = chance.uniform(600, 4 * HOUR_S)
    for name in injection.neighbours(node, "power"):
        supply_of(injection, name, lasts_s)


def leak_spreads(injection: InjectionContext, node: str, chance: Random) -> None:
    """Coolant runs from one tray to the next."""
    for number, name in enumerate(injection.neighbours(node, "rack")[: chance.randint(2, 3)]):
        injection.strikes(number * SPREAD_S, LEAK, "cooling", name)


def bad_rollout(injection: InjectionContext, _node: str, chance: Random) -> None:
    """A firmware baseline is activated whose image is for something else; after a while it is taken back."""
    _activate(injection, cell_shapes.documents(injection.shape, "1.2.0", chance.choice(("Retimer", "BIOS"))))
    injection.lasts(
        chance.uniform(HOUR_S, 5 * HOUR_S), lambda: _activate(injection, cell_shapes.documents(injection.shape))
    )


def _activate(injection: InjectionContext, documents: dict[str, str]) -> None:
    errand = Errand(Activate(), "fleet", "hal", "the new baseline")
    injection.world.people.ask(errand, cell_shapes.configuration(documents), documents)


def scheduler_away(injection: InjectionContext, _node: str, chance: Random) -> None:
    """The scheduler answers nobody for hours; work starts and ends all the same."""
    scheduler = injection.world.scheduler
    scheduler.go_away()
    injection.lasts(chance.uniform(600, 5 * HOUR_S), scheduler.come_back)
