"""The guard table row by row, transcribed from reference/engine.md and never read from GUARDS."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace

from hostler.core.policy.budgets import allowance
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import blockers
from hostler.core.policy.pool_modes import mode_of
from hostler.core.policy.storm_brake import storm
from hostler.core.policy.workload_consent import Disturbance, Lost, may_disturb
from hostler.core.state import events as e
from hostler.core.state.configuration import Budget
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import ActClass, Assignment, HoldKind, Node, Phase
from hostler.core.state.pool_mode import Mode
from hostler.core.state.scopes import Scope
from hostler.core.state.windows import Window
from tests.kit import Drive, a_hold, a_node, a_workload, after, configuration, pool_document

C = ActClass
PASSES, WAITS = True, False

TABLE: dict[str, tuple[bool, bool, bool, bool, bool, bool]] = {
    # guard: protective, easing, immediate, pending, bring-up, idle check
    "pause": (PASSES, PASSES, WAITS, WAITS, WAITS, WAITS),
    "storm brake": (PASSES, PASSES, WAITS, WAITS, WAITS, WAITS),
    "hold": (PASSES, PASSES, WAITS, WAITS, WAITS, WAITS),
    "physical-work hold": (PASSES, PASSES, WAITS, WAITS, WAITS, WAITS),
    "budget": (PASSES, PASSES, WAITS, WAITS, PASSES, PASSES),
    "maintenance windows": (PASSES, PASSES, PASSES, WAITS, PASSES, PASSES),
}
CLASSES = (C.protective, C.easing, C.immediate, C.pending, C.bring_up, C.idle_check)
CELLS = [
    pytest.param(guard, act_class, passes, id=f"{guard}-{act_class.value}")
    for guard, row in TABLE.items()
    for act_class, passes in zip(CLASSES, row, strict=True)
]


def four(**budget: float) -> Drive:
    pools = {"train": pool_document(target=4, budget={"count": 1, "percent": 100, "reserve": 0, **budget})}
    return Drive(configuration(pools), [a_node(name) for name in "abcd"])


def record(drive: Drive, *events: e.Event) -> None:
    """Events of no importance to the guard, folded as they stand."""
    drive.controller._record_all(events, "test")  # noqa: SLF001 - a fleet in a state, by no particular way
    drive.fleet.merge()


def pause(drive: Drive) -> None:
    drive.ask("pause", "pool:train")


def brake(drive: Drive) -> None:
    record(drive, e.BrakeLatched("too much at once"))


def hold(drive: Drive) -> None:
    drive.ask("hold", "a")


def physical_work(drive: Drive) -> None:
    record(drive, e.HoldPlaced(a_hold("a", HoldKind.physical_work)))


def spend(drive: Drive) -> None:
    drive.ask("drain", "b")
    drive.see_work("b", a_workload("w"))


def window(drive: Drive) -> None:
    record(drive, e.WindowScheduled(Window("w", Scope.of("pool:train"), after(hours=1), after(hours=2), "", "ann")))


CLOSING: dict[str, tuple[Callable[[Drive], None], str]] = {
    "pause": (pause, "pause"),
    "storm brake": (brake, "brake"),
    "hold": (hold, "hold"),
    "physical-work hold": (physical_work, "hold"),
    "budget": (spend, "budget"),
    "maintenance windows": (window, "window"),
}


def context(drive: Drive) -> DecisionContext:
    return DecisionContext(drive.fleet, drive.controller.live, drive.now)


@pytest.mark.parametrize(("guard", "act_class", "passes"), CELLS)
def test_a_guard_answers_a_class_as_the_reference_says(guard: str, act_class: ActClass, passes: bool) -> None:
    """Mutants: any cell of GUARDS flipped."""
    drive = four()
    request = DisruptionRequest("reboot", act_class, (drive.node("a"),))
    assert blockers(context(drive), request) == ()
    close, kind = CLOSING[guard]
    close(drive)
    found = blockers(context(drive), request)
    assert [b.kind for b in found] == ([] if passes else [kind])
    assert all(b.text and b.ends_when and b.name for b in found)


@pytest.mark.parametrize("scope", ["fleet", "a", "rack:r1", "pool:train", "cluster:k1", "power:p1"], ids=str)
def test_holds_and_pauses_reach_a_node_by_every_scope_it_belongs_to(scope: str) -> None:
    pools = {"train": pool_document(target=1)}
    drive = Drive(configuration(pools), [a_node("a", domains=("power:p1",)), a_node("b", pool="")])
    drive.ask("hold", scope)
    drive.ask("pause", scope)
    found = blockers(context(drive), DisruptionRequest("reboot", C.immediate, (drive.node("a"),)))
    assert [b.kind for b in found] == ["pause", "hold"]


def test_under_a_physical_work_hold_protection_may_remove_power_and_nothing_gives_it() -> None:
    """ "removes power only" and "power stays off". Mutant: power_on needs no "power"."""
    drive = four()
    drive.ask("cordon", "a")
    drive.run()
    record(drive, e.HoldPlaced(a_hold("a", HoldKind.physical_work)))
    drive.leak("a")
    drive.run()
    assert drive.power["a"] is False
    drive.ask("clear-condition", "a", condition="cooling.leak")
    drive.ask("release", "a-power")
    drive.ask("uncordon", "a")
    drive.wait(days=2)
    assert drive.power["a"] is False
    assert "power_on" not in drive.operations("a")


def test_an_open_machine_stays_dark_in_the_middle_of_a_plan_too() -> None:
    """However the hold came there. Mutant: power_on needs no "power"."""
    drive = four()
    drive.script("power_off", "late")
    drive.ask("power-cycle", "a")
    drive.run()
    record(drive, e.HoldPlaced(a_hold("a", HoldKind.physical_work)))
    drive.land()
    drive.wait(days=1)
    assert drive.power["a"] is False
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert waiting.blockers[0].text == "ann holds a: because"


def test_easing_passes_a_physical_work_hold_while_power_stays_off() -> None:
    drive = four()
    drive.see_work("a", a_workload("w"))
    drive.ask("reboot", "a")
    drive.run()
    assert "a" in drive.cordoned
    record(drive, e.HoldPlaced(a_hold("a", HoldKind.operator)))
    drive.wait(seconds=1)
    drive.ask("pause", "fleet")
    drive.wait(seconds=1)
    assert "a" not in drive.cordoned, "the undo tail is easing: a hold does not keep a cordon"


@pytest.mark.parametrize(
    ("count", "percent", "target", "act_class", "limit"),
    [
        (3, 100, 10, C.pending, 3),
        (30, 10, 100, C.pending, 10),
        (30, 10, 100, C.immediate, 12),
        (1, 1, 10, C.pending, 1),
        (0, 100, 10, C.pending, 0),
        (5, 0, 10, C.pending, 0),
        (5, 50, 0, C.pending, 0),
    ],
)
def test_the_stricter_of_count_and_percent_wins_and_only_immediate_acts_use_the_reserve(
    count: int, percent: float, target: int, act_class: ActClass, limit: int
) -> None:
    """Mutants: max instead of min; the reserve for everybody."""
    assert allowance(Budget(count=count, percent=percent, reserve=2), target, act_class) == limit


def test_the_reserve_lets_one_more_immediate_act_pass_and_no_pending_one() -> None:
    drive = four(reserve=1)
    spend(drive)
    ask = [DisruptionRequest("reboot", c, (drive.node("a"),)) for c in (C.pending, C.immediate)]
    assert [bool(blockers(context(drive), request)) for request in ask] == [True, False]


def test_protection_passes_the_budget_and_counts() -> None:
    """A node that is kept dark is not available. Mutant: a protected node stays healthy."""
    drive = four()
    drive.leak("b")
    drive.run()
    found = blockers(context(drive), DisruptionRequest("reboot", C.pending, (drive.node("a"),)))
    assert [b.kind for b in found] == ["budget"]


def test_unavailable_counts_against_the_target_and_not_against_who_is_left() -> None:
    """Mutant: the denominator is the current members."""
    drive = Drive(
        configuration({"train": pool_document(target=8, budget={"count": 4, "percent": 50, "reserve": 0})}),
        [a_node(name) for name in "abcd"],
    )
    found = blockers(context(drive), DisruptionRequest("reboot", C.pending, (drive.node("a"),)))
    assert [b.text for b in found] == ["pool train: 4 of 8 unavailable, 1 more would exceed the budget of 4"]


@pytest.mark.parametrize(("floor", "spares", "waits"), [(0, 0, False), (1, 1, True), (1, 2, False), (3, 2, True)])
def test_a_degraded_node_stays_while_only_the_floor_of_spares_is_left(floor: int, spares: int, waits: bool) -> None:
    """Mutants: the floor is off by one; what is broken for good waits for a spare too; a mere reboot does."""
    budget = {"count": 4, "percent": 100, "spares_floor": floor}
    extra = [a_node(f"s{number}", pool="") for number in range(spares)]
    drive = Drive(
        configuration({"train": pool_document(target=4, budget=budget)}), [*(a_node(n) for n in "abcd"), *extra]
    )
    node = (drive.node("a"),)
    found = blockers(context(drive), DisruptionRequest("triage", C.pending, node))
    assert bool(found) is waits
    assert all(b.kind == "budget" and b.name == "spares:h100" and b.ends_when for b in found)
    assert not blockers(context(drive), DisruptionRequest("triage", C.immediate, node))
    assert not blockers(context(drive), DisruptionRequest("reboot", C.pending, node))


def test_a_failure_domain_has_a_budget_of_its_own() -> None:
    pools = {"train": pool_document(target=4, budget={"count": 4, "percent": 100})}
    drive = Drive(configuration(pools), [a_node(n, domains=("nvlink:d1",)) for n in "ab"] + [a_node("c"), a_node("d")])
    drive.see_work("a", a_workload("w"))
    drive.ask("reboot", "a")
    kinds = [
        (b.kind, b.name) for b in blockers(context(drive), DisruptionRequest("reboot", C.immediate, (drive.node("b"),)))
    ]
    assert kinds == [("budget", "nvlink:d1")]
    assert not blockers(context(drive), DisruptionRequest("reboot", C.immediate, (drive.node("c"),)))


def test_a_domains_budget_is_asked_for_who_is_not_disturbed_yet_and_not_for_the_domains_own_act() -> None:
    """Mutants: a node with a plan that disturbs nobody takes nothing; what is done to a domain waits for itself."""
    pools = {"train": pool_document(target=4, budget={"count": 4, "percent": 100})}
    drive = Drive(configuration(pools), [a_node(n, domains=("nvlink:d1",)) for n in "abcd"])
    drive.see_work("a", a_workload("w"))
    drive.ask("reboot", "a")
    plan, b, c = drive.node("a").plan, drive.node("b"), drive.node("c")
    assert plan is not None
    for own, waits in (
        (None, True),
        (replace(plan, disruptive=False), True),
        (replace(plan, state="proposed"), True),
        (plan, False),
    ):
        asked = DisruptionRequest("reboot", C.immediate, (replace(b, plan=own),))
        assert [x.name for x in blockers(context(drive), asked)] == ["nvlink:d1"] * waits
    for scope, waits in ((None, True), (Scope("nvlink", "d1"), False)):
        asked = DisruptionRequest("reboot", C.immediate, (b, c), scope=scope)
        assert [x.name for x in blockers(context(drive), asked)] == ["nvlink:d1"] * waits


def test_a_domain_that_is_asked_for_whole_has_nothing_left_to_spare() -> None:
    """Both nodes of it, by no domain's name. Mutant: three are needed for a whole."""
    pools = {"train": pool_document(target=4, budget={"count": 4, "percent": 100})}
    drive = Drive(configuration(pools), [a_node(n, domains=("nvlink:d1",)) for n in "ab"])
    both, one = (drive.node("a"), drive.node("b")), (drive.node("a"),)
    assert not blockers(context(drive), DisruptionRequest("reboot", C.immediate, both))
    assert not blockers(context(drive), DisruptionRequest("reboot", C.immediate, one))


