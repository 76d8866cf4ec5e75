"""A site's own check that failed is asked again after the remedy; where it fails again it leads on, to no vendor."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.agent import check_plugins
from hostler.agent.machine import Powers, RealHostMachine, SensorSources
from hostler.agent.node_operations import performed
from hostler.controller.inputs import AgentHeard, Replied
from hostler.controller.step_output import Send
from hostler.core.state import events as e
from hostler.core.state.model import Operation, Outcome, Phase
from hostler.core.state.operations import RunChecks
from tests.kit import Drive, a_node, a_workload, configuration, pool_document

ALONE = configuration({"train": pool_document(target=1)})
CHECK = "train_replay"
SAYS_NOTHING = ("inconclusive", "stale", "never_verified", "refused", "unreadable", "mute")
"""Answers of an agent that has no such check, of an older one, a broken one and a silent one."""


class SiteDrive(Drive):
    """A cell whose agent answers the site's check as `says` does, and every other check as scripted."""

    says: str = "done"

    def _take_script(self, operation: Operation) -> str:
        if operation.act == RunChecks(CHECK):
            return self.says
        return super()._take_script(operation)

    def complains(self, part: str = "") -> None:
        """The site's check has failed by itself."""
        facts: dict[str, str | int | float | bool | None] = {"check": CHECK, "verdict": "failed"}
        self.observe("a", "verdict", "digest differs", facts={**facts, **({"part": part} if part else {})})


def complained(says: str, part: str = "") -> SiteDrive:
    drive = SiteDrive(ALONE, [a_node("a")])
    drive.says = says
    drive.complains(part)
    return drive


def asked(drive: Drive) -> list[str]:
    """The profiles of all checks that were asked for, in order."""
    started = (event.operation for event in drive.events(e.OperationStarted, "a"))
    return [operation.act.profile for operation in started if isinstance(operation.act, RunChecks)]


def phases(drive: Drive) -> list[Phase]:
    return [moved.after for moved in drive.events(e.PhaseChanged)]


@pytest.mark.parametrize("part", ["", "gpu3"])
def test_it_is_asked_again_behind_the_gate_and_seen_gone(part: str) -> None:
    """Mutants: the gate's word is enough; what failed for one part is not ended by the whole check's word."""
    drive = complained("done", part)
    drive.wait(hours=1)
    assert drive.plans("a") == ["reboot"]
    assert asked(drive) == ["gate", CHECK]
    node = drive.node("a")
    assert (node.conditions, node.cordons, node.phase) == ((), (), Phase.production)


@pytest.mark.parametrize("part", ["", "gpu3"])
def test_one_that_fails_again_leads_on_to_triage_and_to_no_vendor(part: str) -> None:
    """The suspect profile finds nothing. Mutants: rebooted twice; its word counts as the vendor's evidence."""
    drive = complained("failed", part)
    drive.wait(hours=2)
    assert drive.plans("a")[:3] == ["reboot", "power_cycle", "triage"]
    ended = [event.reason for event in drive.events(e.PlanEnded, "a") if event.result == "failed"]
    assert ended == [f"{CHECK}: as scripted"] * 2
    drive.wait(days=4)
    assert phases(drive) == [Phase.triage, Phase.test, Phase.production]


def test_a_check_that_is_broken_sends_no_sound_node_to_its_vendor() -> None:
    """The check says failed whatever is done, for a year. Mutant: who was in triage too often is a lemon."""
    drive = complained("failed")
    for _ in range(60):
        drive.wait(days=6)
        drive.complains()
    assert phases(drive).count(Phase.triage) > 3
    assert Phase.rma not in phases(drive)


def test_it_may_fail_while_the_node_is_examined() -> None:
    """The plug-in runs by itself after the restart. Mutant: what stands after a passed examination is the vendor's."""
    drive = complained("failed")
    drive.script("run_checks", *["done"] * 3)
    for _ in range(30):
        drive.wait(minutes=5)
        drive.complains()
    drive.wait(days=4)
    assert Phase.triage in phases(drive)
    assert Phase.rma not in phases(drive)


@pytest.mark.parametrize("says", SAYS_NOTHING)
def test_what_says_nothing_keeps_the_node_out_until_somebody_knows(says: str) -> None:
    """Mutants: it is let back to work; the next rung's turn has come; a person's word leaves the condition behind."""
    drive = complained(says)
    drive.wait(days=3)
    node = drive.node("a")
    assert drive.plans("a") == ["reboot"]
    assert (node.phase, node.cordons) == (Phase.production, ("hostler",))
    (ticket,) = [t for t in drive.fleet.tickets.values() if t.kind == "check"]
    assert f"hostler node vouch a --profile {CHECK}" in ticket.action
    if node.operation is not None:
        drive.wait(minutes=40)
    assert drive.ask("vouch", "a", profile=CHECK).granted
    drive.wait(hours=1)
    node = drive.node("a")
    assert (node.conditions, node.cordons, node.phase, len(drive.fleet.tickets)) == ((), (), Phase.production, 0)


