"""Intake of observations, silence, schedulers and drivers' replies, case by case."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller import agent_presence, observation_intake, operation_replies, reply_effect, scheduler_views
from hostler.controller.inputs import WorkSeen
from hostler.core.state import events as e
from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import (
    OWNER,
    ActClass,
    Condition,
    Hold,
    HoldKind,
    Node,
    Observation,
    Operation,
    Outcome,
    Phase,
    Plan,
    Radius,
    Step,
)
from hostler.core.state.operations import Evict
from hostler.core.state.scopes import Scope
from hostler.core.tables.conditions import CONDITIONS
from hostler.ports import WorkloadView
from tests.acts import an_act
from tests.kit import CLUSTER, NOW, Drive, a_node, a_workload, configuration, pool_document

OTHER = "another"


def a_plan(*steps: str, **fields: Any) -> Plan:
    laid = tuple(Step(an_act(step), 600.0) for step in steps)
    made = Plan(
        "p1", "a", "reboot", ActClass.pending, laid, ("",) * len(laid), (), "", "", Radius((), 0), NOW,
        remedy="reboot", disruptive=True, step_since=NOW,
    )  # fmt: skip
    return replace(made, **fields)


def an_operation(kind: str, **fields: Any) -> Operation:
    return replace(Operation("o1", an_act(kind), "a", "p1", 0, NOW, NOW + timedelta(minutes=5)), **fields)


class World:
    """A node with one operation out, and what is seen of it."""

    def __init__(self, kind: str = "", plan: Plan | None = None, operation: Any = (), **node: Any) -> None:
        self.drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
        asked = an_operation(kind, **dict(operation)) if kind else None
        plan = plan or (a_plan(kind) if kind else None)
        self.change(**{"operation": asked, "plan": plan, **node})
        self.here = self.drive.controller.live.entry("a")

    def change(self, **fields: Any) -> None:
        self.drive.fleet.put_node("a", replace(self.drive.node("a"), **fields))
        self.drive.fleet.merge()

    @property
    def node(self) -> Node:
        return self.drive.node("a")

    @property
    def context(self) -> DecisionContext:
        return DecisionContext(self.drive.fleet, self.drive.controller.live, self.drive.now)

    def reply(self, result: str, operation: str = "o1", attempt: int = 1, **facts: Any) -> reply_effect.ReplyEffect:
        outcome = Outcome(operation, "a", result, "as told", facts, attempt=attempt)
        return operation_replies.of_reply(self.context, self.node, outcome)


def kinds(events: tuple[e.Event, ...]) -> list[type]:
    return [type(event) for event in events]


def finished(reply: reply_effect.ReplyEffect) -> list[str]:
    return [event.result for event in reply.events if isinstance(event, e.OperationFinished)]


# observations


@pytest.mark.parametrize(("late_s", "believed"), [(0, True), (3600, True), (3601, False), (-1, False)])
def test_a_moment_of_arrival_is_believed_that_controller_time_bears_out(late_s: float, believed: bool) -> None:
    """Mutants: the future is believed; so is any past; the last moment is not."""
    stamped = NOW - timedelta(seconds=late_s)
    seen = Observation("a", "kernel_log", "agent", "s", 1, "b", received=stamped)
    assert observation_intake.received_at(seen, NOW).received == (stamped if believed else NOW)


def test_what_was_read_is_passed_over_and_a_gap_ends_the_reading() -> None:
    """Mutants: the last that was read is read again; what lies behind a gap is read, and its sender told so."""

    def batch(spool: str, *numbers: int) -> tuple[Observation, ...]:
        return tuple(Observation("a", "k", "agent", spool, number, "b") for number in numbers)

    def read(seen: tuple[Observation, ...]) -> list[tuple[str, int]]:
        return [(one.spool, one.sequence) for one in observation_intake.unread(seen, ("s", 3))]

    assert read(batch("s", 2, 3, 4, 5)) == [("s", 4), ("s", 5)]
    assert read(batch("s", 4, 6, 7)) == [("s", 4)]
    assert read(batch("s", 5)) == []
    assert read(batch("new", 9, 10)) == [("new", 9), ("new", 10)], "another spool begins where it begins"


# silence and other boots


@pytest.mark.parametrize(
    ("fields", "lost"),
    [
        ({}, True),
        ({"phase": Phase.triage}, False),
        ({"phase": Phase.test}, True),
        ({"plan": a_plan("drain")}, True),
        ({"plan": a_plan("wait_boot", disturbed=True)}, False),
        ({"operation": an_operation("power_on")}, False),
        ({"operation": an_operation("cordon")}, True),
    ],
)
def test_silence_matters_unless_the_node_is_meant_to_be_away(fields: dict[str, Any], lost: bool) -> None:
    """Mutants: who is being restarted is lost; whoever has a plan, or an operation, is not."""
    world = World()
    world.change(**fields)
    found = agent_presence.of_silence(world.context, world.node, NOW)
    assert isinstance(found, e.ConditionRaised) is lost


@pytest.mark.parametrize(
    ("kind", "lost"),
    [(HoldKind.power, False), (HoldKind.physical_work, False), (HoldKind.operator, True), (HoldKind.cordon, True)],
)
def test_a_node_that_is_dark_or_in_somebodys_hands_is_not_lost(kind: HoldKind, lost: bool) -> None:
    """Mutant: a technician who unplugs a node gets it a condition."""
    world = World()
    world.drive.fleet.put_hold("h", Hold("h", Scope.of("a"), kind, "tina", "because", NOW))
    world.drive.fleet.merge()
    assert isinstance(agent_presence.of_silence(world.context, world.node, NOW), e.ConditionRaised) is lost


@pytest.mark.parametrize(
    ("kind", "boot", "answered", "updated"),
    [
        ("gpu.fallen_off_bus", "a-b1", False, True),
        ("gpu.fallen_off_bus", "a-b1", True, False),
        ("gpu.fallen_off_bus", "", False, False),
        ("gpu.fallen_off_bus", "a-b2", False, False),
        ("power.supply", "a-b1", False, False),
        ("host.crashed", "a-b1", False, False),
    ],
)
def test_another_boot_makes_history_of_what_a_remedy_was_to_clear_before(
    kind: str, boot: str, answered: bool, updated: bool
) -> None:
    """Mutants: what its observer clears is history too; what a plan is at; what is of the new boot, or of none."""
    row = CONDITIONS[kind]
    condition = Condition("c", kind, "a", row.severity, NOW, NOW, row.clears, "hostler", boot_id=boot)
    plan = a_plan("wait_boot", causes=("c",)) if answered else None
    node = replace(a_node("a"), conditions=(condition,), plan=plan)
    first, *rest = agent_presence.of_boot(node, "a-b2", NOW)
    assert isinstance(first, e.BootObserved)
    assert kinds(tuple(rest)) == ([e.ConditionUpdated] if updated else [])
    assert list(agent_presence.of_boot(node, node.boot_id, NOW)) == [], "the same boot is no news"
    assert list(agent_presence.of_boot(node, "", NOW)) == []


# schedulers


def lifted(world: World, cluster: str = CLUSTER) -> list[e.HoldPlaced]:
    views = (WorkloadView("a", (), overridden="bob"),)
    return list(scheduler_views.of_override(world.drive.fleet, WorkSeen(views, cluster=cluster), NOW))


@pytest.mark.parametrize(
    ("fields", "cluster", "placed"),
    [
        ({"cordons": (OWNER,)}, CLUSTER, True),
        ({"cordons": ()}, CLUSTER, False),
        ({"cordons": ("bob",)}, CLUSTER, False),
        ({"cordons": (OWNER,)}, OTHER, False),
        ({"cordons": (OWNER,), "assignment": None}, CLUSTER, False),
        ({"cordons": (OWNER,), "operation": an_operation("uncordon")}, CLUSTER, False),
        ({"cordons": (OWNER,), "operation": an_operation("cordon")}, CLUSTER, False),
        ({"cordons": (OWNER,), "operation": an_operation("evict")}, CLUSTER, True),
    ],
)
def test_a_lifted_cordon_is_a_persons_hold_where_it_was_ours_to_lift(
    fields: dict[str, Any], cluster: str, placed: bool
) -> None:
    """Mutants: what is shown from before our own cordon counts; another cluster's word does; anybody's cordon does."""
    world = World()
    world.change(**fields)
    assert [event.hold.owner for event in lifted(world, cluster)] == (["bob"] if placed else [])


def test_a_lifted_cordon_is_recorded_once() -> None:
    """Mutant: with every look of the scheduler there is one more hold."""
    world = World(cordons=(OWNER,))
    (event,) = lifted(world)
    world.drive.fleet.put_hold(event.hold.id, event.hold)
    world.drive.fleet.merge()
    assert lifted(world) == []


def test_what_a_cluster_told_counts_no_more_once_it_is_lost_and_what_others_told_does() -> None:
    """Mutants: its nodes stay idle, or ready; those of other clusters are doubted too."""
    live = LiveState()
    context = DecisionContext(Fleet(), live, NOW)
    for name, cluster in (("a", CLUSTER), ("b", OTHER)):
        views = (WorkloadView(name, ()),)
        scheduler_views.see_work(context, WorkSeen(views, whole=True, cluster=cluster))
        live.entry(name).ready = True
        assert live.of(name).idle_since == NOW
    scheduler_views.see_work(context, WorkSeen((), cluster=CLUSTER, lost="gone"))
    assert (live.entry("a").idle_since, live.entry("a").ready) == (None, None)
    assert (live.of("b").idle_since, live.of("b").ready) == (NOW, True)
    assert live.clusters[CLUSTER] == "gone"


# replies


@pytest.mark.parametrize("result", ["unknown", "busy"])
def test_what_may_have_worked_is_observed_and_nothing_is_recorded(result: str) -> None:
    """Mutant: a busy driver has failed."""
    assert World("reboot").reply(result) == reply_effect.ReplyEffect(observe=True)


@pytest.mark.parametrize(("result", "recorded"), [("done", "done"), ("refused", "refused"), ("exploded", "failed")])
def test_a_result_that_nobody_knows_is_a_failure(result: str, recorded: str) -> None:
    """Mutant: whatever has not failed is done."""
    assert finished(World("power_off").reply(result)) == [recorded]


@pytest.mark.parametrize(
    ("kind", "attempt", "leads"),
    [
        ("power_off", 1, "again"),
        ("power_off", 2, "resend"),
        ("power_off", 3, "resend"),
        ("gpu_reset", 1, "failed"),
        ("gpu_reset", 2, "failed"),
    ],
)
def test_what_did_not_happen_is_sent_again_where_that_is_safe_and_recorded_once(
    kind: str, attempt: int, leads: str
) -> None:
    """Mutants: each try is one more record; what must not be repeated is."""
    said = World(kind, operation={"attempt": attempt}).reply("not_done", attempt=attempt)
    started = [event.operation.attempt for event in said.events if isinstance(event, e.OperationStarted)]
    assert (said.resend, started, finished(said)) == (
        leads == "resend",
        [attempt + 1] if leads == "again" else [],
        ["failed"] if leads == "failed" else [],
    )


@pytest.mark.parametrize(
    ("kind", "meant_for", "then"),
    [("power_off", "a-b0", "a-b0"), ("reboot", "a-b0", "a-b1"), ("reboot", "", ""), ("power_off", "", "")],
)
def test_what_is_sent_again_begins_now_and_for_an_agent_in_its_present_boot(
    kind: str, meant_for: str, then: str
) -> None:
    """Mutants: it keeps its first moment, so that what may take effect is forgotten; a BMC's is for another boot."""
    later = NOW + timedelta(hours=1)
    sent = reply_effect.again(an_operation(kind, boot_id=meant_for), a_node("a"), later)
    assert (sent.started, sent.boot_id, sent.attempt, sent.id) == (later, then, 2, "o1")


