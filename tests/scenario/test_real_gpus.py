"""A node with eight GPUs lives through bring-up and triage with the real agent's own answers and inventory."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from hostler.agent.checks import gate_runner
from hostler.agent.host_commands import NotPossibleError
from hostler.agent.machine import RealHostMachine
from hostler.agent.node_operations import OperationResult, performed
from hostler.controller.inputs import AgentHeard, Input, NodeSeen, Observed, Replied
from hostler.controller.step_output import Send
from hostler.core.state import events as e
from hostler.core.state.model import Observation, Operation, Outcome, Phase
from tests.drive_bench import DriveBench
from tests.gpu_node import ADDRESSES, STATES, Node
from tests.kit import Drive, a_node, configuration, pool_document

pytestmark = pytest.mark.nightly("whole worlds are lived through")

PARTS = {"cpu": 2, "drive": 4, "nic": 8}
CONFIG = configuration(
    {"train": pool_document(target=1)},
    parts=PARTS,
    gpu_model="H100",
    memory_gib=2048.0,
    models={"nic": "MCX75310", "cpu": "8480", "drive": "7.68"},
)
SCRATCH = tuple(f"/dev/nvme{number}n1" for number in range(4))
"""Devices that the agent may erase: names below the machine's own root, where they are files of the test."""
CPU = "processor\t: {0}\nphysical id\t: {0}\nmodel name\t: Intel Xeon Platinum 8480C\n"
FOREIGN = {"nvmlDeviceGetSerial": "1999", "nvmlDeviceGetUUID": "GPU-other"}


def furnish(machine: Node) -> DriveBench:
    """Processors, memory, drives and adapters beside the GPUs; the drives, with a program that erases them."""
    root = machine.root
    for address in ADDRESSES:
        (root / f"sys/bus/pci/devices/{address}.0/device").write_text("0x2330")
    for number in range(1, 8):
        machine.adapter(f"mlx5_{number}", f"0000:{0xA0 + number:02x}:00", "4: ACTIVE")
    for number, card in enumerate(sorted((root / "sys/class/infiniband").iterdir())):
        name, serial = b"MCX75310AAS", f"MT{number}".encode()
        fields = b"PN" + bytes([len(name)]) + name + b"SN" + bytes([len(serial)]) + serial
        (card / "device/vpd").write_bytes(b"\x90" + len(fields).to_bytes(2, "little") + fields + b"\x78")
        (card / "device/infiniband" / card.name).mkdir(parents=True)
    drives = DriveBench(root, root.parent / "drives")
    for number in range(4):
        drives.nvme(f"nvme{number}n1", f"S6CK{number}")
        (root / f"sys/block/nvme{number}n1/device/model").write_text("SAMSUNG 7.68TB")
    (root / "proc/cpuinfo").write_text("\n".join(CPU.format(number) for number in range(2)))
    (root / "proc/meminfo").write_text(f"MemTotal: {2030 * 2**20} kB\n")
    return drives


class RealNode(Drive):
    """A cell of one node, which tells its inventory and answers its checks as `agent.machine` does. Hands only do."""

    body: RealHostMachine

    def serve(self, send: Send) -> None:
        operation = send.operation
        if operation.kind not in ("run_checks", "sanitise") or send.how != "perform":
            super().serve(send)
            return
        try:
            answer = performed(self.body, operation)
        except NotPossibleError as error:
            answer = OperationResult("refused", str(error))
        self.step(Replied(_outcome(operation, answer)))

    def _parts_of(self, node_id: str) -> list[Input]:
        boot = self.boot_of(node_id)
        node = self.fleet.nodes.get(node_id)
        if node is None or node.inventory_boot == boot:
            return []
        self._sequence += 1
        found = self.body.inventory()
        seen = Observation(node_id, "inventory", "agent", f"s{self._sequence}", 1, boot, facts=found.facts)
        seen = replace(seen, received=self.now, parts=found.parts)
        return [Observed(0, node_id, (seen,))]

    def parts_told(self) -> list[Input]:
        """Returns the agent's report of its parts as it begins."""
        return self._parts_of("a")

    def words(self) -> str:
        """Words that a person is told of the node: what it waits for, and its tickets."""
        waiting = self.node("a").waiting
        blockers = [b.text for b in waiting.blockers] if waiting is not None else []
        return "; ".join([*blockers, *(f"{t.summary} {t.action}" for t in self.fleet.tickets.values())])

    def went(self) -> list[Phase]:
        return [moved.after for moved in self.events(e.PhaseChanged)]


