"""Goldens end to end: the real agent runs the real `hostler-check` on this CPU, and one node's bits are flipped.

A machine whose silicon flips a bit says nothing of it. So the program of the faulty node runs the suite with
`--plant bit_flip`, and tells its report without a word of the plant, as that machine would.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.agent.checks.check_suite import SuiteSettings
from hostler.agent.machine import Powers, RealHostMachine, SensorSources
from hostler.agent.node_operations import performed
from hostler.controller.inputs import FellowsSeen, Replied
from hostler.controller.step_output import Send
from hostler.core.report.explain import explain, text
from hostler.core.state import events as e
from hostler.core.state.goldens import Culprit, Golden
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Outcome, Phase, Verdict
from hostler.core.tables.operations import IDLE_CHECK
from hostler.drivers.check_message import CheckOutcome, read_verdict
from hostler_checks.plants import PERMISSION
from tests.kit import Drive, a_node, configuration, pool_document, seen

pytestmark = pytest.mark.nightly("whole worlds are lived through")

PACKAGE = Path(__file__).parents[2] / "packages/checks"
PROFILE = """profile: {0}
for: 1s
stages: [{{checks: [{{check: gemm_golden, seconds: 0.1s, with: {{n: 96}}, required: false}},
  {{check: gemm_abft, seconds: 0.1s, with: {{n: 64}}}}]}}]
"""
HIDES = """import json, subprocess, sys
sys.path.insert(0, {package!r})
from hostler_checks import state_dir
done = subprocess.run([sys.executable, "-m", "hostler_checks.main", *sys.argv[1:], "--plant", "bit_flip"],
                      capture_output=True, text=True)
told = json.loads(done.stdout)
del told["digest"]
told["planted"], told["verdict"] = "", "passed"
told["latest"] = [{{**one, "planted": ""}} for one in told["latest"] if one["check"] == "gemm_golden"]
print(json.dumps(state_dir.signed(told)))
"""
AGENTS = ("p1", "p2", "p3", "n")


class RealSuites(Drive):
    """Nodes in burn-in, each with an agent of its own, and one in service with idle checks as a scheduler runs them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bodies = {name: self.agent(name) for name in AGENTS}
        pools = {"train": pool_document(target=1, modes={"*": "act", IDLE_CHECK: "act"})}
        config = configuration(pools, lambda policy: policy["slots"].update(quiet_s=60, count=9, percent=100))
        nodes = [a_node(name, pool="", phase=Phase.test) for name in ("p1", "p2")]
        super().__init__(config, [*nodes, a_node("w")])
        self.step(FellowsSeen((Fellow("this", Release().reads),)))

    def agent(self, name: str) -> RealHostMachine:
        place = self.folder / name
        place.mkdir()
        sources = SensorSources(root=str(place), suite=SuiteSettings(self.program(place, planted=name == "n")))
        return RealHostMachine(name, place, Powers(), sources)

    def program(self, place: Path, *, planted: bool) -> str:
        """`hostler-check` of this tree, on the CPU, small."""
        for profile in ("burn_in", "suspect", "idle"):
            (place / f"{profile}.yaml").write_text(PROFILE.format(profile))
        own = place / "hides.py"
        own.write_text(HIDES.format(package=str(PACKAGE)))
        run = str(own) if planted else "-m hostler_checks.main"
        variables = f"PYTHONPATH={PACKAGE} OMP_NUM_THREADS=1 {PERMISSION}={int(planted)}"
        which = 'case "$*" in *suspect*) P=suspect;; *idle*) P=idle;; *) P=burn_in;; esac'
        words = f'{variables} exec {sys.executable} {run} "$@" --profile {place}/$P.yaml --device cpu'
        program = place / "hostler-check"
        program.write_text(f"#!/bin/sh\n{which}\n{words}\n")
        program.chmod(0o755)
        return str(program)

    def serve(self, send: Send) -> None:
        """Burn-in and suspect checks are the agent's, idle ones the scheduler's; all else is done as asked."""
        operation = send.operation
        name = operation.node
        profile = getattr(operation.act, "profile", "")
        if send.how == "perform" and name in self.bodies and profile in ("burn_in", "suspect"):
            answer = performed(self.bodies[name], operation)
            told = Outcome(operation.id, name, answer.result, answer.detail, answer.facts, attempt=operation.attempt)
            self.step(Replied(told), *self._news(name))
        elif send.how == "perform" and operation.kind == IDLE_CHECK:
            said = self.job(name)
            facts = {**said.facts, "profile": "idle"}
            self.step(Replied(Outcome(operation.id, name, "done", said.detail, facts, attempt=operation.attempt)))
        else:
            super().serve(send)

    def job(self, name: str) -> CheckOutcome:
        """An idle check as a container's: its exit code and last message."""
        place = self.folder / f"job-{name}"
        place.mkdir(exist_ok=True)
        message = place / "message"
        words = ("run", "--profile", "idle", "--state", str(place), "--node", name, "--message", str(message))
        done = subprocess.run(
            (self.program(place, planted=False), *words), check=False, env={"PATH": os.environ["PATH"]}
        )
        return read_verdict(done.returncode, message.read_text())

    def goldens(self) -> dict[str, Golden]:
        return {one.check: one for one in self.fleet.goldens.values()}


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[RealSuites]:
    found = RealSuites(tmp_path)
    yield found
    for body in found.bodies.values():
        body.close()


def test_one_flipped_bit_is_found_by_peers_and_convicted_by_a_witness(drive: RealSuites) -> None:
    """Agents of p1 and p2 in burn-in and w's idle job teach; n differs by one bit; p3 is the witness."""
    drive.wait(hours=2)
    golden = drive.goldens()["gemm_golden"]
    assert set(golden.peers) == {"p1", "p2", "w"}
    assert "numpy" in dict(golden.stack)
    joins(drive, "n")
    drive.wait(seconds=20)
    (dispute,) = drive.goldens()["gemm_golden"].disputes
    assert (dispute.node, dispute.part, dispute.culprit) == ("n", "cpu", "")
    (check,) = (one for one in drive.node("n").checks if one.profile == "burn_in")
    assert check.verdict is Verdict.inconclusive
    assert drive.node("n").phase is Phase.test
    joins(drive, "p3")
    drive.wait(minutes=5)
    judged = drive.events(e.BitsJudged, "n")
    assert [one.culprit for one in judged] == [Culprit.node]
    drive.wait(days=1)
    assert drive.node("n").phase is Phase.rma
    records = [r for r in drive.journal if "n" in e.subjects_of(r.event)]
    story = text(explain(records, drive.node("n")))
    assert "a witness has the golden's" in story
    assert {drive.node(name).phase for name in ("p1", "p2", "p3", "w")} == {Phase.production}


def joins(drive: RealSuites, name: str) -> None:
    """A node comes to its burn-in while the cell runs."""
    spec = a_node(name, pool="", phase=Phase.test)
    drive.power[name], drive.boots[name] = True, 1
    for event in seen(spec):
        record = e.Record(len(drive.journal) + 1, drive.now, drive.controller.epoch, "seed", event)
        drive.journal.append(record)
    drive.restart()
    drive.step(FellowsSeen((Fellow("this", Release().reads),)))
