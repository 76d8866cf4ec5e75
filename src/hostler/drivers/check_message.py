"""The last message of a check that a scheduler ran: its verdict, and its readings. Pure; what it says may be hostile.

A message is JSON lines `{"verdict": "passed|failed|inconclusive", "detail": "…", "part": "…"}`, or a sentence and an
exit code (0 well, 1 and 2 failed, 3 cannot say), in the words of every other check (`agent.check_plugins`). The suite's
holds `readings`, `stacks` and `bits` too, and is compressed ("z:") where it would be too long. What cannot be read is
never passed, nor is who says nothing: any program that does nothing ends with 0. A program that breaks off ends with 1
or 2, and without a word it convicts nobody.
"""

import base64
import math
import zlib

import msgspec
from msgspec import Struct

from hostler.core.diagnose.gate.readings import BITS, READING, STACK
from hostler.core.state.model import Facts, Verdict
from hostler.logs.secret_patterns import redact

MAX_MESSAGE = 4096
MAX_PLAIN = 64 * 1024
"""Bytes of a message once it is unpacked; more is a bomb."""
MAX_LINES = 64
MAX_DETAIL = 300
MAX_READINGS, MAX_BITS = 512, 64
NAME_CHARS, STACK_CHARS = 64, 300
SHOWN = 6
"""Readings in a verdict's sentence; all of them are in the trends."""
_EXITS = {0: Verdict.passed, 1: Verdict.failed, 2: Verdict.failed, 3: Verdict.inconclusive}
_COMPRESSED = "z:"
_SIGNED = frozenset({"fade_percent", "loss"})
"""Readings that may be below nought, as the suite has them (`hostler_checks.judging`)."""


class CheckOutcome(Struct, frozen=True):
    """Outcome of a check; None in place of a verdict: it goes on. `readings` are facts as an agent's check has them."""

    verdict: Verdict | None
    detail: str = ""
    readings: Facts = {}

    @property
    def facts(self) -> Facts:
        """The verdict and readings as facts of an outcome."""
        return {"verdict": self.verdict.value, **self.readings} if self.verdict is not None else {}


class _VerdictLine(Struct, frozen=True):
    verdict: str
    detail: str = ""
    part: str = ""
    readings: dict[str, dict[str, float]] = {}
    stacks: dict[str, str] = {}
    bits: dict[str, msgspec.Raw] = {}


def read_verdict(code: int, said: str) -> CheckOutcome:
    """The verdict of a check that ended with this exit code and this last message."""
    try:
        text = _unpacked(said.strip())
    except ValueError as error:
        return CheckOutcome(Verdict.inconclusive, clean(f"its answer cannot be unpacked: {error}"))
    if code not in _EXITS:
        return CheckOutcome(Verdict.inconclusive, clean(f"it ended with {code}: {_in_words(text)}"))
    if text.startswith("{"):
        return _of_lines(text, code)
    sentence = text.partition("|")[0].partition("\n")[0].strip()
    why = _no_sentence(sentence)
    if why and (code == 0 or not sentence):
        return CheckOutcome(Verdict.inconclusive, clean(f"it ended with {code} and {why}"))
    return CheckOutcome(_EXITS[code], clean(sentence))


def _in_words(text: str) -> str:
    """The message without secrets; of JSON its details, as a secret within escapes is not found for certain."""
    if not text.startswith("{"):
        return redact(text)
    try:
        lines = [msgspec.json.decode(line, type=_VerdictLine) for line in text.splitlines()[:MAX_LINES] if line.strip()]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return "an answer that cannot be read"
    return "; ".join(redact(line.detail) for line in lines)


def _no_sentence(text: str) -> str:
    """Why the text is no sentence of a check that has looked, "" where it is one."""
    if not any(letter.isalpha() for letter in text):
        return f"said nothing in words: {text}" if text else "said nothing"
    if len(text) > MAX_MESSAGE:
        return f"said more than {MAX_MESSAGE} characters"
    return "" if text.isprintable() and "\ufffd" not in text else f"what it said is no text: {text}"


