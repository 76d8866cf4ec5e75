"""Faults of hard worlds beside a job's own: lemons, repeats, idle nodes that fail, racks, firmware, bad spares."""

import random
from collections.abc import Iterator
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from hostler.sim.difficulty import Hardship
from hostler.sim.failure_rates import Rates
from hostler.sim.fault_schedule import Strike, pick, place_of
from hostler.sim.world.fault_kinds import COMPONENTS, KINDS, OTHER, SLOW, FaultKind
from hostler.sim.world.simulated_host import SimulatedHost
from hostler.sim.world.world import World

DAY_S = 86_400.0
NODES_PER_RACK = 4
LEMON, REPEAT, IDLE, RACK, FIRMWARE, SPARE, RETURNED, STRAGGLER = (
    "lemon",
    "repeat",
    "idle",
    "rack",
    "firmware",
    "spare",
    "returned",
    "straggler",
)
"""Components: why a fault is there that no place of the job drew."""

DEFECTS = ("double_bit", "nvlink", "off_bus", "halted", "gsp")
"""Faults of a lemon, a bad spare, or a node back from repair: a GPU that fails under work. Assumed equally likely."""
SYMPTOM_CURES = {"double_bit": "gpu_reset", "nvlink": "gpu_reset", "off_bus": "power_cycle", "halted": "gpu_reset"}
"""Remedies that end a lemon's symptom until the next time; a reboot where it is not named."""
FIRMWARE_DAYS = 7
BURST = (2, NODES_PER_RACK)
"""How many nodes of a rack fail together, least and most."""


class ExtraFault(Struct, frozen=True):
    """A fault to come on a node by name, seconds after the job's start. `cure`: of the symptom."""

    at_s: float
    component: str
    kind: str
    cure: str
    node: int


class RackPowerLoss(Struct, frozen=True):
    """Nodes of one rack lose their power together; it is mended `mended_s` later."""

    at_s: float
    nodes: tuple[int, ...]
    mended_s: float


class DrawnFaults(Struct, frozen=True):
    """Faults of a run, drawn before the world begins. `fault_schedule` fall on places of the job, as in plain worlds.

    `hidden` are (node, kind) that are broken from the start; a blow or a burst falls on whom it names.
    """

    strikes: tuple[Strike, ...]
    blows: tuple[ExtraFault, ...]
    bursts: tuple[RackPowerLoss, ...]
    hidden: tuple[tuple[int, str], ...]


class Cluster(Struct, frozen=True):
    """How large it is, how long it is watched, and how often its nodes fail."""

    rates: Rates
    nodes: int
    spares: int
    days: float
    seed: int

    @property
    def length_s(self) -> float:
        """Length of the watch, in s."""
        return self.days * DAY_S


def drawn(cluster: Cluster, hard: Hardship, strikes: tuple[Strike, ...]) -> DrawnFaults:
    """Draw this cluster's faults: strikes on its job, thinned so that all keep the published rate, and the rest."""
    kept = 1 - hard.lemon_failures - hard.burst_share
    chance = _chance(cluster, "thinned")
    return DrawnFaults(
        strikes=tuple(strike for strike in strikes if chance.random() < kept),
        blows=tuple(sorted((*_lemons(cluster, hard), *_others(cluster, hard)), key=lambda blow: blow.at_s)),
        bursts=tuple(_bursts(cluster, hard)),
        hidden=tuple(_hidden(cluster, hard)),
    )


def _chance(cluster: Cluster, name: str) -> random.Random:
    return random.Random(f"{cluster.seed}/{name}")


def _moments(per_s: float, length_s: float, chance: random.Random) -> Iterator[float]:
    """When a Poisson process strikes."""
    if per_s <= 0:
        return
    at_s = chance.expovariate(per_s)
    while at_s < length_s:
        yield at_s
        at_s += chance.expovariate(per_s)


