"""Measures a gate of the real agent: eight recorded GPUs, a sysfs of files, children and all; no GPU computes."""

import resource
import statistics
import tempfile
import time
from pathlib import Path

from bench.figures import Figures
from hostler.core.state.model import Verdict
from tests.gpu_node import Node, expected

GATES = 3
STATES = {"sound": "healthy_h100x8", "one remap pending": "remap_pending", "a call that hangs": "hang_in_one_call"}


def main() -> Figures:
    """Run it."""
    figures = Figures(f"The gate of the real agent over recorded NVML, {GATES} each")
    for name, state in STATES.items():
        took = [_one(state) for _ in range(GATES if name != "a call that hangs" else 1)]
        figures.add(f"{name}: wall time, median", statistics.median(wall_s for wall_s, _ in took), "s")
        figures.add(f"{name}: wall time, longest", max(wall_s for wall_s, _ in took), "s")
        figures.add(f"{name}: CPU, median", statistics.median(cpu_s for _, cpu_s in took), "s")
    return figures


def _one(state: str) -> tuple[float, float]:
    """Wall and CPU seconds of one gate."""
    with tempfile.TemporaryDirectory() as directory:
        node = Node(Path(directory))
        began, cpu = time.monotonic(), _cpu_s()
        report = node.look(state, expected("gpu.fallen_off_bus"))
        assert (report.verdict is Verdict.passed) is (state == "healthy_h100x8"), report.detail
        node.close()
        return time.monotonic() - began, _cpu_s() - cpu


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