def _unpacked(text: str) -> str:
    """The message as it was before it was compressed. Raises ValueError."""
    if not text.startswith(_COMPRESSED):
        return text
    try:
        reader = zlib.decompressobj()
        plain = reader.decompress(base64.b64decode(text.removeprefix(_COMPRESSED), validate=True), MAX_PLAIN)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if reader.unconsumed_tail or not reader.eof:
        raise ValueError(f"it is cut off, or has more than {MAX_PLAIN >> 10} KiB")
    return plain.decode("utf-8", "replace").strip()


def _of_lines(text: str, code: int) -> CheckOutcome:
    """JSON lines: one that cannot be read spoils them all; an exit code that says worse than they do counts, too."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > MAX_LINES:
        return CheckOutcome(Verdict.inconclusive, f"it gave {len(lines)} answers, at most {MAX_LINES} are read")
    answers: list[tuple[Verdict, str]] = []
    readings: Facts = {}
    for line in lines:
        try:
            one = msgspec.json.decode(line, type=_VerdictLine)
            answers.append((Verdict(one.verdict), ": ".join(part for part in (one.part, redact(one.detail)) if part)))
            readings |= _readings(one) | _bits(one)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            return CheckOutcome(Verdict.inconclusive, clean(f"its answer cannot be read: {error}"))
    verdict, detail = _judged(answers, code)
    return CheckOutcome(verdict, clean(f"{detail}{_shown(readings)}"), readings)


def _judged(answers: list[tuple[Verdict, str]], code: int) -> tuple[Verdict, str]:
    if code and all(verdict is Verdict.passed for verdict, _ in answers):
        return Verdict.inconclusive, f"its answers say passed, it ended with {code}"
    for worst in (Verdict.failed, Verdict.inconclusive):
        if bad := [detail for verdict, detail in answers if verdict is worst]:
            return worst, "; ".join(bad)
    if all(verdict is Verdict.passed for verdict, _ in answers):
        return Verdict.passed, "; ".join(detail for _, detail in answers if detail)
    return Verdict.inconclusive, "its answers are no verdicts of a check that has just run"


def _readings(line: _VerdictLine) -> Facts:
    """Facts by "check|part|reading"; names that cannot be one are left out. Raises ValueError for impossible values."""
    found: Facts = {}
    for name, by_part in line.readings.items():
        check, _, reading = name.partition("|")
        for part, value in by_part.items():
            words = (check, part, reading)
            if not math.isfinite(value) or (value < 0 and reading not in _SIGNED):
                raise ValueError(f"{'|'.join(words)} is {value:g}, which cannot be")
            if len(found) < MAX_READINGS and all(map(_is_name, words)):
                found[f"{READING}{'|'.join(words)}"] = value
                found[f"{STACK}{check}|{part}"] = clean(line.stacks.get(f"{check}|{part}", ""))[:STACK_CHARS]
    return found


def _bits(line: _VerdictLine) -> Facts:
    """Facts by "check|part" as an agent tells them; whoever decides by them reads them whole."""
    return {f"{BITS}{name}": bytes(raw).decode() for name, raw in list(line.bits.items())[:MAX_BITS]}


def _is_name(word: str) -> bool:
    return len(word) <= NAME_CHARS and word.isprintable() and "|" not in word


def _shown(readings: Facts) -> str:
    """The first few readings, each as the worst of the node's parts has it, for `hostler node explain`."""
    named = [name.removeprefix(READING).split("|") for name in readings if name.startswith(READING)]
    worst: dict[str, tuple[float, str]] = {}
    for check, part, reading in named:
        value = readings[f"{READING}{check}|{part}|{reading}"]
        if isinstance(value, int | float):
            key = f"{check}.{reading}"
            worst[key] = min(worst.get(key, (float(value), part)), (float(value), part))
    told = [f"{key} {value:g}{f' ({part})' if part else ''}" for key, (value, part) in list(worst.items())[:SHOWN]]
    return f" [least of the parts: {', '.join(told)}]" if told else ""


def clean(text: str) -> str:
    """One line of printable words, without secrets."""
    return "".join(c if c.isprintable() else " " for c in redact(text))[:MAX_DETAIL].strip()
