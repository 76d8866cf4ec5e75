"""Memory of the device and of the host: bandwidth beyond the caches, and patterns that move through every cell.

Moving inversions, as MemTest86 has them: write a pattern everywhere, then upwards look for it and write its complement,
then downwards look for that and write the pattern.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from hostler_checks.answers import Answer
from hostler_checks.device import Device
from hostler_checks.work import Work, median

BLOCK_WORDS = 1 << 20
PATTERNS = (0, 0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F, 0x00FF00FF00FF00FF, 0x123456789ABCDEF)
MAX_FAULTS = 8


def bandwidth(work: Work) -> Answer:
    """Measure copy (one read, one write) and triad (two reads, one write) in GB/s of 10⁹ bytes."""
    words = int(work.params["mib"]) * (1 << 20) // 4
    a, b, c = (work.device.put(np.full(words, value, dtype=np.float32)) for value in (1.0, 2.0, 3.0))
    size = words * 4
    copy = median(work.repeat(lambda: work.device.copy(b, a), 0.5))
    triad = median(work.repeat(lambda: _triad(work.device, a, b, c), 0.5))
    readings = {"copy_gb_s": 2 * size / copy / 1e9, "triad_gb_s": 3 * size / triad / 1e9}
    return work.answer(f"copy and triad of {size >> 20} MiB", readings)


def _triad(device: Device, a: Any, b: Any, c: Any) -> None:
    """A = b + 3 c, in one pass on a GPU; NumPy takes two, so its figure is lower than the hardware's."""
    if device.torch is not None:
        device.torch.add(b, c, alpha=3.0, out=a)
    else:
        np.multiply(c, 3.0, out=a)
        np.add(a, b, out=a)


def pattern(work: Work) -> Answer:
    """Look for cells that lose or couple bits, with one pattern after the other while there is time, at least one."""
    words = _words(work)
    times, faults = _inversions(work, words)
    readings = {"pattern_gb_s": 5 * words * 8 / median(times) / 1e9}
    return work.answer(f"{len(times)} patterns in {words * 8 >> 20} MiB", readings, faults=faults)


def host(work: Work) -> Answer:
    """The host's memory by the CPU, whatever else the node has: patterns, then copies."""
    words = int(work.params["mib"]) * (1 << 20) // 8
    here = Work(work.check, Device("cpu"), work.params, work.seconds * 0.7, work.plant)
    times, faults = _inversions(here, words)
    source, target = np.ones(words // 2), np.zeros(words // 2)
    copy = median(here.repeat(lambda: np.copyto(target, source), 0.3))
    readings = {"host_copy_gb_s": 2 * source.nbytes / copy / 1e9}
    return work.answer(f"{len(times)} patterns and copies in {words * 8 >> 20} MiB", readings, faults=faults)


def _words(work: Work) -> int:
    """How many words of eight bytes to look at: so many MiB, or a share of what is free."""
    if "percent" in work.params:
        size = work.device.free_bytes() * int(work.params["percent"]) // 100
    else:
        size = min(int(work.params["mib"]) << 20, work.device.free_bytes() // 2)
    return max(size // 8 // BLOCK_WORDS, 1) * BLOCK_WORDS


def _inversions(work: Work, words: int) -> tuple[list[float], tuple[str, ...]]:
    """Each pattern's time, and what came back changed."""
    cells = work.device.zeros(words)
    times: list[float] = []
    faults: list[str] = []
    for turn in work.rounds():
        value = PATTERNS[turn % len(PATTERNS)]
        times.append(work.timed(lambda value=value: faults.extend(_invert(work, cells, value))))  # type: ignore[misc]
        if faults:
            break
    return times, tuple(faults[:MAX_FAULTS])


def _invert(work: Work, cells: Any, value: int) -> Iterator[str]:
    blocks = [slice(at, at + BLOCK_WORDS) for at in range(0, len(cells), BLOCK_WORDS)]
    cells[:] = value
    if work.plant in ("bit_flip", "flaky_bit"):
        cells[len(cells) // 3] = value ^ 16
    yield from _pass(work, cells, blocks, (value, ~value))
    yield from _pass(work, cells, blocks[::-1], (~value, value))


def _pass(work: Work, cells: Any, blocks: list[slice], change: tuple[int, int]) -> Iterator[str]:
    """Look for one value and write the other, block after block."""
    xp, (expected, written) = work.device.xp, change
    for block in blocks:
        wrong = cells[block] != expected
        if bool(xp.any(wrong)):
            at = int(np.nonzero(work.device.host(wrong))[0][0])
            bits = (int(cells[block.start + at]) ^ expected) & (1 << 64) - 1
            yield f"address {(block.start + at) * 8:#x}: bits {bits:#x} of pattern {expected & (1 << 64) - 1:#x}"
        cells[block] = written
