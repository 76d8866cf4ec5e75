"""A site's own check: a command that prints JSON, a sentence with a plug-in's exit code, or a known tool's output."""

import json
import subprocess
from typing import Any

from hostler_checks import tool_outputs
from hostler_checks.answers import Answer, readings_of, texts_of
from hostler_checks.device import UnableError
from hostler_checks.work import Work

MAX_OUTPUT_BYTES = 64 * 1024
MAX_TOOL_BYTES = 4 * 1024 * 1024
_CANNOT_SAY = 3


def run(work: Work) -> Answer:
    """Run the command. `{"readings": {…}, "faults": […], "unable": "…", "looked": "…"}`, or exit 0, 1, 2 or 3.

    A check of ways to other nodes prints `"pairs": {"mlx5_0>gpu-0002": 371.2}` beside that, in Gbit/s.
    """
    argv = [str(word) for word in work.params["command"]]
    tool = str(work.params.get("tool", ""))
    output, code = _ended(argv, MAX_TOOL_BYTES if tool else MAX_OUTPUT_BYTES)
    text = output.decode("utf-8", "replace").strip()
    if tool:
        return _of_tool(work, tool_outputs.read(tool, text, code))
    if text.startswith("{"):
        return _of_json(work, text, code)
    first = text.partition("\n")[0] or f"it ended with {code} and said nothing"
    if text and code in (1, 2):
        return work.answer(first, faults=(first,))
    if code or not text:
        raise UnableError(first)
    return work.answer(first)


def _ended(argv: list[str], most: int) -> tuple[bytes, int]:
    """Returns the command's output and its exit code; one that prints more than `most` bytes is ended."""
    try:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError as error:
        raise UnableError(f"{argv[0]} cannot be started: {error.strerror}") from error
    assert child.stdout is not None
    with child, child.stdout as pipe:
        output = pipe.read(most + 1)
        if len(output) > most:
            child.kill()
            raise UnableError(f"it printed more than {most} bytes")
        return output, child.wait()


def _of_tool(work: Work, told: tool_outputs.ToolReport) -> Answer:
    """Of a tool's readings those that the site's check names; one that is missing was not measured."""
    wanted = [str(name) for name in work.params.get("wanted", ())]
    if missing := [name for name in wanted if name not in told.readings]:
        if told.faults:
            return work.answer(told.looked, faults=told.faults)
        raise UnableError(f"its output has no {missing[0]}; it has {', '.join(sorted(told.readings)) or 'no readings'}")
    return work.answer(told.looked, {name: told.readings[name] for name in wanted}, faults=told.faults)


def _of_json(work: Work, text: str, code: int) -> Answer:
    try:
        told: dict[str, Any] = json.loads(text)
        readings, pairs = readings_of(told.get("readings", {})), readings_of(told.get("pairs", {}))
        faults = tuple(texts_of(told, "faults"))
    except (ValueError, RecursionError) as error:
        raise UnableError(f"its answer cannot be read: {error}") from None
    if told.get("unable") or code == _CANNOT_SAY:
        raise UnableError(str(told.get("unable") or "it says that it cannot say"))
    if code and not faults:
        raise UnableError(f"its answer names no fault, and it ended with {code}")
    return work.answer(str(told.get("looked", "it looked")), readings, faults=faults, pairs=pairs)
