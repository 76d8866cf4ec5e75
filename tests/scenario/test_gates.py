"""A gate's word in the loop: what it saw is kept and told, and a passed that names nothing opens no node."""

import pytest

from hostler.controller.inputs import Replied
from hostler.core.report.explain import explain, text
from hostler.core.state.model import OWNER, Facts, Outcome
from tests.kit import Drive, a_node, configuration, gpu_part, pool_document, seen_all

ONE = {"train": pool_document(target=1)}
PARTS = tuple(gpu_part("a", n) for n in range(8))


def at_its_gate(condition: str = "off_bus") -> Drive:
    """A node whose GPU 3 was remedied, at the gate of its plan, whose answer is still to come."""
    drive = Drive(configuration(ONE), [a_node("a")])
    drive.script("run_checks", "mute")
    drive.fault("a", condition, gpu=3)
    drive.wait(minutes=3)
    operation = drive.node("a").operation
    assert operation is not None
    assert operation.kind == "run_checks"
    return drive


def says(drive: Drive, facts: Facts) -> None:
    operation = drive.node("a").operation
    assert operation is not None
    outcome = Outcome(operation.id, "a", "done", "all good", {"verdict": "passed", **facts}, attempt=operation.attempt)
    drive.step(Replied(outcome))


@pytest.mark.parametrize("facts", [{}, {"gpus_seen": 8}, {"gpus_seen": 7, "look:gpu a-G3": "passed: x"}], ids=range(3))
def test_passed_without_sight_keeps_the_node_out_and_convicts_nobody(facts: Facts) -> None:
    """An agent of another version, or one that saw no GPU. Mutant: the agent's word is taken."""
    drive = at_its_gate()
    drive.script("run_checks", "mute", "mute", "mute", "mute")
    for _ in range(3):
        says(drive, facts)
        drive.run()
    drive.wait(minutes=2)
    node = drive.node("a")
    assert OWNER in node.cordons
    assert "uncordon" not in drive.operations("a")
    told = {condition.type for condition in node.conditions}
    assert {"gpu.fallen_off_bus", "check.inconclusive"} <= told
    assert not {"check.failed", "remedy.failed"} & told
    assert not any(attempt.failed for attempt in node.attempts)


def test_what_the_gate_saw_is_told() -> None:
    """Mutant: the outcome's facts are dropped."""
    drive = at_its_gate()
    operation = drive.node("a").operation
    assert operation is not None
    says(drive, {**seen_all(operation), "look:compute": "never_verified: no runtime"})
    drive.run()
    node = drive.node("a")
    assert node.plan is None
    assert not node.conditions
    told = text(explain(drive.journal, node))
    assert "      gone gpu.fallen_off_bus a-G3 passed: as scripted" in told
    assert "      gpu a-G7 passed: as scripted" in told
    assert "      compute never_verified: no runtime" in told
