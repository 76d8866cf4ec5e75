"""Worlds that once broke a law, kept whole, so that they are the same however worlds are drawn later on.

A line of `kept_seeds.jsonl` is one world: why it was kept, its shape, and everything that goes wrong in it.
"""

from pathlib import Path

import msgspec
from msgspec import Struct

from hostler.sim.fault_injection.scenario import Scenario
from hostler.sim.hostile_worlds import WorldVerdict

FILE = Path(__file__).with_name("kept_seeds.jsonl")


class Kept(Struct, frozen=True):
    """A world that is run each time, and the law that it broke."""

    why: str
    scenario: Scenario

    def __str__(self) -> str:
        left = f"-{len(self.scenario.faults)}" if self.scenario.dropped else ""
        return f"{self.scenario.seed}{left}"


def kept(file: Path = FILE) -> tuple[Kept, ...]:
    """Every kept world, in the order in which they failed. Raises msgspec.ValidationError for a line that is none."""
    if not file.exists():
        return ()
    return tuple(msgspec.json.decode(line, type=Kept) for line in file.read_bytes().splitlines() if line.strip())


def keep(verdict: WorldVerdict, file: Path = FILE) -> str:
    """Add the world to the kept ones unless it is one already; what its finder is to do, "" where it is known."""
    scenario = verdict.scenario
    if any(_is_same(one.scenario, scenario) for one in kept(file)):
        return ""
    line = msgspec.json.encode(Kept(str(verdict.violations[0]), scenario))
    with file.open("ab") as lines:  # one short write at the end: several processes may do so at once
        lines.write(line + b"\n")
    return f"seed {scenario.seed} is kept from now on: commit {file.parent.name}/{file.name}"


def _is_same(one: Scenario, other: Scenario) -> bool:
    """A seed has a world with a rack's assets beside its other one."""
    return (one.seed, one.shape.racked) == (other.seed, other.shape.racked)
