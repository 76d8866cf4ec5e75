"""Verbs: a closed list, never twice, never for another boot, and after a crash only what the marks can say."""

import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.agent import kubelet
from hostler.agent.boot_clock import boottime
from hostler.agent.checks.host_stress import StressResult
from hostler.agent.drill_injections import DrillInjections
from hostler.agent.gpu_reset import ResetRequest
from hostler.agent.host_commands import ActFailedError, FateUnknownError, NotPossibleError, ResourceHeldError
from hostler.agent.machine import EmulatedHostMachine, Powers, RealHostMachine
from hostler.agent.node_operations import KNOWN_KINDS, LOST, NodeOperations
from hostler.agent.operation_log import OperationLog
from hostler.core.state.gate_expectation import Expected
from hostler.core.state.model import LASTING, Facts, Operation, Outcome, Part, Verdict
from hostler.core.state.operations import ArmDrill, BugReport, InjectFault
from hostler.core.state.pass_rules import PassRules
from tests.acts import an_act

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def operation(kind: str, **arguments: Any) -> Operation:
    return Operation("op1", an_act(kind, **arguments), "n1", "plan1", 0, NOW, NOW)


def an_offer(token: str = "secret") -> kubelet.KubeletJoinOffer:
    return kubelet.KubeletJoinOffer("train", "n1", "https://api:6443", "", token)


class MachineWithDriver(EmulatedHostMachine):
    """An emulated machine that has NVIDIA's driver, whose report is empty."""

    def bug_report(self, asked: BugReport) -> Facts:
        self._ask(f"bug_report of {asked.kind}")
        return {"bytes": 0}


class CountedDrills(DrillInjections):
    """The node's hand for drills, which writes down what it was asked beside the machine's own acts."""

    def __init__(self, asked: list[str]) -> None:
        super().__init__(lambda _: None, lambda _: None)
        self._asked = asked

    def arm(self, act: ArmDrill) -> str:
        self._asked.append("arm")
        return super().arm(act)

    def inject(self, act: InjectFault) -> str:
        self._asked.append("inject")
        super().arm(ArmDrill(act.drill))
        return super().inject(act)


