"""One pool, one job over all of it, published failure rates: what does Hostler make of it? `hostler sim run`."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Struct

from hostler.core.policy.documents import parse
from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.core.state.verbs.activation import Activate
from hostler.core.state.verbs.nodes import Adopt
from hostler.runtime.garbage_collection import COLLECTIONS
from hostler.sim.bmc.emulated_machine import sku_of_server
from hostler.sim.checkers.all_laws import law_checkers
from hostler.sim.difficulty import Hardship
from hostler.sim.downtime_accounts import Accounts
from hostler.sim.extra_faults import Cluster, Misfortune, rack_of
from hostler.sim.extra_faults import drawn as drawn_faults_of
from hostler.sim.failure_rates import Rates, load
from hostler.sim.fault_schedule import befall, drawn
from hostler.sim.peers.peer import Peer
from hostler.sim.peers.peer_table import OURS
from hostler.sim.run_report import RunReport
from hostler.sim.simulation_loop import Drive
from hostler.sim.world.people import DAY_S, Errand, Paces
from hostler.sim.world.training_job import JobCosts, Training, best_interval_s
from hostler.sim.world.world import World, WorldSetup

START = datetime(2026, 1, 1, tzinfo=UTC)
SETTLE_S = 300.0
"""Adoption and first readings, before the job starts and the clock of the figures runs."""
MAX_NODES, MAX_DAYS = 20_000, 3_660.0
TEXTS_SHOWN = 20
POOL = "train"


class SimSettings(Struct, frozen=True):
    """Settings of a simulated run.

    `rates`: llama3, rsc1, rsc2, or a TSV file. `spares`: None for 3 % and 4; `warm` of them (None: 4 per 1,024 and
    2) stand in the pool, joined and idle. `checkpoint_minutes` None: the interval that loses least, from
    `checkpoint_write_s` (how long one stalls the job). `restart_s`: from chosen nodes to the first step. `hardship`: a
    hard world (`constants.py`), whose terms of the job are its own; None for a plain one.
    """

    nodes: int = 2048
    days: float = 54.0
    rates: str = "llama3"
    seed: int = 1
    spares: int | None = None
    warm: int | None = None
    checkpoint_minutes: float | None = None
    checkpoint_write_s: float = 2.0
    restart_s: float = 120.0
    hang_s: float = 60.0
    hardship: Hardship | None = None


Progress = Callable[[float], None]
"""Called with the share of the simulated time that has passed, 0 to 1."""


def run(settings: SimSettings, progress: Progress | None = None, peer: Peer = OURS) -> RunReport:
    """Simulate, and judge what is ours; a peer may break our laws.

    Raises InvalidInputError for settings out of range or rates that cannot be read.
    """
    began = time.perf_counter()
    check(settings)
    rates = load(settings.rates)
    with _few_collections():
        drive, accounts = build(settings, rates, peer)
        gc.freeze()  # it lives on to the end: the collector need not look at it again and again
        _live(settings, rates, drive, progress)
        return _report(settings, drive, accounts, time.perf_counter() - began)


@contextmanager
def _few_collections() -> Iterator[None]:
    """Look for circles seldom, and afterwards: most of what is built stays, and little of what goes is a circle."""
    before = gc.get_threshold()
    gc.set_threshold(*COLLECTIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _live(settings: SimSettings, rates: Rates, drive: Drive, progress: Progress | None) -> None:
    """The job begins, faults happen to it, and the days pass."""
    world = drive.world
    assert world.training is not None, "the pool's world has a job"
    world.training.begin()
    strikes = drawn(rates, settings.nodes, settings.days, settings.seed)
    if settings.hardship is None:
        befall(world, strikes)
    else:
        cluster = Cluster(rates, settings.nodes, _spares(settings)[0], settings.days, settings.seed)
        drawn_faults = drawn_faults_of(cluster, settings.hardship, strikes)
        Misfortune(world, cluster, settings.hardship).begin(drawn_faults)
    for day in range(1, int(settings.days) + 2):
        passed = min(float(day), settings.days)
        drive.run(START + timedelta(seconds=SETTLE_S, days=passed))
        if progress is not None:
            progress(passed / settings.days)
    world.training.finish()


def check(settings: SimSettings) -> None:
    """Raises InvalidInputError for settings out of range."""
    bounds = (
        ("nodes", settings.nodes, 1, MAX_NODES),
        ("days", settings.days, 0.01, MAX_DAYS),
        ("spares", settings.spares or 0, 0, MAX_NODES),
        ("checkpoint_minutes", settings.checkpoint_minutes or 1.0, 0.01, 1e4),
        ("checkpoint_write_s", settings.checkpoint_write_s, 0.01, 3600),
        ("restart_s", settings.restart_s, 1, 86_400),
        ("hang_s", settings.hang_s, 1, 86_400),
    )
    problems = [
        Problem(name, 0, f"{value:g} is out of range", f"give {least:g} to {most:g}")
        for name, value, least, most in bounds
        if not least <= value <= most
    ]
    if problems:
        raise InvalidInputError(tuple(problems))


def build(settings: SimSettings, rates: Rates, peer: Peer = OURS) -> tuple[Drive, Accounts]:
    """The world at the moment before the job starts: everything adopted, joined and in production."""
    spares, warm = _spares(settings)
    world = World(_ground(settings, settings.nodes + spares))
    names = list(world.hosts)
    members = names[: settings.nodes + warm]
    drive = Drive(world, law_checkers=law_checkers(world) if peer is OURS else None)
    accounts = Accounts(world)
    drive.watchers.append(accounts.see)
    drive.start()
    _adopt(drive, settings.nodes + warm, peer)
    for name in members:
        world.scheduler.seat(name).joined = True
    for host in world.hosts.values():
        world.scheduler.seat(host.node)
        host.start_running()
    world.scheduler.tell_all()
    terms = _terms(settings, rates)
    world.training = Training(world.site, world.scheduler, world.hosts, terms, "research")
    world.training.changed = world.show_work
    world.training.puzzled = world.people.investigate
    drive.run(START + timedelta(seconds=SETTLE_S))
    peer.attends(drive)
    return drive, accounts


def _ground(settings: SimSettings, nodes: int) -> WorldSetup:
    hard = settings.hardship
    days = Paces().vendor if hard is None else (hard.vendor_days * DAY_S * 2 / 3, hard.vendor_days * DAY_S * 4 / 3)
    return WorldSetup(nodes, settings.seed, START, paces=Paces(vendor=days), hardship=hard)


def _spares(settings: SimSettings) -> tuple[int, int]:
    spares = round(settings.nodes * 0.03) + 4 if settings.spares is None else settings.spares
    warm = min(spares, settings.nodes * 4 // 1024 + 2) if settings.warm is None else min(spares, settings.warm)
    return spares, warm


def _terms(settings: SimSettings, rates: Rates) -> JobCosts:
    hard = settings.hardship
    write_s = hard.write_s if hard else settings.checkpoint_write_s
    best_s = best_interval_s(write_s, rates.per_second(settings.nodes))
    every_s = settings.checkpoint_minutes * 60 if settings.checkpoint_minutes else best_s
    if hard is None:
        return JobCosts(settings.nodes, every_s, write_s, settings.restart_s, settings.hang_s)
    return JobCosts(settings.nodes, every_s, write_s, hard.restart_s, hard.hang_s, hard.notice_s, hard.slowdown)


def _adopt(drive: Drive, members: int, peer: Peer) -> None:
    """The configuration, then every node as it stands."""
    people, world = drive.world.people, drive.world
    pools = msgspec.json.encode(_pools(members, peer)).decode()
    documents = {"policy.yaml": peer.document(), "pools.yaml": pools}
    people.ask(Errand(Activate(), "fleet", "olga", "the simulated cell"), parse(documents), documents)
    drive.run(world.clock.now + timedelta(seconds=1))
    specs = [
        {
            "id": host.node,
            "sku": "h100",
            "serial": host.serial,
            "bmc": host.address,
            "rack": rack_of(number),
            "pool": POOL if number < members else "",
        }
        for number, host in enumerate(world.hosts.values())
    ]
    adopt = Adopt(msgspec.json.encode(specs).decode())
    people.ask(Errand(adopt, "fleet", "olga", "the simulated fleet"))
    drive.run(world.clock.now + timedelta(seconds=1))


def _pools(members: int, peer: Peer) -> dict[str, object]:
    pool = {"sku": "h100", "target": members, "cluster": "k1", "tenant": "research", **peer.pool(members)}
    return {
        "skus": {"h100": sku_of_server()},
        "pools": {POOL: pool},
    }


def _writing(terms: JobCosts) -> float:
    """The share of the job's time that checkpoints take."""
    return terms.write_s / (terms.every_s + terms.write_s)


