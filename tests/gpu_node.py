"""A node of files as the real agent sees it: sysfs, a kernel log, recorded NVML, with what its gate is to see."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from hostler.agent.checks import evidence_window, gate_host_readings, gate_runner
from hostler.agent.checks.host_stress import StressResult
from hostler.agent.collectors import gpu_state, nvml_state_reader
from hostler.agent.collectors.nvml_twin import NvmlTwin
from hostler.agent.machine import Powers, RealHostMachine, SensorSources
from hostler.core.diagnose.gate.faults import look_at_faults
from hostler.core.diagnose.gate.gpus import look_at_gpus
from hostler.core.diagnose.gate.readings import facts_of, worst
from hostler.core.diagnose.gate.readings import told as what_was_told
from hostler.core.planning.gate_requirements import readers_of
from hostler.core.state.gate_expectation import Expected, ExpectedGpu, Faulted

STATES = Path(__file__).parent / "nvml_states"
PCIS = ("1b", "43", "52", "61", "9d", "c3", "d1", "df")
ADDRESSES = tuple(f"0000:{bus}:00" for bus in PCIS)
SERIALS = tuple(f"165302300000{n}" for n in range(8))
FAULTY = SERIALS[3]
BOOT = "6,0,1000,-;Linux version 6.1\n"


def known(**of_third: str) -> tuple[ExpectedGpu, ...]:
    """All eight as the node's record has them; the fourth with other names where some are given."""
    uuid = "GPU-0000000{}-1111-2222-3333-444444444444"
    gpus = [ExpectedGpu(f"gpu{n}", SERIALS[n], uuid.format(n), ADDRESSES[n]) for n in range(8)]
    gpus[3] = replace(gpus[3], **of_third)
    return tuple(gpus)


def expected(condition: str = "", part: str = FAULTY, **said: Any) -> Expected:
    gpus = said.pop("known", known())
    faulty = next((gpu for gpu in gpus if part in (gpu.serial, gpu.pci)), None)
    faults = (Faulted(condition, part, readers_of(condition, part), faulty),) if condition else ()
    return Expected(gpus=8, known=gpus, links=18, fabric=True, faulted=faults, **said)


class Node:
    """A node of files: sysfs, a kernel log, recorded NVML; with the body that a real agent has."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "root"
        self.state = directory / "agent"
        self.state.mkdir()
        self.log = directory / "kmsg"
        self.log.write_text(BOOT)
        for address in ADDRESSES:
            self.plug(address)
        self.adapter("mlx5_0", "0000:1a:00", "4: ACTIVE")
        self._bodies: list[RealHostMachine] = []

    def plug(self, address: str, vendor: str = "0x10de", pci_class: str = "0x030200") -> None:
        path = self.root / f"sys/bus/pci/devices/{address}.0"
        path.mkdir(parents=True)
        (path / "vendor").write_text(vendor)
        (path / "class").write_text(pci_class)

    def unplug(self, address: str) -> None:
        path = self.root / f"sys/bus/pci/devices/{address}.0"
        for file in path.iterdir():
            file.unlink()
        path.rmdir()

    def adapter(self, name: str, address: str, state: str) -> None:
        self.plug(address, "0x15b3", "0x020700")
        base = self.root / f"sys/class/infiniband/{name}"
        (base / "ports/1").mkdir(parents=True)
        (base / "ports/1/state").write_text(state)
        (base / "device").symlink_to(self.root / f"sys/bus/pci/devices/{address}.0")

    def body(self, state: str | Path, scratch: tuple[str, ...] = ()) -> RealHostMachine:
        twin = STATES / f"{state}.json" if isinstance(state, str) else state
        reader = SensorSources(nvml_twin=str(twin), kernel_log=str(self.log), root=str(self.root))
        self._bodies.append(RealHostMachine("n1", self.state, Powers(actions=True, scratch=scratch), reader))
        return self._bodies[-1]

    def look(self, state: str | Path, want: Expected | None = None, profile: str = "gate") -> StressResult:
        return self.body(state).check(profile, want or expected())

    def gate(self, state: Path) -> gate_runner.GateRunner:
        """The gate by itself, with NVML read in this process."""

        def gpus() -> gpu_state.GpuPoll:
            told = nvml_state_reader.NvmlStateReader(NvmlTwin(str(state)), lambda _doing: None).report(0.0)
            return gpu_state.decoded(json.dumps(told).encode())

        return self.gate_over(gpus)

    def gate_over(self, gpus: Callable[[], gpu_state.GpuPoll]) -> gate_runner.GateRunner:
        """The gate by itself, with polls of NVML that a test has at hand."""
        place = gate_runner.GatePlace("n1", self.state, self.root, str(self.log))
        return gate_runner.GateRunner(place, gpus, lambda: "b1")

    def judged(self, state: str | Path, want: Expected) -> StressResult:
        """The same looking within this process: the reader, the host's side and the judgement, without the tests."""
        twin = STATES / f"{state}.json" if isinstance(state, str) else state
        told = nvml_state_reader.NvmlStateReader(NvmlTwin(str(twin)), lambda _doing: None).report(0.0)
        noted = evidence_window.load(self.state, "b1")
        host = gate_host_readings.read(self.root, str(self.log), noted.sequence, "n1")
        readings = gate_runner.readings_of(gpu_state.decoded(json.dumps(told).encode()), host, noted)
        gpus = look_at_gpus(want, readings)
        looks = [*gpus, *look_at_faults(want, readings, gpus)]
        return StressResult(worst(looks), what_was_told(looks), facts_of(looks))

    def close(self) -> None:
        for body in self._bodies:
            body.close()
