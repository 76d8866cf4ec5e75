"""Effects of records of plans and operations on their node: tries, consents, cordons, and what the brake counts."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.state import events as e
from hostler.core.state.cases import Ticket
from hostler.core.state.customer_workloads import ConsentedWork
from hostler.core.state.events.plans import ATTEMPTS_KEPT
from hostler.core.state.fleet import Fleet
from hostler.core.state.fold import evolve
from hostler.core.state.model import HELD, OWNER, ActClass, Attempt, Condition, Node, Operation, Plan, Radius, Step
from hostler.core.state.operations import CordonNode
from hostler.core.tables.conditions import CONDITIONS
from tests.acts import an_act
from tests.kit import NOW, a_node, configuration

LATER = NOW + timedelta(hours=1)
CONSENT = ConsentedWork("w", "reboot", "t1", "pat", NOW)


def a_plan(**fields: Any) -> Plan:
    made = Plan(
        "p1", "a", "reboot", ActClass.pending, (Step(CordonNode(), 60),), ("uncordon",), (), "", "", Radius((), 0),
        LATER, remedy="reboot", disruptive=True,
    )  # fmt: skip
    return replace(made, **fields)


def an_operation(kind: str, **fields: Any) -> Operation:
    return Operation("o1", an_act(kind), "a", "p1", 0, LATER, LATER, **fields)


class World:
    """One node, and a journal that goes on."""

    def __init__(self, **node: Any) -> None:
        self.fleet, self.now = Fleet(), LATER
        self.record(e.ConfigActivated(configuration(), {}, "ann"), e.NodeRegistered(a_node("a", **node)))

    def record(self, *events: e.Event) -> None:
        for event in events:
            evolve(self.fleet, e.Record(self.fleet.cell.seq + 1, self.now, 1, "test", event))
        self.fleet.merge()

    def plan(self, result: str = "", **fields: Any) -> None:
        """A plan is recorded, and ends so unless it goes on."""
        self.record(e.PlanRecorded(a_plan(**fields)))
        if result:
            self.record(e.PlanEnded("a", "p1", result, "as told"))

    @property
    def node(self) -> Node:
        return self.fleet.nodes["a"]


@pytest.mark.parametrize(
    ("fields", "counts"),
    [({}, True), ({"state": "proposed"}, False), ({"disruptive": False}, False)],
)
def test_the_brake_counts_what_begins_to_disturb(fields: dict[str, Any], counts: bool) -> None:
    """Mutant: what is only proposed takes from the budget."""
    world = World()
    world.plan(**fields)
    assert [removal.name for removal in world.fleet.cell.recent] == (["reboot"] if counts else [])


@pytest.mark.parametrize(
    ("act_class", "disruptive", "tries"),
    [
        (ActClass.pending, True, True),
        (ActClass.immediate, False, True),
        (ActClass.protective, True, True),
        (ActClass.easing, False, False),
        (ActClass.bring_up, False, False),
    ],
)
def test_a_try_is_what_was_to_cure_or_disturb(act_class: ActClass, disruptive: bool, tries: bool) -> None:
    """Mutant: an easing counts as a try of a remedy."""
    world = World()
    world.plan(act_class=act_class, disruptive=disruptive)
    assert bool(world.node.attempts) is tries


@pytest.mark.parametrize(
    ("result", "fields", "left"),
    [
        ("done", {"touched": True}, (True, False, True)),
        ("done", {}, (True, False, False)),
        ("failed", {"disturbed": True, "touched": True}, (True, True, True)),
        ("failed", {}, (False, True, False)),
        ("failed", {"disturbed": True, "touched": True, "busy": True}, (False, True, False)),
        ("cancelled", {}, None),
        ("superseded", {"disturbed": True}, (True, False, False)),
        ("superseded", {"disturbed": True, "touched": True}, (True, False, True)),
        ("cancelled", {"disruptive": False, "reached": 1}, (True, False, False)),
        ("cancelled", {"disruptive": False}, None),
        ("cancelled", {"reached": 1}, None),
    ],
)
def test_a_plans_end_says_what_its_try_counts_for(
    result: str, fields: dict[str, Any], left: tuple[bool, bool, bool] | None
) -> None:
    """(struck, failed, touched). Mutants: what was called off too late is forgotten; what was held strikes."""
    world = World(attempts=(Attempt("reboot", "", NOW),))
    world.plan(result, **fields)
    first, *own = world.node.attempts
    assert first == Attempt("reboot", "", NOW), "earlier ones stay"
    assert [(a.struck, a.failed, a.touched) for a in own] == ([left] if left else [])


@pytest.mark.parametrize(
    ("result", "disruptive", "kept"),
    [
        ("done", True, False),
        ("failed", True, False),
        ("cancelled", True, True),
        ("superseded", True, True),
        ("done", False, True),
    ],
)
def test_a_consent_is_used_up_by_the_plan_that_it_was_given_for(result: str, disruptive: bool, kept: bool) -> None:
    """Mutants: it outlives the plan; a plan that disturbs nobody, or was called off, uses it up."""
    world = World(consented=(CONSENT,))
    world.plan(result, disruptive=disruptive)
    assert world.node.consented == ((CONSENT,) if kept else ())


def test_more_tries_than_are_kept_lose_mere_ones_first_and_never_the_last() -> None:
    """Mutants: the oldest goes first, whatever it was; the newest goes, as it was a mere one."""

    def tries(**fields: bool) -> tuple[Attempt, ...]:
        made = (Attempt("reboot", "", NOW + timedelta(seconds=n)) for n in range(ATTEMPTS_KEPT))
        return tuple(replace(a, **fields) if n == 5 else a for n, a in enumerate(made))

    for fields, gone in (({"struck": False}, 5), ({"touched": False}, 5), ({}, 0)):
        had = tries(**fields)
        world = World(attempts=had)
        world.plan("failed")
        kept = world.node.attempts
        assert len(kept) == ATTEMPTS_KEPT
        assert kept[:-1] == (*had[:gone], *had[gone + 1 :])
        assert not kept[-1].struck, "what has just failed"


@pytest.mark.parametrize(
    ("kind", "result", "before", "after"),
    [
        ("cordon", "done", False, True),
        ("cordon", "failed", False, False),
        ("join_cluster", "done", False, True),
        ("join_cluster", "failed", False, False),
        ("uncordon", "done", True, False),
        ("uncordon", "failed", True, True),
        ("leave_cluster", "done", True, False),
        ("leave_cluster", "timed_out", True, True),
        ("reboot", "done", True, True),
    ],
)
def test_our_cordon_is_laid_and_lifted_by_what_was_done(kind: str, result: str, before: bool, after: bool) -> None:
    """Mutants: what failed counts; who joins is open; who has left keeps a cordon that nobody can lift."""
    world = World(cordons=((OWNER, "other") if before else ("other",)))
    world.record(e.OperationStarted(an_operation(kind)), e.OperationFinished("a", "o1", kind, result))
    assert (OWNER in world.node.cordons, "other" in world.node.cordons) == (after, True)


@pytest.mark.parametrize(("plan", "busy"), [("p1", True), ("another", False)])
def test_what_was_held_is_told_of_its_own_plan(plan: str, busy: bool) -> None:
    """Mutant: an idle check that found a holder makes a remedy pass to its next rung."""
    world = World()
    world.plan()
    asked = replace(an_operation("gpu_reset"), plan=plan)
    world.record(
        e.OperationStarted(asked), e.OperationFinished("a", "o1", "gpu_reset", "failed", "", {HELD: "python3"})
    )
    assert world.node.plan is not None
    assert world.node.plan.busy is busy


@pytest.mark.parametrize(
    ("result", "given_up"), [("timed_out", True), ("revoked", True), ("failed", False), ("done", False)]
)
def test_what_was_given_up_is_remembered_for_a_late_answer(result: str, given_up: bool) -> None:
    world = World()
    world.record(e.OperationStarted(an_operation("reboot")), e.OperationFinished("a", "o1", "reboot", result))
    assert (world.node.given_up == ("o1",)) is given_up


def test_the_boot_that_a_plan_ended_is_the_first_that_it_acted_on() -> None:
    """Mutant: a second restart makes the boot in between the one that had the fault."""
    world = World(boot_id="b1", boots=("b1",))
    world.plan()
    for number, boot in enumerate(("b2", "b3")):
        asked = replace(an_operation("reboot", restarts=True), id=f"o{number}")
        world.record(e.OperationStarted(asked), e.OperationFinished("a", asked.id, "reboot", "done"))
        world.record(e.BootObserved("a", boot))
    assert world.node.plan is not None
    assert world.node.plan.left_boot == "b1"


@pytest.mark.parametrize(("kind", "forgiven"), [("stuck", ["reboot"]), ("consent", [])])
def test_closing_a_ticket_about_a_stuck_remedy_lets_that_one_be_tried_anew(kind: str, forgiven: list[str]) -> None:
    """Mutants: every remedy is forgiven; any ticket forgives."""
    world = World(attempts=(Attempt("reboot", "", NOW), Attempt("power_cycle", "", NOW)))
    world.record(e.TicketOpened(Ticket("t1", "a", kind, "as asked", NOW, action="reboot")))
    world.record(e.TicketClosed("t1", "done", "ann"))
    assert [a.remedy for a in world.node.attempts if a.forgiven] == forgiven


def test_what_clears_by_age_does_not_age_while_nobody_looked() -> None:
    """Mutant: an hour of silence is an hour without a repeat."""
    expires = LATER + timedelta(hours=2)
    row = CONDITIONS["host.crashed"]
    condition = Condition("a/c/", row.type, "a", row.severity, NOW, NOW, row.clears, "hostler")
    condition = replace(condition, unknown_since=LATER, expires_at=expires)
    world = World(conditions=(condition,))
    world.fleet.put_node("a", replace(world.node, conditions=(condition,)))
    world.fleet.merge()
    world.now = LATER + timedelta(hours=1)
    world.record(e.KnowledgeChanged({}, {"a": (condition.id,)}))
    (known,) = world.node.conditions
    assert (known.unknown_since, known.expires_at) == (None, expires + timedelta(hours=1))
