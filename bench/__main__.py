"""Runs every benchmark and prints its figures: `python -m bench [NAME …]`."""

import importlib
import pkgutil
import sys
from pathlib import Path


def main() -> None:
    """Run the named benchmarks, all of them by default."""
    here = [str(Path(__file__).parent)]
    sys.path.append(str(Path(__file__).parents[1] / "packages/checks"))
    found = [
        m.name
        for m in pkgutil.iter_modules(here)
        if m.name not in ("__main__", "bmcs", "bringup_machines", "figures", "posts", "served_cluster")
    ]
    program, *names = sys.argv
    sys.argv = [program]  # a benchmark that is run by itself takes arguments of its own
    for name in names or found:
        result = importlib.import_module(f"bench.{name}").main()
        if result is not None:
            print(result, flush=True)


if __name__ == "__main__":
    main()
