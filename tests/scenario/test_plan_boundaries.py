"""At every boundary of every disruptive plan something changes: it ends there, whole, or goes on as it was frozen."""

import pytest

from hostler.controller.inputs import NodeSeen
from hostler.core.state import events as e
from hostler.core.state.model import HoldKind, Plan
from hostler.core.state.operations import LocateOn, WriteFirmware
from hostler.core.tables import recipes
from tests.kit import Drive, a_node, a_workload, configuration, pool_document

ALONE = configuration({"train": pool_document(target=1)}, firmware={"bios": "2"})
OTHER = configuration({"train": pool_document(target=1, tenant="other")}, firmware={"bios": "3"})
REQUESTED_VERBS = {
    "reset-gpu": "gpu_reset",
    "reboot": "reboot",
    "power-cycle": "power_cycle",
    "update-firmware": "firmware_update",
    "request-replacement": "triage",
    "release-node": "release",
    "drain": "drain",
}


def begun(verb: str) -> tuple[Drive, Plan]:
    """A plan that was just recorded."""
    drive = Drive(ALONE, [a_node("a")])
    drive.see_work("a", a_workload("w", kind="graceful"))
    drive.ask(verb, "a")
    plan = drive.node("a").plan
    assert plan is not None
    return drive, plan


def boundaries(verb: str) -> list[int]:
    """The steps before which the plan stands still for something; the others are over in the turn that begins them."""
    drive, plan = begun(verb)
    found: list[int] = []
    while (now := drive.node("a").plan) is not None and now.id == plan.id:
        if now.index not in found:
            found.append(now.index)
        if not drive.pending:
            break
        drive.serve(drive.pending.pop(0))
    return found


CASES = [(verb, step) for verb in REQUESTED_VERBS for step in boundaries(verb)]
every_boundary = pytest.mark.parametrize(("verb", "step"), CASES)


def at_boundary(verb: str, step: int) -> tuple[Drive, Plan]:
    """A plan that has done `step` of its steps, and whose next operation (or wait) is out; nothing else passes for it.

    Mutant: draw steps past the plan's end; what is then tested is a node at rest.
    """
    drive, plan = begun(verb)
    while (now := drive.node("a").plan) is not None and now.index < step and drive.pending:
        drive.serve(drive.pending.pop(0))
    assert now is not None, f"the plan is over before step {step}"
    assert (now.id, now.index) == (plan.id, step), "the case does not stand where its name says"
    return drive, plan


def holds_together(drive: Drive, plan: Plan) -> None:
    """Seen from outside: frozen steps in their order, an easing for every cordon, no machine between off and on."""
    drive.wait(hours=3)
    node = drive.node("a")
    started = [o.operation for o in drive.events(e.OperationStarted, "a") if o.operation.plan == plan.id]
    frozen = [step.operation for step in plan.steps]
    forward = [o.kind for o in started if o.attempt == 1 and o.kind not in ("evict", "uncordon")]
    assert forward == [kind for kind in frozen if kind in forward], (
        "a step that the plan does not have, or out of order"
    )
    if node.plan is None:
        assert not node.cordons or node.waiting is not None, "a cordon that nobody answers for"
        late = drive.events(e.OutcomeLate, "a")
        assert late or node.cordons == (("hostler",) if "a" in drive.cordoned and node.assignment else ())
    if node.plan is None and not any(h.kind is HoldKind.power for h in drive.fleet.holds.values()):
        assert drive.is_on("a"), "a machine left dark"
    assert all(times == 1 for times in drive.performed.values())


@every_boundary
def test_the_cause_is_gone(verb: str, step: int) -> None:
    """Mutants: the undo tail is dropped; a plan that has disturbed somebody is undone."""
    drive, plan = at_boundary(verb, step)
    before = drive.node("a").plan
    for condition in drive.node("a").conditions:
        drive.ask("clear-condition", "a", condition=condition.id)
    if verb == "drain":
        drive.ask("uncordon", "a")
    holds_together(drive, plan)
    if before is not None and not before.disturbed and before.index < len(plan.steps):
        ended = [x.result for x in drive.events(e.PlanEnded, "a") if x.plan == plan.id]
        assert ended in (["cancelled"], ["done"])
        tail = [o.operation.kind for o in drive.events(e.OperationStarted, "a") if o.operation.plan == plan.id]
        assert ended == ["done"] or tail[-1] == "uncordon", "ended early, and not through its undo tail"


@every_boundary
def test_it_grows_worse(verb: str, step: int) -> None:
    """A graver plan takes over, or waits until this one's end; nothing is half done in between."""
    drive, plan = at_boundary(verb, step)
    drive.fault("a", "off_bus")
    drive.observe("a", "verdict", facts={"check": "gemm", "verdict": "failed"})
    holds_together(drive, plan)