class World:
    """One node, whose agent can be restarted."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.body = MachineWithDriver("n1", (Part("GPU-1", "gpu"),))
        self._start()

    def restart(self) -> None:
        self.operation_log.close()
        self._start()

    def _start(self) -> None:
        self.operation_log = OperationLog(self.directory / "marks.sqlite")
        drills = CountedDrills(self.body.asked)
        self.operations = NodeOperations("n1", self.body, self.operation_log, drills=drills)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.operation_log.close()


@pytest.mark.parametrize("kind", sorted(LOST))
def test_a_second_delivery_never_acts_again(world: World, kind: str) -> None:
    """Mutant: the mark is written after the act."""
    first = world.operations.perform(operation(kind), 1, offer=an_offer())
    world.restart()
    assert first.result == ("unknown" if kind == "reboot" else "done")
    again = world.operations.perform(operation(kind), 1)
    assert again.result == "done"  # a reboot: the boot id has changed since
    assert len(world.body.asked) == 1


@pytest.mark.parametrize(
    ("asked", "epoch", "why"),
    [
        (operation("power_off"), 1, "not an operation of an agent"),
        (operation("", said="sh", args={"command": "rm -rf /"}), 1, "'sh' is not an operation of an agent"),
        (operation("gpu_reset", gpus=["0; reboot"]), 1, "each gpuN or a PCI address"),
        (operation("gpu_reset", gpus=["-i"]), 1, "each gpuN or a PCI address"),
        (operation("gpu_reset", gpus=["gpu0"] * 33), 1, "at most 32"),
        (operation("gpu_reset", links=65), 1, "links is 0 to 64"),
        (operation("gpu_reset", links=-1), 1, "links is 0 to 64"),
        (operation("start_kubelet"), 1, "has no join offer for this node"),
        (operation("run_checks", profile="../gate"), 1, "profile is one of"),
        (replace(operation("reboot"), boot_id="another"), 1, "meant for boot another"),
        (replace(operation("reboot"), node="n2"), 1, "meant for n2"),
    ],
)
def test_refusals_say_why_and_do_nothing(world: World, asked: Operation, epoch: int, why: str) -> None:
    outcome = world.operations.perform(asked, epoch)
    assert outcome.result == "refused"
    assert why in outcome.detail
    assert world.body.asked == []


def test_what_lets_a_kubelet_in_is_in_no_mark_and_no_outcome(world: World) -> None:
    """Mutant: what is brought is marked with its order."""
    outcome = world.operations.perform(operation("start_kubelet"), 1, offer=an_offer("token-of-n1"))
    assert world.body.invited is not None
    assert world.body.invited.token == "token-of-n1"
    kept = b"".join(file.read_bytes() for file in world.directory.iterdir())
    assert b"token-of-n1" not in kept
    assert "token-of-n1" not in str(outcome)


def test_a_kubelets_files_come_and_go_and_only_its_machine_reads_them(tmp_path: Path) -> None:
    """Mutants: others may read the token; a kubeconfig of the cluster that was left stays in force."""
    folder = tmp_path / "kubernetes"
    assert kubelet.invite(folder, "one")
    (folder / "kubelet.conf").write_text("of the cluster before")
    assert not kubelet.invite(folder, "one"), "the same again restarts nothing"
    assert kubelet.invite(folder, "two")
    assert (folder / "bootstrap-kubelet.conf").read_text() == "two"
    assert (folder / "bootstrap-kubelet.conf").stat().st_mode & 0o777 == 0o600
    assert sorted(file.name for file in folder.iterdir()) == ["bootstrap-kubelet.conf", "kubelet.conf.left"]
    (folder / "kubelet.conf").write_text("of this one")
    kubelet.forget(folder)
    assert [file.name for file in folder.iterdir()] == ["kubelet.conf.left"]


def test_a_deposed_controller_is_refused_even_if_its_successor_only_looked(world: World) -> None:
    world.operations.observe(replace(operation("reboot"), id="other"), 5)
    world.restart()
    outcome = world.operations.perform(operation("reboot"), 4)
    assert (outcome.result, outcome.detail, world.body.asked) == ("refused", "epoch 4 is over: 5 was seen", [])


def test_an_attempt_before_the_last_is_refused(world: World) -> None:
    world.operations.perform(replace(operation("run_checks"), attempt=2), 1)
    assert world.operations.perform(operation("run_checks"), 1).result == "refused"
    assert world.operations.perform(replace(operation("run_checks"), attempt=3), 1).result == "done"
    assert len(world.body.asked) == 2


def test_an_order_that_comes_too_late_is_not_begun(world: World) -> None:
    """The GPU would be reset under the next customer. Mutant: an order has no age."""
    assert world.operations.perform(operation("gpu_reset"), 1, begin_by=boottime() - 1).result == "refused"
    assert world.body.asked == []
    assert world.operations.perform(operation("gpu_reset"), 1, begin_by=boottime() + 60).result == "done"
    assert world.operations.perform(operation("gpu_reset"), 1, begin_by=0).result == "done", "what was done is told"


def test_a_reboot_is_unknown_until_the_boot_id_has_changed(world: World) -> None:
    world.body.gone_wrong["reboot"] = FateUnknownError("systemctl hung")
    asked = replace(operation("reboot"), boot_id=world.body.boot_id())
    assert world.operations.perform(asked, 1).result == "unknown"
    world.restart()
    assert [outcome.result for outcome in world.operations.settle()] == ["unknown"]
    assert world.operations.observe(asked, 1).result == "unknown"
    world.body.boots += 1
    world.restart()
    (settled,) = world.operations.settle()
    assert (settled.result, settled.facts) == ("done", {"boot_id": "n1-boot-2"})
    assert world.operations.perform(asked, 1).result == "done"
    assert world.body.asked == ["reboot"]


def test_a_reboot_by_other_means_is_observed(world: World) -> None:
    asked = replace(operation("reboot"), boot_id="n1-boot-0")
    assert world.operations.observe(asked, 1).result == "done"
    assert world.operations.observe(replace(asked, boot_id="n1-boot-1"), 1).result == "not_done"


def test_what_an_earlier_attempt_did_says_nothing_of_a_later_one(world: World) -> None:
    """Mutant: the last mark there is answers for an attempt that never arrived."""
    assert world.operations.perform(operation("sanitise"), 1).result == "done"
    assert world.operations.observe(operation("sanitise"), 1).result == "done"
    later = world.operations.observe(replace(operation("sanitise"), attempt=2), 1)
    assert (later.result, later.detail, later.attempt) == ("not_done", "this agent never began it", 2)


@pytest.mark.parametrize(("meant_for", "result"), [("", "not_done"), ("n1-boot-1", "not_done"), ("n1-boot-0", "done")])
def test_a_reboot_is_seen_by_another_boot_than_it_was_meant_for(world: World, meant_for: str, result: str) -> None:
    """Mutant: an order that names no boot is done by whichever boot there is."""
    assert world.operations.observe(replace(operation("reboot"), boot_id=meant_for), 1).result == result


def test_failure_and_unknown_fate_are_told_apart(world: World) -> None:
    world.body.gone_wrong["gpu_reset"] = ActFailedError("in use")
    failed = world.operations.perform(operation("gpu_reset", gpus=["gpu3"]), 1)
    assert (failed.result, failed.detail) == ("failed", "in use")
    world.body.gone_wrong["gpu_reset"] = FateUnknownError("hung")
    second = replace(operation("gpu_reset"), id="op2")
    assert world.operations.perform(second, 1).result == "unknown"
    assert world.operations.observe(second, 1).result == "unknown"
    assert world.operations.perform(second, 1).result == "unknown"
    assert world.body.asked == ["gpu_reset gpu3", "gpu_reset all"]


@pytest.mark.parametrize(
    ("wrong", "result"),
    [
        (ActFailedError("in use"), "failed"),
        (ResourceHeldError("in use", ("python3 (pid 4711)",)), "failed"),
        (NotPossibleError("no such thing here"), "refused"),
    ],
)
def test_an_act_that_failed_is_told_after_a_restart_and_not_tried_again(
    world: World, wrong: Exception, result: str
) -> None:
    """The controller's next order is its own decision. Mutants: failed, or refused, outcomes are not kept."""
    world.body.gone_wrong["gpu_reset"] = wrong
    said = world.operations.perform(operation("gpu_reset"), 1)
    assert said.result == result
    world.restart()
    assert world.operation_log.unsent(9) == [said]
    assert world.operations.settle() == []
    assert world.operations.perform(operation("gpu_reset"), 1) == said
    assert world.operations.observe(operation("gpu_reset"), 1) == said
    assert world.body.asked == ["gpu_reset all"]


