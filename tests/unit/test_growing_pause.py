"""The wait before the next try: doubled after each that came to nothing, and never more than its limit."""

import pytest

from hostler.core.state.growing_pause import growing_s


@pytest.mark.parametrize(
    ("times", "seconds"), [(-1, 2.0), (0, 2.0), (1, 4.0), (3, 16.0), (5, 60.0), (16, 60.0), (10**9, 60.0)]
)
def test_a_wait_doubles_up_to_its_limit(times: int, seconds: float) -> None:
    """Mutants: the first try waits already; a year of failures is an overflow."""
    assert growing_s(2.0, times, 60.0) == seconds


def test_a_limit_below_the_first_wait_holds() -> None:
    """Mutant: the limit counts from the second try on."""
    assert growing_s(60.0, 0, 5.0) == 5.0
