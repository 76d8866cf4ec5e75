"""How much of a test the gate runs, and what it leaves to `make nightly`."""

from collections.abc import Iterable
from typing import Any

import hypothesis
import pytest
from _pytest.mark import ParameterSet

NIGHTLY = "nightly"
"""Mark of what the gate leaves to `make nightly`, and the profile of Hypothesis there."""


def examples(full: int, quick: int) -> int:
    """The number for `@settings(max_examples=…)`, or of other drawn inputs: `full` in `make nightly`, else `quick`."""
    return full if hypothesis.settings.get_current_profile_name() == NIGHTLY else quick


def first_in_gate(values: Iterable[Any], count: int = 1) -> list[Any]:
    """Parameters of which the gate takes the first `count`, and the nightly all."""
    rest = pytest.mark.nightly("more cases of what the gate tries")
    return [one if at < count else _marked(one, rest) for at, one in enumerate(values)]


def _marked(one: Any, mark: pytest.MarkDecorator) -> Any:
    if isinstance(one, ParameterSet):
        return pytest.param(*one.values, marks=[*one.marks, mark], id=one.id)
    return pytest.param(*one, marks=mark) if isinstance(one, tuple) else pytest.param(one, marks=mark)
