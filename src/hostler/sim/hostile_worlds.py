"""Small worlds in which everything goes wrong, then is healed, and must come to rest: one seed, one verdict."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random

import msgspec
from msgspec import Struct

from hostler.core.fabric.design_csv import render_csv
from hostler.core.planning.port_reset import refused
from hostler.core.state.events import AssetSeen
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import HoldKind, Node
from hostler.core.state.operations import ResetPort
from hostler.core.state.verbs.activation import Activate
from hostler.core.state.verbs.fabrics import RegisterFabric
from hostler.core.state.verbs.holds import ReleaseHold, Uncordon
from hostler.core.state.verbs.nodes import Adopt, Register, RegisterAssets
from hostler.journal.memory import MemoryJournal
from hostler.ports import Journal
from hostler.sim import cell_shapes
from hostler.sim.checkers.all_laws import law_checkers
from hostler.sim.checkers.journal_laws import is_at_rest
from hostler.sim.checkers.law import Violation
from hostler.sim.fault_injection.injection import InjectionContext
from hostler.sim.fault_injection.scenario import (
    HOSTILE_S,
    Scenario,
    again,
    draw,
    draw_loud,
    draw_meeting,
    draw_racked,
    draw_wired,
    plan_faults,
)
from hostler.sim.meeting_door import MeetingDoor
from hostler.sim.network_hands import NetworkHands
from hostler.sim.network_looks import NetworkLooks
from hostler.sim.simulation_loop import Drive, SweepInterval, Watcher
from hostler.sim.world.asset_firmware import BUNDLE, OLD
from hostler.sim.world.meeting_agents import MeetingAgents
from hostler.sim.world.message_faults import Hostile
from hostler.sim.world.people import Errand, Paces
from hostler.sim.world.port_tools import PortHand
from hostler.sim.world.rack_assets import RackAssets
from hostler.sim.world.simulated_network import NAME, SimulatedNetwork, port_of
from hostler.sim.world.tenants import Tenants
from hostler.sim.world.world import World, WorldSetup

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR_S = 3600.0
HEALED_S = 12 * 24 * HOUR_S
PROGRESS_CHECK_S = 6 * HOUR_S
"""How often a healed world is looked at: what rests is not made to live on."""

AT_NODES = 0.5
"""Share of compute networks that are looked at from nodes: there an agent resets its own port."""
PERIOD_S = 3600.0
"""A compute network is validated so often: each hostile world sees a dozen validations beside those asked for."""

QUIET_S = 30 * HOUR_S
"""Time without a record but of looks at assets, with nothing under way, after which nothing more will come: longer than
a burn-in."""

PACES = Paces((600.0, 3600.0), (120.0, 900.0), (300.0, 1800.0), (4 * HOUR_S, 24 * HOUR_S))


class WorldVerdict(Struct, frozen=True):
    """Verdict on a scenario: broken laws, the journal's digest, and how much happened.

    `injected` counts faults.

    `met` counts how often each of the limits that bind seldom has stopped somebody.
    """

    scenario: Scenario
    violations: tuple[Violation, ...]
    digest: str
    events: int
    steps: int
    takeovers: int
    fenced: int
    node_days: float
    injected: dict[str, int]
    met: dict[str, int] = {}

    def __str__(self) -> str:
        shown = "\n".join(f"  {violation}" for violation in self.violations[:20])
        return f"seed {self.scenario.seed}: {len(self.violations)} violations\n{shown}\nreplay: {replay(self.scenario)}"


def replay(scenario: Scenario) -> str:
    """The command that runs this world again."""
    without = f" --without {','.join(map(str, scenario.dropped))}" if scenario.dropped else ""
    nodes = f" --nodes {scenario.shape.nodes}" if scenario.shape != again(scenario).shape else ""
    wired = " --wired" if scenario.shape.wired else ""
    wired = " --meets" if scenario.shape.meets else " --racked" if scenario.shape.racked else wired
    wired = " --loud" if scenario.shape.loud else wired
    return f"hostler sim replay --seed {scenario.seed}{wired}{without}{nodes}"


def judge(
    seed: int, *, wired: bool = False, meets: bool = False, racked: bool = False, loud: bool = False
) -> WorldVerdict:
    """Build the world of this seed, let everything go wrong, heal it, and hear the court."""
    if loud:
        return trial(draw_loud(seed))
    if racked:
        return trial(draw_racked(seed))
    if meets:
        return trial(draw_meeting(seed))
    return trial(draw_wired(seed) if wired else draw(seed))


def trial(
    scenario: Scenario, journal: Callable[[], Journal] = MemoryJournal, watcher: Watcher | None = None
) -> WorldVerdict:
    """The same with a world and a journal of one's own; `watcher` sees every record."""
    injection = build(scenario, journal())
    drive = injection.drive
    if watcher is not None:
        drive.watchers.append(watcher)
    assert drive.law_checkers is not None, "small worlds are judged"
    drive.run(START + timedelta(seconds=HOSTILE_S))
    heal(injection)
    _settle(drive)
    drive.law_checkers.close()
    return WorldVerdict(
        scenario,
        tuple(drive.violations()),
        drive.journal.digest(),
        drive.seq,
        drive.steps,
        drive.takeovers,
        drive.fenced,
        drive.world.clock.elapsed_s * scenario.shape.nodes / 86_400,
        dict(sorted(injection.troubles.injected.items())),
        drive.law_checkers.met,
    )


