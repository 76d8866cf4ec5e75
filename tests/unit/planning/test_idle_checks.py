"""Idle slots: on whom a check begins, on whom never, whom it yields to, and that a fleet is not checked at once."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import NodeSeen, Replied, WorkSeen
from hostler.core.planning import idle_checks
from hostler.core.state import events as e
from hostler.core.state.cases import Incident
from hostler.core.state.clock_doubt import Doubt
from hostler.core.state.configuration import Configuration, IdleCheckPolicy
from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Rest
from hostler.core.state.fleet import Fleet
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import (
    ActClass,
    Assignment,
    Attempt,
    HoldKind,
    Node,
    Operation,
    Outcome,
    Plan,
    Profile,
    Radius,
    Step,
    Verdict,
)
from hostler.core.state.operations import RunChecks
from hostler.core.state.scopes import Scope
from hostler.core.tables.operations import IDLE_CHECK
from hostler.ports import WorkloadView
from tests.kit import CLUSTER, NOW, Drive, a_hold, a_node, a_workload, configuration, pool_document

MODES = {"*": "act", IDLE_CHECK: "act"}
HOUR_S = 3600


def a_configuration(modes: dict[str, str] | None = None, target: int = 40, **limits: Any) -> Configuration:
    wanted = {"quiet_s": 60, "count": 40, "percent": 100, **limits}
    pools = {"train": pool_document(target=target, modes=MODES if modes is None else modes)}
    reach = {"nodes": 1000}
    return configuration(pools, lambda policy: policy.update(slots={**policy["slots"], **wanted}, reach=reach))


def a_drive(*nodes: Node, config: Configuration | None = None, **script: str) -> Drive:
    drive = Drive(config or a_configuration(), nodes or (a_node("n1"),))
    for kind, answer in script.items():
        drive.script(kind, *[answer] * 10)
    return drive


def checked(drive: Drive, node_id: str = "n1") -> list[e.OperationStarted]:
    return [s for s in drive.events(e.OperationStarted, node_id) if s.operation.kind == IDLE_CHECK]


def verdicts(drive: Drive, node_id: str = "n1") -> list[Verdict]:
    return [c.check.verdict for c in drive.events(e.CheckRecorded, node_id) if c.check.profile == "idle"]


def test_an_idle_node_is_checked_once_in_each_period_and_only_with_an_operation() -> None:
    """Mutants: twice in a slot; never again after the first; a plan for each."""
    drive = a_drive()
    drive.wait(hours=5)
    assert verdicts(drive) == [Verdict.passed] * 5
    begun = [s.operation.started for s in checked(drive)]
    assert {(b - a).total_seconds() // 60 for a, b in pairwise(begun)} == {60}
    assert drive.plans() == []
    assert len({s.operation.id for s in checked(drive)}) == 5


def test_a_pool_that_has_not_asked_for_it_by_name_is_left_alone() -> None:
    """Mutant: "*" includes idle checks."""
    drive = a_drive(config=a_configuration({"*": "act"}))
    drive.wait(hours=2)
    assert checked(drive) == []
    assert drive.ask("mode", "pool:train", remedy=IDLE_CHECK, mode="act").granted
    drive.wait(hours=2)
    begun = len(checked(drive))
    assert begun in (2, 3)
    assert drive.ask("mode", "pool:train", remedy=IDLE_CHECK, mode="observe").granted
    drive.wait(hours=2)
    assert len(checked(drive)) == begun


def busy(drive: Drive) -> None:
    drive.see_work("n1", a_workload("w1"))


def unknown(drive: Drive) -> None:
    drive.step(WorkSeen((), cluster=CLUSTER, lost="silent"))


def cordoned_by_other(drive: Drive) -> None:
    drive.step(WorkSeen((WorkloadView("n1", (), cordoned_by_other="ann"),), cluster=CLUSTER))


def not_ready(drive: Drive) -> None:
    drive.step(NodeSeen("n1", ready=False))


def an_old_check_is_left(drive: Drive) -> None:
    drive.see_work("n1", Workload("c1", "", WorkClass.infrastructure, check="n1-idle-0"))


def held(kind: HoldKind) -> Callable[[Drive], None]:
    def hold(drive: Drive) -> None:
        event = e.HoldPlaced(a_hold("pool:train", kind))
        drive.journal.append(e.Record(len(drive.journal) + 1, drive.now, 1, "seed", event))
        drive.begin(2)

    return hold


def suspect(drive: Drive) -> None:
    drive.ask("mode", "pool:train", remedy="*", mode="observe")
    drive.fault("n1", "ecc")


def paused(drive: Drive) -> None:
    drive.ask("pause", "pool:train")


def cordoned_by_us(drive: Drive) -> None:
    drive.ask("cordon", "n1")
    drive.run()


IN_THE_WAY = [
    busy,
    unknown,
    cordoned_by_other,
    not_ready,
    an_old_check_is_left,
    held(HoldKind.operator),
    held(HoldKind.override),
    suspect,
    paused,
    cordoned_by_us,
]


@pytest.mark.parametrize("happens", IN_THE_WAY)
def test_nobody_is_checked_who_works_is_held_is_unwell_or_unknown(happens: Callable[[Drive], None]) -> None:
    """Mutants: each line of `keeps_away` and `_is_quiet` left out."""
    drive = a_drive()
    happens(drive)
    drive.wait(hours=3)
    assert checked(drive) == []


def a_plan(node: Node) -> Plan:
    step = Step(RunChecks(), 60.0)
    return Plan("p1", node.id, "x", ActClass.easing, (step,), ("",), (), "", "", Radius((node.id,)), NOW)


@pytest.mark.parametrize(
    ("why", "node", "cell"),
    [
        ("x is under way", {"plan": a_plan(a_node("n1"))}, {}),
        ("it is cordoned", {"cordons": ("hostler",)}, {}),
        ("the storm brake is latched", {}, {"brake": "many"}),
        ("the journal or the clock is in doubt", {}, {"doubt": Doubt(NOW, "leap")}),
        ("the journal or the clock is in doubt", {}, {"restored": NOW}),
        ("it is paused", {}, {"paused": (Scope.of("rack:r1"),)}),
        ("it has not proven itself", {"attempts": (Attempt("reboot", "", NOW),)}, {}),
        ("", {}, {}),
    ],
)
def test_what_stands_on_node_or_cell_keeps_a_check_away(why: str, node: dict[str, Any], cell: dict[str, Any]) -> None:
    fleet = Fleet(a_configuration())
    fleet.put_node("n1", replace(a_node("n1"), **node))
    fleet.singles.put("cell", replace(fleet.cell, **cell))
    said = idle_checks.keeps_away(DecisionContext(fleet, LiveState(), NOW), fleet.nodes["n1"])
    assert said.startswith(why)
    assert bool(said) is bool(why)


def test_a_member_of_an_incident_is_left_in_peace() -> None:
    fleet = Fleet(a_configuration())
    fleet.put_node("n1", a_node("n1"))
    members, later = {"n1": NOW}, NOW + timedelta(hours=1)
    fleet.put_incident("i1", Incident("i1", Scope.of("rack:r1"), "s", (), members, 3, 3, NOW, later, "ann", "t1"))
    assert (
        idle_checks.keeps_away(DecisionContext(fleet, LiveState(), NOW), fleet.nodes["n1"])
        == "it belongs to an incident"
    )


def test_what_came_of_a_check_is_looked_for_before_it_is_given_up_for_its_time() -> None:
    """Mutant: the deadline counts though nobody has looked since the start."""
    drive = mid_check()
    check, live = drive.node("n1").operation, drive.controller.live
    assert check is not None
    late = DecisionContext(drive.fleet, live, check.deadline + timedelta(seconds=1))
    live.unobserved[check.id] = late.now + timedelta(minutes=5)
    assert idle_checks.end(late, drive.node("n1"), check) is None
    answer = idle_checks.beside(late, drive.node("n1"), Rest())
    assert answer == Rest(until=late.now + timedelta(minutes=5))
    live.unobserved.clear()
    assert idle_checks.end(late, drive.node("n1"), check) is not None


def test_between_two_jobs_nobody_is_checked() -> None:
    """Mutant: the check begins the moment the node is empty, and the next job meets it."""
    drive = a_drive()
    for _ in range(200):
        busy(drive)
        drive.wait(minutes=1)
        drive.see_work("n1")
        drive.wait(seconds=50)
    assert checked(drive) == []
    drive.wait(seconds=20)
    assert len(checked(drive)) == 1


def test_who_was_checked_late_in_a_slot_is_left_in_peace_in_the_next() -> None:
    drive = a_drive()
    for hour in range(2):
        while drive.now < NOW + timedelta(hours=hour + 1) or len(checked(drive)) < hour:
            drive.wait(minutes=5)
    begins = idle_checks.slot_begins(DecisionContext(drive.fleet, drive.controller.live, drive.now), drive.node("n1"))
    busy(drive)
    drive.wait(seconds=(begins + timedelta(minutes=110) - drive.now).total_seconds())
    drive.see_work("n1")
    drive.wait(hours=3)
    moments = [s.operation.started for s in checked(drive)]
    assert min(b - a for a, b in pairwise(moments)) >= timedelta(minutes=30)
    assert len(moments) >= 3


def test_unmanaged_nodes_and_spares_are_not_checked() -> None:
    drive = a_drive(a_node("n1", profile=Profile.unmanaged), a_node("n2", pool=""), config=a_configuration(target=1))
    drive.wait(hours=3)
    assert checked(drive, "n1") == checked(drive, "n2") == []


def mid_check(*nodes: Node, config: Configuration | None = None) -> Drive:
    """The check of n1 is under way."""
    drive = a_drive(*nodes, config=config or a_configuration(target=1), idle_check="mute")
    drive.wait(seconds=HOUR_S)
    return underway(drive)


def underway(drive: Drive) -> Drive:
    for _ in range(300):
        if idle_checks.running(drive.node("n1")) is not None:
            return drive
        drive.wait(seconds=30)
    raise AssertionError(f"no check has begun: {drive.transcript('n1')}")


WANTED = [busy, cordoned_by_other, held(HoldKind.operator), suspect, paused, cordoned_by_us]


@pytest.mark.parametrize("happens", WANTED)
def test_a_check_under_way_is_called_off_at_once_when_anybody_wants_the_node(happens: Callable[[Drive], None]) -> None:
    """Mutants: it goes on beside a customer; it is told as failed; it is begun anew in the same slot."""
    drive = mid_check()
    (started,) = checked(drive)
    happens(drive)
    assert idle_checks.running(drive.node("n1")) is None
    assert [s.how for s in drive.sent if s.operation.id == started.operation.id][-1] == "revoke"
    assert verdicts(drive) == [Verdict.inconclusive]
    assert not any(c.type.startswith("check.") for c in drive.node("n1").conditions)
    assert [a for a in drive.node("n1").attempts if a.remedy == IDLE_CHECK] == []


def test_a_check_under_way_is_called_off_when_its_cluster_is_not_heard() -> None:
    """A customer may have come, and nobody sees it. Mutants: the check goes on; checks of other clusters end too."""
    drive = mid_check()
    drive.step(WorkSeen((), cluster="elsewhere", lost="silent"))
    assert idle_checks.running(drive.node("n1")) is not None
    drive.step(WorkSeen((), cluster=CLUSTER, lost="silent for 70 s"))
    assert idle_checks.running(drive.node("n1")) is None
    assert drive.sent[-1].how == "revoke"
    (said,) = [c.check for c in drive.events(e.CheckRecorded, "n1") if c.check.profile == "idle"]
    assert said.verdict is Verdict.inconclusive
    assert said.detail == f"called off: it is unknown who works there; cluster {CLUSTER}: silent for 70 s"
    assert not any(c.type.startswith("check.") for c in drive.node("n1").conditions)


@pytest.mark.parametrize("told", ["nothing", "lost"])
def test_after_a_start_a_cluster_has_time_to_say_who_works_there(told: str) -> None:
    """Mutants: every check ends with every restart, before its cluster can have answered; none ever does, unheard."""
    drive = mid_check()
    drive.begin(2, quiet=True)
    drive.pending.clear()  # nobody says what came of the check either
    if told == "lost":
        drive.step(WorkSeen((), cluster=CLUSTER, lost="not listed yet"))
    drive.wait(seconds=240)
    assert idle_checks.running(drive.node("n1")) is not None
    drive.wait(seconds=120)
    assert idle_checks.running(drive.node("n1")) is None
    assert "it is unknown who works there" in drive.transcript("n1")


def test_a_check_goes_on_after_a_start_when_its_cluster_answers_in_time() -> None:
    """Mutant: what was unknown once stays unknown."""
    drive = mid_check()
    drive.restart(gap_s=20)
    drive.pending.clear()
    drive.wait(minutes=8)
    assert idle_checks.running(drive.node("n1")) is not None


def test_who_was_called_off_waits_for_the_next_slot() -> None:
    drive = mid_check()
    busy(drive)
    drive.see_work("n1")
    begun = checked(drive)[-1].operation.started
    drive.wait(minutes=40)
    assert len(checked(drive)) == 1
    drive.wait(minutes=40)
    assert len(checked(drive)) == 2
    assert checked(drive)[-1].operation.started - begun > timedelta(minutes=50)


def test_a_remedy_does_not_wait_for_a_check_but_for_its_end_on_the_node() -> None:
    """The cordon goes out at once; what needs the node empty waits until the check is seen gone, for a minute at most.

    Mutants: the drain goes on beside our own check; the check holds the cordon up; its pod holds the drain for ever.
    """
    drive = mid_check()
    (started,) = checked(drive)
    pod = Workload("c1", "", WorkClass.infrastructure, check=started.operation.id)
    drive.see_work("n1", pod)
    drive.fault("n1")
    drive.run()
    assert drive.operations("n1")[1:] == ["cordon"]
    drive.see_work("n1")
    drive.run()
    assert "power_off" in drive.operations("n1")

    stuck = mid_check()
    stuck.see_work("n1", pod)
    stuck.fault("n1")
    stuck.wait(seconds=120)
    assert "power_off" in stuck.operations("n1")


def test_a_check_that_never_answers_ends_with_its_time_and_accuses_nobody() -> None:
    drive = mid_check()
    drive.wait(seconds=1600)
    assert idle_checks.running(drive.node("n1")) is None
    assert verdicts(drive)[:1] == [Verdict.inconclusive]


def test_a_failed_check_is_a_condition_with_its_evidence_and_a_passed_one_ends_it() -> None:
    """Mutant: a node that failed its own check is never checked again, so nothing can end it."""
    drive = a_drive(config=a_configuration({"*": "observe", IDLE_CHECK: "act"}), idle_check="mute")
    for verdict in ("failed", "inconclusive", "passed"):
        operation = underway(drive).node("n1").operation
        assert operation is not None
        drive.step(Replied(answer(operation, verdict)))
        found = [c for c in drive.node("n1").conditions if c.type == "check.failed"]
        assert bool(found) is (verdict != "passed")
        if verdict == "failed":
            assert found[0].evidence[0].text == "idle failed: GPU 3 computes otherwise"
    assert verdicts(drive) == [Verdict.failed, Verdict.inconclusive, Verdict.passed]


def answer(operation: Operation | None, verdict: Any) -> Outcome:
    assert operation is not None
    return Outcome(operation.id, operation.node, "done", "GPU 3 computes otherwise", {"verdict": verdict})


@pytest.mark.parametrize("said", ["perfect", "", None, 1, True, "stale"])
def test_what_is_no_verdict_is_never_passed(said: object) -> None:
    drive = mid_check()
    operation = drive.node("n1").operation
    drive.step(Replied(answer(operation, said)))
    assert verdicts(drive)[-1] is not Verdict.passed
    assert idle_checks.running(drive.node("n1")) is None


def test_after_a_remedy_the_gate_answers_a_failed_idle_check() -> None:
    """Mutant: the failure stands on, and the next rung follows though the node was mended."""
    drive = mid_check()
    drive.step(Replied(answer(drive.node("n1").operation, "failed")))
    drive.run()
    assert drive.plans("n1") == ["reboot"]
    drive.wait(minutes=10)
    assert drive.plans("n1") == ["reboot"]
    assert drive.node("n1").conditions == ()


def test_a_fleet_is_checked_spread_over_the_period_and_never_more_than_the_budget_at_once() -> None:
    """Mutants: all slots begin together; the budget is not asked."""
    nodes = [a_node(f"n{number:02}") for number in range(40)]
    drive = a_drive(*nodes)
    drive.wait(hours=2)
    minutes = Counter(int((s.operation.started - NOW).total_seconds() // 60) for s in checked(drive, ""))
    assert sum(minutes.values()) == 80
    assert max(minutes.values()) <= 5

    few = a_drive(*nodes, config=a_configuration(count=3), idle_check="mute")
    most: list[int] = []
    few.checks.append(
        lambda d, _ready: most.append(sum(idle_checks.running(n) is not None for n in d.fleet.nodes.values()))
    )
    few.wait(hours=3)
    assert max(most) == 3
    assert {s.operation.node for s in checked(few, "")} > {f"n{number:02}" for number in range(9)}


def test_a_start_or_a_new_configuration_makes_nobody_due_at_once() -> None:
    """Mutant: who was never checked is due at once, so that a fleet of fresh nodes is checked together."""
    nodes = [a_node(f"n{number:02}") for number in range(40)]
    drive = a_drive(*nodes)
    drive.wait(seconds=90)
    assert len(checked(drive, "")) <= 5
    drive.wait(hours=3)
    before = len(checked(drive, ""))
    drive.restart(gap_s=7 * HOUR_S)
    drive.wait(seconds=90)
    assert len(checked(drive, "")) - before <= 5
    quiet = a_drive(*nodes, config=a_configuration({"*": "act"}))
    quiet.wait(hours=3)
    quiet.activate(a_configuration())
    quiet.wait(seconds=90)
    assert len(checked(quiet, "")) <= 5


def test_a_restart_observes_a_check_under_way_and_begins_no_second() -> None:
    """Mutant: the one who takes over does not know that it runs."""
    drive = mid_check()
    drive.restart(gap_s=20)
    assert [(s.how, s.operation.kind) for s in drive.pending][:1] == [("observe", IDLE_CHECK)]
    drive.wait(minutes=5)
    assert len(checked(drive)) == 1


def test_a_check_that_is_not_to_be_found_is_not_begun_again() -> None:
    """The Job may have run and been tidied away. Mutant: it is sent once more, as what is repeatable is."""
    drive = a_drive(idle_check="vanished")
    drive.wait(seconds=HOUR_S + 120)
    assert verdicts(drive) == [Verdict.inconclusive]
    assert max(drive.performed.values()) == 1


def test_the_sweep_finds_nothing_to_do() -> None:
    drive = a_drive(*(a_node(f"n{number}") for number in range(8)))
    for _ in range(40):
        drive.wait(minutes=7)
        assert drive.sweep() == 0


@pytest.mark.parametrize(
    ("limits", "target", "at_once"),
    [
        (IdleCheckPolicy(count=16, percent=10), 4, 1),
        (IdleCheckPolicy(count=16, percent=10), 100, 10),
        (IdleCheckPolicy(count=16, percent=10), 1000, 16),
        (IdleCheckPolicy(count=16, percent=0), 1000, 0),
        (IdleCheckPolicy(count=0, percent=100), 1000, 0),
    ],
)
def test_the_stricter_of_count_and_percent_holds(limits: IdleCheckPolicy, target: int, at_once: int) -> None:
    assert idle_checks.allowance(limits, target) == at_once


def test_a_cluster_has_a_limit_of_its_own_over_its_pools() -> None:
    nodes = [a_node(f"n{n:02}", assignment=Assignment(f"p{n % 2}", "acme", CLUSTER, NOW)) for n in range(40)]
    pools = {f"p{n}": pool_document(target=20, modes=dict(MODES)) for n in range(2)}
    limits = {"quiet_s": 60, "count": 20, "percent": 100, "cluster_count": 4}
    config = configuration(pools, lambda policy: policy.update(slots={**policy["slots"], **limits}))
    drive = a_drive(*nodes, config=config, idle_check="mute")
    most: list[int] = []
    drive.checks.append(
        lambda d, _: most.append(sum(idle_checks.running(n) is not None for n in d.fleet.nodes.values()))
    )
    drive.wait(hours=2)
    assert max(most) == 4


@pytest.mark.parametrize("wrong", [{"limit_s": 3600}, {"limit_s": 0}, {"percent": 101}, {"period_s": -1}])
def test_limits_that_cannot_be_meant_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="slots"):
        a_configuration(**wrong)


def test_a_nodes_place_in_the_period_is_always_the_same() -> None:
    assert idle_checks.stagger("n1") == idle_checks.stagger("n1") != idle_checks.stagger("n2")
    assert all(0 <= idle_checks.stagger(f"n{n}") < 1 for n in range(1000))
