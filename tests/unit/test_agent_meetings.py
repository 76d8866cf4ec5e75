"""Meetings as the agent holds them: what a program may say or do, whom the results blame, and that it ends."""

import json
import threading
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from hostler.agent import meetings as agent_meetings
from hostler.agent.controller_client import MeetingAsk, RejectedError, UnavailableError
from hostler.agent.machine import EmulatedHostMachine
from hostler.agent.meetings import (
    Meetings,
    MeetingSettings,
    WaysError,
    address_of,
    free_port,
    result_of,
    verdict_of,
    ways_of,
)
from hostler.agent.node_operations import NodeOperations
from hostler.agent.operation_log import OperationLog
from hostler.core.state.meetings import MeetingOrder, MeetingReply
from hostler.core.state.model import Operation, Verdict
from hostler.core.state.operations import RunChecks

NOW = datetime(2026, 1, 1, tzinfo=UTC)

ORDER = MeetingOrder("m1", "127.0.0.1", 4000, 0, ("n0", "n1"), "s" * 32, "mlx5_0", "lo", 5.0, 0.5, 1)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions and looks at a meeting follow each other at once: what they find is tried, not how often they come."""
    monkeypatch.setattr(agent_meetings, "ASK_S", 0.01)
    monkeypatch.setattr(agent_meetings, "LOOK_S", 0.01)


class Controller:
    """Answers in the order given, the last one again and again; errors are raised."""

    def __init__(self, *answers: MeetingReply | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[MeetingAsk] = []

    def __call__(self, asked: MeetingAsk) -> MeetingReply:
        self.asked.append(asked)
        said = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(said, Exception):
            raise said
        return said


DONE = MeetingReply(is_done=True, standing="sound")


def meetings(folder: Path, controller: Controller, body: str, ways: tuple[str, ...] = ("mlx5_0=lo",)) -> Meetings:
    program = folder / "hostler-check"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    return Meetings(MeetingSettings(ways_of(ways), str(program)), folder / "checks", controller)


def saying(**told: Any) -> str:
    return f"echo '{json.dumps({'measured': True, 'pairs': {'mlx5_0>n1': 300.0}, **told})}'"


def test_an_order_is_carried_out_and_its_end_told(tmp_path: Path) -> None:
    """The file is ours alone and gone afterwards. Mutants: the secret is an argument; the id is left in the order."""
    controller = Controller(MeetingReply(ORDER), DONE)
    found = meetings(tmp_path, controller, f'cp "$2" {tmp_path}/had; stat -c %a "$2" > {tmp_path}/mode; {saying()}')
    assert found.hold("o1", "burn_in").detail == "mlx5_0: sound"
    told = json.loads((tmp_path / "had").read_text())
    assert (told["secret"], told["names"], "meeting" in told) == (ORDER.secret, ["n0", "n1"], False)
    assert (tmp_path / "mode").read_text() == "600\n"
    assert not (tmp_path / "checks/meeting.json").exists()
    assert [(one.meeting, one.gbps, one.address) for one in controller.asked] == [
        ("", None, "127.0.0.1"), ("m1", 300.0, "127.0.0.1"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        "exit 3", "echo garbage", "echo '[]'", saying(measured=False), saying(pairs={}), saying(pairs={"a>b": -1.0}),
        saying(pairs={"a>b": "fast"}), saying(pairs={"a>b": 1.0, "a>c": 2.0}), "kill -9 $$", "echo '{\"measured\":true",
    ],
)  # fmt: skip
def test_whatever_is_no_measurement_is_told_as_none(body: str, tmp_path: Path) -> None:
    """Mutants: nothing is 0, which is wrong sums; a negative rate is one."""
    controller = Controller(MeetingReply(ORDER), DONE)
    meetings(tmp_path, controller, body).hold("o1", "burn_in")
    assert (controller.asked[-1].meeting, controller.asked[-1].gbps) == ("m1", None)


def test_wrong_sums_are_told_as_nought(tmp_path: Path) -> None:
    controller = Controller(MeetingReply(ORDER), DONE)
    meetings(tmp_path, controller, saying(pairs={"mlx5_0>n1": 0.0})).hold("o1", "burn_in")
    assert controller.asked[-1].gbps == 0.0


TOGETHER = structs.replace(ORDER, names=("n0", "n1", "n2"))


@pytest.mark.parametrize(
    ("told", "gbps"),
    [
        ({"pairs": {}, "readings": {"group_gb_s": 40.0}}, 320.0),
        ({"pairs": {}, "readings": {"group_gb_s": 0.0}}, 0.0),
        ({"pairs": {}, "readings": {}}, None),
        ({"pairs": {"mlx5_0>n1": 300.0}, "readings": {}}, None),
        ({"pairs": {}, "readings": {"group_gb_s": -1.0}}, None),
        ({"pairs": {}, "readings": {"group_gb_s": 40.0}, "measured": False}, None),
    ],
)
def test_of_a_group_its_bandwidth_is_told(told: dict[str, Any], gbps: float | None, tmp_path: Path) -> None:
    """In Gbit/s, as of pairs. Mutants: GB/s; a pair's rate stands for the group; wrong sums are nothing."""
    controller = Controller(MeetingReply(TOGETHER), DONE)
    meetings(tmp_path, controller, saying(**told)).hold("o1", "burn_in")
    assert (controller.asked[0].takes, controller.asked[-1].gbps) == (8, gbps)