def _settle(drive: Drive) -> None:
    """Let the healed world live until it rests, nothing more comes, or its time is over."""
    assert drive.law_checkers is not None, "small worlds are judged"
    clock = drive.world.clock
    end = clock.now + timedelta(seconds=HEALED_S)
    news: list[int] = []
    drive.watchers.append(lambda record: None if isinstance(record.event, AssetSeen) else news.append(record.seq))
    moved = clock.now
    while clock.now < end and not (is_at_rest(drive.law_checkers.reading, clock.now) and _is_mended(drive)):
        drive.run(clock.now + timedelta(seconds=PROGRESS_CHECK_S))
        if news:
            moved = clock.now
            news.clear()
        if (clock.now - moved).total_seconds() >= QUIET_S:
            return


def _is_mended(drive: Drive) -> bool:
    """Whether nothing that anybody repairs stands open at the compute network, or the world has none."""
    network, controller, rack = drive.world.network, drive.controller, drive.world.rack_assets
    if rack is not None and rack.busy:
        return False
    if network is None:
        return True
    if controller is None:
        return False
    cases = controller.fleet.fabric_cases.values()
    links = (c for c in controller.fleet.link_cases.values() if "unmanaged" not in c.waits)
    ports = [*(case.finding.ports for case in cases), *((link.fault.a, link.fault.z) for link in links)]
    return all(any(network.lacks_power(port_of(text)) for text in some) for some in ports)


def build(scenario: Scenario, journal: Journal) -> InjectionContext:
    """The scenario's world at the moment in which things begin to go wrong."""
    shape = scenario.shape
    troubles = Hostile(scenario.seed)
    world = World(WorldSetup(shape.nodes, scenario.seed, START, gpus=shape.gpus, paces=PACES), troubles)
    world.tenants = Tenants(world.site, world.scheduler, world.hosts, one_job=shape.kind == "rack")
    drive = Drive(world, SweepInterval(sweep_s=60.0), law_checkers(world), journal)
    drive.start()
    found(drive, shape)
    injection = InjectionContext(drive, shape, troubles)
    if shape.wired:
        wire(injection, scenario.seed)
    if shape.meets:
        meet(injection, scenario.seed)
    if shape.racked:
        rack_up(injection)
    plan_faults(scenario, injection)
    return injection


def found(drive: Drive, shape: cell_shapes.Shape) -> None:
    """Configuration, adopted nodes in their pools, and new ones to be brought up."""
    world, people = drive.world, drive.world.people
    documents = cell_shapes.documents(shape)
    people.ask(Errand(Activate(), "fleet", "olga", "a small cell"), cell_shapes.configuration(documents), documents)
    drive.run(world.clock.now + timedelta(seconds=1))
    specs = _specs(world, shape)
    fresh = [spec for spec, role in zip(specs, shape.roles, strict=True) if role == cell_shapes.FRESH]
    adopted = [spec for spec in specs if spec not in fresh]
    for kind, some in ((Adopt, adopted), (Register, fresh)):
        if some:
            people.ask(Errand(kind(msgspec.json.encode(some).decode()), "fleet", "olga", "a small cell"))
    if assets := cell_shapes.assets_of(shape):
        told = RegisterAssets(msgspec.json.encode(assets).decode())
        people.ask(Errand(told, "fleet", "olga", "what the trays share"))
    drive.run(world.clock.now + timedelta(seconds=1))
    for spec in adopted:
        name = str(spec["id"])
        world.scheduler.seat(name).joined = spec["pool"] not in ("", cell_shapes.OUTSIDE)
        world.hosts[name].start_running()
        world.watch(name)
    for host in world.hosts.values():
        world.scheduler.seat(host.node)
    world.scheduler.tell_all()
    drive.run(world.clock.now + timedelta(seconds=60))


