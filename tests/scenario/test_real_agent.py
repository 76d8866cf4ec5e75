"""Bring-up, triage, repair, return and release with the real agent's own answers: no sound node reaches its vendor."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hostler.agent.host_commands import NotPossibleError
from hostler.agent.machine import Powers, RealHostMachine
from hostler.agent.node_operations import OperationResult, performed
from hostler.controller.inputs import Replied
from hostler.controller.step_output import Send
from hostler.core.state import events as e
from hostler.core.state.model import Operation, Outcome, Phase
from tests.kit import Drive, a_node, configuration, pool_document

ALONE = configuration({"train": pool_document(target=1)}, gpus=0)
ASKED = ("run_checks", "sanitise")


class RealDrive(Drive):
    """A cell whose agent is this machine's: what it is asked to check or erase it answers as `agent.machine` does."""

    body: RealHostMachine
    answers: dict[str, OperationResult]

    def serve(self, send: Send) -> None:
        operation = send.operation
        if operation.kind not in ASKED or send.how != "perform":
            super().serve(send)
            return
        answer = self._asked(operation)
        outcome = Outcome(operation.id, operation.node, answer.result, answer.detail, answer.facts)
        self.step(Replied(outcome_of(outcome, operation)))

    def _asked(self, operation: Operation) -> OperationResult:
        key = f"{operation.kind} {getattr(operation.act, 'profile', '')}"
        if key not in self.answers:
            try:
                self.answers[key] = performed(self.body, operation)
            except NotPossibleError as error:
                self.answers[key] = OperationResult("refused", str(error))
        return self.answers[key]


def outcome_of(outcome: Outcome, operation: Operation) -> Outcome:
    return Outcome(
        outcome.operation, outcome.node, outcome.result, outcome.detail, outcome.facts, attempt=operation.attempt
    )


@pytest.fixture(scope="module")
def body(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealHostMachine]:
    """Returns this machine without a scratch device. Its SKU names no GPUs, so that nothing is missing from it."""
    folder: Path = tmp_path_factory.mktemp("agent")
    real = RealHostMachine("a", folder, Powers(actions=True))
    yield real
    real.close()


ANSWERS: dict[str, OperationResult] = {}
"""Answers of this machine: it is asked once for each profile, as a look at it takes seconds."""


def cell(body: RealHostMachine, phase: Phase, pool: str = "") -> RealDrive:
    drive = RealDrive.__new__(RealDrive)
    drive.body, drive.answers = body, ANSWERS
    drive.__init__(ALONE, [a_node("a", pool=pool, phase=phase, slots=(), addresses=())])  # type: ignore[misc]
    return drive


def bring_up(drive: RealDrive) -> None:
    drive.ask("certify", "a")


def replacement(drive: RealDrive) -> None:
    drive.ask_two("request-replacement", "a", now="true")


def fan_swap(drive: RealDrive) -> None:
    drive.ask_two("return-for-maintenance", "a", now="true")
    drive.run()
    drive.ask("power-off", "a")
    drive.run()
    assert drive.ask("start-work", "a", serial="S-a").granted
    assert drive.ask("end-work", "a").granted


def returned(drive: RealDrive) -> None:
    drive.ask("rma-return", "a")
    drive.ask("certify", "a")


def released(drive: RealDrive) -> None:
    drive.ask_two("release-node", "a")


STORIES: list[tuple[str, Phase, str, Callable[[RealDrive], None]]] = [
    ("bring-up", Phase.onboard, "", bring_up),
    ("triage", Phase.production, "train", replacement),
    ("fan swap", Phase.production, "train", fan_swap),
    ("rma-return", Phase.rma, "", returned),
    ("release", Phase.production, "train", released),
]


@pytest.mark.parametrize(("name", "phase", "pool", "begin"), STORIES, ids=[row[0] for row in STORIES])
def test_no_sound_node_reaches_its_vendor_whatever_its_agent_cannot_answer(
    body: RealHostMachine, name: str, phase: Phase, pool: str, begin: Callable[[RealDrive], None]
) -> None:
    """And a person's words lead it back to service. Mutants: inconclusive is failed; a limit moves it; no ticket."""
    drive = cell(body, phase, pool)
    begin(drive)
    drive.wait(days=5)
    vouched = []
    for _ in range(8):
        asked = [t for t in drive.fleet.tickets.values() if t.kind == "check"]
        for ticket in asked:
            assert f"hostler node vouch a --profile {ticket.fault}" in ticket.action
            if drive.ask("vouch", "a", profile=ticket.fault).granted:
                vouched.append(ticket.fault)
        drive.wait(hours=2)
    assert vouched, f"{name}: without a word somebody must have claimed to have looked"
    assert not [m for m in drive.events(e.PhaseChanged) if m.after is Phase.rma]
    assert drive.node("a").phase is Phase.production
