"""Scenario of a seed: a shape, and injected faults of which each keeps its own chance, whatever is dropped."""

from collections.abc import Iterable, Iterator
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from hostler.sim.cell_shapes import Shape, loud_shape, meeting_shape, racked_shape, shape_of, wired_shape
from hostler.sim.fault_injection import (
    cabling,
    checks,
    controllers,
    loud_sources,
    machines,
    meetings,
    networks,
    people,
    rack_assets,
)
from hostler.sim.fault_injection.injection import Act, InjectionContext

HOUR_S = 3600.0
HOSTILE_S = 12 * HOUR_S
LAST_S = 11 * HOUR_S
"""Injected faults begin before this, so that they can unfold before the world is healed."""


class InjectedFault(Struct, frozen=True):
    """One thing that goes wrong: what, where (a node's number), and when (seconds after the hostile time began)."""

    index: int
    kind: str
    node: int
    at_s: float

    def __str__(self) -> str:
        return f"#{self.index} {self.kind.replace('_', ' ')} at n{self.node:05d} after {self.at_s / HOUR_S:.2f} h"


class Scenario(Struct, frozen=True):
    """A world to judge. `dropped` are the indexes that were taken out of what the seed brings."""

    seed: int
    shape: Shape
    faults: tuple[InjectedFault, ...]
    dropped: tuple[int, ...] = ()

    def without(self, indexes: tuple[int, ...]) -> "Scenario":
        """The same world with these left out; nothing else changes."""
        gone = frozenset(indexes)
        kept = tuple(one for one in self.faults if one.index not in gone)
        return Scenario(self.seed, self.shape, kept, tuple(sorted({*self.dropped, *gone})))

    def smaller(self, nodes: int) -> "Scenario":
        """The same world with only its first nodes, and only what happens to those."""
        if nodes == self.shape.nodes:
            return self
        kept = tuple(one for one in self.faults if one.node < nodes)
        shape = replace(self.shape, nodes=nodes)
        return Scenario(self.seed, shape, kept, self.dropped)


class InjectionKind(Struct, frozen=True):
    """A kind of injected fault: what is done, and how often per node, or per world, on average."""

    act: Act
    per_node: float = 0.0
    per_world: float = 0.0


def draw(seed: int) -> Scenario:
    """Draw what this seed brings."""
    shape = shape_of(seed)
    chance = Random(f"{seed}/mischief")
    found: list[InjectedFault] = []
    for kind, row in INJECTION_KINDS.items():
        often = row.per_world + row.per_node * shape.nodes
        for _ in range(int(often + chance.random())):
            at_s = 0.0 if kind in controllers.MESSAGE_FAULTS else chance.uniform(0, LAST_S)
            found.append(InjectedFault(len(found), kind, chance.randrange(shape.nodes), round(at_s, 3)))
    return Scenario(seed, shape, tuple(found))


def draw_wired(seed: int) -> Scenario:
    """The same with a compute network, and what goes wrong in that: all that `draw` brings keeps index and chance."""
    plain, chance = draw(seed), Random(f"{seed}/network faults")
    found = list(plain.faults)
    for kind, row in NETWORK_KINDS.items():
        often = row.per_world + row.per_node * plain.shape.nodes
        for _ in range(int(often + chance.random())):
            at_s = chance.uniform(0, LAST_S)
            found.append(InjectedFault(len(found), kind, chance.randrange(plain.shape.nodes), round(at_s, 3)))
    return Scenario(seed, wired_shape(seed), tuple(found))


def draw_meeting(seed: int) -> Scenario:
    """A world in which new nodes meet: faults between them, agents that answer badly, and some of the rest."""
    shape, chance, found = meeting_shape(seed), Random(f"{seed}/meeting faults"), list[InjectedFault]()
    for kind, row in MEETING_KINDS.items():
        often = row.per_world + row.per_node * shape.nodes
        for _ in range(int(often + chance.random())):
            at_s = chance.uniform(0, HOUR_S if kind.startswith("meeting") else LAST_S)
            found.append(InjectedFault(len(found), kind, chance.randrange(shape.nodes), round(at_s, 3)))
    return Scenario(seed, shape, tuple(found))


