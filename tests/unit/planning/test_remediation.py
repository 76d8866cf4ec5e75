"""Whether a remedy may begin now: what was tried lately, who is asked, what is proposed, and who belongs to an act."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.conditions import unanswered_checks
from hostler.core.planning import remediation as remedies
from hostler.core.planning.remediation import (
    BACK_OFF_S,
    LAST_TRIES,
    TRIES_WINDOW,
    may_begin,
    protect,
    remedy,
    retry_wait,
)
from hostler.core.policy.remedy_escalation import Need
from hostler.core.policy.storm_brake import storm
from hostler.core.state import events as e
from hostler.core.state.cases import Ticket
from hostler.core.state.cell_record import Removal
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Wait
from hostler.core.state.model import ActClass, Attempt, Condition, Hold, HoldKind, Node, Profile
from hostler.core.state.scopes import ActGroup, Scope
from hostler.core.tables.conditions import CONDITIONS
from tests.kit import NOW, Drive, a_node, a_workload, configuration, pool_document

RULE = "gpu.fallen_off_bus"


def a_condition(node: str = "a", kind: str = RULE, **fields: Any) -> Condition:
    row = CONDITIONS[kind]
    made = Condition(f"{node}/{kind}/", kind, node, row.severity, NOW, NOW, row.clears, "hostler")
    return replace(made, **fields)


def a_need(name: str = "power_cycle", act_class: ActClass = ActClass.immediate, **fields: Any) -> Need:
    return Need(name, act_class, (f"a/{RULE}/",), RULE, **fields)


def a_ticket(kind: str, **fields: Any) -> Ticket:
    return Ticket("t1", "a", kind, "as asked", NOW, owner="pat", **fields)


class World:
    """A node with a fault in a pool of two, of which the test says what was tried and who is asked."""

    def __init__(self, **pool: Any) -> None:
        self.drive = Drive(configuration({"train": pool_document(target=2, **pool)}), [a_node("a"), a_node("b")])
        self.change(conditions=(a_condition(),))

    def change(self, name: str = "a", **fields: Any) -> None:
        self.drive.fleet.put_node(name, replace(self.drive.node(name), **fields))
        self.drive.fleet.merge()

    def ticket(self, ticket: Ticket | None) -> None:
        self.drive.fleet.put_ticket("t1", ticket)
        self.drive.fleet.merge()

    def tried(self, *attempts: Attempt) -> None:
        self.change(attempts=attempts)

    def disturbed_ago(self, *seconds: float) -> None:
        removed = tuple(Removal(self.drive.now - timedelta(seconds=s), f"n{s}", "train", "reboot") for s in seconds)
        self.drive.fleet.singles.put("cell", replace(self.drive.fleet.cell, recent=removed))
        self.drive.fleet.merge()

    @property
    def node(self) -> Node:
        return self.drive.node("a")

    @property
    def context(self) -> DecisionContext:
        return DecisionContext(self.drive.fleet, self.drive.controller.live, self.drive.now)


def kinds(answer: Any) -> list[str]:
    assert isinstance(answer, Wait)
    return [blocker.kind for blocker in answer.blockers]


def planned(answer: Any) -> list[str]:
    assert isinstance(answer, Act)
    return [event.plan.name for event in answer.events if isinstance(event, e.PlanRecorded)]


# what was tried


@pytest.mark.parametrize(
    ("failed", "requested", "passed_s", "rests"),
    [
        (True, False, BACK_OFF_S - 1, True),
        (True, False, BACK_OFF_S, False),
        (False, False, BACK_OFF_S - 1, True),
        (True, True, BACK_OFF_S - 1, True),
        (False, True, 0, False),
    ],
)
def test_what_has_just_been_tried_rests_unless_a_person_asks_again_for_what_went_well(
    failed: bool, requested: bool, passed_s: float, rests: bool
) -> None:
    """Mutants: nothing rests; a person's request never does, or always; it rests a moment too long."""
    world = World()
    world.tried(Attempt("reboot", "", world.drive.now, failed=failed))
    world.drive.now += timedelta(seconds=passed_s)
    said = retry_wait(world.context, world.node, "reboot", RULE, requested=requested)
    assert (said is not None) is rests
    if said is not None:
        assert kinds(said) == ["clock"]
    assert retry_wait(world.context, world.node, "power_cycle", RULE, requested=requested) is None, (
        "another one was not tried"
    )


