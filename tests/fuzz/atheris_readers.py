"""Coverage-guided fuzzing of one reader, run by hand: it needs atheris, which the tests do not.

    .venv/bin/pip install --target /tmp/atheris atheris
    export PYTHONPATH=src:.:/tmp/atheris
    .venv/bin/python -m tests.fuzz.atheris_readers kernel_log -max_total_time=600 -timeout=5 -rss_limit_mb=1024

The readers are those of tests/fuzz/targets.py; libFuzzer's options follow the reader's name.
"""

import random
import sys
import tempfile
from pathlib import Path

import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]

with atheris.instrument_imports(include=["hostler"]):
    from tests.fuzz.targets import TARGETS, try_one

DRAWN = 200
"""Inputs from which libFuzzer begins."""


def main() -> None:
    """Fuzz until libFuzzer's options end it; a broken law ends with a traceback and the input that broke it."""
    target, rng = TARGETS[sys.argv[1]], random.Random(1)
    with tempfile.TemporaryDirectory() as seeds:
        for number in range(DRAWN):
            Path(seeds, str(number)).write_bytes(target.draw(rng))
        atheris.Setup([sys.argv[0], *sys.argv[2:], seeds], lambda raw: try_one(target, raw))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
