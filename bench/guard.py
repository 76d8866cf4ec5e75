"""Compares this tree's figures with those of a reference commit, in turns, and fails where one has grown by 5 %.

    make bench-guard                           every group of figures
    make bench-guard ARGS="sqlite simulator"   these groups
    make bench-guard ARGS="--reference HEAD~1" another commit

The reference is named in `bench/reference_commit`. Its tree is checked out under `build/bench-guard`; both trees get an
environment of their own there, and both are measured by this tree's benchmarks, so that a reference without one of them
is measured too. A cost is the least of its turns; one that seems to have grown is measured again before it counts, for
a neighbour can only make a turn slower. Exit: 1 where one has grown, 2 where one could not be measured, else 0.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path

from msgspec import Struct

from bench.guard_figures import GROUPS

HOUSE = Path(__file__).parents[1]
REFERENCE = "bench/reference_commit"
LIMIT = 1.05
TURNS, TURNS_MOST = 3, 9
ONCE = ("instructions",)
"""Groups whose figures are the same each time."""
CHILD_S = 1_800.0
LOCKS = "requirements/test.txt"


class Tree(Struct, frozen=True):
    """A tree of source to measure, and the interpreter that finds it."""

    name: str
    python: Path


class Compared(Struct, frozen=True):
    """One cost on both sides, turn by turn."""

    name: str
    reference: list[float]
    here: list[float]

    @property
    def ratio(self) -> float:
        """The least here, by the least of the reference."""
        return min(self.here) / max(min(self.reference), 1e-12)

    @property
    def has_grown(self) -> bool:
        """Whether it is beyond the limit."""
        return self.ratio > LIMIT

    def row(self) -> str:
        """The line of the table: both costs, their ratio, and the ratios of single turns."""
        turns = [here / max(before, 1e-12) for here, before in zip(self.here, self.reference, strict=True)]
        spread = f"{min(turns):.2f} to {max(turns):.2f}" if len(turns) > 1 else "one turn"
        word = "  GROWN" if self.has_grown else ""
        return (
            f"{self.name:<62} {min(self.reference):>10,.2f} {min(self.here):>10,.2f} {self.ratio:>6.2f}  {spread}{word}"
        )


class CannotMeasureError(Exception):
    """A group cannot be measured in a tree: neither faster nor slower."""


def main(words: Sequence[str] | None = None, house: Path = HOUSE) -> int:
    """Measure what was asked for, print the table, and say how it ended."""
    parser = argparse.ArgumentParser(description="Compares figures with those of a reference commit.")
    parser.add_argument("groups", nargs="*", help=f"of {', '.join(GROUPS)}; all without a word")
    parser.add_argument("--reference", help=f"a commit in the place of that in {REFERENCE}")
    parser.add_argument("--turns", type=int, default=TURNS, help=f"turns of each ({TURNS})")
    asked = parser.parse_args(words)
    if unknown := [name for name in asked.groups if name not in GROUPS]:
        parser.error(f"no group {', '.join(unknown)}; there are {', '.join(GROUPS)}")
    commit = asked.reference or named_reference(house)
    trees = reference_tree(house, commit), environment(house, house / "build/bench-guard/here", "here")
    print(f"reference {commit}; costs, less is better; a ratio beyond {LIMIT} fails\n")
    print(f"{'':<62} {'reference':>10} {'here':>10} {'ratio':>6}  of single turns")
    grown, unknown = False, []
    for group in [name for name in GROUPS if name in asked.groups] or list(GROUPS):
        try:
            rows = compared(trees, group, 1 if group in ONCE else asked.turns)
        except CannotMeasureError as why:
            unknown.append(f"{group}: not measured, {why}")
            continue
        for one in rows:
            print(one.row(), flush=True)
        grown = grown or any(one.has_grown for one in rows)
    print("".join(f"\n{line}" for line in unknown))
    return 1 if grown else 2 if unknown else 0


def named_reference(house: Path) -> str:
    """The commit of the file: its first line that is no remark."""
    lines = (house / REFERENCE).read_text().splitlines()
    return next(line.split()[0] for line in lines if line.strip() and not line.startswith("#"))


def compared(trees: tuple[Tree, Tree], group: str, turns: int) -> list[Compared]:
    """All costs of a group, in turns; more turns while one seems to have grown. Raises CannotMeasureError."""
    before: dict[str, list[float]] = {}
    after: dict[str, list[float]] = {}
    found: list[Compared] = []
    for turn in range(1 if group in ONCE else max(turns, TURNS_MOST)):
        if turn >= turns and not any(one.has_grown for one in found):
            break
        order = ((trees[0], before), (trees[1], after))
        for tree, costs in order if turn % 2 == 0 else reversed(order):  # who comes second gains by no habit
            for name, cost in measured(tree, group).items():
                costs.setdefault(name, []).append(cost)
        found = [Compared(name, before[name], after[name]) for name in before if name in after]
    return found


def measured(tree: Tree, group: str) -> Mapping[str, float]:
    """The costs of one turn. Raises CannotMeasureError with the last line of what the tree said."""
    command = [str(tree.python), "-m", "bench.guard_figures", group]
    try:
        ran = subprocess.run(command, cwd=HOUSE, env=_env(), capture_output=True, timeout=CHILD_S, check=False)
    except subprocess.TimeoutExpired as late:
        raise CannotMeasureError(f"{tree.name} did not end within {CHILD_S:.0f} s") from late
    if ran.returncode != 0:
        said = ran.stderr.decode(errors="replace").strip().splitlines()
        raise CannotMeasureError(f"{tree.name}: {said[-1] if said else f'exit status {ran.returncode}'}")
    costs: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return costs


def _env() -> dict[str, str]:
    """Benchmarks and tests of this house, `hostler` of the interpreter's own tree; bytecode is kept, as in service."""
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**ours, "PYTHONPATH": str(HOUSE), "PYTHONHASHSEED": "0"}