@pytest.mark.parametrize(
    ("attempts", "asked"),
    [
        ([{"failed": True}] * LAST_TRIES, True),
        ([{"failed": True}] * (LAST_TRIES - 1), False),
        ([{"failed": False}] * LAST_TRIES, False),
        ([{"failed": True, "forgiven": True}, *[{"failed": True}] * (LAST_TRIES - 1)], False),
        ([{"failed": True, "days": 7}, *[{"failed": True}] * (LAST_TRIES - 1)], False),
        ([{"failed": True, "days": 6.9}, *[{"failed": True}] * (LAST_TRIES - 1)], True),
        ([{"failed": True, "remedy": "power_cycle"}, *[{"failed": True}] * (LAST_TRIES - 1)], False),
    ],
)
def test_what_failed_again_and_again_within_a_week_becomes_a_persons_decision(
    attempts: list[dict[str, Any]], asked: bool
) -> None:
    """Mutants: one try more or fewer; what was forgiven, went well, was another remedy, or is a week old counts."""
    assert timedelta(days=7) == TRIES_WINDOW
    world = World()
    world.drive.now += timedelta(days=10)
    made = []
    for one in attempts:
        known = dict(one)
        at = world.drive.now - timedelta(days=known.pop("days", 1))
        made.append(Attempt(known.pop("remedy", "reboot"), "", at, **known))
    world.tried(*made)
    said = retry_wait(world.context, world.node, "reboot", RULE, requested=False)
    tickets = [event.ticket for event in said.events if isinstance(event, e.TicketOpened)] if said else []  # type: ignore[union-attr]
    assert [(t.kind, t.action, t.owner) for t in tickets] == ([("stuck", "reboot", "operator")] if asked else [])


def test_while_its_ticket_is_open_a_stuck_remedy_waits_and_no_other_does() -> None:
    """Mutants: any stuck ticket stops any remedy; its own stops none."""
    world = World()
    world.tried(Attempt("reboot", "", NOW - timedelta(days=30)), Attempt("power_cycle", "", NOW - timedelta(days=30)))
    world.ticket(a_ticket("stuck", action="reboot"))
    assert kinds(retry_wait(world.context, world.node, "reboot", RULE)) == ["person"]
    assert retry_wait(world.context, world.node, "power_cycle", RULE) is None


# who is asked


@pytest.mark.parametrize(
    ("act_class", "work", "asks"),
    [
        (ActClass.pending, "some", True),
        (ActClass.pending, "unknown", True),
        (ActClass.pending, "none", False),
        (ActClass.immediate, "some", False),
    ],
)
def test_a_customer_who_is_asked_to_consent_is_waited_for_while_work_may_be_there(
    act_class: ActClass, work: str, asks: bool
) -> None:
    """Mutants: what must not wait does; unknown work is none; it is waited for on an empty node."""
    world = World()
    world.ticket(a_ticket("consent"))
    if work == "some":
        world.drive.controller.live.entry("a").workloads["k1"] = (a_workload("w"),)
    if work == "unknown":
        world.drive.controller.live.clusters.clear()
        world.drive.controller.live.entry("a").workloads.clear()
        assert world.drive.controller.live.workloads(world.node) is None
    said = remedy(world.context, world.node, a_need(act_class=act_class))
    waits = isinstance(said, Wait) and any("asked to consent" in b.text for b in said.blockers)
    assert waits is asks