def _lemons(cluster: Cluster, hard: Hardship) -> Iterator[ExtraFault]:
    """So many of the job's first nodes share so many of all failures, each with a defect of its own."""
    chance = _chance(cluster, LEMON)
    count = max(1, round(hard.lemon_share * cluster.nodes))
    per_s = hard.lemon_failures * cluster.rates.per_second(cluster.nodes) / count
    for node in chance.sample(range(cluster.nodes), min(count, cluster.nodes)):
        defect = chance.choice(DEFECTS)
        for at_s in _moments(per_s, cluster.length_s, chance):
            yield ExtraFault(at_s, LEMON, defect, SYMPTOM_CURES.get(defect, "reboot"), node)


def _others(cluster: Cluster, hard: Hardship) -> Iterator[ExtraFault]:
    """Idle spares, nodes with a new firmware, and nodes that become slow."""
    one_per_s = cluster.rates.per_second(1)
    chance = _chance(cluster, IDLE)
    for at_s in _moments(hard.idle_factor * one_per_s * cluster.spares, cluster.length_s, chance):
        kind = KINDS[_kind(cluster.rates, chance)]
        yield ExtraFault(
            at_s, IDLE, kind.name, pick(kind.cures, chance), cluster.nodes + chance.randrange(cluster.spares)
        )
    yield from _firmware(cluster, hard)
    chance = _chance(cluster, STRAGGLER)
    for at_s in _moments(hard.stragglers / 1000 / DAY_S * cluster.nodes, cluster.length_s, chance):
        yield ExtraFault(at_s, STRAGGLER, SLOW.name, pick(SLOW.cures, chance), chance.randrange(cluster.nodes))


def _firmware(cluster: Cluster, hard: Hardship) -> Iterator[ExtraFault]:
    """One change on a day of its own; for a week its nodes' GPUs lose their system processor more often."""
    chance = _chance(cluster, FIRMWARE)
    batch = chance.sample(range(cluster.nodes), round(hard.firmware_share * cluster.nodes))
    began_s = chance.random() * cluster.length_s
    more_per_s = (hard.firmware_factor - 1) * cluster.rates.per_second(1) * len(batch)
    for at_s in _moments(more_per_s, FIRMWARE_DAYS * DAY_S, chance):
        if began_s + at_s < cluster.length_s:
            yield ExtraFault(began_s + at_s, FIRMWARE, "gsp", "gpu_reset", chance.choice(batch))


