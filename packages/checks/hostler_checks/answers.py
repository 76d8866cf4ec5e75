"""Answers of checks and the verdicts on them: the values that pass between child, judge, state and report.

Whatever is read back (from a child, a state file, a peer's result) is checked whole; what is wrong raises ValueError.
"""

import dataclasses
import json
import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

MAX_TEXT, MAX_ITEMS, MAX_NAME = 500, 64, 64


class Verdict(StrEnum):
    """Result of a check. `suspect`: its bits differ from peers', and a witness must tell whether node or stack errs."""

    passed = "passed"
    failed = "failed"
    suspect = "suspect"
    inconclusive = "inconclusive"


@dataclass(frozen=True)
class Answer:
    """Measurements of one run of a check, without a judgement.

    `faults` are definite: each convicts. `slowness` names what is slow (a device's own reasons, a rank): it convicts
    where nobody else worked on the node. `unable` says why nothing was measured. `digest` is of the result's bits,
    and `replays` of the same work done again at once. `load_s` is time under load by the monotonic clock. `pairs` are
    results between this node's ports and other nodes', "PORT>NODE" → Gbit/s: they judge the way between, not the node.
    """

    looked: str = ""
    readings: dict[str, float] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    unable: str = ""
    digest: str = ""
    replays: tuple[str, ...] = ()
    load_s: float = 0.0
    stack: dict[str, str] = field(default_factory=dict)
    pairs: dict[str, float] = field(default_factory=dict)
    slowness: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckResult:
    """One check's verdict. `basis` names what it rests on; `planted` the fault that a test planted.

    `disturbed` says who else worked on the node meanwhile: its readings are compared with nobody's.
    """

    check: str
    verdict: Verdict
    detail: str
    version: int = 0
    part: str = ""
    basis: tuple[str, ...] = ()
    readings: dict[str, float] = field(default_factory=dict)
    digest: str = ""
    key: str = ""
    stack: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    load_s: float = 0.0
    grave: bool = False
    required: bool = True
    planted: str = ""
    pairs: dict[str, float] = field(default_factory=dict)
    disturbed: str = ""


def clean(text: str, most: int = MAX_TEXT) -> str:
    """Make foreign text one printable line of at most `most` characters."""
    return "".join(c if c.isprintable() else " " for c in text[: most * 2]).strip()[:most]


def answer_of(data: bytes, nonce: str) -> Answer:
    """Read a child's answer: one JSON object that repeats the nonce of its request. Raises ValueError."""
    try:
        told = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its answer cannot be read: {clean(str(error), 100)}") from None
    if not isinstance(told, dict) or told.pop("nonce", None) != nonce:
        raise ValueError("its answer is not to this request")
    return Answer(
        looked=clean(_text(told, "looked")),
        readings=readings_of(told.get("readings", {})),
        faults=tuple(clean(one) for one in texts_of(told, "faults")),
        unable=clean(_text(told, "unable")),
        digest=_digest(told.get("digest", "")),
        replays=tuple(_digest(one) for one in texts_of(told, "replays")),
        load_s=_seconds(told.get("load_s", 0.0)),
        stack=words_of(told.get("stack", {})),
        pairs=readings_of(told.get("pairs", {})),
        slowness=tuple(clean(one) for one in texts_of(told, "slowness")),
    )


def encoded(value: Answer, nonce: str) -> bytes:
    """An answer as the child writes it. JSON's NaN and Infinity are written: the judge names them."""
    return json.dumps({**dataclasses.asdict(value), "nonce": nonce}).encode()


def result_of(told: Any) -> CheckResult:
    """Read a stored or foreign check result. Raises ValueError."""
    if not isinstance(told, dict):
        raise ValueError("a result is no object")  # noqa: TRY004 - every wrong document is a ValueError
    return CheckResult(
        check=_name(told.get("check")),
        verdict=Verdict(str(told.get("verdict"))),
        detail=clean(_text(told, "detail")),
        version=_count(told.get("version", 0)),
        part=clean(_text(told, "part"), MAX_NAME),
        basis=tuple(clean(one) for one in texts_of(told, "basis")),
        readings=readings_of(told.get("readings", {})),
        digest=_digest(told.get("digest", "")),
        key=_digest(told.get("key", "")),
        stack=words_of(told.get("stack", {})),
        seconds=_seconds(told.get("seconds", 0.0)),
        load_s=_seconds(told.get("load_s", 0.0)),
        grave=told.get("grave") is True,
        required=told.get("required") is not False,
        planted=clean(_text(told, "planted"), MAX_NAME),
        pairs=readings_of(told.get("pairs", {})),
        disturbed=clean(_text(told, "disturbed")),
    )


def as_document(result: CheckResult) -> dict[str, Any]:
    """A result as JSON's objects, numbers and strings; what is no number of JSON is left out."""
    told = dataclasses.asdict(result)
    return told | {
        "readings": {k: v for k, v in result.readings.items() if math.isfinite(v)},
        "pairs": {k: v for k, v in result.pairs.items() if math.isfinite(v)},
    }


def readings_of(told: Any) -> dict[str, float]:
    """Names and numbers; NaN and infinities stay, for the judge. Raises ValueError."""
    if not isinstance(told, dict) or len(told) > MAX_ITEMS:
        raise ValueError(f"readings are at most {MAX_ITEMS} numbers by name")
    return {_name(name): _number(value) for name, value in told.items()}


def words_of(told: Any) -> dict[str, str]:
    """Names and short texts. Raises ValueError."""
    if not isinstance(told, dict) or len(told) > MAX_ITEMS:
        raise ValueError(f"a stack is at most {MAX_ITEMS} words by name")
    if not all(isinstance(value, str) for value in told.values()):
        raise ValueError("a stack's values are texts")
    return {_name(name): clean(value, 200) for name, value in told.items()}


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a reading is no number")  # noqa: TRY004 - as above
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _seconds(value: Any) -> float:
    number = _number(value)
    if not 0.0 <= number < 1e9:
        raise ValueError(f"{number:g} is no length of time in seconds")
    return number


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise ValueError("a version is a whole number")
    return value


def _name(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME or not value.isprintable():
        raise ValueError(f"a name is 1 to {MAX_NAME} printable characters")
    return value


def _digest(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 128 or not (value == "" or value.isalnum()):
        raise ValueError("a digest is at most 128 letters and digits")
    return value


def _text(told: dict[str, Any], name: str) -> str:
    value = told.get(name, "")
    if not isinstance(value, str):
        raise ValueError(f"{name} is no text")  # noqa: TRY004 - as above
    return value


def texts_of(told: dict[str, Any], name: str) -> list[str]:
    """A list of texts by its name, empty where there is none. Raises ValueError."""
    values = told.get(name, [])
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise ValueError(f"{name} is no list of texts")
    return values[:MAX_ITEMS]