def draw_racked(seed: int) -> Scenario:
    """An NVL72 with its assets: what goes wrong with them, with controllers, people and compute trays."""
    shape, chance, found = racked_shape(seed), Random(f"{seed}/rack faults"), list[InjectedFault]()
    for kind, row in RACK_KINDS.items():
        for _ in range(int(row.per_world + chance.random())):
            at_s = chance.uniform(0, LAST_S)
            found.append(InjectedFault(len(found), kind, chance.randrange(shape.nodes), round(at_s, 3)))
    return Scenario(seed, shape, tuple(found))


def draw_loud(seed: int) -> Scenario:
    """A cell in which an agent, a BMC and a neighbour on the boot network say as much as they can."""
    shape, chance, found = loud_shape(seed), Random(f"{seed}/loud sources"), list[InjectedFault]()
    for kind, row in LOUD_KINDS.items():
        for _ in range(int(row.per_world + chance.random())):
            at_s = chance.uniform(0, LAST_S)
            found.append(InjectedFault(len(found), kind, chance.randrange(shape.nodes), round(at_s, 3)))
    return Scenario(seed, shape, tuple(found))


EACH_RACKED = 5
"""So many seeds have one world with a rack's assets, beside those that the seeds have anyway."""


def draw_either(seed: int) -> Scenario:
    """With a compute network for every other seed."""
    return draw_wired(seed) if seed % 2 else draw(seed)


def worlds_of(seeds: Iterable[int]) -> Iterator[Scenario]:
    """One world of each seed, and beside it one with a rack's assets of every fifth."""
    for seed in seeds:
        yield draw_either(seed)
        if seed % EACH_RACKED == 0:
            yield draw_racked(seed)


def again(scenario: Scenario) -> Scenario:
    """Draw what the scenario's seed brings, whatever was taken out of it."""
    if scenario.shape.loud:
        return draw_loud(scenario.seed)
    if scenario.shape.meets:
        return draw_meeting(scenario.seed)
    if scenario.shape.racked:
        return draw_racked(scenario.seed)
    return draw_wired(scenario.seed) if scenario.shape.wired else draw(scenario.seed)


def plan_faults(scenario: Scenario, injection: InjectionContext) -> None:
    """Have everything happen at its time; it is counted where it happens."""
    names = list(injection.world.hosts)
    for one in scenario.faults:
        _plan(one, injection, names[one.node], Random(f"{scenario.seed}/mischief/{one.index}"))


def _plan(one: InjectedFault, injection: InjectionContext, node: str, chance: Random) -> None:
    def happen() -> None:
        if one.kind not in _COUNTED_WHEN_THEY_STRIKE:
            injection.troubles.injected[one.kind.replace("_", " ")] += 1
        _KINDS[one.kind].act(injection, node, chance)

    injection.world.clock.after(one.at_s, happen)