def _report(settings: SimSettings, drive: Drive, accounts: Accounts, wall_s: float) -> RunReport:
    world, training = drive.world, drive.world.training
    assert training is not None, "the pool's world has a job"
    failures = len(world.faults) - len(world.hidden)
    texts = tuple(str(violation) for violation in drive.violations())
    return RunReport(
        violations=len(texts),
        failures=failures,
        detections=accounts.detections(),
        goodput=round(training.useful_s / (settings.days * 86_400), 5),
        unproductive_minutes_per_failure=accounts.minutes(failures),
        human_touches=world.people.touches,
        customer_disruptions=accounts.disruptions(),
        wrong_removals=accounts.wrong_removals,
        spares_used=accounts.delivered,
        vendor_node_days=round(accounts.vendor_s() / DAY_S, 2),
        hours_to_full=round(training.short_s / 3600 / max(1, failures), 3),
        wall_seconds=round(wall_s, 2),
        seed=settings.seed,
        nodes=settings.nodes,
        days=settings.days,
        rates=settings.rates,
        spares=_spares(settings)[0],
        interruptions=len(training.outages),
        checkpoint_minutes=round(training.terms.every_s / 60, 3),
        checkpoint_share=round(_writing(training.terms), 5),
        minutes_by_fault=accounts.by_fault(failures),
        journal_digest=drive.journal.digest(),
        events=drive.journal.latest_seq(),
        steps=drive.steps,
        sweep_findings=drive.swept,
        unanswered_intents=len(world.people.refused),
        violation_texts=texts[:TEXTS_SHOWN],
    )
