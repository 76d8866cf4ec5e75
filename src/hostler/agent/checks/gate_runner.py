"""The gate of a real node: memory, disk and clock, every GPU by name, and what convicted is seen gone.

What each reading means is judged in `core.diagnose.gate`; here it is read, in children with deadlines. All of it ends
within BUDGET_S, whatever hangs: a part for which no time is left has not been looked at.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hostler.agent import child_process
from hostler.agent.checks import evidence_window
from hostler.agent.checks.evidence_window import BOOT, Since
from hostler.agent.checks.gate_host_readings import HostSide
from hostler.agent.checks.host_stress import StressResult
from hostler.agent.collectors import gpu_state
from hostler.agent.host_commands import ActFailedError, ResourceHeldError
from hostler.core.diagnose.gate.faults import look_at_faults
from hostler.core.diagnose.gate.gpus import is_settling, look_at_gpus
from hostler.core.diagnose.gate.readings import GateLook, GateReadings, SeenGpu, facts_of, told, worst
from hostler.core.state.gate_expectation import Expected
from hostler.core.state.input_problems import UNREADABLE
from hostler.core.state.model import Verdict

BUDGET_S = 110.0
"""A gate takes two minutes at most, and its step five."""
TESTS_S, HOST_S, COMPUTE_S = 60.0, 20.0, 40.0
SETTLE_S, POLL_S = 45.0, 3.0
"""Longest wait until a freshly started driver shows links, fabric and clocks as expected; interval between polls."""
_CHECKS = "hostler.agent.checks"


class GatePlace(Struct, frozen=True):
    """Paths that the gate reads: the node's name, its agent's directory, the root of sysfs, the kernel log."""

    node: str
    directory: Path
    root: Path
    kernel_log: str


class GateRunner:
    """Runs the gate of one node. `gpus` reads NVML anew, `boot_id` names the boot."""

    def __init__(self, place: GatePlace, gpus: Callable[[], gpu_state.GpuPoll], boot_id: Callable[[], str]) -> None:
        self._place = place
        self._gpus = gpus
        self._boot_id = boot_id
        self._called_off = threading.Event()
        self._until = 0.0

    def check(self, expected: Expected) -> StressResult:
        """Look at all of it. Never raises."""
        self._until = time.monotonic() + BUDGET_S
        looks = self._tests()
        gpus, readings = self._settled(expected)
        looks += [*gpus, *look_at_faults(expected, readings, gpus)]
        if readings.gpus:
            looks.append(self._compute(expected))
        if self._called_off.is_set():
            return StressResult(Verdict.inconclusive, "called off", facts_of(looks))
        return StressResult(worst(looks), told(looks), facts_of(looks))

    def begin_checks(self) -> None:
        """Forget what was called off before: an operation is about to begin."""
        self._called_off.clear()

    def call_off(self) -> None:
        """End the running check, from another thread."""
        self._called_off.set()

    @contextmanager
    def around_reset(self) -> Iterator[None]:
        """From its beginning on it is not known what is older than the reset, until it has been read at its end.

        Where somebody holds the GPUs nothing was reset, and all is as before. Raises ActFailedError before it begins.
        """
        before = evidence_window.load(self._place.directory, self._boot_id())
        self._note(Since(self._boot_id(), known=False))
        try:
            yield
        except ResourceHeldError:
            self._note(before)
            raise
        self._note_end()

    def _note(self, noted: Since) -> None:
        try:
            evidence_window.save(self._place.directory, noted)
        except OSError as error:
            raise ActFailedError(f"the reset's beginning could not be noted on disk: {error.strerror}") from error

    def _note_end(self) -> None:
        """Record present counters, so that they are not counted against later work."""
        host, report = self._host_side(BOOT, HOST_S), self._gpus()
        if isinstance(host, str) or report.state != "answers" or host.kernel.last == BOOT:
            return
        counts = {
            str(gpu.facts.get("uuid")): count
            for gpu in report.gpus
            if type(count := gpu.facts.get("ecc_uncorrectable")) is int
        }
        with contextlib.suppress(ActFailedError):
            self._note(Since(self._boot_id(), host.kernel.last, counts))

    def _tests(self) -> list[GateLook]:
        """Memory, disk and clock. A test that hangs has failed: it is the host that does not go on."""
        argv = (sys.executable, "-m", f"{_CHECKS}.host_stress", str(self._place.directory))
        try:
            output = child_process.run(argv, min(TESTS_S, self._left_s())).output
            return msgspec.json.decode(output, type=list[GateLook])
        except child_process.HungError as error:
            return [GateLook("memory, disk and clock", Verdict.failed, f"hung: {error}")]
        except (OSError, *UNREADABLE) as error:
            return [GateLook("memory, disk and clock", Verdict.inconclusive, f"the check crashed: {error}")]

    def _settled(self, expected: Expected) -> tuple[list[GateLook], GateReadings]:
        """The GPUs as they are once the driver has had its time."""
        noted = evidence_window.load(self._place.directory, self._boot_id())
        host = self._host_side(noted.sequence, min(HOST_S, self._left_s()))
        until = min(time.monotonic() + SETTLE_S, self._until - COMPUTE_S)
        while True:
            readings = readings_of(self._gpus(), host, noted)
            looks = look_at_gpus(expected, readings)
            if not looks or not is_settling(expected, readings) or time.monotonic() + POLL_S > until:
                return looks, readings
            if self._called_off.wait(POLL_S):
                return looks, readings

    def _host_side(self, sequence: int, deadline_s: float) -> HostSide | str:
        """Read the host in a child process, or say why nothing was read."""
        place = self._place
        argv = (sys.executable, "-m", f"{_CHECKS}.gate_host_readings", str(place.root), place.kernel_log, str(sequence))
        try:
            output = child_process.run((*argv, place.node), deadline_s).output
            return msgspec.json.decode(output, type=HostSide)
        except child_process.HungError as error:
            return f"hung: {error}"
        except (OSError, *UNREADABLE) as error:
            return f"crashed: {error}"

    def _compute(self, expected: Expected) -> GateLook:
        """On all GPUs, or on those that the gate looks into: others' work may run on the rest."""
        gpus = [gpu.uuid for gpu in expected.known if expected.looks_into(gpu)] if expected.only else []
        if expected.only and not all(gpus):
            return GateLook(
                "compute", Verdict.never_verified, "others' work may run on the GPUs, and UUIDs are not known"
            )
        deadline_s = min(COMPUTE_S, self._left_s())
        if deadline_s < 1.0:
            return GateLook("compute", Verdict.never_verified, "no time was left for it")
        try:
            output = child_process.run(
                (sys.executable, "-m", f"{_CHECKS}.compute_check", ",".join(gpus)), deadline_s
            ).output
            return msgspec.json.decode(output, type=GateLook)
        except child_process.HungError as error:
            return GateLook("compute", Verdict.inconclusive, f"hung: {error}")
        except (OSError, *UNREADABLE) as error:
            return GateLook("compute", Verdict.inconclusive, f"crashed: {error}")

    def _left_s(self) -> float:
        return max(0.5, self._until - time.monotonic())


def readings_of(report: gpu_state.GpuPoll, host: HostSide | str, noted: Since) -> GateReadings:
    """Make the readings of a gate of what was read, as it is judged."""
    gpus = tuple(SeenGpu(gpu.facts, gpu.absent, gpu.lost) for gpu in report.gpus)
    reason = " ".join(filter(None, (report.reason, f"while at {report.doing}" if report.doing else "")))
    seen = GateReadings(nvml=report.state, reason=reason, hung_at=report.doing.partition(" ")[0], gpus=gpus)
    seen = replace(seen, ecc_before=noted.ecc, ecc_unknown=not noted.known)
    if isinstance(host, str):
        return replace(seen, kernel_reason=f"the host's side {host}")
    reason = host.kernel.reason or ("" if noted.known else "it is not known which lines are from before the reset")
    fields = {name: getattr(host, name) for name in ("pci", "pci_gpus", "ports", "port_pci", "host", "parts")}
    return replace(seen, **fields, kernel=None if reason else host.kernel.lines, kernel_reason=reason)