def _outcome(operation: Operation, answer: OperationResult) -> Outcome:
    return Outcome(operation.id, operation.node, answer.result, answer.detail, answer.facts, attempt=operation.attempt)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    monkeypatch.setattr(gate_runner, "SETTLE_S", 0.0)
    monkeypatch.setattr("hostler.agent.machine.GPUS_S", 3.0)
    monkeypatch.setattr("hostler.agent.machine.act", lambda _words, _deadline_s: None)
    monkeypatch.setenv("PATH", f"{tmp_path / 'drives'}:{os.environ['PATH']}")
    here = Node(tmp_path)
    furnish(here)
    yield here
    here.close()


def at(machine: Node, phase: Phase, state: str | Path) -> RealNode:
    """The node as it is switched on at this phase, never seen before."""
    drive = RealNode.__new__(RealNode)
    drive.body = machine.body(state, SCRATCH)
    node = a_node("a", pool="", phase=phase, slots=(), addresses=(), inventory_at=None, inventory_boot="")
    drive.__init__(CONFIG, [node], quiet=True)  # type: ignore[misc]
    drive.step(NodeSeen("a", "on"), AgentHeard("a", "a-b1"), drive.view(), *drive.parts_told())
    drive.run()
    return drive


def vouch_for_what_no_agent_checks(drive: RealNode) -> list[str]:
    """A person's word wherever a ticket asks for one; the profiles."""
    given: list[str] = []
    for _ in range(4):
        asked = [t.fault for t in drive.fleet.tickets.values() if t.kind == "check"]
        given += [profile for profile in asked if drive.ask("vouch", "a", profile=profile).granted]
        drive.wait(hours=2)
    return given


def test_a_sound_node_goes_all_the_way_with_words_only_where_the_agent_has_no_check(machine: Node) -> None:
    """Eight GPUs seen at Seatrial and at the gate of its delivery. Mutants: the inventory is read at "/"; the recorded
    GPUs are not asked for it; a gate or a Seatrial that needs a word."""
    drive = at(machine, Phase.seatrial, "healthy_h100x8")
    drive.wait(hours=30)
    assert vouch_for_what_no_agent_checks(drive) == ["burn_in"]
    assert drive.node("a").phase is Phase.production
    assert drive.node("a").pool == "train"
    verdicts = {(c.check.profile, c.check.verdict.value) for c in drive.events(e.CheckRecorded) if not c.check.person}
    assert {("seatrial", "passed"), ("inventory", "passed"), ("gate", "passed")} <= verdicts
    assert Phase.rma not in drive.went()


STOPS = {
    "gpu_missing": (Phase.seatrial, "gpu in gpu3: expected H100, found 10de:2330"),
    "hang_in_one_call": (Phase.seatrial, "NVML is hung"),
    "no_driver": (Phase.seatrial, "gpu7: expected H100, found 10de:2330"),
}
"""Recorded state → the phase that the node comes to, and what a person is told."""


@pytest.mark.parametrize("state", STOPS)
def test_a_node_whose_gpus_are_not_seen_stops_and_nothing_but_evidence_convicts_it(machine: Node, state: str) -> None:
    """Mutants: absence of NVML passes; a hang fails; what NVML misses is not compared; inconclusive leads to rma."""
    drive = at(machine, Phase.seatrial, state)
    drive.wait(days=3)
    where, told = STOPS[state]
    assert (drive.node("a").phase, Phase.rma in drive.went()) == (where, False), drive.transcript("a")
    assert told in drive.words() + drive.transcript("a")
    assert Phase.production not in drive.went()


def test_another_serial_than_the_record_has_fails_the_gate(machine: Node, tmp_path: Path) -> None:
    """After a remedy without hands in the machine. Mutant: GPUs are matched by address alone."""
    drive = at(machine, Phase.seatrial, "healthy_h100x8")
    drive.wait(hours=30)
    vouch_for_what_no_agent_checks(drive)
    swapped = tmp_path / "swapped.json"
    swapped.write_text(json.dumps({"base": str(STATES / "healthy_h100x8.json"), "change": {"3": FOREIGN}}))
    drive.body = machine.body(swapped)
    drive.fault("a", gpu=0x61)
    drive.wait(hours=1)
    failed = [c.check for c in drive.events(e.CheckRecorded) if c.check.verdict == "failed"]
    assert [check.profile for check in failed][:1] == ["gate"], drive.transcript("a")
    assert "1999 is in its place" in drive.transcript("a") + str(failed)


