"""Node-hours exactly: overlapping conditions, edges of a month, times of no length, and what is still open."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from hostler.core.report.node_hours import TenantStay, stays
from hostler.core.report.node_standing import Cause
from hostler.core.state import events as e
from hostler.core.state.model import (
    ActClass,
    Assignment,
    CheckResult,
    Condition,
    Node,
    Phase,
    Plan,
    Radius,
    Severity,
    Verdict,
)
from tests.kit import a_node

SINCE, UNTIL = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
MONTH_H = 30 * 24
HEALTHY = Cause("healthy")


def at(hours: float) -> datetime:
    return SINCE + timedelta(hours=hours)


def ailing(kind: str, severity: Severity = Severity.critical, **more: object) -> Condition:
    made = Condition(f"n/{kind}", kind, "n", severity, SINCE, SINCE, "remedy", "hostler")
    return replace(made, **more)


def a_plan(name: str, rule: str, **more: object) -> Plan:
    made = Plan(f"p-{name}", "n", name, ActClass.pending, (), (), (), rule, "c", Radius(("n",)), SINCE, disruptive=True)
    return replace(made, **more)


ADOPTED = e.NodeRegistered(a_node("n"))
RAISED, CLEARED = e.ConditionRaised, e.ConditionCleared


def records(*told: tuple[float, e.Event], first: e.Event | None = ADOPTED) -> list[e.Record]:
    begin = [(-100.0, first)] if first is not None else []
    return [e.Record(n, at(hours), 1, "", event) for n, (hours, event) in enumerate([*begin, *told], 1)]


def of(
    *told: tuple[float, e.Event], first: e.Event | None = ADOPTED, now: Node | None = None, until: datetime = UNTIL
) -> list[TenantStay]:
    return stays("n", records(*told, first=first), now, SINCE, until)


def hours(stay: TenantStay) -> dict[Cause, float]:
    return {cause: seconds / 3600 for cause, seconds in stay.spent}


def test_conditions_that_overlap_are_one_time_that_the_gravest_names() -> None:
    """Mutants: the time of both is counted twice; the first to end ends it; the lesser one names it."""
    (stay,) = of(
        (10, RAISED(ailing("gpu.ecc_dbe", Severity.degraded))),
        (20, RAISED(ailing("gpu.fallen_off_bus"))),
        (30, CLEARED("n", "n/gpu.fallen_off_bus", "remedy", "")),
        (40, CLEARED("n", "n/gpu.ecc_dbe", "remedy", "")),
    )
    assert hours(stay) == {
        HEALTHY: MONTH_H - 30,
        Cause("degraded", "condition", "gpu.ecc_dbe"): 20,
        Cause("degraded", "condition", "gpu.fallen_off_bus"): 10,
    }


def test_a_condition_is_cut_at_the_edges_of_the_month_and_lasts_while_it_is_open() -> None:
    """Mutants: a fault of before the month is forgotten at its begin; an open one is not counted."""
    before = (-50, RAISED(ailing("gpu.ecc_dbe"))), (1, CLEARED("n", "n/gpu.ecc_dbe", "remedy", ""))
    open_one = (MONTH_H - 2, RAISED(ailing("gpu.fallen_off_bus"))), (MONTH_H + 3, CLEARED("n", "n/x", "remedy", ""))
    (stay,) = of(*before, *open_one)
    assert (stay.since, stay.until, stay.had_s) == (SINCE, UNTIL, MONTH_H * 3600)
    assert hours(stay) == {
        HEALTHY: MONTH_H - 3,
        Cause("degraded", "condition", "gpu.ecc_dbe"): 1,
        Cause("degraded", "condition", "gpu.fallen_off_bus"): 2,
    }


def test_times_of_no_length_are_no_time() -> None:
    """Mutants: a stay of no seconds has a row; a condition raised and cleared at once has one."""
    serves = Assignment("train", "acme", "k", at(5))
    released = (
        (5, e.NodeReleased("n", at(5), "")),
        (5, e.NodeAssigned("n", serves)),
        (5, e.NodeReleased("n", at(5), "")),
    )
    (stay,) = of((2, RAISED(ailing("gpu.ecc_dbe"))), (2, CLEARED("n", "n/gpu.ecc_dbe", "remedy", "")), *released)
    assert hours(stay) == {HEALTHY: 5}
    assert of((-1, e.NodeReleased("n", at(-1), ""))) == []
    assert of(until=SINCE) == []


def test_a_node_counts_until_it_left_and_again_from_when_it_came_back() -> None:
    """Mutants: it counts on for its last tenant; two tenants share a row."""
    other = Assignment("theirs", "globex", "k", at(20))
    found = of((10, e.NodeReleased("n", at(10), "")), (20, e.NodeAssigned("n", other)))
    assert [(stay.tenant, stay.pool, stay.had_s / 3600) for stay in found] == [
        ("acme", "train", 10),
        ("globex", "theirs", MONTH_H - 20),
    ]


@pytest.mark.parametrize(
    ("plan", "cause"),
    [
        (a_plan("power_cycle", "gpu.fallen_off_bus"), Cause("away", "repair", "gpu.fallen_off_bus")),
        (a_plan("triage", "operator.maintenance"), Cause("away", "maintenance")),
        (a_plan("firmware_update", "firmware.drift"), Cause("away", "firmware")),
        (a_plan("reboot", "operator.reboot"), Cause("away", "person")),
        (a_plan("reboot", "no such rule"), Cause("away", "unknown")),
        (a_plan("reboot", "operator.reboot", state="proposed"), HEALTHY),
        (a_plan("locate", "", disruptive=False), HEALTHY),
    ],
    ids=lambda one: one.name if isinstance(one, Plan) else one.kind,
)
def test_a_plan_takes_the_node_away_for_its_cause(plan: Plan, cause: Cause) -> None:
    """Mutants: a proposed plan takes it away; a person's act is a repair; a cause that is not known is made up."""
    (stay,) = of((10, e.PlanRecorded(plan)), (14, e.PlanEnded("n", plan.id, "done", "")))
    assert hours(stay).get(cause) == (MONTH_H if cause == HEALTHY else 4)


