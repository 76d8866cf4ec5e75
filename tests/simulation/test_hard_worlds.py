"""Hard worlds: what is drawn matches its constants and happens; every constant has a source or says none."""

from datetime import timedelta
from math import exp, sqrt

import msgspec
import pytest
from msgspec.structs import replace

from hostler.core.state import events as e
from hostler.core.state.model import Phase
from hostler.sim.constants import CONSTANTS
from hostler.sim.difficulty import Hardship, moved
from hostler.sim.extra_faults import (
    FIRMWARE,
    IDLE,
    LEMON,
    RACK,
    STRAGGLER,
    Cluster,
    DrawnFaults,
    ExtraFault,
    Misfortune,
    RackPowerLoss,
)
from hostler.sim.extra_faults import drawn as drawn_faults_of
from hostler.sim.failure_rates import load
from hostler.sim.fault_schedule import drawn
from hostler.sim.peers.peer_table import OURS
from hostler.sim.pool_run import SETTLE_S, START, SimSettings, build, run
from hostler.sim.simulation_loop import Drive

pytestmark = pytest.mark.nightly("whole worlds are lived through")

RSC = load("rsc1")
HARD = Hardship()
QUIET = msgspec.convert(dict.fromkeys(CONSTANTS, 0.0), Hardship)
"""World in which nothing happens to anybody; each test switches on what it is about."""
SEEDS = 40
NODES, SPARES, DAYS = 2000, 64, 30.0


def cluster(seed: int, nodes: int = NODES) -> Cluster:
    return Cluster(RSC, nodes, SPARES, DAYS, seed)


def adversities() -> list[DrawnFaults]:
    return [drawn_faults_of(cluster(seed), HARD, drawn(RSC, NODES, DAYS, seed)) for seed in range(SEEDS)]


ALL = RSC.per_second(NODES) * DAYS * 86_400
"""Expected failures of one such cluster."""


def counted(drawn_faults: DrawnFaults, what: str) -> float:
    if what == "strikes":
        return len(drawn_faults.strikes)
    if what == "hidden":
        return len(drawn_faults.hidden)
    if what == RACK:
        return sum(len(burst.nodes) for burst in drawn_faults.bursts)
    return sum(blow.component == what for blow in drawn_faults.blows)


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("strikes", ALL * (1 - HARD.lemon_failures - HARD.burst_share)),
        (LEMON, ALL * HARD.lemon_failures),
        (RACK, ALL * HARD.burst_share),
        (IDLE, ALL * SPARES / NODES * HARD.idle_factor),
        (STRAGGLER, HARD.stragglers / 1000 * NODES * DAYS),
        ("hidden", SPARES * HARD.bad_spares),
    ],
)
def test_what_is_drawn_is_what_the_constants_say(what: str, expected: float) -> None:
    """The mean over seeds within three standard errors (a Poisson count's; a burst counts its nodes, so a few more).

    Mutants: the strikes are not thinned; a burst counts once; a lemon's rate is a node's.
    """
    mean = sum(counted(drawn_faults, what) for drawn_faults in adversities()) / SEEDS
    assert mean == pytest.approx(expected, abs=3 * sqrt(3.2 * expected / SEEDS))


def test_lemons_are_the_published_share_and_new_firmware_fails_for_a_week() -> None:
    """Mutants: every node is a lemon in its turn; a firmware's week never ends."""
    lemons = round(HARD.lemon_share * NODES)
    seen = lemons * (1 - exp(-ALL * HARD.lemon_failures / lemons))
    failed = [len({blow.node for blow in a.blows if blow.component == LEMON}) for a in adversities()]
    assert max(failed) <= lemons
    assert sum(failed) / SEEDS == pytest.approx(seen, abs=3 * sqrt(seen / SEEDS))
    for drawn_faults in adversities():
        moments = [blow.at_s for blow in drawn_faults.blows if blow.component == FIRMWARE]
        assert max(moments, default=0.0) - min(moments, default=0.0) <= 7 * 86_400
    factor = sum(counted(drawn_faults, FIRMWARE) for drawn_faults in adversities()) / SEEDS
    most = RSC.per_second(1) * 7 * 86_400 * HARD.firmware_share * NODES * (HARD.firmware_factor - 1)
    assert 0.6 * most < factor <= most * 1.05, "some weeks reach beyond the end"


def test_the_same_seed_draws_the_same() -> None:
    one, two = (drawn_faults_of(cluster(3), HARD, drawn(RSC, NODES, DAYS, 3)) for _ in range(2))
    assert one == two
    assert one != drawn_faults_of(cluster(4), HARD, drawn(RSC, NODES, DAYS, 4))


def test_every_constant_has_a_range_around_it_and_says_where_it_comes_from() -> None:
    assert tuple(CONSTANTS) == Hardship.__struct_fields__
    for constant in CONSTANTS.values():
        assert constant.low <= constant.value <= constant.high, constant.name
        assert constant.low < constant.high
        assert constant.assumed or any(letter.isdigit() or letter == "'" for letter in constant.source)
        assert getattr(moved(constant, high=True), constant.name) == constant.high
        assert replace(moved(constant, high=False), **{constant.name: constant.value}) == HARD