INJECTION_KINDS: dict[str, InjectionKind] = {
    **{name: InjectionKind(act, per_world=0.6) for name, act in controllers.MESSAGE_FAULTS.items()},
    # controllers
    "crash": InjectionKind(controllers.crash, per_world=5.0),
    "gap": InjectionKind(controllers.gap, per_world=0.15),
    "commit_fails": InjectionKind(controllers.commit_fails, per_world=1.0),
    "stands_still": InjectionKind(controllers.stands_still, per_world=1.0),
    "clock_leaps": InjectionKind(controllers.clock_leaps, per_world=0.2),
    # machines
    "part_breaks": InjectionKind(machines.part_breaks, per_node=0.5),
    "two_break_at_once": InjectionKind(machines.two_break_at_once, per_world=0.4),
    "leak": InjectionKind(machines.leak, per_world=0.15),
    "program_fault": InjectionKind(machines.program_fault, per_node=0.1),
    "forged_line": InjectionKind(machines.forged_line, per_node=0.2),
    "rooted_line": InjectionKind(machines.rooted_line, per_node=0.25),
    "flapping_sensor": InjectionKind(machines.flapping_sensor, per_node=0.1),
    "sensor_at_limit": InjectionKind(machines.sensor_at_limit, per_world=0.3),
    "dead_sensor": InjectionKind(machines.dead_sensor, per_world=0.3),
    "supply_fails": InjectionKind(machines.supply_fails, per_world=0.3),
    "bmc_restarts": InjectionKind(machines.bmc_restarts, per_node=0.1),
    "bmc_hangs": InjectionKind(machines.bmc_hangs, per_node=0.05),
    "bmc_unavailable": InjectionKind(machines.bmc_unavailable, per_node=0.05),
    "bmc_locks_out": InjectionKind(machines.bmc_locks_out, per_node=0.03),
    "bmc_half_done": InjectionKind(machines.bmc_half_done, per_node=0.1),
    "bmc_lies": InjectionKind(machines.bmc_lies, per_node=0.05),
    "bad_flash": InjectionKind(machines.bad_flash, per_world=0.3),
    "agent_restarts": InjectionKind(machines.agent_restarts, per_node=0.15),
    "agent_clock_wrong": InjectionKind(machines.agent_clock_wrong, per_world=0.4),
    # what many share
    "agent_cut_off": InjectionKind(networks.agent_cut_off, per_node=0.05),
    "management_outage": InjectionKind(networks.management_outage, per_world=0.2),
    "leaf_switch": InjectionKind(networks.leaf_switch, per_world=0.15),
    "nvlink_switch": InjectionKind(networks.nvlink_switch, per_world=0.15),
    "rack_dark": InjectionKind(networks.rack_dark, per_world=0.15),
    "feed_lost": InjectionKind(networks.feed_lost, per_world=0.15),
    "leak_spreads": InjectionKind(networks.leak_spreads, per_world=0.08),
    "bad_rollout": InjectionKind(networks.bad_rollout, per_world=0.15),
    "scheduler_away": InjectionKind(networks.scheduler_away, per_world=0.2),
    # people
    "hold": InjectionKind(people.hold, per_node=0.08),
    "cordon": InjectionKind(people.cordon, per_node=0.08),
    "foreign_cordon": InjectionKind(people.foreign_cordon, per_node=0.08),
    "pause": InjectionKind(people.pause, per_world=0.4),
    "propose": InjectionKind(people.propose, per_world=0.5),
    "wish": InjectionKind(people.ask_remedy, per_node=0.15),
    "wish_for_many": InjectionKind(people.ask_remedy_of_many, per_world=0.15),
    "wrong_machine": InjectionKind(people.wrong_machine, per_node=0.1),
    "hands_in": InjectionKind(people.hands_in, per_node=0.05),
    "swapped_bmcs": InjectionKind(people.swapped_bmcs, per_world=0.25),
    "mixed_parts": InjectionKind(people.mixed_parts, per_world=0.25),
    "closes_tickets": InjectionKind(people.closes_tickets, per_world=0.4),
    "consents": InjectionKind(people.consents, per_world=0.5),
    "done_without_work": InjectionKind(people.done_without_work, per_node=0.1),
    "domain_act": InjectionKind(people.domain_act, per_world=1.5),
    "uncordon": InjectionKind(people.uncordon, per_world=1.5),
    # nodes that nobody asked
    "node_restarts": InjectionKind(machines.node_restarts, per_node=0.1),
    "late_heartbeat": InjectionKind(machines.late_heartbeat, per_world=0.5),
    "kubelet_dies": InjectionKind(machines.kubelet_dies, per_world=0.5),
    # checks that say nothing
    "check_lacking": InjectionKind(checks.lacking, per_node=0.15),
    "check_says_nothing": InjectionKind(checks.says_nothing, per_node=0.15),
    "check_mute": InjectionKind(checks.mute, per_node=0.05),
    # what brings nodes to limits that seldom bind
    "bad_lot": InjectionKind(machines.bad_lot, per_world=0.4),
    "window": InjectionKind(people.window, per_world=1.2),
}
"""Kinds of faults, and how often they come. New kinds are added at the end: what is drawn before them stays so."""