def test_a_domain_of_a_kind_that_the_policy_does_not_name_has_no_budget() -> None:
    """Mutant: its budget is asked for all the same."""
    pools = {"train": pool_document(target=4, budget={"count": 4, "percent": 100})}
    drive = Drive(configuration(pools), [a_node(n, domains=("aisle:a1",)) for n in "ab"])
    drive.see_work("a", a_workload("w"))
    drive.ask("reboot", "a")
    assert not blockers(context(drive), DisruptionRequest("reboot", C.immediate, (drive.node("b"),)))


def test_bring_up_has_its_own_budget() -> None:
    def two_at_once(policy: dict[str, object]) -> None:
        policy["bring_up_at_once"] = 2

    fresh = [a_node(n, pool="", phase=Phase.registered, boot_id="", boots=()) for n in "abc"]
    drive = Drive(configuration(policy=two_at_once), fresh)
    assert [drive.node(n).phase for n in "abc"] == [Phase.initializing, Phase.initializing, Phase.registered]
    waiting = drive.node("c").waiting
    assert waiting is not None
    assert waiting.blockers[0].text == "2 nodes are being brought up, the limit is 2 at once"
    assert not blockers(context(drive), DisruptionRequest("zap", C.bring_up, (drive.node("c"),))), (
        "who has begun goes on"
    )
    drive.run()
    assert drive.node("c").phase is Phase.onboard, "one has finished, so the next begins"


