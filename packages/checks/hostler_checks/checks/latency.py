"""Short operations: the time of a tiny one, and of taking and giving back memory."""

import numpy as np

from hostler_checks.answers import Answer
from hostler_checks.device import TWIN, UnableError
from hostler_checks.work import Work, median, percentile


def launch(work: Work) -> Answer:
    """Time a tiny addition from its call until the device has done it."""
    one = work.device.put(np.ones(16, dtype=np.float32))
    times = work.repeat(lambda: one + one, least=100)
    readings = {"launch_us": median(times) * 1e6, "launch_p99_us": percentile(times, 99) * 1e6}
    return work.answer(f"{len(times)} tiny operations", readings)


def alloc(work: Work) -> Answer:
    """Take and give back memory again and again; what is not free afterwards has leaked."""
    device = work.device
    if not device.is_gpu:
        raise UnableError("no GPU: memory of a GPU is not cycled on a CPU")
    size, cycles = int(work.params["mib"]) << 20, int(work.params["cycles"])
    before = device.free_bytes()
    times = [work.timed(lambda: _cycle(work, size)) for _ in range(cycles)]
    leaked = 0.0 if device.part == TWIN else max(0.0, (before - device.free_bytes()) / (1 << 20))
    return work.answer(f"{cycles} cycles of {size >> 20} MiB", {"cycle_us": median(times) * 1e6, "leaked_mib": leaked})


def _cycle(work: Work, size: int) -> None:
    device = work.device
    if not device.is_cuda:
        np.empty(size, dtype=np.uint8)[::4096] = 1
        return
    held = device.torch.empty(size, dtype=device.torch.uint8, device=device.place)
    held.fill_(1)
    del held
    device.sync()
    device.torch.cuda.empty_cache()