@pytest.mark.parametrize(
    ("ticket", "begins"),
    [
        (None, True),
        (a_ticket("stuck", action="reboot"), False),
        (a_ticket("consent"), False),
        (a_ticket(unanswered_checks.TICKET, fault="gate"), True),
        (a_ticket(unanswered_checks.TICKET, fault=unanswered_checks.SANITISE), False),
    ],
)
def test_a_plan_is_ended_for_a_graver_one_only_where_that_would_begin(ticket: Ticket | None, begins: bool) -> None:
    """Mutant: a graver plan that would then wait for a person takes the place of one that goes on."""
    world = World()
    world.ticket(ticket)
    assert (may_begin(world.context, world.node, a_need()) is True) is begins


@pytest.mark.parametrize(
    ("mode", "requested", "begins"),
    [("act", False, True), ("propose", False, False), ("observe", False, False), ("propose", True, True)],
)
def test_a_plan_is_not_ended_for_one_that_would_only_be_proposed(mode: str, requested: bool, begins: bool) -> None:
    """Mutant: only where the pool observes does the graver one wait."""
    world = World(modes={"*": "act", "power_cycle": mode})
    assert (may_begin(world.context, world.node, a_need(requested=requested)) is True) is begins


def test_what_the_present_plan_has_tried_itself_does_not_tire_what_follows() -> None:
    """Mutant: the attempt of the plan that is to end keeps its successor of the same name waiting."""
    world = World()
    world.drive.see_work("a", a_workload("w"))
    assert world.drive.ask("reboot", "a").granted
    plan = world.node.plan
    assert plan is not None
    need = a_need("reboot")
    assert may_begin(world.context, world.node, need) is True
    world.tried(Attempt("reboot", "", plan.recorded_at - timedelta(seconds=1)), *world.node.attempts)
    assert may_begin(world.context, world.node, need) is not True, "an earlier one does"


@pytest.mark.parametrize(("requested", "begins"), [(False, False), (True, True)])
def test_the_storm_brake_is_for_what_nobody_asked_for(requested: bool, begins: bool) -> None:
    """Mutant: a person's request, which would begin on a node without a plan, waits where there is one."""
    world = World()
    world.disturbed_ago(*(60.0 + s for s in range(world.drive.fleet.policy.brake.disruptions)))
    assert storm(world.context, 1)
    assert (may_begin(world.context, world.node, a_need(requested=requested)) is True) is begins


def test_a_remedy_that_may_not_begin_in_a_plans_place_says_when_the_clock_may_change_that() -> None:
    """Mutants: only a sweep finds that the brake's window or a try's rest has passed; a passed moment is told."""
    world = World()
    assert may_begin(world.context, world.node, a_need()) is True
    brake = world.drive.fleet.policy.brake
    world.disturbed_ago(brake.window_s - 10.0, *(60.0 for _ in range(brake.disruptions)))
    assert may_begin(world.context, world.node, a_need()) == world.drive.now + timedelta(seconds=10)
    world.tried(Attempt("power_cycle", "", world.drive.now - timedelta(seconds=BACK_OFF_S - 5)))
    assert may_begin(world.context, world.node, a_need()) == world.drive.now + timedelta(seconds=5)
    world.drive.now += timedelta(seconds=5)
    assert may_begin(world.context, world.node, a_need()) == world.drive.now + timedelta(seconds=5)


# protection


def test_protection_does_not_begin_on_what_nobody_can_vouch_for() -> None:
    """Mutant: a leak that was seen before everybody fell silent cuts power."""
    world = World()
    world.change(conditions=(a_condition(unknown_since=NOW),))
    need = a_need("protective_power_off", ActClass.protective)
    assert kinds(protect(world.context, world.node, need)) == ["observation"]
    world.change(conditions=(a_condition(),))
    assert planned(protect(world.context, world.node, need)) == ["protective_power_off"]


@pytest.mark.parametrize(
    ("power", "failed", "again"), [("off", False, False), ("on", False, True), ("off", True, True), ("", False, False)]
)
def test_protection_is_tried_again_where_power_is_seen_or_the_try_has_failed(
    power: str, failed: bool, again: bool
) -> None:
    """Mutant: a node that was switched on again, or whose power was never cut, counts as held dark."""
    world = World()
    world.drive.fleet.put_hold("h", Hold("h", Scope.of("a"), HoldKind.power, "hostler", "leak", NOW))
    world.drive.fleet.merge()
    world.tried(Attempt("protective_power_off", "", NOW - timedelta(hours=2), failed=failed))
    world.drive.controller.live.entry("a").power = power
    said = protect(world.context, world.node, a_need("protective_power_off", ActClass.protective))
    assert (said is not None) is again