def test_who_is_brought_up_does_not_wait_for_itself() -> None:
    """Mutant: a node that has begun counts itself, and with a limit of one nothing is ever brought up."""

    def one_at_once(policy: dict[str, object]) -> None:
        policy["bring_up_at_once"] = 1

    fresh = [a_node(n, pool="", phase=Phase.registered, boot_id="", boots=()) for n in "ab"]
    drive = Drive(configuration(policy=one_at_once), fresh)
    drive.run()
    assert [drive.node(n).phase for n in "ab"] == [Phase.onboard, Phase.onboard]


def test_removals_per_day_are_a_budget_of_their_own_and_open_again_by_the_clock() -> None:
    """Mutant: nobody wakes the node when the day is over."""
    pools = {"train": pool_document(target=4, budget={"count": 4, "percent": 100, "removals_per_day": 1})}
    drive = Drive(configuration(pools), [a_node(name) for name in "abcd"])
    drive.ask("request-replacement", "a")
    drive.run()
    drive.ask("request-replacement", "b")
    drive.run()
    assert [drive.node(n).phase for n in "ab"] == [Phase.test, Phase.production] or "triage" in drive.plans("a")
    assert "triage" not in drive.plans("b")
    drive.wait(hours=25)
    assert "triage" in drive.plans("b")