def test_an_unknown_fate_is_no_end_and_waits_to_be_observed(world: World) -> None:
    """Mutant: it is kept as if it were the end."""
    world.body.gone_wrong["reboot"] = FateUnknownError("systemctl hung")
    world.operations.perform(operation("reboot"), 1)
    assert world.operation_log.unsent(9) == []
    assert [mark.operation for mark in world.operation_log.unfinished()] == ["op1"]


@pytest.mark.parametrize(("kind", "result"), [("sanitise", "not_done"), ("run_checks", "not_done")])
def test_what_is_said_of_an_act_that_was_cut_off_is_said_once(world: World, kind: str, result: str) -> None:
    """Mutant: the next start says it again, of an operation that has long ended."""
    world.operation_log.start(operation(kind), 1, world.body.boot_id())
    world.restart()
    assert [outcome.result for outcome in world.operations.settle()] == [result]
    world.restart()
    assert world.operations.settle() == []
    assert [outcome.result for outcome in world.operation_log.unsent(9)] == [result]


def test_checks_and_inventory_answer_with_what_they_found(world: World) -> None:
    world.body.verdict = Verdict.failed
    checked = world.operations.perform(operation("run_checks", profile="gate"), 1)
    assert checked.facts == {"profile": "gate", "verdict": "failed", "detail": "emulated"}
    found = world.operations.perform(replace(operation("collect_inventory"), id="op2"), 1)
    assert found.parts == world.body.parts