def reference_tree(house: Path, commit: str) -> Tree:
    """The commit's tree under `build/bench-guard`, checked out once, with its environment."""
    found = _git(house, "rev-parse", "--verify", f"{commit}^{{commit}}")
    place = house / "build/bench-guard" / found[:12]
    if not (place / "src").is_dir():
        shutil.rmtree(place, ignore_errors=True)
        _git(house, "worktree", "prune")
        _git(house, "worktree", "add", "--detach", "--force", str(place), found)
    return environment(place, place / ".guard", "the reference", locks=house / LOCKS)


def environment(tree: Path, place: Path, name: str, locks: Path | None = None) -> Tree:
    """An environment that finds the tree's source, and packages as the tree has locked them.

    Where both have locked the same, this interpreter's packages are used, whose own link to a tree is not followed.
    """
    if locks is not None and locks.exists() and _text(tree / LOCKS) != _text(locks):
        _run(tree, "make", "--no-print-directory", "environment-test")
        return Tree(name, tree / ".venv/bin/python")
    if not (place / "bin/python").exists():
        _run(tree, sys.executable, "-m", "venv", "--without-pip", str(place))
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    own = next(place.glob("lib/python*/site-packages"))
    checks = tree / "packages/checks"
    (own / "tree.pth").write_text(f"{tree / 'src'}\n{checks}\n{packages}\n")
    for point in entry_points(group="console_scripts"):
        if point.value.startswith("hostler"):  # what `hostler serve` is called by: those of this tree, run in its own
            script = place / "bin" / point.name
            called = f"from {point.module} import {point.attr}\nsys.exit({point.attr}())"
            script.write_text(f"#!{place / 'bin/python'}\nimport sys\n{called}\n")
            script.chmod(0o755)
    return Tree(name, place / "bin/python")


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _git(house: Path, *words: str) -> str:
    return _run(house, "git", *words)


def _run(place: Path, *words: str) -> str:
    ran = subprocess.run(words, cwd=place, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(words)}: {ran.stderr.strip() or ran.stdout.strip()}")
    return ran.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
