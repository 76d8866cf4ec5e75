"""One node from power-on to its vendor with its own answers: the real agent's, its checks', and its BMC's driver.

The agent reads files, recorded NVML, and what lldpd and smartctl print; `hostler-check` computes on this machine's
CPU. No verdict is played.
"""

import json
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from hostler.agent.checks import gate_runner
from hostler.agent.checks.check_suite import SuiteSettings
from hostler.agent.host_commands import NotPossibleError
from hostler.agent.machine import Powers, RealHostMachine, SensorSources
from hostler.agent.node_operations import OperationResult, performed
from hostler.controller.inputs import Observed, Replied
from hostler.controller.step_output import Send
from hostler.core.conditions.sku_match import is_unseen
from hostler.core.planning.hardware_step import stands_at
from hostler.core.policy import documents
from hostler.core.report.evidence_bundle import Known, evidence_bundle
from hostler.core.state import events as e
from hostler.core.state.model import Observation, Outcome, Phase
from hostler.sim.bmc.emulated_machine import Machine, gpu_server
from tests.gpu_node import ADDRESSES, STATES, Node
from tests.kit import POLICY, pool_document
from tests.scenario.planted_fleet import PlantedFleet
from tests.scenario.test_real_gpus import SCRATCH, furnish
from tests.unit.test_agent_hardware import smbios_socket

BODIES: list[RealHostMachine] = []
"""Agents whose children are to be ended."""
PACKAGE = Path(__file__).parents[2] / "packages/checks"
SERIAL = "S-a"
PROFILE = """profile: {0}
for: 1s
resume: true
stages:
  - name: bits
    share: 0.5
    checks: [{{check: gemm_abft, seconds: 0.2s, with: {{n: 64}}}}]
"""
MAC = "da:7d:b2:05:30:28"
LLDP = {
    "lldp": [
        {
            "interface": [
                {
                    "name": "eth0",
                    "chassis": [{"id": [{"type": "mac", "value": MAC}], "name": [{"value": "tor-r1"}]}],
                    "port": [
                        {"id": [{"type": "mac", "value": "da:7d:b2:05:30:28"}], "descr": [{"value": "Ethernet7"}]}
                    ],
                }
            ]
        }
    ]
}
"""lldpd 1.0.16's answer (`lldpctl -f json0`), shortened."""
LINKS = (*(f"gpu{n}" for n in range(8)), *(f"mlx5_{n}" for n in range(8)), *(f"nvme{n}n1" for n in range(4)))
MANIFEST = {
    "pcie": dict.fromkeys(LINKS[:16], "x16 32 GT/s") | dict.fromkeys(LINKS[16:], "x4 16 GT/s"),
    "bios": {"SriovEnable": "Enabled"},
    "neighbours": {"eth0": "tor-{rack} Ethernet{u}"},
    "memory_gib": {"A1": 64, "A2": 0},
    "supplies_needed": 4,
    "sensors_s": 900,
    "drives": True,
    "serials": True,
    "erasable": True,
}
SKU = {
    "gpus": 8,
    "gpu_model": "H100",
    "memory_gib": 2048,
    "parts": {"cpu": 2, "drive": 4, "nic": 8, "psu": 6},
    "models": {"nic": "MCX75310", "cpu": "8480", "drive": "7.68"},
    "hardware": MANIFEST,
}
HANDS_DO = frozenset(
    {"cordon", "uncordon", "join_cluster", "start_kubelet", "confirm_join", "leave_cluster", "stop_kubelet"}
    | {"collect_evidence", "evict", "reserve"}
)
"""Kinds that a scheduler or an agent does at once here: none says how the node is."""
POOLS = {"skus": {"h100": SKU}, "pools": {"train": pool_document(target=1)}}
CONFIG = documents.parse({"policy.yaml": POLICY, "pools.yaml": yaml.safe_dump(POOLS)})


def cable(machine: Node, **changed: str) -> None:
    """Links, sockets, serial numbers and a port beside the parts; `changed`: lanes of a slot."""
    root = machine.root
    pci = root / "sys/bus/pci/devices"
    places = [pci / f"{address}.0" for address in ADDRESSES]
    cards = sorted((root / "sys/class/infiniband").iterdir())
    places += [(card / "device").resolve() for card in cards]
    for number in range(4):
        (root / f"sys/block/nvme{number}n1/device/address").write_text(f"0000:e{number}:00.0")
        (pci / f"0000:e{number}:00.0").mkdir()
        places.append(pci / f"0000:e{number}:00.0")
    names = [*LINKS[:8], *(card.name for card in cards), *LINKS[16:]]
    for name, place in zip(names, places, strict=True):
        drive, idles = name.startswith("nvme"), name.startswith("gpu")
        rate = "16.0 GT/s PCIe" if drive else "32.0 GT/s PCIe"
        (place / "current_link_width").write_text(changed.get(name, "4" if drive else "16"))
        (place / "current_link_speed").write_text("2.5 GT/s PCIe" if idles else rate)
        (place / "max_link_speed").write_text(rate)
    dmi = root / "sys/class/dmi/id"
    dmi.mkdir(parents=True)
    (dmi / "product_serial").write_text(f"{SERIAL}\n")
    for number, (socket, mib) in enumerate((("A1", 65536), ("A2", 0))):
        entry = root / f"sys/firmware/dmi/entries/17-{number}"
        entry.mkdir(parents=True)
        (entry / "raw").write_bytes(smbios_socket(socket, mib))
    (root / "sys/class/net/eth0/device").mkdir(parents=True)
    (root / "sys/class/net/eth0/carrier").write_text("1")


