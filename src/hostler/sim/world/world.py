"""A cluster put together: hosts, hands, scheduler, people, perhaps one great training job, and what happens to them."""

from collections.abc import Callable
from datetime import datetime
from math import inf
from random import Random

from msgspec import Struct

from hostler.controller.inputs import AgentSilent
from hostler.sim.difficulty import Hardship
from hostler.sim.world.actuators import Actuators
from hostler.sim.world.fault_kinds import COMPONENTS, KINDS, OTHER, Fault, FaultKind
from hostler.sim.world.message_faults import Troubles
from hostler.sim.world.message_spool import ObservationContent
from hostler.sim.world.people import Paces, People
from hostler.sim.world.rack_assets import RackAssets
from hostler.sim.world.simulated_host import SimulatedHost
from hostler.sim.world.simulated_network import SimulatedNetwork
from hostler.sim.world.simulated_scheduler import SimulatedScheduler
from hostler.sim.world.tenants import Tenants
from hostler.sim.world.training_job import Training
from hostler.sim.world.virtual_clock import VirtualClock
from hostler.sim.world.world_context import Site, Span

CORRUPTION_SEEN_S = (600.0, 3600.0)
"""How long a job computes nonsense before its owner sees it in the loss. An estimate: nobody has published it."""
SEARCH_S = (600.0, 2400.0)
"""How long an engineer looks for the node whose results differ."""


class WorldSetup(Struct, frozen=True):
    """Composition of a world. `silence_s` is the policy's limit for silent agents."""

    nodes: int
    seed: int
    start: datetime
    silence_s: float = 30.0
    gpus: int = 8
    paces: Paces = Paces()
    hardship: Hardship | None = None


