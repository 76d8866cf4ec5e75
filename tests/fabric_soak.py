"""Many drawn networks with faults that are known: each is found as what it is, and the repairs leave nothing but them.

`python -m tests.fabric_soak --cases 100000 --seed 1` draws so many and prints how many were wrong, with their seeds.
"""

import argparse
import sys
import time
from collections import Counter
from random import Random

from hostler.core.fabric.findings import Kind
from hostler.core.fabric.rail_rule import generate
from hostler.core.fabric.validation import compare
from hostler.core.state.fabrics import LinkCondition
from tests.fabrics import FAULTS, SMALL, Fabric, misname_adapters, repaired

BY_HAND = frozenset({Kind.degraded, Kind.dark_device, Kind.swapped_devices, Kind.unidentified, Kind.hca_map})
"""Faults that moving plugs does not repair."""

_DESIGN = generate(SMALL)


def drawn(seed: int) -> tuple[Fabric, Counter[Kind]]:
    """A network with none to four faults, and what is to be found."""
    rng = Random(seed)
    fabric = Fabric(_DESIGN, rng)
    planted: Counter[Kind] = Counter()
    if rng.random() < 0.1:
        planted[misname_adapters(fabric)] += 1
    for fault in rng.sample(FAULTS, rng.randrange(5)):
        planted[fault(fabric)] += 1
    return fabric, planted


def wrong(seed: int) -> str:
    """Tells what is wrong with the validation of this network, "" for nothing."""
    fabric, planted = drawn(seed)
    seen = compare(fabric.design, fabric.discovery())
    found = Counter(finding.kind for finding in seen.validation.findings)
    if found != planted:
        return f"found {dict(found)} for {dict(planted)}"
    again = compare(fabric.design, fabric.discovery())
    if again != seen:
        return "the same cables in another order are told otherwise"
    bad = [link for link in seen.links if link.condition is not LinkCondition.as_designed]
    if bool(bad) != bool(planted) and set(planted) != {Kind.unexpected}:
        return f"{len(bad)} links are not as designed for {dict(planted)}"
    if planted[Kind.hca_map]:
        return ""
    repaired(fabric, tuple(f for f in seen.validation.findings if f.kind not in BY_HAND))
    left = Counter(finding.kind for finding in compare(fabric.design, fabric.discovery()).validation.findings)
    wanted = Counter({kind: number for kind, number in planted.items() if kind in BY_HAND})
    return "" if left == wanted else f"{dict(left)} is left after the repairs, of {dict(planted)}"


def main() -> int:
    """Draw, judge, and say what was found."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cases", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    began, bad = time.monotonic(), 0
    for seed in range(given.seed, given.seed + given.cases):
        try:
            why = wrong(seed)
        except AssertionError as broken:
            why = f"the harness: {broken}"
        if why:
            bad += 1
            sys.stdout.write(f"seed {seed}: {why}\n")
    took_s = time.monotonic() - began
    sys.stdout.write(f"{given.cases:,} networks from seed {given.seed}, {bad} wrong, {took_s:.0f} s\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