class SlowBody(EmulatedHostMachine):
    """A body whose GPU reset and checks wait to be let go."""

    def __init__(self) -> None:
        super().__init__("n1")
        self.begun, self.go_on = threading.Event(), threading.Event()

    def reset_gpus(self, wanted: ResetRequest) -> str:
        self.begun.set()
        assert self.go_on.wait(30)
        return super().reset_gpus(wanted)

    def check(self, profile: str, expects: Expected, run: str = "", rules: PassRules | None = None) -> StressResult:
        self.begun.set()
        assert self.go_on.wait(30)
        return super().check(profile, expects, run, rules)

    def call_off(self) -> None:
        super().call_off()
        self.go_on.set()


def test_one_act_at_a_time_and_a_running_one_is_busy(tmp_path: Path) -> None:
    body, asked = SlowBody(), operation("gpu_reset")
    with closing(OperationLog(tmp_path / "marks.sqlite")) as operation_log:
        _run_beside(NodeOperations("n1", body, operation_log), body, asked)


def _run_beside(operations: NodeOperations, body: SlowBody, asked: Operation) -> None:
    thread = threading.Thread(target=operations.perform, args=(asked, 1))
    thread.start()
    assert body.begun.wait(30)
    answers = [
        operations.perform(asked, 1),
        operations.observe(asked, 1),
        operations.perform(replace(asked, id="op2"), 1),
    ]
    body.go_on.set()
    thread.join(30)
    assert [answer.result for answer in answers] == ["busy"] * 3
    assert operations.settle() == []
    assert operations.observe(asked, 1).result == "done"


@pytest.mark.parametrize(
    ("kind", "detail"),
    [("run_checks", "called off"), ("gpu_reset", "it goes on: only checks can be ended early")],
)
def test_only_a_check_that_runs_is_called_off(tmp_path: Path, kind: str, detail: str) -> None:
    """Mutants: another operation's check is called off; a reset half-way is; a running check is not."""
    body, asked = SlowBody(), operation(kind)
    with closing(OperationLog(tmp_path / "marks.sqlite")) as operation_log:
        operations = NodeOperations("n1", body, operation_log)
        assert operations.revoke(asked, 1).detail == "it does not run"
        thread = threading.Thread(target=operations.perform, args=(asked, 1))
        thread.start()
        try:
            assert body.begun.wait(30)
            other = operations.revoke(replace(asked, id="op2"), 1)
            assert (other.operation, other.result, other.detail) == ("op2", "revoked", "it does not run")
            assert "call_off" not in body.asked
            told = operations.revoke(asked, 1)
            assert (told.operation, told.result) == ("op1", "revoked")
            assert (told.detail, body.asked.count("call_off")) == (detail, detail == "called off")
        finally:
            body.go_on.set()
            thread.join(30)


def test_who_revokes_is_a_controller_that_counts(world: World) -> None:
    """Mutant: the epoch of whoever only calls off is not kept, and its deposed predecessor may still act."""
    world.operations.revoke(operation("sanitise"), 8)
    late = world.operations.perform(operation("sanitise"), 7)
    assert (late.result, late.detail) == ("refused", "epoch 7 is over: 8 was seen")


KILLED = """
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from hostler.agent.machine import EmulatedHostMachine, Powers
from hostler.agent.operation_log import OperationLog
from hostler.agent.node_operations import NodeOperations
from hostler.core.state.model import Operation
from hostler.core.state.operations import plain

class Machine(EmulatedHostMachine):
    def _ask(self, what):
        Path(sys.argv[1], "acted").open("a").write(what)
        os.kill(os.getpid(), signal.SIGKILL)

now = datetime(2026, 1, 1, tzinfo=UTC)
hands = NodeOperations("n1", Machine("n1"), OperationLog(Path(sys.argv[1], "marks.sqlite")))
hands.perform(Operation("op1", plain(sys.argv[2]), "n1", "plan1", 0, now, now), 7)
"""


