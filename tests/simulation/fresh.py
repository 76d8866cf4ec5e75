"""Seeds of worlds that nobody has run before: drawn outside of every run, so that no two runs try the same."""

from random import SystemRandom

FIRST, LAST = 1_000_000, 1_000_000_000
"""Seeds below are those that runs use again and again."""


def first_of_fresh() -> int:
    """The first of a run's fresh seeds; the others follow it."""
    return SystemRandom().randrange(FIRST, LAST)


def replay_of_fresh(seed: int) -> str:
    """The command that runs the test of this world again."""
    return f"again: pytest tests/simulation/test_kept.py -k fresh --fresh 1 --fresh-first {seed}"
