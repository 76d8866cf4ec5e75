"""Each GPU multiplies whole-number matrices, and the sums of rows and columns must be exactly those of arithmetic.

Run as a child (`python -m hostler.agent.checks.compute_check UUIDS`, "" for all): libraries for GPUs hang and crash. It
uses whatever runtime the agent's interpreter has, and says so where it has none. Factors are -8 to 7 and SIDE is 1,024,
so every element is a whole number below 2**17, exact in fp32 and in TF32. The sums are those of algorithm-based fault
tolerance (Huang and Abraham, 1984): one wrong element changes its row's and its column's.
"""

import importlib
import os
import random
import sys
from collections.abc import Sequence
from operator import mul
from typing import Any, Protocol

import msgspec

from hostler.core.diagnose.gate.readings import GateLook
from hostler.core.state.model import Verdict

SIDE, ROUNDS, SEED = 1024, 16, 12
MAX_GPUS = 64
_FACTORS = bytes((value % 16 - 8) & 0xFF for value in range(256))
"""Any byte → a whole number of -8 to 7 as a signed byte."""

Sums = tuple[list[int], list[int]]
"""Of each row and of each column."""


class Runtime(Protocol):
    """A library that computes on GPUs."""

    name: str

    def devices(self) -> int:
        """Number of GPUs that this process can use."""

    def product(self, device: int, left: bytes, right: bytes, side: int) -> Sums:
        """Multiply on this device; sums of the product's rows and columns. Raises what the library raises."""
        ...


def check(runtime: Runtime | None, side: int = SIDE, rounds: int = ROUNDS) -> GateLook:
    """Multiply on all GPUs in turn. A sum that differs is failed; a library that does not work is inconclusive."""
    if runtime is None:
        return GateLook("compute", Verdict.never_verified, "the agent's Python has neither torch nor cupy")
    rng = random.Random(SEED)  # noqa: S311 - the same operands everywhere
    left, right = (rng.randbytes(side * side).translate(_FACTORS) for _ in range(2))
    expected = sums(left, right, side)
    try:
        count = runtime.devices()
        for device in range(min(count, MAX_GPUS)):
            for _ in range(rounds):
                if wrong := _wrong(expected, runtime.product(device, left, right, side)):
                    return GateLook("compute", Verdict.failed, f"{runtime.name}, GPU {device}: {wrong}")
    except Exception as error:  # noqa: BLE001 - whatever a library for GPUs raises is its own
        return GateLook("compute", Verdict.inconclusive, f"{runtime.name}: {type(error).__name__}: {str(error)[:120]}")
    if not count:
        return GateLook("compute", Verdict.inconclusive, f"{runtime.name} shows no GPU")
    return GateLook(
        "compute", Verdict.passed, f"{runtime.name}, {count} GPUs, {rounds} exact products of {side} x {side}"
    )


def sums(left: bytes, right: bytes, side: int) -> Sums:
    """Compute the product's row and column sums without computing the product."""
    a, b = memoryview(left).cast("b"), memoryview(right).cast("b")
    of_rows = [sum(b[at : at + side]) for at in range(0, side * side, side)]
    of_columns = [sum(a[at::side]) for at in range(side)]
    rows = [sum(map(mul, a[at : at + side], of_rows)) for at in range(0, side * side, side)]
    columns = [sum(map(mul, b[at::side], of_columns)) for at in range(side)]
    return rows, columns


def _wrong(expected: Sums, got: Sums) -> str:
    rows, columns = (_differing(want, have) for want, have in zip(expected, got, strict=True))
    return f"sums of rows {rows} and columns {columns} are wrong" if rows or columns else ""


def _differing(want: Sequence[int], have: Sequence[int]) -> list[int]:
    if len(want) != len(have):
        return [-1]
    return [at for at, (one, other) in enumerate(zip(want, have, strict=True)) if one != other][:4]


class Torch:
    """PyTorch built for CUDA."""

    name = "torch"

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def devices(self) -> int:
        """Number of CUDA devices of this process."""
        return int(self._torch.cuda.device_count())

    def product(self, device: int, left: bytes, right: bytes, side: int) -> Sums:
        """Multiply two `side` × `side` int8 matrices on the device; sums of the rows and of the columns."""
        torch = self._torch
        a, b = (
            torch.frombuffer(bytearray(one), dtype=torch.int8).to(f"cuda:{device}").float().reshape(side, side)
            for one in (left, right)
        )
        c = (a @ b).to(torch.int64)
        return c.sum(1).tolist(), c.sum(0).tolist()


class Cupy:
    """CuPy."""

    name = "cupy"

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy

    def devices(self) -> int:
        """Number of CUDA devices of this process."""
        return int(self._cupy.cuda.runtime.getDeviceCount())

    def product(self, device: int, left: bytes, right: bytes, side: int) -> Sums:
        """Multiply two `side` × `side` int8 matrices on the device; sums of the rows and of the columns."""
        cupy = self._cupy
        with cupy.cuda.Device(device):
            a, b = (
                cupy.frombuffer(one, dtype=cupy.int8).astype(cupy.float32).reshape(side, side) for one in (left, right)
            )
            c = (a @ b).astype(cupy.int64)
            return c.sum(1).tolist(), c.sum(0).tolist()


def runtime() -> Runtime | None:
    """The first runtime that this interpreter has and that finds a driver."""
    for name, adapter in (("torch", Torch), ("cupy", Cupy)):
        try:
            library = importlib.import_module(name)
        except ImportError:
            continue
        if name != "torch" or library.cuda.is_available():
            return adapter(library)
    return None


if __name__ == "__main__":
    if sys.argv[1]:
        os.environ["CUDA_VISIBLE_DEVICES"] = sys.argv[1]  # before any library looks
    sys.stdout.buffer.write(msgspec.json.encode(check(runtime())))
