"""Every row of OPERATIONS with each of its needs missing: the operation is not sent, and the blocker is named."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace

from hostler.core.planning.execution import advance
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait
from hostler.core.state.model import ActClass, Condition, HoldKind, Node, Plan, Radius, Severity, Step
from hostler.core.tables.operations import OPERATIONS
from tests.acts import an_act
from tests.kit import Drive, a_hold, a_node, a_workload, configuration, pool_document

OTHER_BOOT = "the boot before"


def work(drive: Drive) -> None:
    drive.see_work("a", a_workload("w"))


def opened(drive: Drive) -> None:
    hold(drive, HoldKind.physical_work)


def dark(drive: Drive) -> None:
    hold(drive, HoldKind.power)


def hold(drive: Drive, kind: HoldKind) -> None:
    drive.controller._record_all((e.HoldPlaced(a_hold("a", kind)),), "test")  # noqa: SLF001 - however it came there
    drive.fleet.merge()


def leaking(drive: Drive) -> None:
    leak = Condition("c", "cooling.leak", "a", Severity.catastrophic, drive.now, drive.now, "operator", "hostler")
    drive.controller._record_all((e.ConditionRaised(leak),), "test")  # noqa: SLF001 - however it came there
    drive.fleet.merge()


MISSING: dict[str, dict[str, tuple[Callable[[Drive], None], str, str]]] = {
    "drained": {"work runs": (work, "workload", "w")},
    "power": {
        "the machine is open": (opened, "hold", "h-physical_work-a"),
        "it is held dark": (dark, "hold", "h-power-a"),
    },
    "power_off": {"the machine is open": (opened, "hold", "h-physical_work-a")},
    "safe": {"it leaks": (leaking, "danger", "c")},
}
"""Need → ways in which it is not met: how, and which blocker says so. "boot" is met again by none, and
where "heard" is not met the step is passed over: both are skipped."""

CASES = [
    pytest.param(kind, need, how, disruptive, id=f"{kind}: {how}, {'disruptive' if disruptive else 'quiet'} plan")
    for kind, row in OPERATIONS.items()
    for need in row.needs
    for how in MISSING.get(need, {})
    for disruptive in (False, True)
]
BOOTS = [kind for kind, row in OPERATIONS.items() if "boot" in row.needs]


def at(kind: str, disruptive: bool, node: Node, now: Drive) -> Plan:
    """A plan whose next step is this operation, and that nothing but the step's own needs keeps from it."""
    return Plan(
        id="p",
        node="a",
        name="reboot",
        act_class=ActClass.pending,
        steps=(Step(an_act(kind), 600.0),),
        undo=("",),
        causes=(),
        rule="",
        config="",
        radius=Radius(("a",)),
        recorded_at=now.now - timedelta(minutes=1),
        remedy="reboot",
        pool="train",
        boot_id=node.boot_id,
        disruptive=disruptive,
        step_since=now.now,
        disturbed=True,
    )


def answer(kind: str, disruptive: bool, missing: Callable[[Drive], None] | None = None, boot: str = "") -> Answer:
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    drive.see_work("a")
    drive.run()
    if missing is not None:
        missing(drive)
    node, context = drive.node("a"), DecisionContext(drive.fleet, drive.controller.live, drive.now)
    plan = at(kind, disruptive, node, drive)
    return advance(context, node, replace(plan, boot_id=boot or plan.boot_id), None)


def sent(found: Answer) -> list[str]:
    """The operations that the answer sends."""
    events = found.events if isinstance(found, Act) else ()
    return [event.operation.kind for event in events if isinstance(event, e.OperationStarted)]


@pytest.mark.parametrize("disruptive", [False, True])
@pytest.mark.parametrize("kind", sorted({kind for kind, row in OPERATIONS.items() if row.needs}))
def test_with_all_that_it_needs_an_operation_is_sent(kind: str, disruptive: bool) -> None:
    """Without this the tests below would pass for operations that are never sent at all."""
    assert sent(answer(kind, disruptive)) == [kind]


@pytest.mark.parametrize(("kind", "need", "how", "disruptive"), CASES)
def test_without_what_it_needs_an_operation_is_not_sent(kind: str, need: str, how: str, disruptive: bool) -> None:
    """Mutants: `_preconditions` or `_step` does not look at that need; a row of OPERATIONS without it."""
    missing, blocker, name = MISSING[need][how]
    found = answer(kind, disruptive, missing)
    assert sent(found) == []
    assert isinstance(found, Wait)
    assert (blocker, name) in [(b.kind, b.name) for b in found.blockers]
    assert all(b.text and b.ends_when for b in found.blockers)


@pytest.mark.parametrize("kind", BOOTS)
def test_what_is_meant_for_another_boot_is_passed_over(kind: str) -> None:
    """A boot that is over does not come again, so nothing is waited for. Mutant: send it to the node as it is now."""
    found = answer(kind, True, boot=OTHER_BOOT)
    assert sent(found) == []
    assert isinstance(found, Act)
    assert [type(event) for event in found.events] == [e.PlanAdvanced]


def test_every_need_is_missing_somewhere() -> None:
    needs = {need for row in OPERATIONS.values() for need in row.needs}
    assert needs == {*MISSING, "boot", "heard"}
