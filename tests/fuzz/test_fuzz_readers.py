"""Readers of foreign bytes under wrong variants of what they read: the same inputs each time, some seconds in all."""

import random

import pytest

from tests.drawing import examples
from tests.fuzz.targets import TARGETS, try_one

INPUTS = examples(5_000, 1_000)
FEWER = {"redfish_look": 100, "kubeconfig": 200, "kubelet": 120, "pstore": 120, "redfish_documents": 600}
"""Of those that make files, or read a whole BMC."""


@pytest.mark.parametrize("name", TARGETS)
def test_whatever_comes_is_taken_or_refused_and_what_is_taken_can_be_kept(name: str) -> None:
    """Mutants: a kubelet's file that is not UTF-8 ends the collector; a drive's share of writes without a bound."""
    target, rng = TARGETS[name], random.Random(f"{name} 1")
    for number in range(FEWER.get(name, INPUTS)):
        raw = target.draw(rng)
        try:
            try_one(target, raw)
        except Exception as error:
            error.add_note(f"input {number} of {name}: {raw[:2000]!r}")
            raise