def test_a_cordon_that_stands_when_its_plan_has_ended_keeps_the_node_away_for_the_same_cause() -> None:
    """Mutant: a drained node that stays cordoned is healthy."""
    (stay,) = of(
        (10, e.PlanRecorded(a_plan("drain", "operator.maintenance"))),
        (11, e.OperationFinished("n", "o1", "cordon", "done")),
        (12, e.PlanEnded("n", "p-drain", "done", "")),
        (20, e.OperationFinished("n", "o2", "uncordon", "done")),
    )
    assert hours(stay)[Cause("away", "maintenance")] == 10


def test_who_cannot_tell_is_never_health() -> None:
    """Mutants: silence is health; so is a boot that nobody has looked at; a gate that found nothing is a pass."""
    (stay,) = of(
        (10, RAISED(ailing("agent.lost", Severity.warning))),
        (12, CLEARED("n", "n/agent.lost", "observation", "")),
        (20, RAISED(ailing("gpu.hot", Severity.warning))),
        (21, e.KnowledgeChanged({"n": ("n/gpu.hot",)}, {})),
        (24, e.KnowledgeChanged({}, {"n": ("n/gpu.hot",)})),
        (30, e.BootObserved("n", "b2")),
        (31, e.InventorySeen("n", at(31), (), boot_id="b2")),
        (40, e.CheckRecorded("n", CheckResult("gate", Verdict.inconclusive, at(40), ""))),
        (45, e.CheckRecorded("n", CheckResult("gate", Verdict.passed, at(45), ""))),
    )
    assert stay.seconds("unknown") / 3600 == 2 + 3 + 1 + 5
    assert stay.seconds("healthy") == stay.had_s - stay.seconds("unknown")


def test_what_was_before_the_first_record_that_is_left_is_said_and_not_guessed() -> None:
    """Mutants: it is healthy; the fault that was cleared later did not stand before; the present one did not."""
    serves = Assignment("train", "acme", "k", at(-900))
    now = a_node("n", assignment=serves, conditions=(ailing("gpu.hot", Severity.degraded, unknown_since=None),))
    (stay,) = of(
        (100, CLEARED("n", "n/gpu.fallen_off_bus", "remedy", "")),
        (110, e.WaitingChanged("n", None)),
        first=None,
        now=now,
    )
    assert hours(stay) == {
        Cause("unknown", "unrecorded"): 100,
        Cause("degraded", "condition", "gpu.hot"): MONTH_H - 100,
    }
    (stay,) = stays("n", [], now, SINCE, UNTIL)
    assert hours(stay) == {Cause("unknown", "unrecorded"): MONTH_H}
    assert of((100, e.NodeReleased("n", at(100), "")), first=None, now=replace(now, assignment=None)) == []


def test_a_phase_other_than_production_is_away() -> None:
    moved = e.PhaseChanged("n", Phase.production, Phase.test, "verification")
    (stay,) = of((10, moved), (15, e.PhaseChanged("n", Phase.test, Phase.production, "passed")))
    assert hours(stay) == {HEALTHY: MONTH_H - 5, Cause("away", "test"): 5}
