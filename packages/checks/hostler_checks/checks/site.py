"""A site's own check: a command that prints JSON, or a sentence with the exit code of a monitoring plug-in."""

import json
import subprocess
from typing import Any

from hostler_checks.answers import Answer
from hostler_checks.device import UnableError
from hostler_checks.work import Work

MAX_OUTPUT_BYTES = 64 * 1024
_CANNOT_SAY = 3


def run(work: Work) -> Answer:
    """Run the command. `{"readings": {…}, "faults": […], "unable": "…", "looked": "…"}`, or exit 0, 1, 2 or 3.

    A check of ways to other nodes prints `"pairs": {"mlx5_0>gpu-0002": 371.2}` beside that, in Gbit/s.
    """
    argv = [str(word) for word in work.params["command"]]
    try:
        ended = subprocess.run(argv, check=False, capture_output=True, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise UnableError(f"{argv[0]} cannot be started: {error.strerror}") from error
    if len(ended.stdout) > MAX_OUTPUT_BYTES:
        raise UnableError(f"it printed {len(ended.stdout)} bytes, at most {MAX_OUTPUT_BYTES} are read")
    text = ended.stdout.decode("utf-8", "replace").strip()
    if text.startswith("{"):
        return _of_json(work, text, ended.returncode)
    first = text.partition("\n")[0] or f"it ended with {ended.returncode} and said nothing"
    if ended.returncode in (1, 2):
        return work.answer(first, faults=(first,))
    if ended.returncode or not text:
        raise UnableError(first)
    return work.answer(first)


def _of_json(work: Work, text: str, code: int) -> Answer:
    try:
        told: dict[str, Any] = json.loads(text)
        readings = {str(name): float(value) for name, value in told.get("readings", {}).items()}
        pairs = {str(name): float(value) for name, value in told.get("pairs", {}).items()}
        faults = tuple(str(one) for one in told.get("faults", ()))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise UnableError(f"its answer cannot be read: {error}") from None
    if told.get("unable") or code == _CANNOT_SAY:
        raise UnableError(str(told.get("unable") or "it says that it cannot say"))
    if code and not faults:
        raise UnableError(f"its answer names no fault, and it ended with {code}")
    return work.answer(str(told.get("looked", "it looked")), readings, faults=faults, pairs=pairs)
