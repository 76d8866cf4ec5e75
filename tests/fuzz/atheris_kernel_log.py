"""Coverage-guided fuzzing of the decoder, run by hand: it needs atheris, which the tests do not.

    python -m venv /tmp/fuzz && /tmp/fuzz/bin/pip install atheris msgspec
    export PYTHONPATH=src:.
    /tmp/fuzz/bin/python -m tests.fuzz.atheris_kernel_log -max_total_time=600 -timeout=5 -rss_limit_mb=512

Seeds are the corpus of tests/wire/cases; libFuzzer's options follow the module's name.
"""

import json
import sys
import tempfile
from pathlib import Path

import atheris  # type: ignore[import-untyped,unused-ignore]

with atheris.instrument_imports():
    from tests.fuzz.kernel_log_laws import hold_for_bytes, hold_for_text

CASES = Path(__file__).parents[1] / "wire" / "cases"


def one_input(raw: bytes) -> None:
    """One input as text of a log and as bytes of a log device."""
    hold_for_text(raw.decode("utf-8", "surrogateescape"))
    hold_for_bytes(raw)


def main() -> None:
    """Fuzz until libFuzzer's options end it; a broken law ends with a traceback and the input that broke it."""
    with tempfile.TemporaryDirectory() as seeds:
        for path in CASES.glob("*.jsonl"):
            for number, case in enumerate(path.read_text("utf-8").splitlines()):
                Path(seeds, f"{path.stem}-{number}").write_text(json.loads(case)["line"], "utf-8")
        atheris.Setup([*sys.argv, seeds], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