def befallen(drawn_faults: DrawnFaults, hard: Hardship, hours: float) -> tuple[Drive, list[e.Record]]:
    """A small hard world to which exactly this happens, looked after by ours."""
    terms = replace(hard, restart_s=300, write_s=8, hang_s=60, notice_s=5)
    drive, _ = build(SimSettings(nodes=16, days=30, spares=8, warm=4, rates="rsc1", hardship=terms), RSC, OURS)
    seen: list[e.Record] = []
    drive.watchers.append(seen.append)
    assert drive.world.training is not None
    drive.world.training.begin()
    Misfortune(drive.world, Cluster(RSC, 16, 8, 30, 1), terms).begin(drawn_faults)
    drive.run(START + timedelta(seconds=SETTLE_S, hours=hours))
    return drive, seen


def after(records: list[e.Record], node: str) -> list[Phase]:
    return [r.event.after for r in records if isinstance(r.event, e.PhaseChanged) and r.event.node == node]


NOTHING = DrawnFaults((), (), (), ())


def test_a_lemon_fails_again_until_it_was_repaired() -> None:
    """Mutant: a repaired lemon stays one."""
    blows = tuple(ExtraFault(3600.0 * hours, LEMON, "nvlink", "gpu_reset", 3) for hours in (1, 30, 700))
    drive, _ = befallen(replace(NOTHING, blows=blows), QUIET, 60)
    assert [fault.slot for fault in drive.world.faults] == ["gpu3", "gpu3"]
    drive.world.hosts["n00003"].repair()
    drive.run(START + timedelta(hours=710))
    assert len(drive.world.faults) == 2


def test_a_rack_loses_its_power_until_it_is_mended() -> None:
    """Mutant: a burst strikes one node only."""
    drive, _ = befallen(replace(NOTHING, bursts=(RackPowerLoss(3600.0, (4, 5, 6), 7200.0),)), QUIET, 2.5)
    assert {fault.node for fault in drive.world.faults if fault.active} == {"n00004", "n00005", "n00006"}
    drive.run(START + timedelta(hours=3.5))
    assert not [fault for fault in drive.world.faults if fault.active]


@pytest.mark.parametrize(("share", "returned"), [(1.0, 0), (0.0, 1)])
def test_a_vendor_may_find_nothing(share: float, returned: int) -> None:
    """Mutant: the vendor repairs whatever it is sent."""
    hard = replace(QUIET, nothing_found=share, vendor_days=1.0)
    blow = ExtraFault(3600.0, LEMON, "off_bus", "part", 3)
    drive, seen = befallen(replace(NOTHING, blows=(blow,)), hard, 24 * 6)
    assert Phase.rma in after(seen, "n00003")
    assert (drive.world.hosts["n00003"].repairs > 0) == bool(returned)


def test_a_bad_spare_shows_when_work_meets_it() -> None:
    """Mutant: what is hidden is shown at once."""
    hidden = tuple((node, "nvlink") for node in range(16, 20))
    drive, seen = befallen(
        replace(NOTHING, hidden=hidden, blows=(ExtraFault(7200.0, LEMON, "off_bus", "part", 3),)), QUIET, 4
    )
    raised = [r.at for r in seen if isinstance(r.event, e.ConditionRaised) and r.event.condition.node == "n00016"]
    assert raised, "the job started on it"
    assert min(raised) > START + timedelta(hours=2)
    assert len(drive.world.hidden) == 4


def slow(hours: float, seen_hours: float) -> Drive:
    hard = replace(QUIET, slowdown=0.4, slow_hours=hours, slow_seen_hours=seen_hours)
    cure = "itself" if hours < 100 else "part"
    return befallen(replace(NOTHING, blows=(ExtraFault(3600.0, STRAGGLER, "slow", cure, 3),)), hard, 10)[0]


def test_a_straggler_slows_the_job_while_it_is_a_member() -> None:
    """Mutants: time at the lower speed counts in full; a node that was left out drags on."""
    passes, found = slow(2.0, 24.0), slow(1000.0, 2.0)
    for drive in (passes, found):
        assert drive.world.training is not None
        drive.world.training.finish()
    lost = {id(drive): 10 * 3600 * 0.998 - drive.world.training.useful_s for drive in (passes, found)}  # type: ignore[union-attr]
    assert 0.4 * 1 * 3600 < lost[id(passes)] < 0.4 * 3 * 3600 + 1800
    assert 0.4 * 1 * 3600 < lost[id(found)] < 0.4 * 3 * 3600 + 1800
    assert list(found.world.training.excluded) == ["n00003"]  # type: ignore[union-attr]


def test_a_hard_run_repeats_and_breaks_no_law() -> None:
    settings = SimSettings(nodes=96, days=20.0, rates="rsc1", seed=2, hardship=HARD)
    one, two = run(settings), run(settings)
    assert one.violations == 0, one.violation_texts
    assert one.journal_digest == two.journal_digest
    assert run(replace(settings, hardship=None)).journal_digest != one.journal_digest
