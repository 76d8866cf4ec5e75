"""Work that a check is given: its device, parameters, time and (in tests) the planted fault."""

import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import numpy as np

from hostler_checks import plants
from hostler_checks.answers import Answer
from hostler_checks.device import Device

MAX_TIMES = 100_000


class Work:
    """A check's run. Times are seconds of the monotonic clock, as far as no plant bends it."""

    def __init__(self, check: str, device: Device, params: Mapping[str, Any], seconds: float, plant: str = "") -> None:
        self.check = check
        self.device = device
        self.params = params
        self.seconds = seconds
        self.plant = plant
        self._factor = plants.clock_factor(plant, check)
        self._began = time.monotonic()

    @property
    def load_s(self) -> float:
        """Seconds since the check's work began."""
        return time.monotonic() - self._began

    def timed(self, once: Callable[[], Any]) -> float:
        """Seconds that one run takes, with the device's own work."""
        began = time.perf_counter()
        once()
        self.device.sync()
        return max((time.perf_counter() - began) * self._factor, 1e-12)

    def repeat(self, once: Callable[[], Any], share: float = 1.0, least: int = 3) -> list[float]:
        """Run for a share of the check's seconds, after one run that does not count; the time of each run."""
        once()
        self.device.sync()
        until = time.monotonic() + self.seconds * share
        times: list[float] = []
        while len(times) < least or (time.monotonic() < until and len(times) < MAX_TIMES):
            times.append(self.timed(once))
        return times

    def rounds(self, share: float = 1.0, least: int = 1) -> "Rounds":
        """Count rounds until a share of the check's seconds is over."""
        return Rounds(self.seconds * share, least)

    def touched(self, array: Any, at: int = 12_345, first: bool = False) -> Any:
        """The array as the hardware gave it; with a flip planted, one bit of one element is changed.

        `first`: it is the first of several equal results, which a flaky bit spares.
        """
        if self.plant != "bit_flip" and (first or self.plant != "flaky_bit"):
            return array
        host = np.ascontiguousarray(self.device.host(array))
        words = host.reshape(-1).view(np.uint8)
        words[(at * host.itemsize + 1) % words.size] ^= np.uint8(1)
        if self.device.torch is None:
            return host
        return self.device.torch.from_numpy(host).to(self.device.place).to(array.dtype)

    def answer(self, looked: str, readings: Mapping[str, float] | None = None, **more: Any) -> Answer:
        """The answer, with time under load and stack."""
        spoilt = plants.spoil(self.plant, dict(readings or {}))
        return Answer(looked, spoilt, load_s=self.load_s, stack=self.device.stack() | self._shapes(), **more)

    def _shapes(self) -> dict[str, str]:
        return {f"param {name}": str(value) for name, value in sorted(self.params.items())}


class Rounds:
    """An iterator that ends after a time, having gone round at least so often."""

    def __init__(self, seconds: float, least: int) -> None:
        self._until = time.monotonic() + seconds
        self._least = least
        self.count = 0

    def __iter__(self) -> "Rounds":
        return self

    def __next__(self) -> int:
        if self.count >= self._least and time.monotonic() >= self._until:
            raise StopIteration
        self.count += 1
        return self.count - 1


def digest_of(device: Device, *arrays: Any) -> str:
    """SHA-256 over the arrays' bits, as the host has them."""
    said = sha256()
    for array in arrays:
        said.update(np.ascontiguousarray(device.host(array)).tobytes())
    return said.hexdigest()


def median(values: list[float]) -> float:
    """The middle value."""
    return float(np.median(np.asarray(values)))


def percentile(values: list[float], percent: float) -> float:
    """The value below which `percent` of them lie."""
    return float(np.percentile(np.asarray(values), percent))