@pytest.mark.parametrize(
    ("result", "given_up", "settling", "found"),
    [
        ("done", "o1", "o1", [e.OutcomeLate, e.OperationSettled]),
        ("failed", "o1", "o1", [e.OutcomeLate, e.OperationSettled]),
        ("refused", "o1", "o1", [e.OutcomeLate, e.OperationSettled]),
        ("unknown", "o1", "o1", []),
        ("not_done", "o1", "o1", []),
        ("done", "o1", "o2", [e.OutcomeLate]),
        ("done", "o1", "", [e.OutcomeLate]),
        ("done", "o2", "", []),
    ],
)
@pytest.mark.parametrize("busy", [False, True])
def test_a_late_answer_settles_its_own_operation(
    result: str, given_up: str, settling: str, found: list[type], busy: bool
) -> None:
    """Mutants: it settles another's; only done does; what was never given up is late; it answers the present one."""
    left = (an_operation("reboot", id=settling, settling=True),) if settling else ()
    world = World("cordon" if busy else "", operation={"id": "o3"}, given_up=(given_up,), settling=left)
    assert kinds(world.reply(result).events) == found


def test_a_late_answer_to_an_earlier_attempt_does_not_settle_the_last() -> None:
    """An attempt sent a second time may take effect. Mutant: any attempt's answer ends the waiting for it."""
    left = (an_operation("power_off", attempt=2, settling=True),)
    world = World(given_up=("o1",), settling=left)
    assert kinds(world.reply("refused", attempt=1).events) == [e.OutcomeLate]
    assert kinds(world.reply("refused", attempt=2).events) == [e.OutcomeLate, e.OperationSettled]


