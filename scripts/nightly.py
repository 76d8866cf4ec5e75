"""Runs what the gate leaves out, each part with a verdict of its own, and prints a table of them all.

    make nightly                       every part
    make nightly ARGS="soak audit"     these parts
    make nightly ARGS="--list"         what there is

A part that fails keeps none of the others from running. What each printed is in build/nightly/PART.log; the exit status
is 1 where one failed. Parts that only special hardware can run skip, and say so in their own output.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

HOUSE = Path(__file__).parents[1]
LOGS = HOUSE / "build" / "nightly"
TAIL_LINES = 12
"""So much of a failed part's output is printed beside its verdict."""
COUNTED = re.compile(r"\d+ (?:passed|failed|skipped|errors?|deselected|violations?)\b")


class Part(Struct, frozen=True):
    """A part of the night: the Makefile's target with its words, and how long it may take at most."""

    target: str
    words: tuple[str, ...] = ()
    most_s: float = 3_600.0


PARTS: Mapping[str, Part] = {
    "tests": Part("nightly-tests", most_s=4 * 3_600),
    "boots": Part("test-boot"),
    "fabrics": Part("test-fabric"),
    "fabric-soak": Part("fabric-soak"),
    "soak": Part("soak", most_s=6 * 3_600),
    "fuzz": Part("fuzz", most_s=5_400),
    "mutants": Part("mutants", most_s=4 * 3_600),
    "bench-guard": Part("bench-guard", most_s=3 * 3_600),
    "peers": Part("peers", most_s=4 * 3_600),
    "deb": Part("deb"),
    "audit": Part("audit"),
    "docs-site": Part("docs-site"),
}
"""Name → part, in the order in which they run: what finds most in its time comes first."""


class Verdict(Struct, frozen=True):
    """How a part ended: its exit status (None: over its time), how long it took, and what it counted."""

    name: str
    status: int | None
    took_s: float
    counted: str

    @property
    def word(self) -> str:
        """The verdict for people."""
        return "passed" if self.status == 0 else "over its time" if self.status is None else "failed"


def main(words: Sequence[str] | None = None) -> int:
    """Run the parts that were asked for; 1 where one failed."""
    parser = argparse.ArgumentParser(description="Runs what the gate leaves out.")
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all without a word")
    parser.add_argument("--list", action="store_true", help="print the parts, run none")
    asked = parser.parse_args(words)
    if unknown := [name for name in asked.parts if name not in PARTS]:
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    names = [name for name in PARTS if name in asked.parts] or list(PARTS)
    if asked.list:
        print("\n".join(f"{name:<12} make {' '.join((PARTS[name].target, *PARTS[name].words))}" for name in names))
        return 0
    verdicts = [run(name, PARTS[name]) for name in names]
    print(table(verdicts))
    return int(any(one.status != 0 for one in verdicts))


def run(name: str, part: Part) -> Verdict:
    """Run one part to its end or to the end of its time, its output into its file."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log, began = LOGS / f"{name}.log", time.monotonic()
    print(f"{time.strftime('%H:%M:%S')} {name}: make {part.target}", flush=True)
    with log.open("wb") as out:
        command = ["timeout", "--kill-after=60s", f"{part.most_s:.0f}s", "make", "--no-print-directory", part.target]
        ran = subprocess.run([*command, *part.words], cwd=HOUSE, stdout=out, stderr=out, env=_own(), check=False)
    verdict = Verdict(name, None if ran.returncode == 124 else ran.returncode, time.monotonic() - began, counts(log))
    print(f"{time.strftime('%H:%M:%S')} {name}: {verdict.word}", flush=True)
    if verdict.status != 0:
        print("\n".join(f"    {line}" for line in _last_lines(log)), flush=True)
    return verdict


def _own() -> dict[str, str]:
    """The environment without what an outer make said to its own children: ARGS are the words of this script."""
    return {
        name: value for name, value in os.environ.items() if name not in ("ARGS", "MAKEFLAGS", "MFLAGS", "MAKELEVEL")
    }


def counts(log: Path) -> str:
    """Counts of the output's last line with numbers of tests or violations, "" where it has none."""
    for line in reversed(_last_lines(log, 400)):
        if found := COUNTED.findall(line):
            return ", ".join(found)
    return ""


def _last_lines(log: Path, most: int = TAIL_LINES) -> list[str]:
    return log.read_text(errors="replace").splitlines()[-most:]


def table(verdicts: Sequence[Verdict]) -> str:
    """All parts with verdict, time and counts, and how many passed."""
    rows = [f"{one.name:<12} {one.word:<14} {one.took_s / 60:>7.1f} min  {one.counted}" for one in verdicts]
    passed = sum(one.status == 0 for one in verdicts)
    return "\n".join(["", *rows, f"{passed} passed, {len(verdicts) - passed} failed; logs: {LOGS.relative_to(HOUSE)}/"])


if __name__ == "__main__":
    sys.exit(main())