def test_a_gpu_that_pci_misses_too_is_evidence(machine: Node) -> None:
    """Mutants: the count is not compared; a missing part is examined and passes."""
    machine.unplug(ADDRESSES[3])
    drive = at(machine, Phase.seatrial, "gpu_missing")
    drive.wait(hours=12)
    assert drive.node("a").phase is Phase.seatrial
    assert "gpu: expected 8, found 7" in drive.words()


def in_service(machine: Node, scratch: tuple[str, ...] = SCRATCH) -> RealNode:
    """The node serves its pool, seen by its own agent."""
    drive = RealNode.__new__(RealNode)
    drive.body = machine.body("healthy_h100x8", scratch)
    node = a_node("a", slots=(), addresses=(), inventory_at=None, inventory_boot="")
    drive.__init__(CONFIG, [node], quiet=True)  # type: ignore[misc]
    drive.step(NodeSeen("a", "on"), AgentHeard("a", "a-b1"), drive.view(), *drive.parts_told())
    drive.run()
    return drive


def test_a_fan_is_swapped_in_a_sound_node_and_it_serves_again_by_words_where_no_check_is(machine: Node) -> None:
    """Mutants: the examination after the work convicts; the inventory of the new boot is not asked for."""
    drive = in_service(machine)
    assert drive.ask_two("return-for-maintenance", "a", now="true").granted
    drive.run()
    assert drive.ask("power-off", "a").granted
    drive.run()
    assert drive.ask("start-work", "a", serial="S-a").granted
    assert drive.ask("end-work", "a").granted
    drive.wait(hours=2)
    assert drive.node("a").phase is Phase.triage
    assert vouch_for_what_no_agent_checks(drive) == ["suspect", "burn_in"]
    assert (drive.node("a").phase, drive.node("a").pool) == (Phase.production, "train"), drive.transcript("a")
    assert Phase.rma not in drive.went()
    passed = [c.check.profile for c in drive.events(e.CheckRecorded) if c.check.verdict == "passed"]
    assert "inventory" in passed
    assert "gate" in passed, "its delivery was gated by the agent itself"


def test_what_comes_back_from_its_vendor_is_seen_by_its_own_agent_and_goes_all_the_way(machine: Node) -> None:
    """Mutants: Seatrial needs a word; what comes back is sent there again."""
    drive = at(machine, Phase.rma, "healthy_h100x8")
    assert drive.ask("rma-return", "a").granted
    assert drive.ask("certify", "a").granted
    drive.wait(hours=30)
    assert vouch_for_what_no_agent_checks(drive) == ["burn_in"]
    assert (drive.node("a").phase, drive.node("a").pool) == (Phase.production, "train"), drive.transcript("a")
    assert drive.went() == [Phase.onboard, Phase.seatrial, Phase.zap, Phase.test, Phase.production]


@pytest.mark.parametrize("scratch", [(), SCRATCH], ids=["no --scratch", "--scratch"])
def test_a_release_erases_what_the_agent_may_erase_and_else_waits_for_a_word(
    machine: Node, scratch: tuple[str, ...]
) -> None:
    """Mutants: nothing to erase counts as erased; what was refused leads to triage; more is erased than was named."""
    drive = in_service(machine, scratch)
    assert drive.ask_two("release-node", "a").granted
    drive.wait(hours=2)
    if not scratch:
        assert drive.node("a").pool == "train", "its tenant's data is on it"
        assert {c.type for c in drive.node("a").conditions} == {"node.unsanitised", "operator.release"}
        assert vouch_for_what_no_agent_checks(drive) == ["sanitise"]
    drives = machine.root.parent / "drives"
    erased = [any(image.read_bytes()) is False for image in sorted(drives.glob("*.img"))]
    assert erased == [bool(scratch)] * 4
    assert Phase.triage not in drive.went()
    assert [one.node for one in drive.events(e.NodeReleased)] == ["a"]
