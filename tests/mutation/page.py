"""Renders a run as text: a line a module, the survivors with their place and change, and docs/mutants.md."""

import os
import platform
from collections import Counter
from collections.abc import Iterable, Sequence

from tests.mutation.forked import Verdict
from tests.mutation.kinds import Mutant, changed
from tests.mutation.ledger import Entry
from tests.mutation.trees import ROOT, Equivalent
from tests.mutation.trying import BELIEVED

HEAD = """# Mutants

A mutant is a small bug planted by a program: a comparison moved by one, a dropped operand, a condition taken as given,
a dropped statement, a changed number or flag. One that no near test fails on shows what the tests do not look at.
`make mutants` plants them in a copy of the tree and runs the tests that `tests/mutation/near.toml` names for the
module. A survivor of the fast way (a fork of one loaded process) counts once it has survived in a process of its own.
*Equivalent* mutants change nothing that anybody could see; each stands with its reason in
`tests/mutation/equivalent.toml` and is left out of the rate. Bugs that were once missed are kept in
`tests/mutation/planted.toml`, and `make mutants MODULES=planted` replays them.
"""

SURVIVORS = """
## Survivors

No test fails on these yet; each is a gap until it is killed or shown to be equivalent.
"""


def change(mutant: Mutant) -> tuple[str, str]:
    """The line that it changes, before and after."""
    source = (ROOT / mutant.file).read_bytes()
    before, after = source.splitlines(), changed(source, mutant).splitlines()
    return before[mutant.line - 1].decode().strip(), after[mutant.line - 1].decode().strip()


def is_equivalent(mutant: Mutant, known: Iterable[Equivalent]) -> Equivalent | None:
    before, after = change(mutant)
    return next((r for r in known if (r.file, r.line, r.after) == (mutant.file, before, after)), None)


def survivor(mutant: Mutant, verdict: Verdict) -> str:
    """A survivor's place and change, as a person reads it."""
    before, after = change(mutant)
    reached = "no near test runs it" if verdict.result == "unreached" else f"{len(verdict.tests)} near tests run it"
    title = f"{mutant.file}:{mutant.line}  {mutant.kind} {mutant.name}".rstrip()
    return f"{title}  ({reached})\n    - {before}\n    + {after}"


def killed(entries: Iterable[Entry]) -> int:
    return sum(entry.verdict.result in BELIEVED for entry in entries)


def rate(entries: Sequence[Entry]) -> str:
    return f"{100 * killed(entries) / len(entries):.1f} %" if entries else "–"


def summary(entries: Sequence[Entry], equivalent: Counter[str]) -> str:
    """A line a module: killed of those tried."""
    lines = [f"{'module':<24} {'tried':>6} {'killed':>6} {'equiv.':>6}  rate"]
    for module in dict.fromkeys([entry.module for entry in entries]):
        own = [entry for entry in entries if entry.module == module]
        lines.append(f"{module:<24} {len(own):>6} {killed(own):>6} {equivalent[module]:>6}  {rate(own)}")
    lines.append(f"{'all':<24} {len(entries):>6} {killed(entries):>6} {equivalent.total():>6}  {rate(entries)}")
    return "\n".join(lines)


def page(entries: Sequence[Entry], equivalent: Counter[str], totals: Counter[str], command: str, note: str) -> str:
    """docs/mutants.md: how it was made, the table, what whoever ran it notes of it, and what survives."""
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    found = [HEAD, f"Last run: `{command}` on {machine}.\n"]
    found.append("| module | mutants | tried | equivalent | killed | rate |\n|---|--:|--:|--:|--:|--:|")
    for module in dict.fromkeys([entry.module for entry in entries]):
        own = [entry for entry in entries if entry.module == module]
        found.append(
            f"| {module} | {totals[module]} | {len(own)} | {equivalent[module]} | {killed(own)} | {rate(own)} |"
        )
    found.append(
        f"| **all** | {totals.total()} | {len(entries)} | {equivalent.total()} | {killed(entries)} | {rate(entries)} |"
    )
    if untried := [module for module in totals if module not in {entry.module for entry in entries}]:
        found.append(
            f"\nNot tried yet, as the time was over: {', '.join(untried)}. The same command goes on with them."
        )
    if note:
        found.append(f"\n{note}")
    found.append(SURVIVORS)
    left = [entry for entry in entries if entry.verdict.result not in BELIEVED]
    for entry in left:
        before, after = change(entry.mutant)
        ran = "" if entry.verdict.result == "survived" else " (no near test runs it)"
        found.append(f"- `{entry.mutant.file}:{entry.mutant.line}`{ran}: `{before}` → `{after}`")
    if not left:
        found.append("None.")
    return "\n".join(found) + "\n"