@pytest.mark.parametrize(
    ("attempt", "asked_before", "again"),
    [(1, False, True), (2, False, True), (3, False, False), (1, True, False)],
)
def test_a_check_that_says_nothing_is_tried_so_often_and_then_left_open(
    attempt: int, asked_before: bool, again: bool
) -> None:
    """Mutants: once more than that; at once again although it was unanswered before."""
    row = CONDITIONS["check.inconclusive"]
    part = "check:gate"
    open_before = Condition(f"a/{row.type}/{part}", row.type, "a", row.severity, NOW, NOW, row.clears, "hostler", part)
    world = World(
        "run_checks",
        operation={"attempt": attempt},
        conditions=(open_before,) if asked_before else (),
    )
    said = world.reply("done", attempt=attempt, verdict="inconclusive")
    started = [event.operation.attempt for event in said.events if isinstance(event, e.OperationStarted)]
    assert started == ([attempt + 1] if again else [])
    assert finished(said) == ([] if again else ["open"])


# what a confirmed effect shows


@pytest.mark.parametrize(("kind", "power", "heard"), [("power_on", "on", True), ("power_off", "off", False)])
def test_confirmed_power_is_shown_until_the_next_look(kind: str, power: str, heard: bool) -> None:
    """Mutants: on is shown as off; a node without power is heard."""
    world = World(kind)
    world.here.power, world.here.heard = "unknown", True
    world.reply("done")
    assert (world.here.power, world.here.power_at, world.here.heard) == (power, world.drive.now, heard)


