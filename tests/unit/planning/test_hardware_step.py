"""A node's hardware step: what its BMC's readings come to, what nobody has read, and when it is asked again."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from hostler.core.planning.hardware_step import stands_at, verify_hardware
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Wait
from hostler.core.state.model import CheckResult, Node, Phase, Plan, Step, Verdict
from hostler.core.state.operations import VerifyHardware
from tests.kit import NOW, a_node, after, configuration, pool_document
from tests.unit.planning.values import a_context, a_plan

CONFIG = configuration({"train": pool_document(target=1)}, hardware={"bios": {"SriovEnable": "Enabled"}})
LIMIT_S = 1800.0


def at_step(*said: str, late: bool = False, checks: tuple[CheckResult, ...] = ()) -> tuple[DecisionContext, Node, Plan]:
    """A node at the step whose BMC has said this of SriovEnable in the present boot, nothing where it has not."""
    plan = replace(a_plan("reboot"), name="seatrial", steps=(Step(VerifyHardware(), LIMIT_S),), index=0, step_since=NOW)
    hardware = tuple(("bmc/bios.SriovEnable", value) for value in said)
    boots = (("bmc", "b1"),) if said else ()
    node = a_node("a", phase=Phase.seatrial, boot_id="b1", hardware=hardware, hardware_boots=boots, checks=checks)
    node = replace(node, plan=plan)
    now = after(seconds=LIMIT_S + 1) if late else after(minutes=1)
    return a_context(node, now=now, config=CONFIG), node, plan


def recorded(found: Act) -> CheckResult:
    """The aspect's own verdict."""
    checks = [event.check for event in found.events if isinstance(event, e.CheckRecorded)]
    return next(check for check in checks if check.profile == "hardware.bios")


def test_readings_as_the_manifest_says_pass_the_step_and_are_recorded_by_name() -> None:
    found = verify_hardware(*at_step("Enabled"))
    assert isinstance(found, Act)
    assert [type(event) for event in found.events] == [e.CheckRecorded, e.PlanAdvanced]
    assert recorded(found).verdict is Verdict.passed


def test_a_reading_that_differs_leaves_the_step_open_with_slot_expected_and_found() -> None:
    """Mutants: the plan fails; it goes on; the verdict is not recorded."""
    found = verify_hardware(*at_step("Disabled"))
    assert isinstance(found, Act)
    check = recorded(found)
    assert check.verdict is Verdict.failed
    assert all(word in check.detail for word in ("SriovEnable", "Enabled", "Disabled"))
    assert any(isinstance(event, e.ConditionRaised) for event in found.events)
    assert not any(isinstance(event, e.PlanAdvanced | e.PlanEnded) for event in found.events)


def test_what_nobody_has_read_waits_until_the_step_is_due_and_is_never_failed() -> None:
    """Mutants: no reading is a pass; it is a failure; nobody is told once it is late."""
    waits = verify_hardware(*at_step())
    assert isinstance(waits, Wait)
    assert waits.until == NOW + timedelta(seconds=LIMIT_S)
    told = verify_hardware(*at_step(late=True))
    assert isinstance(told, Act)
    assert recorded(told).verdict is Verdict.inconclusive
    assert not any(isinstance(event, e.PlanAdvanced | e.PlanEnded) for event in told.events)


def test_a_verdict_that_is_on_record_is_not_recorded_again() -> None:
    """Mutant: every look writes the same verdict; the journal then grows by each of them."""
    context, node, plan = at_step("Enabled")
    first = verify_hardware(context, node, plan)
    assert isinstance(first, Act)
    check = recorded(first)
    again = verify_hardware(*at_step("Enabled", checks=(check,)))
    assert isinstance(again, Act)
    assert [type(event) for event in again.events] == [e.PlanAdvanced]


@pytest.mark.parametrize(
    ("state", "index", "stands"), [("running", 0, True), ("running", 1, False), ("proposed", 0, False)]
)
def test_a_node_stands_at_the_step_while_its_plan_runs_there(state: str, index: int, stands: bool) -> None:
    """Mutant: a plan that is only proposed has its BMC asked."""
    _, node, plan = at_step()
    assert stands_at(replace(node, plan=replace(plan, state=state, index=index))) is stands
    assert not stands_at(replace(node, plan=None))


@pytest.mark.parametrize(
    ("phase", "leads_to", "verdict"),
    [
        (Phase.seatrial, "zap", Verdict.passed),
        (Phase.triage, "zap", Verdict.passed),
        (Phase.triage, "test", Verdict.failed),
    ],
)
def test_a_setting_that_zap_writes_is_a_gap_only_where_no_zap_follows(
    phase: Phase, leads_to: str, verdict: Verdict
) -> None:
    """Mutant: an examination lets a setting through that nobody will write."""
    context, node, plan = at_step("Disabled")
    hardware = {"bios": {"SriovEnable": "Enabled"}, "writes_bios": True}
    config = configuration({"train": pool_document(target=1)}, hardware=hardware)
    plan = replace(plan, to_phase=leads_to)
    node = replace(node, phase=phase, plan=plan)
    found = verify_hardware(a_context(node, now=context.now, config=config), node, plan)
    assert isinstance(found, Act)
    assert recorded(found).verdict is verdict