def test_releasing_the_brake_does_not_forget_the_removals_of_the_day() -> None:
    """Mutant: the fold empties `recent` with the brake."""
    pools = {"train": pool_document(target=4, budget={"count": 4, "percent": 100, "removals_per_day": 1})}
    drive = Drive(configuration(pools), [a_node(name) for name in "abcd"])
    drive.ask("request-replacement", "a")
    drive.run()
    record(drive, e.BrakeLatched("test"))
    drive.ask("release-brake", "fleet")
    assert [b.name for b in blockers(context(drive), DisruptionRequest("triage", C.pending, (drive.node("b"),)))] == [
        "removals:train"
    ]
    assert storm(context(drive), 20) == ""


def test_a_window_opens_by_the_clock_and_closes_again() -> None:
    drive = four()
    drive.ask(
        "schedule-maintenance", "pool:train", starts="2026-01-01T01:00:00+00:00", ends="2026-01-01T02:00:00+00:00"
    )
    drive.ask("reboot", "a")
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert waiting.blockers[0].ends_when == "the window opens at 2026-01-01 01:00 UTC"
    drive.wait(minutes=59)
    assert drive.plans("a") == []
    drive.wait(minutes=2)
    assert drive.plans("a") == ["reboot"]
    drive.wait(hours=2)
    assert not len(drive.fleet.windows)


def test_a_hold_with_an_end_ends_by_the_clock_and_whoever_waited_goes_on() -> None:
    drive = four()
    drive.ask("hold", "a", hours="1")
    drive.ask("reboot", "a")
    drive.wait(minutes=59)
    assert drive.plans("a") == []
    drive.wait(minutes=2)
    assert drive.plans("a") == ["reboot"]


def test_a_cordon_with_an_end_ends_by_the_clock() -> None:
    """Mutant: holds that have run out are not released."""
    drive = four()
    drive.ask("cordon", "a", hours="1")
    drive.run()
    assert "a" in drive.cordoned
    drive.wait(minutes=61)
    assert "a" not in drive.cordoned
    assert not len(drive.fleet.holds)


# --- consent: "not asked" for a doomed workload under immediate; "asked" of any other

WORK = [("uninterruptible", False), ("graceful", True), ("interruptible", True)]


@pytest.mark.parametrize("act_class", [C.immediate, C.pending, C.protective])
@pytest.mark.parametrize(("kind", "willing"), WORK)
@pytest.mark.parametrize("doomed", [True, False])
def test_consent_is_asked_of_everybody_but_the_doomed(
    act_class: ActClass, kind: str, willing: bool, doomed: bool
) -> None:
    """Mutants: everybody is doomed; protection asks."""
    drive = four()
    work = a_workload("w", [0] if doomed else [1], kind)
    drive.see_work("a", work)
    act = Disturbance(act_class, (Lost("a-G0", drive.now),))
    said = may_disturb(drive.node("a"), drive.controller.live, act, None)
    assert isinstance(said, tuple)
    assert said[0].allowed is (act_class is C.protective or doomed or willing)
    assert (said[0].blocker is None) is said[0].allowed


@pytest.mark.parametrize("part", ["a-G0", ""])
@pytest.mark.parametrize(("after_s", "doomed"), [(-3600, True), (30, True), (3600, False), (None, True)])
def test_who_came_after_the_fault_was_last_seen_is_not_doomed_by_it(
    part: str, after_s: float | None, doomed: bool
) -> None:
    """Clocks may be a little apart, and a scheduler may not say. Mutant: whoever uses the part is doomed for ever."""
    drive = four()
    began = None if after_s is None else drive.now + timedelta(seconds=after_s)
    drive.see_work("a", replace(a_workload("w", [0]), began=began))
    lost = (Lost(part, drive.now - timedelta(days=1)), Lost(part, drive.now))
    said = may_disturb(drive.node("a"), drive.controller.live, Disturbance(C.immediate, lost), None)
    assert isinstance(said, tuple)
    assert said[0].allowed is doomed