def test_who_keeps_a_node_from_meeting_is_told_in_the_verdict(tmp_path: Path) -> None:
    """Asked again until it may. Mutants: it gives up at once; its standing of before is forgotten."""
    waits = MeetingReply(waits="the cell is paused")
    controller = Controller(waits, waits, DONE)
    assert meetings(tmp_path, controller, "exit 3").hold("o1", "burn_in").detail == "mlx5_0: sound"
    stays = MeetingReply(is_done=True, standing="sound", waits="nodes of other leaves are not met: no window is open")
    found = meetings(tmp_path, Controller(stays), "exit 3").hold("o1", "burn_in")
    assert found.detail == "mlx5_0: sound, as nodes of other leaves are not met: no window is open"
    assert not result_of({"a": "blamed, as x", "b": "blamed, as x"}).facts.keys() - {"met:a", "met:b"}


def test_called_off_it_ends_at_once_and_the_program_with_it(tmp_path: Path) -> None:
    """Mutants: the program goes on; another meeting is begun."""
    controller = Controller(MeetingReply(ORDER))
    found = meetings(tmp_path, controller, f"touch {tmp_path}/begun; exec sleep 60")
    held = threading.Thread(target=found.hold, args=("o1", "burn_in"))
    held.start()
    while not (tmp_path / "begun").exists():
        time.sleep(0.01)
    began = time.monotonic()
    found.call_off()
    held.join(10)
    assert not held.is_alive()
    assert time.monotonic() - began < 5


def test_a_controller_that_does_not_answer_is_asked_again_and_one_that_refuses_is_not(tmp_path: Path) -> None:
    controller = Controller(UnavailableError("away"), DONE)
    assert meetings(tmp_path, controller, "exit 3").hold("o1", "suspect").detail == "mlx5_0: sound"
    controller = Controller(RejectedError(404, "no such route"))
    assert (
        meetings(tmp_path, controller, "exit 3").hold("o1", "suspect").detail == "mlx5_0: not met: 404: no such route"
    )
    assert len(controller.asked) == 1


def test_nobody_is_met_without_ways_program_or_a_profile_of_these(tmp_path: Path) -> None:
    """Mutants: a gate in service meets others; an agent that has ended begins a meeting."""
    controller = Controller(MeetingReply(ORDER))
    for one, profile in (
        (meetings(tmp_path, controller, "exit 3", ()), "burn_in"),
        (meetings(tmp_path, controller, "exit 3"), "gate"),
        (Meetings(MeetingSettings(ways_of(["a=lo"]), str(tmp_path / "none")), tmp_path, controller), "burn_in"),
    ):
        assert one.hold("o1", profile).facts == {}
    ended = meetings(tmp_path, controller, "exit 3")
    ended.close()
    assert ended.hold("o1", "burn_in").facts == {}
    assert controller.asked == []