@pytest.mark.parametrize(
    ("assigned", "left"),
    [(True, {CLUSTER: ["slow", "w2"], OTHER: ["w1"]}), (False, {CLUSTER: ["slow", "w2"], OTHER: []})],
)
def test_what_was_evicted_is_gone_but_for_what_has_its_grace(assigned: bool, left: dict[str, list[str]]) -> None:
    """Mutants: what is ending is gone already; another cluster's work of that name is too."""
    world = World("evict", operation={"act": Evict(("w1", "slow"))})
    if not assigned:
        world.change(assignment=None)
    works = {name: Workload(name, "acme", WorkClass.graceful) for name in ("w1", "slow", "w2")}
    world.here.workloads = {CLUSTER: tuple(works.values()), OTHER: (works["w1"],)}
    world.reply("done", ending="slow")
    assert {cluster: sorted(w.id for w in shown) for cluster, shown in world.here.workloads.items()} == left
    slow = next(w for w in world.here.workloads[CLUSTER] if w.id == "slow")
    assert slow.held_by == "it is ending"


def test_who_has_left_its_cluster_has_nothing_there_and_who_joined_nothing_yet() -> None:
    """Mutants: work that was shown of a node that has left is still there; who joined is of unknown work."""
    world = World("leave_cluster")
    world.here.workloads = {CLUSTER: (a_workload("w"),), OTHER: ()}
    world.here.listed, world.here.ready = {CLUSTER: None}, True
    world.reply("done")
    shown: tuple[Any, ...] = (world.here.workloads, world.here.listed, world.here.ready)
    assert shown == ({OTHER: ()}, {}, None)
    joining = World("join_cluster")
    joining.here.workloads = {}
    joining.reply("done")
    assert joining.here.workloads == {CLUSTER: ()}