# proposals and the brake


def nodes_of(world: World, names: Iterable[str]) -> tuple[Node, ...]:
    return tuple(world.drive.node(name) for name in names)


def test_an_act_is_proposed_where_any_of_its_nodes_pools_wants_that() -> None:
    """Mutant: the first member's pool decides for all."""
    pools = {"train": pool_document(target=1), "careful": pool_document(target=1, modes={"*": "propose"})}
    drive = Drive(configuration(pools), [a_node("a"), a_node("b", pool="careful")])
    context, need = DecisionContext(drive.fleet, drive.controller.live, drive.now), a_need()
    proposed = remedies._is_proposed  # noqa: SLF001 - of members of two pools, by no particular way
    assert not proposed(context, (drive.node("a"),), need)
    assert proposed(context, (drive.node("a"), drive.node("b")), need)
    assert not proposed(context, (drive.node("a"), drive.node("b")), replace(need, requested=True))


def test_a_domains_fault_that_takes_more_than_one_word_may_disturb_is_proposed() -> None:
    """Mutants: one node too many passes; a group that is no domain counts."""
    world = World()
    reach = world.drive.fleet.policy.reach.nodes
    proposed, node = remedies._is_proposed, world.node  # noqa: SLF001
    far = a_need(group=ActGroup.of("nvlink:d1/fault"))
    assert not proposed(world.context, (node,) * reach, far)
    assert proposed(world.context, (node,) * (reach + 1), far)
    assert not proposed(world.context, (node,) * (reach + 1), a_need(group=ActGroup.of("request")))


@pytest.mark.parametrize(
    ("name", "requested", "latches"),
    [("power_cycle", False, True), ("bmc_reset", False, False), ("reboot", True, False)],
)
def test_the_brake_latches_for_what_disturbs_and_nobody_asked_for(name: str, requested: bool, latches: bool) -> None:
    """Mutants: a BMC's restart, or a person's request, latches it."""

    def no_disruptions(policy: dict[str, Any]) -> None:
        policy["brake"] = {"disruptions": 0, "percent": 0}

    pools = {"train": pool_document(target=2)}
    drive = Drive(configuration(pools, no_disruptions), [a_node("a"), a_node("b")])
    drive.fleet.put_node("a", replace(drive.node("a"), conditions=(a_condition(),)))
    drive.fleet.merge()
    context = DecisionContext(drive.fleet, drive.controller.live, drive.now)
    said = remedy(context, drive.node("a"), a_need(name, ActClass.pending, requested=requested))
    assert isinstance(said, Act)
    assert any(isinstance(event, e.BrakeLatched) for event in said.events) is latches


# who belongs to an act


def test_a_domains_act_takes_who_was_asked_for_and_a_fault_of_it_all_that_we_manage() -> None:
    """Mutants: who was not asked for is taken too; a fault takes nodes that are somebody else's to remedy."""
    domain, group = ("nvlink:d1",), ActGroup.of("nvlink:d1/x")
    nodes = [a_node(name, domains=domain) for name in "abcd"]
    drive = Drive(configuration({"train": pool_document(target=4)}), nodes)
    for name in "ac":
        drive.fleet.put_node(name, replace(drive.node(name), conditions=(a_condition(name, group=group),)))
    for name in "cd":
        other = next(profile for profile in Profile if profile is not Profile.managed)
        drive.fleet.put_node(name, replace(drive.node(name), profile=other))
    drive.fleet.merge()
    context = DecisionContext(drive.fleet, drive.controller.live, drive.now)
    taken = {
        requested: [n.id for n in remedies._group(context, drive.node("a"), a_need(group=group, requested=requested))]  # noqa: SLF001
        for requested in (True, False)
    }
    assert taken == {True: ["a", "c"], False: ["a", "b", "c"]}
