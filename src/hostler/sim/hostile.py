"""Small worlds in which everything goes wrong, then is healed, and must come to rest: one seed, one verdict."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib.resources import files

import msgspec
from msgspec import Struct

from hostler.core.policy.documents import parse
from hostler.sim.checkers.every import court
from hostler.sim.checkers.law import Violation
from hostler.sim.drive import Beat, Drive
from hostler.sim.world.faults import COMPONENTS
from hostler.sim.world.people import Errand, Paces
from hostler.sim.world.tenants import Tenants
from hostler.sim.world.troubles import Hostile
from hostler.sim.world.world import Ground, World

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR_S = 3600.0
HOSTILE_S = 12 * HOUR_S
HEALED_S = 9 * 24 * HOUR_S
PACES = Paces((600.0, 3600.0), (120.0, 900.0), (300.0, 1800.0), (4 * HOUR_S, 24 * HOUR_S))
FAULTS_PER_NODE = 0.7


class Verdict(Struct, frozen=True):
    """What a seed gave: broken laws, the journal's digest, and how much happened."""

    seed: int
    violations: tuple[Violation, ...]
    digest: str
    events: int
    steps: int
    takeovers: int

    def __str__(self) -> str:
        shown = "\n".join(f"  {violation}" for violation in self.violations[:20])
        return f"seed {self.seed}: {len(self.violations)} violations\n{shown}\nreplay: {replay(self.seed)}"


def replay(seed: int) -> str:
    """The command that runs this seed again."""
    return f"python -m pytest 'tests/simulation/test_laws.py::test_every_law_holds[seed={seed}]' --seeds {seed + 1}"


def judge(seed: int) -> Verdict:
    """Build the world of this seed, let everything go wrong, heal it, and hear the court."""
    drive = build(seed)
    drive.run(START + timedelta(seconds=HOSTILE_S))
    heal(drive)
    drive.run(START + timedelta(seconds=HOSTILE_S + HEALED_S))
    assert drive.court is not None, "small worlds are judged"
    drive.court.close()
    return Verdict(
        seed,
        tuple(drive.violations()),
        drive.journal.digest(),
        drive.journal.latest_seq(),
        drive.steps,
        drive.takeovers,
    )


def build(seed: int) -> Drive:
    """A world of 8 to 24 nodes: pools with budgets of one, a pool of one, an NVLink domain, spares, new nodes."""
    troubles = Hostile(seed)
    troubles.healed = True
    nodes = 8 + seed * 7 % 17
    world = World(Ground(nodes, seed, START, paces=PACES), troubles)
    world.tenants = Tenants(world.site, world.scheduler, world.hosts)
    drive = Drive(world, Beat(sweep_s=60.0), court(world))
    drive.start()
    _found(drive, _layout(nodes))
    _plan_mischief(drive)
    troubles.healed = False
    return drive


class Layout(Struct, frozen=True):
    """How many nodes serve each pool; `fresh` ones have never been powered on."""

    alpha: int
    beta: int
    solo: int
    spares: int
    fresh: int


