"""Plants bugs in a copy of the tree and tells which the tests catch: those written down, and drawn ones by module.

    python -m tests.mutation --sample 20 --modules core/policy,agent

The exit status is 1 where a written-down bug is not caught, 2 where the tests or lists do not fit.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.mutation import page
from tests.mutation.forked import Verdict
from tests.mutation.kinds import Mutant
from tests.mutation.ledger import Entry, Ledger, state_of
from tests.mutation.trees import ROOT, Lists, Near, StaleError, all_mutants, copied, lists, planted_mutant
from tests.mutation.trying import BELIEVED, Trouble, tried

PLANTED = "planted"


class Run:
    """One run: what is to be tried, for how long, and what was found."""

    def __init__(self, options: argparse.Namespace, known: Lists) -> None:
        self.options = options
        self.known = known
        self.ledger = Ledger()
        self.entries: list[Entry] = []
        self.equivalent: Counter[str] = Counter()
        self.totals: Counter[str] = Counter()
        self.until = time.monotonic() + options.minutes * 60 if options.minutes else None

    def is_over(self) -> bool:
        """Whether the time is over."""
        return self.until is not None and time.monotonic() >= self.until

    def wanted(self, module: str) -> bool:
        asked = [name for name in self.options.modules.split(",") if name]
        return not asked or any(module.startswith(name) for name in asked)

    def planted(self, tree: Path) -> None:
        """Try every bug that is written down, with the tests that it names."""
        by_file: dict[str, list[Mutant]] = {}
        for row in self.known.planted:
            mutant = planted_mutant(row)
            by_file.setdefault(mutant.file, []).append(mutant)
        for file, mutants in by_file.items():
            tests = tuple(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
            self._try(tree, PLANTED, file, tests, mutants)

    def drawn(self, tree: Path) -> None:
        """Try a sample of each module's mutants, the same for the same seed."""
        for module in dict.fromkeys(row.module for row in self.known.near):
            if self.wanted(module):
                for near, file, mutants in self._sample(module):
                    self._try(tree, module, file, near.tests, mutants)

    def _sample(self, module: str) -> Iterator[tuple[Near, str, list[Mutant]]]:
        of = {file: row for row in self.known.near if row.module == module for file in row.files}
        every = [m for file in of for m in all_mutants(file) if m.hot or not self.options.fast]
        self.totals[module] = len(every)
        if self.options.sample != "all":
            drawn = random.Random(f"{self.options.seed}:{module}")
            every = drawn.sample(every, min(int(self.options.sample), len(every)))
        real = [mutant for mutant in every if page.is_equivalent(mutant, self.known.equivalent) is None]
        self.equivalent[module] = len(every) - len(real)
        for file, row in of.items():
            yield row, file, sorted((m for m in real if m.file == file), key=lambda m: m.start)

    def _try(self, tree: Path, module: str, file: str, tests: tuple[str, ...], mutants: list[Mutant]) -> None:
        state = state_of(file, tests)
        missing = []
        for mutant in mutants:
            before = self.ledger.find(state, mutant)
            if before is None or (before.verdict.result not in BELIEVED and self.options.again):
                missing.append(mutant)
            else:
                self._note(Entry(state, module, mutant, before.verdict), told=False)
        if self.is_over() or not missing:
            return
        for mutant, verdict in tried(tree, tests, missing, sure=not self.options.fast):
            entry = Entry(state, module, mutant, verdict)
            self.ledger.add(entry)
            self._note(entry, told=True)
            if self.is_over():
                return

    def _note(self, entry: Entry, *, told: bool) -> None:
        self.entries.append(entry)
        if entry.verdict.result not in BELIEVED:
            print(page.survivor(entry.mutant, entry.verdict), flush=True)
        elif told and self.options.verbose:
            print(_caught(entry.mutant, entry.verdict), flush=True)


def _caught(mutant: Mutant, verdict: Verdict) -> str:
    name = mutant.name or f"{mutant.kind} {mutant.after!r}"
    return f"{mutant.file}:{mutant.line}  {name}: {verdict.result} by {verdict.by} ({verdict.seconds:g} s)"


def main() -> int:
    options = _options()
    try:
        run = Run(options, lists())
        with copied() as tree:
            if run.wanted(PLANTED):
                run.planted(tree)
            if not options.planted_only:
                run.drawn(tree)
    except (StaleError, Trouble) as error:
        print(error, file=sys.stderr)
        return 2
    print(page.summary(run.entries, run.equivalent))
    if run.is_over():
        print("the time is over; the next run goes on from here")
    if options.page:
        drawn = [entry for entry in run.entries if entry.module != PLANTED]
        command = f"make mutants SAMPLE={options.sample} SEED={options.seed}" + " ARGS=--fast" * options.fast
        (ROOT / options.page).write_text(page.page(drawn, run.equivalent, run.totals, command, options.note))
    return int(any(e.module == PLANTED and e.verdict.result not in BELIEVED for e in run.entries))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--sample", default="20", help="how many mutants of each module, or all")
    parser.add_argument("--seed", type=int, default=1, help="draws another sample")
    parser.add_argument("--modules", default="", help="begin with one of these, by commas; `planted` is one")
    parser.add_argument("--minutes", type=float, default=0, help="stop after so long; the next run goes on")
    parser.add_argument("--planted-only", action="store_true", help="only the bugs that are written down")
    parser.add_argument("--fast", action="store_true", help="only inside functions, and the forks are believed")
    parser.add_argument("--again", action="store_true", help="try survivors again though nothing changed")
    parser.add_argument("--page", default="", help="write the result to this file of the tree")
    parser.add_argument("--note", default="", help="a sentence for that page, of how the sample stood before, say")
    parser.add_argument("--verbose", action="store_true", help="print what was caught, and by which test")
    options = parser.parse_args()
    if options.sample != "all" and not options.sample.isdigit():
        parser.error("--sample is a number, or all")
    return options


if __name__ == "__main__":
    raise SystemExit(main())