def test_an_interface_without_an_address_meets_nobody(tmp_path: Path) -> None:
    found = meetings(tmp_path, Controller(DONE), "exit 3", ("mlx5_0=none0",)).hold("o1", "burn_in")
    assert found.detail.startswith("mlx5_0: not met by none0: ")
    assert address_of("lo") == "127.0.0.1"
    assert 0 < free_port("127.0.0.1") < 65_536


@pytest.mark.parametrize(
    ("told", "blamed"),
    [
        ({"a": "blamed", "b": "blamed"}, True),
        ({"a": "blamed", "b": "sound"}, False),
        ({"a": "blamed", "b": "open"}, False),
        ({"a": "blamed"}, False),
        ({"a": "acquitted", "b": "acquitted"}, False),
        ({}, False),
    ],
)
def test_a_node_is_blamed_by_all_of_two_ports_or_more(told: dict[str, str], blamed: bool) -> None:
    """Mutants: one port's cable convicts the node; a suspect check sends a node to its vendor."""
    found = result_of(told)
    assert found.is_blamed is blamed
    assert verdict_of("burn_in", found) is (Verdict.failed if blamed else Verdict.passed)
    assert verdict_of("suspect", found) is (Verdict.inconclusive if blamed else Verdict.passed)


@pytest.mark.parametrize("given", ["mlx5_0", "=ib0", "mlx5_0=", "a=b,a=c"])
def test_what_names_no_port_and_interface_is_refused(given: str) -> None:
    with pytest.raises(WaysError, match=r"^--meet .*: write PORT=INTERFACE, each port once$"):
        ways_of(given.split(","))


@pytest.mark.parametrize(
    ("profile", "verdict"), [("burn_in", "failed"), ("suspect", "inconclusive"), ("gate", "passed")]
)
def test_what_meetings_come_to_is_part_of_the_check_s_outcome(profile: str, verdict: str, tmp_path: Path) -> None:
    """Mutant: a blamed node's burn-in has passed."""
    blamed = Controller(MeetingReply(is_done=True, standing="blamed"))
    found = meetings(tmp_path, blamed, "exit 3", ("mlx5_0=lo", "mlx5_1=lo"))
    operation = Operation("o1", RunChecks(profile), "n1", "p1", 0, NOW, NOW)
    with closing(OperationLog(tmp_path / "marks.sqlite")) as log:
        outcome = NodeOperations("n1", EmulatedHostMachine("n1"), log, found).perform(operation, 1)
    assert (outcome.result, outcome.facts["verdict"]) == ("done", verdict), outcome
    assert ("sound nodes fail beside it by each of its ways" in outcome.detail) is (profile != "gate")


def test_a_check_that_has_not_passed_is_followed_by_no_meeting(tmp_path: Path) -> None:
    controller, machine = Controller(MeetingReply(ORDER)), EmulatedHostMachine("n1")
    machine.verdict = Verdict.inconclusive
    operation = Operation("o1", RunChecks("burn_in"), "n1", "p1", 0, NOW, NOW)
    with closing(OperationLog(tmp_path / "marks.sqlite")) as log:
        outcome = NodeOperations("n1", machine, log, meetings(tmp_path, controller, "exit 3")).perform(operation, 1)
    assert (outcome.facts["verdict"], controller.asked) == ("inconclusive", [])


def test_a_blame_counts_whatever_else_was_not_met() -> None:
    """Outside its window a node meets nobody of other leaves, which its standing tells. Mutant: the words acquit it."""
    words = "blamed, as nodes of other leaves are not met: now is outside the maintenance window of pool:train"
    found = result_of({"mlx5_0": words, "mlx5_1": "blamed"})
    assert found.is_blamed
    assert "sound nodes fail beside it by each of its ways" in found.detail
    assert not result_of({"mlx5_0": words}).is_blamed
    assert not result_of({"mlx5_0": words, "mlx5_1": "sound"}).is_blamed