def wire(injection: InjectionContext, seed: int) -> None:
    """A compute network that is cabled as designed, whoever looks at it, and technicians for its tickets."""
    drive, world = injection.drive, injection.world
    network = world.network = SimulatedNetwork(world.site, world.hosts)
    injection.looks = NetworkLooks(drive, network, Random(f"{seed}/network looks"))
    _resets(injection, network, Random(f"{seed}/port resets"))
    hands = NetworkHands(world.site, network, world.people, PACES.technician, lambda: injection.troubles.healed)
    network.on_revived = lambda switch: _ends_at(world, switch)
    drive.watchers.append(lambda record: hands.see(record.event))
    at_nodes = Random(f"{seed}/network source").random() < AT_NODES
    source = {"timeout_s": 60.0, "nodes": list(world.hosts)[:2] if at_nodes else []}
    spec = {"name": NAME, "design": render_csv(network.design), "source": source, "period_s": PERIOD_S}
    injection.looks.begin()
    drive.run(world.clock.now + timedelta(seconds=120))
    told = RegisterFabric(msgspec.json.encode(spec).decode())
    world.people.ask(Errand(told, "fleet", "olga", "its compute network"))
    drive.run(world.clock.now + timedelta(seconds=60))


def rack_up(injection: InjectionContext) -> None:
    """The shelves, the coolant unit and the switch trays of the rack, with technicians for their tickets.

    A rack that is new runs older firmware than its bundle, and a person has it brought up.
    """
    drive, world = injection.drive, injection.world
    assets = RackAssets(world.site, world.people, PACES.technician, lambda: injection.troubles.healed)
    world.rack_assets = world.actuators.rack_assets = assets
    drive.watchers.append(lambda record: assets.see(record.event))
    shape, assets.sku = injection.shape, injection.shape.sku
    for one in cell_shapes.assets_of(shape):
        if "bmc" in one:
            assets.add(str(one["id"]), str(one["kind"]), OLD if shape.rising else BUNDLE)
    drive.run(world.clock.now + timedelta(seconds=120))
    if shape.rising:
        assets.bring_up()


def meet(injection: InjectionContext, seed: int) -> None:
    """Have nodes under check meet by orders of the hall that runs in production, a new one with each controller."""
    drive, world = injection.drive, injection.world
    assert world.network is not None, "nodes meet in wired worlds"
    agents = MeetingAgents(world.site, world.network, world.hosts, Random(f"{seed}/meetings"))
    agents.ask = MeetingDoor(drive).ask
    world.actuators.meetings = agents


def _resets(injection: InjectionContext, network: SimulatedNetwork, chance: Random) -> None:
    """Have ports reset by the driver that runs in production, for whichever controller is active."""
    drive, actuators, looks = injection.drive, injection.world.actuators, injection.looks
    assert looks is not None, "wired worlds have looks"
    hand = actuators.ports = PortHand(drive.world.site, network, drive.world.hosts, chance)

    def refusal(node: Node, act: ResetPort) -> str:
        controller = drive.controller
        if controller is None:
            return "the controller has not started"
        return refused(controller.fleet, controller.live, node, act)

    def fleet() -> Fleet:
        return drive.controller.fleet if drive.controller is not None else Fleet()

    hand.connect(fleet, refusal, looks.places)


def _ends_at(world: World, switch: str) -> None:
    for host in world.hosts.values():
        host.ends(f"dead {switch}")


def _specs(world: World, shape: cell_shapes.Shape) -> list[dict[str, object]]:
    return [
        {
            "id": host.node,
            "sku": shape.sku,
            "serial": host.serial,
            "bmc": host.address,
            "rack": cell_shapes.rack_of(shape, number),
            "domains": cell_shapes.domains_of(shape, number),
            "pool": "" if role == cell_shapes.FRESH else role,
            **({"profile": "unmanaged"} if number == shape.unmanaged else {}),
        }
        for number, (host, role) in enumerate(zip(world.hosts.values(), shape.roles, strict=True))
    ]


def heal(injection: InjectionContext) -> None:
    """Heal the world: no fault comes any more, people take back what they asked for, broken parts stay broken."""
    injection.troubles.healed = True
    injection.heal()
    drive = injection.drive
    drive.slow_down(SweepInterval(sweep_s=HOUR_S))
    assert drive.law_checkers is not None, "small worlds are judged"
    people = drive.world.people
    for hold in drive.law_checkers.reading.holds.values():
        if hold.owner == "hal":
            cordon = hold.kind is HoldKind.cordon
            act, target = (Uncordon(), hold.scope.text) if cordon else (ReleaseHold(), hold.id)
            people.ask(Errand(act, target, "hal", "all is well"))
