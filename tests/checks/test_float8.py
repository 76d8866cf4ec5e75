"""8-bit floats: NumPy's table holds what the format's definition says, and rounding goes to the nearest even."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler_checks.float8 import MOST, rounded, values
from tests.checks.suite_runs import one, planting


def decoded(bits: int) -> float:
    """The value of a byte without a sign, by the definition: bias 7, subnormals at exponent 0."""
    exponent, mantissa = bits >> 3, bits & 7
    return math.ldexp(mantissa, -9) if exponent == 0 else math.ldexp(1 + mantissa / 8, exponent - 7)


def test_the_table_is_the_formats() -> None:
    """127 finite values from 0 to 448; 0x7f is NaN."""
    assert values().tolist() == [decoded(bits) for bits in range(0x7F)]
    assert (values()[-1], values()[1]) == (MOST, 2.0**-9)


@given(st.floats(-1000, 1000, width=32))
def test_rounding_is_to_the_nearest(value: float) -> None:
    """Mutant: truncated."""
    found = float(rounded(np.array([value], dtype=np.float32))[0])
    size = min(abs(value), MOST)
    best = min(abs(float(known) - size) for known in values())
    assert abs(abs(found) - size) == pytest.approx(best, abs=1e-12)
    assert math.copysign(1.0, found) == math.copysign(1.0, value)


@pytest.mark.parametrize(
    ("value", "nearest"), [(17.0, 16.0), (19.0, 20.0), (1.0625, 1.0), (1.1875, 1.25), (900.0, 448.0)]
)
def test_ties_go_to_the_even_mantissa_and_what_is_too_large_to_the_largest(value: float, nearest: float) -> None:
    assert rounded(np.array([value, -value], dtype=np.float32)).tolist() == [nearest, -nearest]


@pytest.mark.parametrize(
    ("plant", "verdict"),
    [
        ("", "passed"),
        ("bit_flip", "failed"),
        ("flaky_bit", "failed"),
        ("stall", "failed"),
        ("above_bound", "inconclusive"),
    ],
)
def test_its_plants_are_found(plant: str, verdict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    planting(monkeypatch)
    found = one("gemm_fp8", plant)
    assert found.verdict == verdict, found.detail
    if plant.endswith("bit"):
        assert found.grave


def test_more_than_can_be_added_exactly_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    planting(monkeypatch)
    params: dict[str, Any] = {"n": 8192}
    found = one("gemm_fp8", params=params)
    assert (found.verdict, "n is at most 8191" in found.detail) == ("inconclusive", True)
