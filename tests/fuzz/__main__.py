"""`python -m tests.fuzz --minutes 60`: fresh inputs for each reader of foreign bytes, in turns, and their count.

What breaks a law is written to build/fuzz with its traceback, and the exit status is 1.
"""

import argparse
import random
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.fuzz.targets import TARGETS, Target, try_one

TURN_S = 5.0
FOUND = Path("build/fuzz")
STOP_AT = 20
"""So many broken laws of one reader; it is left alone then."""


def main() -> int:
    """Run until the time is over; 0 where no law was broken."""
    asked = _asked()
    targets = [TARGETS[name] for name in asked.targets.split(",") if name] or list(TARGETS.values())
    rng, ends = random.Random(asked.seed), time.monotonic() + asked.minutes * 60
    tried: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    while time.monotonic() < ends:
        for target in targets:
            turn = min(time.monotonic() + TURN_S, ends)
            while time.monotonic() < turn and broken[target.name] < STOP_AT:
                tried[target.name] += 1
                broken[target.name] += _broke(target, target.draw(rng))
    for target in targets:
        print(f"{target.name:18} {tried[target.name]:>9,} inputs, {broken[target.name]} broke a law")
    return 1 if broken.total() else 0


def _broke(target: Target, raw: bytes) -> bool:
    try:
        try_one(target, raw)
    except Exception:  # noqa: BLE001 - whatever it is, it should not have been raised
        FOUND.mkdir(parents=True, exist_ok=True)
        name = f"{target.name}-{abs(hash(raw)) % 10**8:08}"
        (FOUND / name).write_bytes(raw)
        (FOUND / f"{name}.txt").write_text(traceback.format_exc())
        print(f"{target.name} broke a law: {FOUND / name}.txt", file=sys.stderr)
        return True
    return False


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=time.time_ns())
    parser.add_argument("--targets", default="", help=f"by commas, of {', '.join(TARGETS)}")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