def test_modes_stand_per_pool_and_remedy_and_what_is_set_by_intent_comes_first() -> None:
    pools = {"train": pool_document(target=1, modes={"reboot": "act", "triage": "propose"})}
    drive = Drive(configuration(pools), [a_node("a"), a_node("b", pool="")])

    def blocked(remedy: str, node: Node) -> bool:
        return any(b.kind == "mode" for b in blockers(context(drive), DisruptionRequest(remedy, C.pending, (node,))))

    a = drive.node("a")
    assert [blocked(r, a) for r in ("reboot", "triage", "gpu_reset")] == [False, False, True]
    assert not blocked("gpu_reset", drive.node("b")), "a spare has no customer to ask"
    drive.ask("mode", "pool:train", mode="observe", remedy="reboot")
    drive.ask("mode", "pool:train", mode="act")
    assert [blocked(r, a) for r in ("reboot", "triage", "gpu_reset")] == [True, False, False]


def test_silence_alone_convicts_nobody() -> None:
    """Mutant: `confirm` is not asked."""
    drive = four()
    request = DisruptionRequest("power_cycle", C.immediate, (drive.node("a"),), confirm=True)
    assert [b.kind for b in blockers(context(drive), request)] == ["confirmation"]
    drive.controller.live.entry("a").ready = False
    assert not blockers(context(drive), request)


def test_what_disturbs_nobody_is_counted_by_nobody_and_held_by_whoever_holds() -> None:
    """A BMC's restart. Mutants: it asks the brake, the budget or the window; a hold does not stop it."""
    drive = four()
    spend(drive)
    brake(drive)
    window(drive)
    request = DisruptionRequest("bmc_reset", C.pending, (drive.node("a"),))
    assert blockers(context(drive), request) == ()
    assert {b.kind for b in blockers(context(drive), replace(request, remedy="reboot"))} == {
        "brake",
        "budget",
        "window",
    }
    hold(drive)
    assert [b.kind for b in blockers(context(drive), request)] == ["hold"]


def test_a_node_of_a_pool_that_is_configured_no_more_waits_and_says_so() -> None:
    """Mutant: without a pool there is no budget, and all may be disturbed at once."""
    drive = four()
    misdirected = replace(drive.node("a"), assignment=Assignment("gone", "acme", "k1", drive.now))
    found = blockers(context(drive), DisruptionRequest("reboot", C.immediate, (misdirected,), approved=True))
    text = "pool gone is not in the active configuration, so its budget is unknown"
    assert [b.text for b in found if b.kind == "budget"] == [text]


def test_an_act_on_two_pools_asks_each_for_its_own_nodes() -> None:
    """Mutant: every pool is asked for all of them."""

    def pool() -> dict[str, object]:
        return pool_document(target=2, budget={"count": 1, "percent": 100, "reserve": 0, "removals_per_day": 1})

    pools = {"train": pool(), "serve": pool()}
    nodes = [a_node(name, pool=pool) for pool, names in (("train", "tu"), ("serve", "sv")) for name in names]
    drive = Drive(configuration(pools), nodes)
    one_each = (drive.node("t"), drive.node("s"))
    assert blockers(context(drive), DisruptionRequest("reboot", C.immediate, one_each)) == ()
    three = (*one_each, drive.node("u"))
    assert [b.name for b in blockers(context(drive), DisruptionRequest("reboot", C.immediate, three))] == ["pool:train"]
    assert blockers(context(drive), DisruptionRequest("triage", C.immediate, one_each)) == ()
    found = [b.name for b in blockers(context(drive), DisruptionRequest("triage", C.immediate, three))]
    assert found == ["pool:train", "removals:train"]


@pytest.mark.parametrize(
    ("adopted", "phase", "mode"),
    [
        (True, Phase.production, Mode.observe),
        (True, Phase.triage, Mode.act),
        (False, Phase.production, Mode.act),
    ],
)
def test_an_adopted_spare_is_only_observed_until_it_has_left_service(adopted: bool, phase: Phase, mode: Mode) -> None:
    """Mutants: every adopted node, or every spare, is."""
    drive = four()
    assert mode_of(context(drive), a_node("s", pool="", adopted=adopted, phase=phase), "reboot") is mode