def tools(folder: Path, said: dict[str, Any]) -> None:
    """Programs that print what was recorded of the real ones."""
    folder.mkdir()
    for name, answer in said.items():
        (folder / f"{name}.json").write_text(json.dumps(answer))
        (folder / name).write_text(f"#!/bin/sh\ncat {folder}/{name}.json\n")
        (folder / name).chmod(0o755)


def checks(folder: Path) -> SuiteSettings:
    """`hostler-check` of this tree on the CPU, for a second under load."""
    for profile in ("burn_in", "suspect"):
        (folder / f"{profile}.yaml").write_text(PROFILE.format(profile))
    program = folder / "hostler-check"
    words = f'exec {sys.executable} -m hostler_checks.main "$@" --profile {folder}/$P.yaml --device cpu'
    which = 'case "$*" in *suspect*) P=suspect;; *) P=burn_in;; esac'
    program.write_text(f"#!/bin/sh\n{which}\nexport PYTHONPATH={PACKAGE} OMP_NUM_THREADS=1\n{words}\n")
    program.chmod(0o755)
    return SuiteSettings(str(program))


class WholeLife(PlantedFleet):
    """A cell of one node: its agent answers for itself, its BMC through the driver. Hands only do."""

    def __init__(self, machine: Node, folder: Path) -> None:
        self.files, self.folder = machine, folder
        self.suite, self.stocked = checks(folder), ""
        self.body = self.agent("healthy_h100x8")
        super().__init__(CONFIG, {"a": ("h100", Machine("a", gpu_server(SERIAL, 8)))}, {})
        self.step(self.view())

    def agent(self, state: str) -> RealHostMachine:
        """The agent's machine with the GPUs that are recorded under this name."""
        twin, root = str(STATES / f"{state}.json"), str(self.files.root)
        sensors = SensorSources(nvml_twin=twin, kernel_log=str(self.files.log), root=root, suite=self.suite)
        BODIES.append(RealHostMachine("a", self.files.state, Powers(actions=True, scratch=SCRATCH), sensors))
        return BODIES[-1]

    def serve(self, send: Send) -> None:
        """Lets the agent's own collectors look at the node; every other request is done."""
        operation = send.operation
        if operation.kind not in ("run_checks", "sanitise") or send.how != "perform":
            super().serve(send)
            return
        try:
            answer = performed(self.body, operation)
        except NotPossibleError as error:
            answer = OperationResult("refused", str(error))
        told = Outcome(operation.id, "a", answer.result, answer.detail, answer.facts, attempt=operation.attempt)
        self.step(Replied(told))

    def _parts_of(self, node_id: str) -> list[Any]:
        boot = self.boot_of(node_id)
        if self.fleet.nodes[node_id].inventory_boot == boot:
            return []
        self._sequence += 1
        found = self.body.inventory()
        seen = Observation(node_id, "inventory", "agent", f"s{self._sequence}", 1, boot, facts=found.facts)
        return [Observed(0, node_id, (replace(seen, received=self.now, parts=found.parts),))]

    def watch(self) -> datetime | None:
        """Look at who is watched, and take stock of what only its BMC lists, as the poller does: once a boot."""
        wakes = super().watch()
        node = self.node("a")
        wanted = stands_at(node) or is_unseen(self.fleet, node)
        if self.machines["a"].booted and wanted and self.stocked != node.boot_id:
            self.stocked = node.boot_id
            stock = self.twin.take_stock(node, self.now)
            self.observe("a", "inventory", source="bmc", parts=stock.parts, facts=stock.facts)
        return wakes

    def went(self) -> list[Phase]:
        return [moved.after for moved in self.events(e.PhaseChanged)]

    def passed(self) -> set[str]:
        return {c.check.profile for c in self.events(e.CheckRecorded) if c.check.verdict == "passed"}

    def judged_by_hands(self) -> set[str]:
        """Kinds of operations that say how a node is, and that the harness has answered in its place."""
        kinds = {started.operation.id: started.operation.kind for started in self.events(e.OperationStarted)}
        played = {kinds[one.operation] for one in self.events(e.OperationFinished) if one.detail == "as scripted"}
        return played - HANDS_DO

    def vouched(self) -> list[str]:
        return [c.check.profile for c in self.events(e.CheckRecorded) if c.check.person]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    monkeypatch.setattr(gate_runner, "SETTLE_S", 0.0)
    monkeypatch.setattr("hostler.agent.machine.GPUS_S", 3.0)
    monkeypatch.setattr("hostler.agent.machine.act", lambda _words, _deadline_s: None)
    tools(tmp_path / "bin", {"lldpctl": LLDP, "smartctl": {"smart_status": {"passed": True}}})
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{tmp_path / 'drives'}:/usr/bin:/bin")
    here = Node(tmp_path)
    furnish(here)
    yield here
    while BODIES:
        BODIES.pop().close()
    here.close()