@pytest.mark.parametrize(
    ("kind", "repeated", "observed"),
    [
        ("gpu_reset", "unknown", "unknown"),
        ("sanitise", "not_done", "not_done"),
        ("run_checks", "not_done", "not_done"),
    ],
)
def test_killed_between_started_and_done(world: World, kind: str, repeated: str, observed: str) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(world.directory), kind], check=False)
    assert killed.returncode == -signal.SIGKILL
    world.restart()
    assert world.operations.perform(operation(kind), 7).result == repeated
    assert world.operations.observe(operation(kind), 7).result == observed
    assert world.operations.perform(replace(operation(kind), attempt=2), 6).result == "refused"
    assert world.body.asked == []


def test_the_real_body_acts_only_when_it_may(tmp_path: Path) -> None:
    """A refused reboot is the only kind that a test can ask of the machine it runs on."""
    operation_log = OperationLog(tmp_path / "marks.sqlite")
    body = RealHostMachine("n1", tmp_path, Powers())
    operations = NodeOperations("n1", body, operation_log)
    for number, kind in enumerate(("reboot", "gpu_reset", "sanitise")):
        outcome = operations.perform(replace(operation(kind), id=f"op{number}"), 1)
        assert (outcome.result, "--allow-actions" in outcome.detail) == ("refused", True)
    gate = operations.perform(replace(operation("run_checks", profile="gate"), id="gate"), 1)
    assert gate.facts["verdict"] == "passed", gate.detail
    unknown = operations.perform(replace(operation("run_checks", profile="burn_in"), id="burn"), 1)
    assert unknown.facts["verdict"] == "inconclusive"
    body.close()
    operation_log.close()


def test_an_agent_tells_beforehand_what_it_will_refuse_for_want_of_permission(tmp_path: Path) -> None:
    """Mutants: NEED_PERMISSION lacks a kind, or has one too many; a refusal does not say that it lasts."""
    body = RealHostMachine("n1", tmp_path, Powers())
    with closing(OperationLog(tmp_path / "marks.sqlite")) as operation_log:
        operations = NodeOperations("n1", body, operation_log)
        said = {
            kind: operations.perform(replace(operation(kind), id=kind), 1, offer=an_offer()) for kind in KNOWN_KINDS
        }
    body.close()
    assert {kind for kind, one in said.items() if "--allow-actions" in one.detail} == set(body.barred())
    assert {kind: one.facts[LASTING] for kind, one in said.items() if kind in body.barred()} == dict.fromkeys(
        body.barred(), "start the node's agent with --allow-actions"
    )
    assert RealHostMachine("n1", tmp_path, Powers(actions=True)).barred() == ()


def test_a_verb_that_the_agent_does_not_know_is_refused_for_good(world: World) -> None:
    """Mutant: the refusal reads like one that waiting may change."""
    outcome = world.operations.perform(operation("power_on"), 1)
    assert (outcome.result, outcome.facts) == (
        "refused",
        {LASTING: "upgrade the node's agent to the controller's version"},
    )


def test_the_operation_log_is_bounded_and_forgets_nothing_that_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: the marks of a year fill the disk; what has not ended is forgotten as it is old."""
    monkeypatch.setattr("hostler.agent.operation_log.MAX_ENTRIES", 3)
    with closing(OperationLog(tmp_path / "marks.sqlite")) as operation_log:
        for number in range(7):
            asked = replace(operation("sanitise"), id=f"op{number}")
            operation_log.start(asked, 1, "b")
            if number:
                operation_log.finish(Outcome(asked.id, "n1", "done"))
        assert [mark.operation for mark in operation_log.unfinished()] == ["op0"]
        assert [outcome.operation for outcome in operation_log.unsent(100)] == ["op4", "op5", "op6"]
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        operation_log.epoch()


def test_an_order_is_begun_at_the_last_moment_of_its_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hostler.agent.node_operations.boottime", lambda: 100.0)
    assert world.operations.perform(operation("sanitise"), 1, begin_by=99.9).result == "refused"
    assert world.operations.perform(operation("sanitise"), 1, begin_by=100.0).result == "done"