@every_boundary
def test_it_leaks(verb: str, step: int) -> None:
    """Protection comes before everything, in the middle of a step too. Mutant: it waits for the plan's end."""
    drive, plan = at_boundary(verb, step)
    drive.leak("a")
    at_work = drive.node("a").plan
    assert at_work is not None
    assert at_work.name == "protective_power_off"
    holds_together(drive, plan)
    assert not drive.is_on("a")
    assert any(h.kind is HoldKind.power for h in drive.fleet.holds.values())


@every_boundary
def test_the_policy_changes(verb: str, step: int) -> None:
    """The frozen plan goes on under the configuration that it cites."""
    drive, plan = at_boundary(verb, step)
    drive.activate(OTHER)
    holds_together(drive, plan)
    acts = [o.operation.act for o in drive.events(e.OperationStarted, "a")]
    images = [act.version for act in acts if isinstance(act, WriteFirmware)]
    assert set(images) <= {"2"}
    ended = [x.result for x in drive.events(e.PlanEnded, "a") if x.plan == plan.id]
    assert ended == ["done"]


@every_boundary
def test_the_table_of_recipes_changes(verb: str, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a step is looked up in RECIPES when its turn has come."""
    drive, plan = at_boundary(verb, step)
    for name in REQUESTED_VERBS.values():
        monkeypatch.setitem(
            recipes.RECIPES, name, recipes.Recipe(name, (recipes.StepRow(LocateOn(), 1),), disruptive=True)
        )
    drive.restart(out_happens=True)
    holds_together(drive, plan)
    assert "locate_on" not in drive.operations("a")
    ended = [x.result for x in drive.events(e.PlanEnded, "a") if x.plan == plan.id]
    assert ended == ["done"]


@every_boundary
def test_a_hold_is_placed(verb: str, step: int) -> None:
    """A node not disturbed yet is let go, a disturbed one is brought back: a hold leaves nothing half done."""
    drive, plan = at_boundary(verb, step)
    before = drive.node("a").plan
    drive.ask("hold", "a", person="tina")
    holds_together(drive, plan)
    after = [x.result for x in drive.events(e.PlanEnded, "a") if x.plan == plan.id]
    assert after == ["done"] if before is None or before.disturbed else after[0] in ("cancelled", "done")


@every_boundary
def test_the_controller_is_replaced(verb: str, step: int) -> None:
    """Whether what was out has happened or not, its successor looks before it acts."""
    for happened in (False, True):
        drive, plan = at_boundary(verb, step)
        drive.restart(out_happens=happened)
        holds_together(drive, plan)


def test_a_graver_plan_that_may_not_begin_leaves_the_lesser_one_its_work() -> None:
    """Mutant: it is superseded at once, and its cordon stands while the graver one waits for a mode."""
    pools = {"train": pool_document(target=1, modes={"gpu_reset": "act"})}
    drive = Drive(configuration(pools), [a_node("a")])
    drive.see_work("a", a_workload("w", [5]))
    drive.fault("a", "ecc", gpu=0)
    drive.run()
    drive.observe("a", "verdict", facts={"check": "gemm", "verdict": "failed"})
    drive.run()
    assert drive.node("a").plan is not None
    drive.see_work("a")
    drive.run()
    assert drive.plans("a") == ["gpu_reset"]
    assert [x.result for x in drive.events(e.PlanEnded, "a")] == ["done"]


def test_a_graver_need_that_waits_for_a_witness_leaves_the_lesser_plan_its_work() -> None:
    """Mutant: `may_begin` is not asked."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    drive.see_work("a", a_workload("w", [5]))
    drive.fault("a", "ecc", gpu=0)
    drive.run()
    drive.silence("a")
    drive.run()
    assert drive.plans("a") == ["gpu_reset"]
    assert [x.result for x in drive.events(e.PlanEnded, "a")] == []
    drive.step(NodeSeen("a", ready=False))
    drive.run()
    assert drive.plans("a") == ["gpu_reset", "power_cycle"]


def test_the_same_remedy_needed_at_once_takes_over_from_the_one_that_may_wait() -> None:
    """Mutant: only a higher rung is graver; the doomed pod waits for the pending drain."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    drive.see_work("a", a_workload("w", [0]))
    drive.ask("reset-gpu", "a")
    drive.run()
    assert drive.evicted == []
    drive.fault("a", "ecc", gpu=0)
    drive.run()
    assert drive.evicted == ["w"]
    assert drive.plans("a") == ["gpu_reset", "gpu_reset"]
    assert not drive.node("a").conditions


def test_a_step_that_fails_after_an_earlier_plan_disturbed_lifts_no_cordon() -> None:
    """Mutant: the second rung's cordon fails, and its undo tail returns an unproven node to service."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    drive.script("gpu_reset", "failed")
    drive.script("cordon", "done", "failed")
    drive.fault("a", "ecc")
    drive.run()
    assert drive.plans("a") == ["gpu_reset", "reboot"]
    assert "a" in drive.cordoned, "uncordoned without a check"
    drive.wait(minutes=6)
    assert not drive.node("a").conditions
    assert "a" not in drive.cordoned
