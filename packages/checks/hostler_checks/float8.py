"""Products of 8-bit floats (e4m3: sign, four bits of exponent, three of mantissa), on GPUs and played on CPUs.

A GPU multiplies them with `torch._scaled_mm`. On a CPU the operands become e4m3 values, and their product is fp32's:
PyTorch from 2.1 has the format, and for NumPy its 256 values stand in a table (OCP 8-bit Floating Point, 2023).
"""

from typing import Any

import numpy as np

from hostler_checks.device import Device, UnableError

MOST = 448.0
CAPABLE = (8, 9)
"""The least compute capability with 8-bit floats: Ada; Hopper is 9.0."""


def values() -> Any:
    """The finite e4m3 values that are not negative, sorted."""
    bits = np.arange(0x7F, dtype=np.int64)
    exponent, mantissa = bits >> 3, bits & 7
    return np.where(exponent, (8 + mantissa) * 2.0 ** (exponent - 10), mantissa * 2.0**-9).astype(np.float32)


def rounded(host: Any) -> Any:
    """The nearest e4m3 values: of two as near the one with an even mantissa, beyond the largest the largest."""
    known = values()
    size = np.minimum(np.abs(host), MOST).astype(np.float32)
    above = np.clip(np.searchsorted(known, size), 1, len(known) - 1)
    lower, upper = known[above - 1], known[above]
    middle = (lower + upper) / 2
    up = (size > middle) | ((size == middle) & (above % 2 == 0))
    return np.copysign(np.where(up, upper, lower), host).astype(np.float32)


class Float8Products:
    """Two operands of one device in e4m3, and their product in fp32. Raises UnableError where the device has none."""

    def __init__(self, device: Device, left: Any, right: Any) -> None:
        self._device = device
        torch = device.torch
        if torch is None:
            self._operands = tuple(device.put(rounded(one)) for one in (left, right))
            return
        kind = getattr(torch, "float8_e4m3fn", None)
        if kind is None:
            raise UnableError(f"PyTorch {torch.__version__} has no 8-bit floats")
        held = [device.put(one).to(kind) for one in (left, right)]
        if not device.is_cuda:
            self._operands = tuple(one.float() for one in held)
            return
        if tuple(torch.cuda.get_device_capability(device.place)) < CAPABLE:
            raise UnableError(f"{device.name} has no 8-bit floats")
        column_major = held[1].t().contiguous().t()  # as cuBLASLt wants the right one
        self._operands = (held[0], column_major)
        self._one = torch.ones((), device=device.place)

    def product(self) -> Any:
        """Multiply."""
        left, right = self._operands
        if not self._device.is_cuda:
            return left @ right
        torch, one = self._device.torch, self._one
        return torch._scaled_mm(  # noqa: SLF001 - PyTorch's only way to 8-bit products
            left, right, scale_a=one, scale_b=one, out_dtype=torch.float32, use_fast_accum=False
        )