def test_an_agent_that_lists_its_profiles_is_asked_for_the_sites_check_all_the_same() -> None:
    """Mutant: what a heartbeat does not name cannot be asked for."""
    drive = SiteDrive(ALONE, [a_node("a")])
    drive.profiles["a"] = ("gate", "seatrial")
    drive.step(AgentHeard("a", "a-b1", ("gate", "seatrial")))
    drive.complains()
    drive.wait(hours=1)
    assert asked(drive) == ["gate", CHECK]
    assert not drive.node("a").conditions


def test_a_check_that_has_passed_by_itself_meanwhile_is_not_asked() -> None:
    """The plug-in runs after the restart. Mutant: the node waits for an answer that it has."""
    drive = complained("inconclusive")
    drive.wait(hours=1)
    assert drive.node("a").cordons
    drive.observe("a", "verdict", facts={"check": CHECK, "verdict": "passed"})
    drive.wait(minutes=1)
    node = drive.node("a")
    assert (node.conditions, node.cordons, len(drive.fleet.tickets)) == ((), (), 0)
    assert drive.plans("a") == ["reboot"], "its own last step opens the node"


def test_a_graver_fault_does_not_wait_for_the_sites_check() -> None:
    """Mutant: a check that nobody answers keeps what the kernel tells from its remedy."""
    drive = complained("inconclusive")
    drive.wait(hours=1)
    drive.fault("a", "off_bus", gpu=3)
    drive.wait(minutes=10)
    assert drive.plans("a") == ["reboot", "power_cycle"]


def test_one_that_fails_again_before_its_remedy_has_begun_asks_for_no_graver_one() -> None:
    """The drain waits for a customer. Mutant: the plan that runs counts as tried in vain."""
    drive = SiteDrive(ALONE, [a_node("a")])
    drive.see_work("a", a_workload("w1"))
    for _ in range(4):
        drive.complains()
        drive.wait(minutes=20)
    assert drive.plans("a") == ["reboot"]
    drive.see_work("a")
    drive.wait(hours=1)
    assert drive.plans("a") == ["reboot"]
    assert not drive.node("a").conditions


# --- with the agent's own answers


@pytest.fixture
def body(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealHostMachine]:
    monkeypatch.setattr(check_plugins, "AGAIN_S", 0.0)
    (tmp_path / "checks.d").mkdir(mode=0o755)
    real = RealHostMachine("a", tmp_path, Powers(actions=True), SensorSources(checks=str(tmp_path / "checks.d")))
    yield real
    real.close()


class RealDrive(Drive):
    """A cell whose agent answers the site's check as `agent.machine` does."""

    body: RealHostMachine

    def serve(self, send: Send) -> None:
        operation = send.operation
        if operation.act != RunChecks(CHECK) or send.how != "perform":
            super().serve(send)
            return
        answer = performed(self.body, operation)
        said = Outcome(operation.id, "a", answer.result, answer.detail, answer.facts, attempt=operation.attempt)
        self.step(Replied(said))


ROWS = [
    ("exit 0", ["reboot"], Phase.production, ()),
    ("echo 'digest differs'; exit 2", ["reboot", "power_cycle", "triage"], Phase.triage, ()),
    ("echo 'a little slow'; exit 1", ["reboot"], Phase.production, ()),
    ("exit 3", ["reboot"], Phase.production, ("hostler",)),
    ("test -e $0.ran && exit 0; touch $0.ran; exit 2", ["reboot"], Phase.production, ()),
    (
        """echo '{"verdict": "failed", "detail": "slow", "part": "gpu3"}'; exit 2""",
        ["reboot", "power_cycle", "triage"],
        Phase.triage,
        (),
    ),
    ("", ["reboot"], Phase.production, ("hostler",)),
]
"""The plug-in's script ("": there is none) → the plans, the phase and the cordons after two hours."""


@pytest.mark.parametrize(("script", "plans", "phase", "cordons"), ROWS, ids=[row[0] or "none" for row in ROWS])
def test_a_plug_in_is_run_for_its_answer(
    body: RealHostMachine, tmp_path: Path, script: str, plans: list[str], phase: Phase, cordons: tuple[str, ...]
) -> None:
    """Mutants: an agent refuses the name of a plug-in; a warning fails; one run convicts; no plug-in passes."""
    if script:
        path = tmp_path / "checks.d" / CHECK
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    drive = RealDrive(ALONE, [a_node("a")])
    drive.body = body
    drive.script("run_checks", *["done"] * 2, *["inconclusive"] * 40)  # gates, and the suspect profile
    drive.observe("a", "verdict", "digest differs", facts={"check": CHECK, "verdict": "failed"})
    drive.wait(hours=2)
    node = drive.node("a")
    assert [name for name in drive.plans("a") if name != "examine"] == plans
    assert (node.phase, node.cordons) == (phase, cordons)
