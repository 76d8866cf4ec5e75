"""Peers in the same worlds: the same faults for all, figures that mean what they say, intervals that are right."""

from datetime import UTC, datetime, timedelta

import pytest

from hostler.core.policy.documents import parse
from hostler.core.state import events as e
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.model import Condition, Severity
from hostler.sim.comparison.comparison_run import FIGURES, ComparisonRequest, Trial, hold, mean_of, student
from hostler.sim.comparison.page import format_trial, page
from hostler.sim.downtime_accounts import Accounts
from hostler.sim.failure_rates import load
from hostler.sim.fault_schedule import Strike, befall, drawn
from hostler.sim.peers.cloud_auto_repair import UNHEALTHY_S
from hostler.sim.peers.condition_coverage import ANSWERED_BY, acted_on, rules_of, worth_acting
from hostler.sim.peers.on_call import NIGHT_S, REACT_S, reaction_s
from hostler.sim.peers.peer import Peer
from hostler.sim.peers.peer_table import OURS, PEERS, WATCH_ONLY
from hostler.sim.pool_run import SETTLE_S, START, SimSettings, build, run
from hostler.sim.run_report import RunReport
from hostler.sim.simulation_loop import Drive
from hostler.sim.world.fault_kinds import KINDS

pytestmark = pytest.mark.nightly("whole worlds are lived through")

SMALL = SimSettings(nodes=64, days=12.0, rates="rsc1", seed=5)


@pytest.fixture(scope="module")
def reports() -> dict[str, RunReport]:
    return {name: run(SMALL, peer=peer) for name, peer in PEERS.items()}


def lived(name: str) -> Drive:
    """The small world after its time, looked after by this peer."""
    rates = load(SMALL.rates)
    drive, _ = build(SMALL, rates, PEERS[name])
    assert drive.world.training is not None
    drive.world.training.begin()
    befall(drive.world, drawn(rates, SMALL.nodes, SMALL.days, SMALL.seed))
    drive.run(START + timedelta(seconds=SETTLE_S, days=SMALL.days))
    return drive


def test_faults_are_drawn_once_and_met_by_all() -> None:
    """Mutant: the moment of the next fault is drawn from the chance that everybody in the world shares."""
    worlds = [lived(name) for name in ("hostler", "drain-on-any", "nobody", "oracle")]
    met = [[(f.since, f.kind.name, f.component, f.cure) for f in drive.world.faults] for drive in worlds]
    assert met[0]
    assert all(faults == met[0] for faults in met)


def test_the_draw_is_a_poisson_process_at_the_published_rate() -> None:
    rates = load("llama3")
    counts = [len(drawn(rates, 2048, 54, seed)) for seed in range(60)]
    assert sum(counts) / len(counts) == pytest.approx(419, abs=3 * 419**0.5 / 60**0.5)
    strikes = drawn(rates, 2048, 54, 1)
    assert strikes == drawn(rates, 2048, 54, 1)
    assert strikes != drawn(rates, 2048, 54, 2)
    assert list(strikes) == sorted(strikes, key=lambda strike: strike.at_s)
    assert all(0 <= strike.place < 1 for strike in strikes)


def test_nobody_beats_the_oracle_and_nobody_is_the_slowest(reports: dict[str, RunReport]) -> None:
    goodput = {name: report.goodput for name, report in reports.items()}
    assert max(goodput.values()) == pytest.approx(goodput["oracle"], abs=0.0005)
    assert min(goodput, key=lambda name: goodput[name]) == "nobody"
    assert goodput["hostler"] > goodput["auto-repair"]


def test_only_ours_is_judged_and_it_breaks_no_law(reports: dict[str, RunReport]) -> None:
    assert reports["hostler"].violations == 0
    assert reports["hostler"].wrong_removals == 0
    assert reports["hostler"].customer_disruptions == 0


def test_an_outage_that_goes_on_is_counted(reports: dict[str, RunReport]) -> None:
    """Mutant: only outages that are over are cut."""
    for report in reports.values():
        lost = report.unproductive_minutes_per_failure.total * report.failures / (report.days * 1440)
        assert 1 - report.goodput == pytest.approx(lost + report.checkpoint_share, abs=0.006)


@pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS)
def test_a_peers_document_is_sound(peer: object) -> None:
    assert parse({"policy.yaml": PEERS[peer.name].document()}).policy.rules  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("moment", "seconds"),
    [
        (datetime(2026, 1, 5, 9, tzinfo=UTC), REACT_S),
        (datetime(2026, 1, 5, 17, 59, tzinfo=UTC), REACT_S),
        (datetime(2026, 1, 5, 18, tzinfo=UTC), REACT_S + NIGHT_S),
        (datetime(2026, 1, 5, 3, tzinfo=UTC), REACT_S + NIGHT_S),
        (datetime(2026, 1, 4, 12, tzinfo=UTC), REACT_S + NIGHT_S),
    ],
)
def test_people_on_call_are_slower_at_night_and_on_sundays(moment: datetime, seconds: float) -> None:
    assert reaction_s(moment) == seconds


def one_fault(name: str, kind: str, cure: str) -> tuple[list[e.Record], Accounts]:
    """The records of a small world in which one thing breaks, an hour after the job's start, on its first place."""
    drive, accounts = build(SimSettings(nodes=16, days=1.0), load("llama3"), PEERS[name])
    assert drive.world.training is not None
    drive.world.training.begin()
    befall(drive.world, (Strike(3600.0, "faulty_gpu", kind, cure, 0.0),))
    seen: list[e.Record] = []
    drive.watchers.append(seen.append)
    drive.run(START + timedelta(seconds=SETTLE_S, hours=4))
    return seen, accounts


def test_who_drains_on_any_condition_takes_healthy_nodes_for_a_programs_fault() -> None:
    """Mutant: a removal is never wrong."""
    assert one_fault("drain-on-any", "program", "itself")[1].wrong_removals == 1
    assert one_fault("drain-on-any", "off_bus", "part")[1].wrong_removals == 0
    assert one_fault("hostler", "program", "itself")[1].wrong_removals == 0


def test_auto_repair_waits_its_ten_minutes() -> None:
    records, _ = one_fault("auto-repair", "off_bus", "part")
    raised = next(r.at for r in records if isinstance(r.event, e.ConditionRaised) and r.event.condition.severity >= 3)
    requests = [r for r in records if isinstance(r.event, e.IntentRecorded) and r.event.intent.person == "auto-repair"]
    assert (requests[0].at - raised).total_seconds() == pytest.approx(UNHEALTHY_S, abs=2)


def test_reboot_only_reboots_and_then_pages_people() -> None:
    records, _ = one_fault("reboot-only", "off_bus", "part")
    plans = [r.event.plan.name for r in records if isinstance(r.event, e.PlanRecorded)]
    assert plans[0] == "reboot"
    assert "power_cycle" not in plans
    assert any(isinstance(r.event, e.IntentRecorded) and r.event.intent.person == "oncall" for r in records)


def test_the_oracle_lets_hostler_do_nothing() -> None:
    assert not [r for r in one_fault("oracle", "nvlink", "gpu_reset")[0] if isinstance(r.event, e.OperationStarted)]