NETWORK_KINDS: dict[str, InjectionKind] = {
    "cables_swapped": InjectionKind(cabling.cables_swapped, per_world=1.5),
    "cable_moved": InjectionKind(cabling.cable_moved, per_world=0.8),
    "cable_missing": InjectionKind(cabling.cable_missing, per_world=1.2),
    "cable_degraded": InjectionKind(cabling.cable_degraded, per_world=0.6),
    "link_flaps": InjectionKind(cabling.link_flaps, per_world=1.5),
    "optics_dirty": InjectionKind(cabling.optics_dirty, per_world=0.8),
    "bit_errors": InjectionKind(cabling.bit_errors, per_world=0.6),
    "switch_dies": InjectionKind(cabling.switch_dies, per_world=0.7),
    "discovery_late": InjectionKind(cabling.discovery_late, per_world=1.0),
    "discovery_cut": InjectionKind(cabling.discovery_cut, per_world=1.0),
    "discovery_shrunken": InjectionKind(cabling.discovery_shrunken, per_world=1.0),
    "discovery_twice": InjectionKind(cabling.discovery_twice, per_world=1.0),
    "discovery_contradictory": InjectionKind(cabling.discovery_contradictory, per_world=1.0),
    "port_tool_fails": InjectionKind(cabling.port_tool_fails, per_world=1.0),
}
"""Faults of a compute network; drawn from a stream of its own, after all the rest."""

MEETING_KINDS: dict[str, InjectionKind] = {
    "meeting_node_wrong": InjectionKind(meetings.node_wrong, per_world=0.7),
    "meeting_port_wrong": InjectionKind(meetings.port_wrong, per_world=0.7),
    "meeting_leaf_wrong": InjectionKind(meetings.leaf_wrong, per_world=0.4),
    "meeting_up_links_wrong": InjectionKind(meetings.up_links_wrong, per_world=0.6),
    "meeting_answers_badly": InjectionKind(meetings.answers_badly, per_node=0.12),
    **{
        kind: InjectionKind((INJECTION_KINDS | NETWORK_KINDS)[kind].act, per_world=often)
        for kind, often in {
            "crash": 3.0, "stands_still": 0.5, "agent_restarts": 1.0, "agent_cut_off": 0.5, "node_restarts": 1.0,
            "pause": 0.3, "part_breaks": 1.0, "cables_swapped": 0.4, "switch_dies": 0.3, "check_mute": 0.5,
        }.items()
    },
}  # fmt: skip
"""Faults of worlds in which nodes meet, which are drawn by themselves."""

RACK_KINDS: dict[str, InjectionKind] = {
    "supply_out": InjectionKind(rack_assets.supply_out, per_world=1.0),
    "unit_leaks": InjectionKind(rack_assets.unit_leaks, per_world=0.5),
    "tray_leaks": InjectionKind(rack_assets.tray_leaks, per_world=1.2),
    "asset_ill": InjectionKind(rack_assets.asset_ill, per_world=1.0),
    "asset_swapped": InjectionKind(rack_assets.asset_swapped, per_world=0.6),
    "asset_silent": InjectionKind(rack_assets.asset_silent, per_world=1.2),
    **{
        kind: InjectionKind(INJECTION_KINDS[kind].act, per_world=often)
        for kind, often in {
            "crash": 4.0, "commit_fails": 0.5, "stands_still": 0.5, "part_breaks": 1.5, "leak": 0.3,
            "nvlink_switch": 0.3, "rack_dark": 0.15, "node_restarts": 0.5, "hold": 0.4, "pause": 0.4, "domain_act": 0.4,
        }.items()
    },
    "tray_old": InjectionKind(rack_assets.tray_old, per_world=0.6),
}  # fmt: skip
"""Faults of worlds with a rack's assets, which are drawn by themselves."""

LOUD_KINDS: dict[str, InjectionKind] = {
    "agent_says_all": InjectionKind(loud_sources.agent_says_all, per_world=1.0),
    "bmc_says_all": InjectionKind(loud_sources.bmc_says_all, per_world=0.8),
    "boot_neighbour": InjectionKind(loud_sources.boot_neighbour, per_world=0.8),
    "boots_flap": InjectionKind(loud_sources.boots_flap, per_world=0.4),
    **{
        kind: InjectionKind(INJECTION_KINDS[kind].act, per_world=often)
        for kind, often in {
            "crash": 2.0,
            "commit_fails": 0.5,
            "part_breaks": 1.0,
            "hold": 0.3,
            "node_restarts": 0.5,
        }.items()
    },
}
"""Faults of worlds whose sources are loud, which are drawn by themselves."""

_KINDS = INJECTION_KINDS | NETWORK_KINDS | MEETING_KINDS | RACK_KINDS | LOUD_KINDS

_COUNTED_WHEN_THEY_STRIKE = (*controllers.MESSAGE_FAULTS, "crash", "gap", "commit_fails", "stands_still", "uncordon")
