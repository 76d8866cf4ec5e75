"""The last message of a run: its verdict and readings in the few bytes that a container or a Slurm job may leave.

One line of JSON (`verdict`, `detail`, `readings` by "check|reading" and part, `stacks` and `bits` by "check|part").
Where that is too long it is compressed ("z:" and base64); where that is too long as well a run has either its
readings or its bits, by its start, and then neither.
"""

import base64
import json
import math
import zlib
from typing import Any

from hostler_checks.answers import CheckResult, Verdict, clean
from hostler_checks.run_state import RunState

MOST_BYTES = 4096
"""Bytes that Kubernetes keeps of a termination message."""
DIGITS, DETAIL_CHARS, STACK_CHARS = 5, 400, 300
COMPRESSED = "z:"


def verdict_line(state: RunState) -> dict[str, Any]:
    """The verdict in a plug-in's words. Bits that differ from peers' take a node out of work: a witness is needed."""
    verdict = {"suspect": "failed", "": "inconclusive"}.get(state.verdict, state.verdict)
    detail = f"suspect: {state.detail}" if state.verdict == "suspect" else state.detail
    return {"verdict": verdict, "detail": clean(detail, DETAIL_CHARS)}


def message(state: RunState, most: int = MOST_BYTES) -> str:
    """The message of a run in at most so many bytes."""
    line = verdict_line(state)
    looked = [] if state.planted else [one for one in state.latest.values() if one.verdict is not Verdict.inconclusive]
    readings = _readings([one for one in looked if not one.disturbed])
    bits = {} if state.planted else _bits(list(state.latest.values()))
    for more in ({**readings, **bits}, *_by_turns(state, readings, bits)):
        plain = json.dumps({**line, **more}, separators=(",", ":"))
        if len(plain) <= most:
            return plain
        packed = COMPRESSED + base64.b64encode(zlib.compress(plain.encode(), 9)).decode()
        if len(packed) <= most:
            return packed
    return json.dumps(line)[:most]


def _by_turns(state: RunState, readings: dict[str, Any], bits: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Readings and bits where both are too long: which comes first follows from the run's start, so both come."""
    return (bits, readings) if zlib.crc32(state.started.encode()) % 2 else (readings, bits)


def _bits(results: list[CheckResult]) -> dict[str, Any]:
    """Digests by "check|part" with all of their stack; work that gave several bits has none to tell."""
    told = {
        f"{one.check}|{one.part}": {"version": one.version, "digest": one.digest, "stack": one.stack}
        for one in results
        if one.digest and one.verdict is not Verdict.failed
    }
    return {"bits": told} if told else {}


def _readings(looked: list[CheckResult]) -> dict[str, Any]:
    readings: dict[str, dict[str, float]] = {}
    stacks: dict[str, str] = {}
    for one in looked:
        finite = {name: value for name, value in one.readings.items() if math.isfinite(value)}
        for name, value in finite.items():
            readings.setdefault(f"{one.check}|{name}", {})[one.part] = float(f"{value:.{DIGITS}g}")
        if finite:
            words = " ".join(f"{key}={value}" for key, value in sorted(one.stack.items()))
            stacks[f"{one.check}|{one.part}"] = clean(words, STACK_CHARS)
    return {"readings": readings, "stacks": stacks} if readings else {}