@pytest.mark.parametrize(
    ("name", "severity", "pages"),
    [
        ("gpu.nvlink_degraded", Severity.degraded, False),
        ("gpu.nvlink_degraded", Severity.critical, True),
        ("network.link", Severity.degraded, True),
        ("operator.replacement", Severity.info, False),
    ],
)
def test_what_is_critical_or_acted_on_by_ours_is_worth_acting(name: str, severity: Severity, *, pages: bool) -> None:
    """Mutant: only critical conditions page, so that people never hear of a link that stays down."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    assert worth_acting(Condition("a/x", name, "a", severity, at, at, "observation", "hostler")) is pages


AT_ONCE = timedelta(minutes=9)
"""Before any person could have: an engineer needs ten minutes at least."""
AUTOMATIC = [peer for peer in PEERS.values() if peer.policy not in ("", WATCH_ONLY)]


def test_every_kind_of_fault_says_what_answers_it() -> None:
    assert set(ANSWERED_BY) == set(KINDS)
    assert {name for names in ANSWERED_BY.values() for name in names} <= acted_on()


@pytest.mark.parametrize("peer", AUTOMATIC, ids=lambda peer: peer.name)
def test_a_peer_lacks_no_rule_that_ours_has(peer: Peer) -> None:
    """Mutants: network.link has no remedy in drain_on_any.yaml; agent.lost has no row in reboot_only.yaml."""
    rules = rules_of(peer.document())
    assert not acted_on() - set(rules)
    assert all(rules[name].remedy for names in ANSWERED_BY.values() for name in names)
    assert all(rule.note.startswith(("own: ", "given: ")) for rule in rules.values())


@pytest.mark.parametrize("peer", [OURS, *AUTOMATIC], ids=lambda peer: peer.name)
def test_every_fault_that_ours_answers_is_acted_on(peer: Peer) -> None:
    """One fault of each kind on a node of its own, three hours apart.

    Mutant: agent.lost and power.off_unexpected have no row in reboot_only.yaml.
    """
    answered = [kind for kind, names in ANSWERED_BY.items() if names]
    drive, _ = build(SimSettings(nodes=64, days=3.0, spares=40), load("llama3"), peer)
    assert drive.world.training is not None
    drive.world.training.begin()
    befall(drive.world, tuple(Strike(600.0 + 10_800 * n, "cpu", k, "part", n / 20) for n, k in enumerate(answered)))
    raised: dict[tuple[str, str], datetime] = {}
    acted: dict[str, list[datetime]] = {}

    def see(record: e.Record) -> None:
        match record.event:
            case e.ConditionRaised(condition=c):
                raised.setdefault((c.node, c.type), record.at)
            case e.PlanRecorded(plan=plan) if plan.disruptive:
                acted.setdefault(plan.node, []).append(record.at)
            case _:
                pass

    drive.watchers.append(see)
    drive.run(START + timedelta(hours=3 * len(answered) + 3))
    for fault in drive.world.faults:
        known = min(raised[fault.node, name] for name in ANSWERED_BY[fault.kind.name] if (fault.node, name) in raised)
        begun = [at for at in acted.get(fault.node, []) if known <= at <= known + AT_ONCE]
        assert begun, f"nobody acts on {fault.kind.name}"


def test_intervals_are_students() -> None:
    """By tables: t(0.975) of 1, 9, 19 and 120 degrees of freedom."""
    for freedom, quantile in ((1, 12.706), (9, 2.262), (11, 2.201), (19, 2.093), (120, 1.980)):
        assert student(freedom) == pytest.approx(quantile, abs=0.0005)
    mean = mean_of([1.0, 2.0, 3.0])
    assert mean.mean == 2.0
    assert mean.half == pytest.approx(4.3027 / 3**0.5, abs=1e-4)
    assert mean_of([7.0]).half is None


@pytest.fixture(scope="module")
def trial() -> Trial:
    return hold(ComparisonRequest(SimSettings(nodes=16, days=4.0), ("rsc1",), ("nobody",), seeds=2, jobs=1))


def test_differences_are_taken_world_by_world(trial: Trial) -> None:
    """Mutant: means are compared, not pairs."""
    ours, theirs = trial.tables["rsc1"]
    assert (ours.peer, theirs.peer, ours.against_ours) == (OURS.name, "nobody", {})
    settings = [SimSettings(nodes=16, days=4.0, rates="rsc1", seed=seed) for seed in (1, 2)]
    pairs = [(run(one, peer=PEERS["nobody"]), run(one)) for one in settings]
    for figure, read in FIGURES.items():
        assert theirs.against_ours[figure] == mean_of([read(their) - read(our) for their, our in pairs])


def test_the_page_names_its_command_and_every_peer(trial: Trial) -> None:
    text = page(trial, "hostler sim peers --seeds 2")
    assert "`hostler sim peers --seeds 2`" in text
    for name in PEERS:
        assert f"**{name}**" in text
    assert "nobody" in format_trial(trial)


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        (ComparisonRequest(SimSettings(), ("llama3",), ("somebody",), 1), "no peer"),
        (ComparisonRequest(SimSettings(), ("llama3",), (), 0), "seeds"),
        (ComparisonRequest(SimSettings(), ("llama3",), (), 1, 0), "jobs"),
        (ComparisonRequest(SimSettings(), ("/nowhere",), (), 1), "cannot be read"),
        (ComparisonRequest(SimSettings(), (), (), 1), "rates"),
        (ComparisonRequest(SimSettings(nodes=0), ("llama3",), (), 1), "nodes"),
    ],
)
def test_what_cannot_be_compared_is_refused(asked: ComparisonRequest, what: str) -> None:
    with pytest.raises(InvalidInputError, match=what):
        hold(asked)
