"""How many examples a property draws: fewer in `make check`, whose profile of Hypothesis is `quick`."""

import hypothesis

QUICK = "quick"


def examples(full: int, quick: int) -> int:
    """The number for `@settings(max_examples=…)`: `quick` in `make check`, `full` in every other run."""
    return quick if hypothesis.settings.get_current_profile_name() == QUICK else full
