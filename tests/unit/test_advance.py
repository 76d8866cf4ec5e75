"""A plan's next step where a rule of its own decides: who is let in again, whose work ends, and what supersedes."""

import pytest
from msgspec.structs import replace

from hostler.core import advance
from hostler.core import events as e
from hostler.core.answers import Act
from hostler.core.conditions import CONDITIONS
from hostler.core.model import ActClass, Condition, Node, Phase, Plan
from hostler.core.policy.response import Need
from hostler.core.scene import Scene
from tests.kit import NOW, Drive, a_node, a_workload, configuration, pool_document


def draining() -> tuple[Drive, Node, Plan]:
    """A person's reboot that waits for work on its node."""
    drive = Drive(configuration({"train": pool_document(target=2)}), [a_node("a"), a_node("b")])
    drive.see_work("a", a_workload("w"))
    assert drive.ask("reboot", "a").granted
    drive.wait(seconds=10)
    node = drive.node("a")
    assert node.plan is not None
    return drive, node, node.plan


def scene(drive: Drive) -> Scene:
    return Scene(drive.fleet, drive.controller.present, drive.now)


def a_condition(kind: str) -> Condition:
    row = CONDITIONS[kind]
    return Condition(f"a/{kind}/", kind, "a", row.severity, NOW, NOW, row.clears, "hostler")


@pytest.mark.parametrize(
    ("act_class", "remedy", "supersedes"),
    [
        (ActClass.protective, "protective_power_off", False),
        (ActClass.immediate, "power_cycle", True),
        (ActClass.pending, "power_cycle", True),
        (ActClass.immediate, "reboot", True),
        (ActClass.pending, "reboot", False),
        (ActClass.immediate, "gpu_reset", False),
    ],
)
def test_what_is_graver_supersedes_and_protection_that_is_done_does_not(
    act_class: ActClass, remedy: str, supersedes: bool
) -> None:
    """Protection has a way of its own. Mutants: its need ends every plan of a node held dark; sooner is not graver."""
    drive, node, plan = draining()
    assert (plan.remedy, plan.act_class) == ("reboot", ActClass.pending)
    cause = a_condition("gpu.fallen_off_bus")
    node = replace(node, conditions=(*node.conditions, cause))
    need = Need(remedy, act_class, (cause.id,), cause.type)
    found = advance._ends_early(scene(drive), node, plan, need)  # noqa: SLF001 - a need, by no particular way
    assert ([type(event) for event in found or ()] == [e.PlanEnded]) is supersedes


@pytest.mark.parametrize(
    ("conditions", "asked"), [((), "uncordon"), (("agent.lost",), ""), (("gpu.row_remap_pending",), "uncordon")]
)
def test_who_is_not_heard_keeps_our_cordon(conditions: tuple[str, ...], asked: str) -> None:
    """Mutant: a node that fell silent after its check gets new work."""
    drive, node, plan = draining()
    last = [step.operation for step in plan.steps].index("uncordon")
    node = replace(node, conditions=tuple(a_condition(kind) for kind in conditions))
    said = advance._step(scene(drive), node, replace(plan, index=last))  # noqa: SLF001 - the step, by no particular way
    assert isinstance(said, Act)
    (event,) = said.events
    assert (event.operation.kind if isinstance(event, e.OperationStarted) else "") == asked


def test_a_phases_own_work_ends_nobody() -> None:
    """It disturbs nothing, so it drains nothing. Mutant: whoever may be ended on the node is."""
    drive = Drive(configuration())
    node = a_node("a", pool="", phase=Phase.test)
    drive.step()
    drive.journal.append(e.Record(len(drive.journal) + 1, drive.now, 1, "seed", e.NodeRegistered(node)))
    drive.power["a"], drive.boots["a"], drive.work["a"] = True, 1, (a_workload("left over", kind="graceful"),)
    drive.restart(gap_s=0)
    drive.run()
    drive.wait(minutes=5)
    assert drive.evicted == []
    assert "run_checks" not in drive.operations("a")
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert [blocker.name for blocker in waiting.blockers] == ["left over"]