def _layout(nodes: int) -> Layout:
    alpha, fresh = nodes // 2, max(1, nodes // 8)
    beta = max(2, nodes // 5)
    return Layout(alpha, beta, 1, nodes - alpha - beta - 1 - fresh, fresh)


def _found(drive: Drive, layout: Layout) -> None:
    """Configuration, adopted nodes in their pools, and new ones to be brought up."""
    world, people = drive.world, drive.world.people
    policy = files("hostler.core.policy").joinpath("default_policy.yaml").read_text(encoding="utf-8")
    documents = {"policy.yaml": policy, "pools.yaml": msgspec.json.encode(_pools(layout)).decode()}
    people.ask(Errand("activate", "fleet", "olga", "a small cell"), parse(documents), documents)
    drive.run(world.clock.now + timedelta(seconds=1))
    specs = _specs(world, layout)
    adopted = len(specs) - layout.fresh
    for verb, some in (("adopt", specs[:adopted]), ("register", specs[adopted:])):
        people.ask(Errand(verb, "fleet", "olga", "a small cell", {"nodes": msgspec.json.encode(some).decode()}))
    drive.run(world.clock.now + timedelta(seconds=1))
    for spec in specs[:adopted]:
        name = str(spec["id"])
        world.scheduler.seat(name).joined = bool(spec["pool"])
        world.hosts[name].start_running()
        world.watch(name)
    for host in world.hosts.values():
        world.scheduler.seat(host.node)
    world.scheduler.tell_all()
    drive.run(world.clock.now + timedelta(seconds=60))


def _specs(world: World, layout: Layout) -> list[dict[str, object]]:
    pools = ["alpha"] * layout.alpha + ["beta"] * layout.beta + ["solo"] + [""] * (layout.spares + layout.fresh)
    return [
        {
            "id": host.node,
            "sku": "h100",
            "serial": host.serial,
            "bmc": host.address,
            "rack": f"r{number // 4}",
            "domains": ["nvlink:d0"] if number < 6 else [],
            "pool": pool,
        }
        for number, (host, pool) in enumerate(zip(world.hosts.values(), pools, strict=True))
    ]


def _pools(layout: Layout) -> dict[str, object]:
    one = {"count": 1, "percent": 100, "reserve": 0, "removals_per_day": 4}
    base = {"sku": "h100", "cluster": "k1", "tenant": "acme", "modes": {"*": "act"}}
    return {
        "skus": {
            "h100": {
                "gpus": 8,
                "parts": {"nic": 8, "drive": 8},
                "temperature_limit_c": 90,
                "firmware": {"BIOS": "1.1.0"},
                "images": {"BIOS": "http://images/BIOS/1.1.0"},
            }
        },
        "pools": {
            "alpha": {**base, "target": layout.alpha, "budget": {**one, "reserve": 1}, "owner": "ann"},
            "beta": {
                **base,
                "target": layout.beta,
                "budget": one,
                "evict_after_deadline": True,
                "drain_deadline_s": 2 * HOUR_S,
            },
            "solo": {**base, "target": 1, "budget": one, "drain_deadline_s": 4 * HOUR_S},
        },
    }


# mischief


def _plan_mischief(drive: Drive) -> None:
    """Draw what goes wrong when."""
    world = drive.world
    chance = world.site.chance
    names = list(world.hosts)
    for act, share in _MISCHIEF:
        for _ in range(max(1, round(share * len(names)))):
            name = chance.choice(names)
            at = chance.uniform(0, HOSTILE_S - HOUR_S)
            world.clock.after(at, _bound(act, world, name))


def _bound(act: "Mischief", world: World, name: str) -> Callable[[], None]:
    return lambda: act(world, name)


def _break(world: World, name: str) -> None:
    world.breaks(world.site.chance.choice(list(COMPONENTS)), name)


def _lie(world: World, name: str) -> None:
    """A program writes a line that looks like the driver's."""
    line = "NVRM: Xid (PCI:{pci}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    world.hosts[name].log(line, pci="0000:1b:00", facility=world.site.chance.choice((1, 3, 16)))


def _flap(world: World, name: str) -> None:
    for _ in range(6):
        world.hosts[name].log("NVRM: Xid (PCI:{pci}): 31, pid=4711, name=python3, MMU Fault", pci="0000:2c:00")


def _bmc_restarts(world: World, name: str) -> None:
    world.hosts[name].machine.restart_manager(world.clock.now)


def _agent_restarts(world: World, name: str) -> None:
    host = world.hosts[name]
    host.spool.rewind()
    host.greet()


def _hold(world: World, name: str) -> None:
    world.people.ask(Errand("hold", name, "hal", "please leave it", {"hours": "3"}))


def _cordon(world: World, name: str) -> None:
    world.people.ask(Errand("cordon", name, "hal", "I look at it"))
    world.clock.after(2 * HOUR_S, lambda: world.people.ask(Errand("uncordon", name, "hal", "looked at")))


def _foreign_cordon(world: World, name: str) -> None:
    world.scheduler.cordon(name, "kubectl")
    world.scheduler.tell(name)

    def lift() -> None:
        world.scheduler.uncordon(name, "kubectl")
        world.scheduler.tell(name)

    world.clock.after(HOUR_S, lift)


def _pause(world: World, _name: str) -> None:
    world.people.ask(Errand("pause", "pool:alpha", "hal", "a launch"))
    world.clock.after(HOUR_S, lambda: world.people.ask(Errand("resume", "pool:alpha", "hal", "launched")))


def _propose(world: World, _name: str) -> None:
    world.people.ask(Errand("mode", "pool:beta", "hal", "careful", {"mode": "propose"}))
    act = Errand("mode", "pool:beta", "hal", "go on", {"mode": "act"})
    world.clock.after(4 * HOUR_S, lambda: world.people.ask(act))


def _wish(world: World, name: str) -> None:
    verb = world.site.chance.choice(("reboot", "power-cycle", "reset-gpu", "return-for-maintenance", "drain"))
    now = world.site.chance.choice(("true", "false"))
    world.people.mention(Errand(verb, name, "hal", "it looks odd", {"now": now}))


def _wrong_machine(world: World, name: str) -> None:
    """A technician stands in front of another server than the ticket's."""
    world.people.mention(Errand("start-work", name, "tina", "swap a fan", {"serial": "SN-OTHER"}))


Mischief = Callable[[World, str], None]

_MISCHIEF: tuple[tuple[Mischief, float], ...] = (
    (_break, FAULTS_PER_NODE),
    (_lie, 0.3),
    (_flap, 0.2),
    (_bmc_restarts, 0.2),
    (_agent_restarts, 0.3),
    (_hold, 0.1),
    (_cordon, 0.1),
    (_foreign_cordon, 0.1),
    (_pause, 0.05),
    (_propose, 0.1),
    (_wish, 0.2),
    (_wrong_machine, 0.1),
)


def heal(drive: Drive) -> None:
    """Nothing goes wrong any more, and people take back what they asked for; broken parts stay broken."""
    world = drive.world
    troubles = world.site.troubles
    assert isinstance(troubles, Hostile), "small worlds are hostile"
    troubles.healed = True
    drive.slow_down(Beat(sweep_s=HOUR_S))
    assert drive.court is not None, "small worlds are judged"
    people = world.people
    for hold in drive.court.book.holds.values():
        if hold.owner == "hal":
            verb, target = ("uncordon", hold.scope) if hold.kind.value == "cordon" else ("release", hold.id)
            people.ask(Errand(verb, target, "hal", "all is well"))
    people.ask(Errand("resume", "pool:alpha", "hal", "all is well"))
    people.ask(Errand("mode", "pool:beta", "hal", "all is well", {"mode": "act"}))
