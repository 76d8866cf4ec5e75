"""Copies between host and GPU over PCIe, from and to pinned memory."""

from typing import Any

import numpy as np

from hostler_checks.answers import Answer
from hostler_checks.device import TWIN, UnableError
from hostler_checks.work import Work, median


def pcie(work: Work) -> Answer:
    """Measure copies to the GPU and back in GB/s; what comes back must be what went."""
    if not work.device.is_gpu:
        raise UnableError("no GPU: a CPU has no PCIe link to itself")
    size = int(work.params["mib"]) << 20
    host, there, back = _buffers(work, size)
    to_device = median(work.repeat(lambda: work.device.copy(host, there), 0.5))
    to_host = median(work.repeat(lambda: work.device.copy(there, back), 0.5))
    went, came = (np.asarray(one) for one in (host, work.touched(back) if work.device.part == TWIN else back))
    wrong = int(np.count_nonzero(went != came))
    faults = (f"{wrong} of {size} bytes came back changed",) if wrong else ()
    readings = {"h2d_gb_s": size / to_device / 1e9, "d2h_gb_s": size / to_host / 1e9}
    return work.answer(f"copies of {size >> 20} MiB to the GPU and back", readings, faults=faults)


def _buffers(work: Work, size: int) -> tuple[Any, Any, Any]:
    content = np.random.default_rng(5).integers(0, 256, size, dtype=np.uint8)
    torch = work.device.torch
    if torch is None:
        return content, np.empty_like(content), np.empty_like(content)
    pinned = torch.from_numpy(content).pin_memory()
    there = torch.empty(size, dtype=torch.uint8, device=work.device.place)
    return pinned, there, torch.empty(size, dtype=torch.uint8).pin_memory()