ASPECTS = {f"hardware.{name}" for name in ("pcie", "bios", "neighbours", "power_supplies", "sensors", "memory_map")}


def test_a_sound_node_comes_to_service_and_back_after_a_fan_swap_without_a_word(machine: Node, tmp_path: Path) -> None:
    """Mutants: an aspect that nobody reads; a check that needs a word; the examination after the work convicts."""
    cable(machine)
    life = WholeLife(machine, tmp_path)
    life.live(hours=30)
    assert (life.node("a").phase, life.node("a").pool) == (Phase.production, "train"), life.transcript("a")
    assert life.went() == [Phase.zap, Phase.test, Phase.production]
    seen = ASPECTS | {
        "hardware.drives",
        "hardware.serials",
        "hardware.erasable",
        "inventory",
        "seatrial",
        "burn_in",
        "gate",
    }
    assert seen <= life.passed()
    assert life.ask_two("return-for-maintenance", "a", now="true").granted
    life.live(hours=1)
    assert life.ask("power-off", "a").granted
    life.live(minutes=5)
    assert life.ask("start-work", "a", serial=SERIAL).granted
    assert life.ask("end-work", "a").granted
    life.live(hours=60)
    assert (life.node("a").phase, life.node("a").pool) == (Phase.production, "train"), life.transcript("a")
    assert life.went()[3:] == [Phase.triage, Phase.test, Phase.production]
    assert "suspect" in life.passed()
    assert life.vouched() == []
    assert life.judged_by_hands() == set()


@pytest.mark.nightly("a whole life, minute by minute")
def test_a_node_with_a_fault_goes_through_triage_to_its_vendor_with_its_case(machine: Node, tmp_path: Path) -> None:
    """A GPU leaves the bus while the node serves. Mutants: the gate passes without it; triage waits for a word."""
    cable(machine)
    life = WholeLife(machine, tmp_path)
    life.live(hours=30)
    assert life.node("a").pool == "train", life.transcript("a")
    lost = dict(life.node("a").slots)["gpu3"]
    machine.unplug(ADDRESSES[3])
    life.body = life.agent("gpu_missing")
    life.observe("a", "kernel_log", "NVRM: Xid (PCI:0000:61:00): 79, pid=1, GPU has fallen off the bus.")
    life.live(days=3)
    assert life.node("a").phase is Phase.rma, life.transcript("a")
    assert life.went()[3:] == [Phase.triage, Phase.rma]
    convicted = life.events(e.PhaseChanged)[-1].convicted
    assert "gpu: expected 8, found 7" in convicted
    told = [r for r in life.journal if "a" in e.subjects_of(r.event)]
    bundle = evidence_bundle(Known(life.fleet, life.node("a"), told[::-1], [], life.now))
    assert lost in bundle.files["timeline.txt"]
    assert "still missing: gpu" in bundle.files["timeline.txt"]
    (case,) = life.fleet.rma_cases_of("a")
    assert (case.serial, case.component, [step.step for step in case.steps]) == (SERIAL, "node", ["requested"])
    assert life.vouched() == []
    assert life.judged_by_hands() == set()


@pytest.mark.nightly("a whole life, minute by minute")
def test_a_narrow_slot_stops_at_seatrial_and_goes_on_once_the_card_is_seated(machine: Node, tmp_path: Path) -> None:
    """Mutants: the agent's word of a link is not compared; a card that was seated anew is not seen."""
    cable(machine, mlx5_2="8")
    life = WholeLife(machine, tmp_path)
    life.live(hours=3)
    (ticket,) = life.fleet.tickets_about("a")
    assert "PCIe link in mlx5_2: expected x16 32 GT/s, found x8 32 GT/s by the agent" in ticket.summary
    place = (machine.root / "sys/class/infiniband/mlx5_2/device").resolve()
    (place / "current_link_width").write_text("16")
    life.machines["a"].reset("ForceRestart", life.now)
    life.live(hours=30)
    assert life.node("a").phase is Phase.production, life.transcript("a")
    assert life.vouched() == []
    assert life.judged_by_hands() == set()
