"""Short canonical stories: one thing goes wrong in a tiny cell and is put right. `crash_points` cuts each."""

from collections.abc import Callable
from datetime import timedelta

from msgspec import Struct

from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.core.state.events import name_of
from hostler.core.state.verbs.facts import Verb
from hostler.core.state.verbs.remedies import Drain, Reboot, RequestReplacement, UpdateFirmware
from hostler.journal.memory import MemoryJournal
from hostler.sim import cell_shapes
from hostler.sim.checkers.all_laws import law_checkers
from hostler.sim.checkers.law import Violation
from hostler.sim.hostile_worlds import PACES, START, found
from hostler.sim.simulation_loop import Drive, SweepInterval
from hostler.sim.world.fault_kinds import KINDS
from hostler.sim.world.message_faults import Scripted
from hostler.sim.world.node_seats import OURS
from hostler.sim.world.people import Errand
from hostler.sim.world.world import World, WorldSetup

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
SEED = 5
NODE, SPARE, FRESH = "n00000", "n00002", "n00003"

Begin = Callable[[World], None]


class Story(Struct, frozen=True):
    """Event of a story, time for which the world then lives, and its cell."""

    name: str
    begin: Begin
    lasts_s: float
    shape: cell_shapes.Shape = cell_shapes.Shape("story", 3)


class NodeEnd(Struct, frozen=True):
    """State of a node in the end, as far as every run of the story must agree."""

    node: str
    phase: str
    serves: bool
    busy: str
    conditions: tuple[str, ...]
    cordoned: bool
    joined: bool
    power: str
    bios: str


class Telling(Struct, frozen=True):
    """How a run of a story went: where every node ended, broken laws, boundaries passed, kinds of events recorded."""

    ends: tuple[NodeEnd, ...]
    tickets: tuple[str, ...]
    violations: tuple[Violation, ...]
    boundaries: tuple[str, ...]
    events: tuple[str, ...]


def tell(story: Story, fates: dict[int, str] | None = None) -> Telling:
    """Run the story; `fates` strike at the boundaries with these numbers, counted from its beginning."""
    troubles = Scripted(fates)
    shape = story.shape
    world = World(WorldSetup(shape.nodes, SEED, START, gpus=shape.gpus, paces=PACES), troubles)
    drive = Drive(world, SweepInterval(), law_checkers(world), MemoryJournal())
    drive.start()
    found(drive, shape)
    events: dict[str, None] = {}
    drive.watchers.append(lambda record: events.update({name_of(record.event): None}))
    troubles.begin()
    story.begin(world)
    drive.run(world.clock.now + timedelta(seconds=story.lasts_s))
    assert drive.law_checkers is not None, "stories are judged"
    drive.law_checkers.close()
    return Telling(_ends(drive), _tickets(drive), tuple(drive.violations()), tuple(troubles.passed), tuple(events))


def _ends(drive: Drive) -> tuple[NodeEnd, ...]:
    assert drive.law_checkers is not None, "stories are judged"
    ends = []
    for page in drive.law_checkers.reading.pages.values():
        host, seat = drive.world.hosts[page.id], drive.world.scheduler.seat(page.id)
        busy = page.plan.name if page.plan else page.operation.kind if page.operation else ""
        ends.append(
            NodeEnd(
                page.id,
                page.phase.value,
                bool(page.pool),
                busy,
                tuple(sorted(c.type for c in page.conditions.values() if c.clears != "age")),
                OURS in seat.cordons,
                seat.joined,
                host.machine.power,
                host.machine.firmware["BIOS"],
            )
        )
    return tuple(ends)


def _tickets(drive: Drive) -> tuple[str, ...]:
    """The kinds of tickets that are open."""
    assert drive.controller is not None, "somebody is active in the end"
    return tuple(sorted(ticket.kind for ticket in drive.controller.fleet.tickets.values()))


def _fault(kind: str, cure: str) -> Begin:
    def begin(world: World) -> None:
        world.strike(KINDS[kind], kind, NODE, cure=cure)

    return begin


def _request(act: Verb, node: str = NODE) -> Begin:
    def begin(world: World) -> None:
        world.people.ask(Errand(act, node, "olga", "as the story goes"))

    return begin


def _with_work(begin: Begin, work_class: WorkClass, ends_s: float) -> Begin:
    """The same on a node where a customer's work runs, which ends by itself after so long."""

    def begun(world: World) -> None:
        world.scheduler.start(NODE, Workload("w1", "acme", work_class, None))
        world.scheduler.tell(NODE)
        begin(world)

        def over() -> None:
            world.scheduler.finish(NODE, "w1")
            world.scheduler.tell(NODE)

        world.clock.after(ends_s, over)

    return begun


def _hot(world: World) -> None:
    world.strike(KINDS["heat"], "heat", NODE)


def _silent(world: World) -> None:
    """A management switch fails: three nodes fall silent together and work on; in an hour it is replaced."""
    hosts = list(world.hosts.values())[:3]
    for host in hosts:
        host.sever()

    def replaced() -> None:
        for host in hosts:
            host.mend()

    world.clock.after(HOUR_S, replaced)


STORIES: dict[str, Story] = {
    story.name: story
    for story in (
        Story("power_cycle", _fault("off_bus", "power_cycle"), 1.5 * HOUR_S),
        Story("gpu_reset", _fault("halted", "gpu_reset"), 1.5 * HOUR_S),
        Story("reboot_wished", _request(Reboot()), 1.5 * HOUR_S),
        Story("firmware", _request(UpdateFirmware()), 4 * HOUR_S),
        Story("drain_graceful", _with_work(_request(Drain()), WorkClass.graceful, 2 * HOUR_S), 3 * HOUR_S),
        Story(
            "drain_with_consent",
            _with_work(_request(Reboot()), WorkClass.uninterruptible, 3 * HOUR_S),
            6 * HOUR_S,
        ),
        Story("deliver", _request(RequestReplacement(now=True)), 3 * DAY_S),
        Story("protective_power_off", _hot, 8 * HOUR_S),
        Story("triage_to_vendor", _fault("remap_failed", "part"), 6 * DAY_S),
        Story("bring_up", lambda _world: None, 3 * DAY_S, cell_shapes.Shape("story", 4)),
        Story("incident", _silent, 3 * HOUR_S, cell_shapes.Shape("trio", 4)),
        Story(
            "domain_reboot",
            _with_work(_request(Reboot(), "nvlink:d0"), WorkClass.uninterruptible, 600.0),
            1.5 * HOUR_S,
            cell_shapes.Shape("rack", 2, whole=True),
        ),
    )
}
"""Every story by name."""

SHORT = ("power_cycle", "gpu_reset")
"""Stories short enough to be cut at every pair of boundaries."""