class World:
    """World: what exists outside the controller."""

    def __init__(self, setup: WorldSetup, troubles: Troubles | None = None) -> None:
        self.clock = VirtualClock(setup.start)
        self.site = Site(self.clock, setup.seed, setup.silence_s, troubles)
        names = [f"n{number:05d}" for number in range(setup.nodes)]
        self.hosts = {name: SimulatedHost(self.site, name, number, setup.gpus) for number, name in enumerate(names)}
        self.scheduler = SimulatedScheduler(self.site, self.hosts)
        self.people = People(self.site, self.hosts, setup.paces)
        self.actuators = Actuators(self.site, self.hosts, self.scheduler)
        self.training: Training | None = None
        self.tenants: Tenants | None = None
        self.network: SimulatedNetwork | None = None
        self.rack_assets: RackAssets | None = None
        self.faults: list[Fault] = []
        self.watched: dict[str, None] = {}
        self.hardship = setup.hardship
        self.hidden: list[Fault] = []
        self.struck: Callable[[Fault], None] = lambda _fault: None
        self.actuators.on_changed = self.changed
        self.scheduler.on_cordon = self._lands
        for host in self.hosts.values():
            host.on_down = self._down
            host.on_up = self._up
            host.on_ready = self._judged

    # what breaks

    def breaks(self, component: str, node: str) -> Fault:
        """Part of this component breaks on this node, in one of its ways."""
        return self.strike(
            KINDS[self._pick(COMPONENTS.get(component, OTHER), self.hosts[node].chance)], component, node
        )

    def strike(self, kind: FaultKind, component: str, node: str, cure: str = "") -> Fault:
        """Make this very fault appear on this node; its cure is drawn unless it is given."""
        cure = cure or self._pick(kind.cures, self.hosts[node].chance)
        fault = Fault(len(self.faults), kind, component, node, self._slot(kind, node), cure, self.clock.now)
        self.faults.append(fault)
        self.watch(node)
        if self.tenants is not None:
            self.tenants.struck(fault)
        self.hosts[node].breaks(fault)
        if fault.cure == "itself":
            self.clock.after(self.hosts[node].draw(kind.passes_s), lambda: self._passes(fault))
        self._strikes(fault)
        self.struck(fault)
        return fault

    def hide(self, kind: FaultKind, component: str, node: str, cure: str) -> None:
        """Put this fault on this node without a symptom yet; it counts as no failure."""
        fault = Fault(len(self.faults), kind, component, node, self._slot(kind, node), cure, self.clock.now)
        self.faults.append(fault)
        self.hidden.append(fault)
        self.hosts[node].hides(fault)

    def _pick(self, shares: tuple[tuple[str, float], ...], chance: Random) -> str:
        names = [name for name, _ in shares]
        return chance.choices(names, [share for _, share in shares])[0]

    def _slot(self, kind: FaultKind, node: str) -> str:
        if kind.part == "host":
            return ""
        if kind.part[-1].isdigit():
            return kind.part
        return f"{kind.part}{self.hosts[node].chance.randrange(self.hosts[node].gpus)}"

    def _passes(self, fault: Fault) -> None:
        self.hosts[fault.node].remedied("itself")
        if self.training is not None and fault.kind.ends == "none":
            self.training.paces()
        self._readmit(fault.node)

    def _readmit(self, node: str) -> None:
        if self.training is not None and not self.hosts[node].faults:
            self.training.readmit(node)

    def _strikes(self, fault: Fault) -> None:
        """The job meets the fault; silent corruption is noticed much later, by its owner."""
        training = self.training
        if training is None or fault.node not in training.members:
            return
        if fault.kind.name == "corruption":
            delay_s = self.site.stream(f"loss of {fault.id}").uniform(*self._until_seen())
            self.clock.after(delay_s, lambda: self._noticed(fault, delay_s))
        elif fault.kind.ends == "none":
            self._slows(fault, training)
        else:
            training.fails(fault)

    def _noticed(self, fault: Fault, wasted_s: float) -> None:
        training = self.training
        if training is None or not fault.active or fault.node not in training.members:
            return
        training.fails(fault, wasted_s)
        search_s, right_s = self.site.stream(f"search of {fault.id}").uniform(*SEARCH_S), training.useful_s
        self.clock.after(search_s, lambda: self._convict(fault, right_s))

    def _until_seen(self) -> Span:
        if self.hardship is None:
            return CORRUPTION_SEEN_S
        return (self.hardship.corruption_hours * 1200, self.hardship.corruption_hours * 6000)

    def _slows(self, fault: Fault, training: Training) -> None:
        """The job goes on, slower, until the fault is over or its owner has found the node."""
        training.paces()
        if self.hardship is not None:
            seen_s = self.hardship.slow_seen_hours * 3600 * self.site.stream(f"slow {fault.id}").uniform(0.5, 1.5)
            self.clock.after(seen_s, lambda: self._convict(fault, inf))

    def _convict(self, fault: Fault, right_s: float) -> None:
        """An engineer runs one step on every node and finds which differs; in hard worlds the job leaves it out."""
        if self.hardship is not None and fault.active and self.training and fault.node in self.training.members:
            self.training.withdraw(fault, right_s)
        host = self.hosts[fault.node]
        if fault.active and host.heard:
            self.people.touches += 1
            facts = {"check": "train_replay", "verdict": "failed"}
            host.spool.put("verdict", ObservationContent("digest differs from its peers'", dict(facts)), host.boot_id)

    def _lands(self, node: str) -> None:
        if self.tenants is not None and self.site.troubles.slips_in(node):
            self.tenants.slips_in(node)

    # what the scheduler shows

    def watch(self, node: str) -> None:
        """Keep the controller's view of this node's work fresh from now on."""
        if node not in self.watched:
            self.watched[node] = None
            self.scheduler.tell(node)

    def show_work(self) -> None:
        """Work started or ended: the nodes that anybody looks at are told. Nobody looks at what is well again."""
        self.watched = {node: None for node in self.watched if not self._well(node)}
        self.scheduler.tell_of(self.watched)

    def _well(self, node: str) -> bool:
        seat = self.scheduler.seat(node)
        return seat.joined and not seat.cordons and not self.hosts[node].faults

    def changed(self, node: str) -> None:
        """The scheduler's view of a node changed by an operation."""
        self.scheduler.tell(node)
        if self.tenants is not None:
            self.tenants.come(node)
        training = self.training
        if training is None:
            return
        self._readmit(node)
        if training.look(node):
            training.retry()
        elif node in training.members:
            if training.running and not self.scheduler.works(node):
                training.interrupted(node)
            else:
                training.loses(node)

    def _judged(self, host: SimulatedHost, ready: bool) -> None:
        self.scheduler.judge(host.node, ready=ready)

    def _down(self, host: SimulatedHost) -> None:
        self.actuators.cut_off(host)
        if self.tenants is not None:
            self.tenants.down(host.node)
        if self.training is not None:
            self.training.look(host.node)
            self.training.loses(host.node)

    def _up(self, host: SimulatedHost) -> None:
        self._readmit(host.node)
        if self.tenants is not None:
            self.tenants.up(host.node)
        if self.training is not None:
            self.training.look(host.node)
            self.training.retry()

    def greet(self) -> None:
        """Tell a fresh controller what is volatile: work, power, who is heard."""
        self.scheduler.tell_all()
        for host in self.hosts.values():
            host.show_present()
            host.greet()
            if not host.heard and host.down_since is not None:
                self.site.tell(AgentSilent(host.node, host.down_since))
