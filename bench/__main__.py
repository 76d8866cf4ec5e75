"""Runs every benchmark and prints its figures: `python -m bench [NAME …] [--OPTION …]`."""

import importlib
import pkgutil
import sys
from itertools import takewhile
from pathlib import Path


def main() -> None:
    """Run the named benchmarks, all of them by default."""
    here = [str(Path(__file__).parent)]
    sys.path.append(str(Path(__file__).parents[1] / "packages/checks"))
    found = [
        m.name
        for m in pkgutil.iter_modules(here)
        if m.name
        not in ("__main__", "bmcs", "bringup_machines", "figures", "guard", "guard_figures", "posts", "served_cluster")
    ]
    program, *words = sys.argv
    names = list(takewhile(lambda word: not word.startswith("-"), words))
    sys.argv = [program, *words[len(names) :]]  # options are the benchmark's own
    for name in names or found:
        result = importlib.import_module(f"bench.{name}").main()
        if result is not None:
            print(result, flush=True)


if __name__ == "__main__":
    main()