def _bursts(cluster: Cluster, hard: Hardship) -> Iterator[RackPowerLoss]:
    """The share counts failed nodes: a burst of three is three failures."""
    chance = _chance(cluster, RACK)
    mean = (BURST[0] + BURST[1]) / 2
    per_s = hard.burst_share * cluster.rates.per_second(cluster.nodes) / mean
    for at_s in _moments(per_s, cluster.length_s, chance):
        first = chance.randrange(max(1, cluster.nodes // NODES_PER_RACK)) * NODES_PER_RACK
        rack = range(first, min(first + NODES_PER_RACK, cluster.nodes))
        nodes = chance.sample(rack, min(len(rack), chance.randint(*BURST)))
        yield RackPowerLoss(at_s, tuple(nodes), hard.burst_hours * 3600 * chance.uniform(0.5, 1.5))


def _hidden(cluster: Cluster, hard: Hardship) -> Iterator[tuple[int, str]]:
    chance = _chance(cluster, SPARE)
    for spare in range(cluster.spares):
        if chance.random() < hard.bad_spares:
            yield cluster.nodes + spare, chance.choice(DEFECTS)


def _kind(rates: Rates, chance: random.Random) -> str:
    component = pick(tuple((share.component, share.share) for share in rates.shares), chance)
    return pick(COMPONENTS.get(component, OTHER), chance)


def rack_of(number: int) -> str:
    """The rack of the node with this number."""
    return f"r{number // NODES_PER_RACK:04d}"


# in the world


class Misfortune:
    """Has it all happen, and has the vendor find nothing or send back another fault."""

    def __init__(self, world: World, cluster: Cluster, hard: Hardship) -> None:
        self._world = world
        self._names = list(world.hosts)
        self._cluster = cluster
        self._hard = hard
        self._sent: dict[str, int] = {}
        self._double_bits_per_s = cluster.rates.per_second(1) * _share(cluster.rates, "double_bit")
        world.people.vendor = self._vendor

    def begin(self, drawn_faults: DrawnFaults) -> None:
        """Counted from now."""
        clock = self._world.clock
        for node, kind in drawn_faults.hidden:
            self._world.hide(_tough(KINDS[kind], self._hard), SPARE, self._names[node], "part")
        for number, strike in enumerate(drawn_faults.strikes):
            clock.after(strike.at_s, partial(self._strike, strike, number))
        for blow in drawn_faults.blows:
            clock.after(blow.at_s, partial(self._blow, blow))
        for burst in drawn_faults.bursts:
            clock.after(burst.at_s, partial(self._burst, burst))

    def _strike(self, strike: Strike, number: int) -> None:
        node = place_of(self._world, strike)
        fault = self._world.strike(_tough(KINDS[strike.kind], self._hard), strike.component, node, strike.cure)
        if strike.kind == "double_bit":
            chance = self._world.site.stream(f"repeat {number}")
            per_s = (self._hard.repeat_factor - 1) * self._double_bits_per_s
            repaired = self._world.hosts[node].repairs
            for at_s in _moments(per_s, self._cluster.length_s - strike.at_s, chance):
                self._world.clock.after(at_s, partial(self._repeat, node, fault.slot, repaired))

    def _repeat(self, node: str, slot: str, repaired: int) -> None:
        """The same part once more, unless it has been exchanged since."""
        host = self._world.hosts[node]
        if host.repairs == repaired:
            self._meets(host, replace(KINDS["double_bit"], part=slot), REPEAT, "gpu_reset")

    def _blow(self, blow: ExtraFault) -> None:
        host = self._world.hosts[self._names[blow.node]]
        if blow.component == LEMON and host.repairs:
            return
        kind = _slow(self._hard) if blow.kind == SLOW.name else _tough(KINDS[blow.kind], self._hard)
        if blow.component == LEMON:
            kind = replace(kind, part="gpu3")  # always the same part
        self._meets(host, kind, blow.component, blow.cure)

    def _meets(self, host: SimulatedHost, kind: FaultKind, component: str, cure: str) -> None:
        """Tell whether the fault has a place: a switched-off host has nothing to fail, and nothing breaks twice."""
        if host.heard and not any(fault.component == component for fault in host.faults):
            self._world.strike(kind, component, host.node, cure)

    def _burst(self, burst: RackPowerLoss) -> None:
        hosts = [self._world.hosts[self._names[node]] for node in burst.nodes]
        struck = [host for host in hosts if host.heard]
        scope = f"rack:{rack_of(burst.nodes[0])}"
        self._world.people.at_work[scope] = None
        for host in struck:
            self._world.strike(KINDS["dark"], RACK, host.node, "part")
        self._world.clock.after(burst.mended_s, partial(self._mended, scope, struck))

    def _mended(self, scope: str, hosts: list[SimulatedHost]) -> None:
        """A technician has mended what the rack shares; its nodes can be switched on again."""
        for host in hosts:
            host.ends(RACK)
        self._world.people.mends(scope)

    def _vendor(self, host: SimulatedHost) -> None:
        sent = self._sent[host.node] = self._sent.get(host.node, 0) + 1
        chance = self._world.site.stream(f"vendor {host.node} {sent}")
        if chance.random() < self._hard.nothing_found:
            host.unplug()
            return
        host.repair()
        if chance.random() < self._hard.dead_on_arrival:
            self._world.hide(KINDS[chance.choice(DEFECTS)], RETURNED, host.node, "part")


def _share(rates: Rates, kind: str) -> float:
    """Share of this kind in all failures."""
    return sum(share.share * dict(COMPONENTS.get(share.component, OTHER)).get(kind, 0.0) for share in rates.shares)


def _tough(kind: FaultKind, hard: Hardship) -> FaultKind:
    return replace(kind, found=hard.corruption_found) if kind.name == "corruption" else kind


def _slow(hard: Hardship) -> FaultKind:
    return replace(SLOW, passes_s=(hard.slow_hours * 1800, hard.slow_hours * 5400))
