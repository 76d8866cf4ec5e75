"""Judges readings of temperature, leak detectors, fans, power supplies and their redundancy.

A reading that is missing or impossible proves nothing: it neither convicts nor clears, and it is shown. All that is
said of one part is judged together: it is well only when every reading of it is.
"""

import re
from datetime import datetime
from functools import lru_cache

from msgspec import Struct

from hostler.core.diagnose import Finding
from hostler.core.diagnose.bmc_evidence import NEAR_LIMIT, joined
from hostler.core.diagnose.findings import over, stands
from hostler.core.diagnose.line import printable
from hostler.core.diagnose.part_slots import NAMES_KEPT, PartSlots
from hostler.core.diagnose.sensor_hysteresis import NEAR_C, SENSOR_RULES
from hostler.core.state.configuration import Sku
from hostler.core.state.model import Facts, Node, Observation, Scalar, Severity
from hostler.core.state.sensor_watch import SensorLook

COLDEST_C, HOTTEST_C = 0.0, 125.0
"""Between these a temperature is believed. Dead sensors read 0, 127, 128 or 255."""

NAMES_SHOWN = 16
UNREADABLE = "sensors"
"""The part under which readings that cannot be believed are told of."""

_THRESHOLDS = ("_limit_c", "_caution_c")
_LEAK = re.compile(r"leak_detected|(?P<before>\w+)_leak_detected|leak_(?P<after>\w+)")
_WORDED = (
    ("cooling.fan", re.compile(r"(fan\w*)_health")),
    ("power.redundancy", re.compile(r"(power_redundancy\w*)_health")),
    ("cooling.redundancy", re.compile(r"(cooling_redundancy\w*)_health")),
    ("power.supply", re.compile(r"(psu[0-9]{0,3}|\w+(?=_health))(?:_(?:state|health|status))?")),
)
"""Names of facts that hold a word of health → the condition of which they tell; the first that matches counts."""
_GOOD = frozenset({"ok", "enabled"})
LOOK_NAMES = 8
"""Readings of a look that are kept by name."""
_OF_SUPPLIES = ("power.supply", "power.redundancy")
"""Conditions that are told of the supplies, and not again among what is out of range."""


class Subject(Struct):
    """Part as a look shows it: names of its facts, findings, and the facts that could not be believed."""

    names: list[str] = []
    findings: list[Finding] = []
    unread: list[str] = []


def judge_sensors(observation: Observation, node: Node, sku: Sku | None) -> list[Finding]:
    """Judge the facts of a reading; facts of other names (fans' speeds, watts, volts) are for display.

    "NAME_c" is in °C and may have a "NAME_limit_c" and a "NAME_caution_c". "leak_NAME" is ok, warning or critical,
    "[NAME_]leak_detected" true or false. "fanNAME_health" and "{power,cooling}_redundancy_health" are words of health;
    any other "NAME_health" and "psuN[_state]" are a power supply's.
    """
    told = subjects(observation, node, sku)
    findings = [
        shown
        for subject in told.values()
        for finding in subject.findings
        for shown in (joined(finding, node, NEAR_LIMIT) if finding.type == NEAR_LIMIT else [finding])
    ]
    return findings + unreadable([name for subject in told.values() for name in subject.unread])


def subjects(observation: Observation, node: Node, sku: Sku | None) -> dict[str, Subject]:
    """Group readings by part: its serial where the sensor's name leads to one, else the name itself."""
    found: dict[str, Subject] = {}
    worded: dict[tuple[str, str], list[str]] = {}
    slots = PartSlots(node, sku)
    for name in sorted(observation.facts):
        kind, subject = _kind_of(name)
        if kind == _TEMPERATURE:
            part = slots.part_of(subject)
            _add(found, part, [name], subject, _temperature(subject, part, observation, sku))
        elif kind == _LEAKS:
            _add(found, subject, [name], subject, _leak(subject, observation.facts[name]))
        elif kind:
            worded.setdefault((kind, subject), []).append(name)
    for (condition, part), names in worded.items():
        states = [observation.facts[name] for name in names]
        _add(found, part, names, part, _health(condition, part, states))
    return {part: _as_one(subject) for part, subject in sorted(found.items())}


def _add(found: dict[str, Subject], part: str, names: list[str], shown: str, judged: list[Finding] | None) -> None:
    """A judgement of None: it could not be believed."""
    subject = found.setdefault(part, Subject([], [], []))
    subject.names += names
    if judged is None:
        subject.unread.append(shown)
    else:
        subject.findings += judged


def _as_one(subject: Subject) -> Subject:
    """One finding per condition: the worst that stands; that it is over only where every reading says so."""
    by_type: dict[str, list[Finding]] = {}
    for finding in subject.findings:
        by_type.setdefault(finding.type, []).append(finding)
    kept: list[Finding] = []
    several = len(subject.names) > 1
    for kind, said in by_type.items():
        bad = [finding for finding in said if finding.standing]
        if bad:
            kept.append(max(bad, key=lambda finding: finding.severity))
        elif not subject.unread and (not several or len(said) == _tellers(subject, kind)):
            kept.append(said[0])
    return Subject(subject.names, kept, subject.unread)


def _tellers(subject: Subject, kind: str) -> int:
    """How many of a part's readings could have told of this kind of condition."""
    thermal = sum(name.endswith("_c") for name in subject.names)
    return thermal if kind.startswith("thermal.") else 1


_TEMPERATURE, _LEAKS = "temperature", "leak"


@lru_cache(maxsize=NAMES_KEPT)
def _kind_of(name: str) -> tuple[str, str]:
    """Kind of a fact of this name (of a word of health: the condition), and its subject; "" for what is only shown."""
    if name.endswith("_c"):
        return ("", "") if name.endswith(_THRESHOLDS) else (_TEMPERATURE, name.removesuffix("_c"))
    if (leak := _LEAK.fullmatch(name)) is not None:
        return _LEAKS, leak["before"] or leak["after"] or ""
    for condition, pattern in _WORDED:
        if (match := pattern.fullmatch(name)) is not None:
            return condition, match[1]
    return "", ""


def _temperature(name: str, part: str, observation: Observation, sku: Sku | None) -> list[Finding] | None:
    """Finding, None where the reading cannot be believed, or where nobody has said what the limit is.

    Between a threshold and its hysteresis nothing is said: what stands goes on standing, what does not is not raised.
    """
    measured = _plausible(observation.facts.get(f"{name}_c"))
    limit = _plausible(observation.facts.get(f"{name}_limit_c"))
    if limit is None and sku is not None:
        limit = sku.temperature_limit_c
    if measured is None or limit is None:
        return None
    caution = _plausible(observation.facts.get(f"{name}_caution_c")) or limit - NEAR_C
    found: list[Finding] = []
    for condition, threshold, word in (
        ("thermal.over_limit", limit, "limit"),
        (NEAR_LIMIT, caution, "caution"),
    ):
        text = f"{name} is at {measured:g} °C, the {word} is {threshold:g} °C"
        facts: Facts = {"temperature_c": measured, f"{word}_c": threshold, "margin_c": limit - measured, "sensor": name}
        if measured > threshold:
            found.append(stands(condition, text, part, facts))
        elif measured <= threshold - SENSOR_RULES[condition].hysteresis_c:
            found.append(over(condition, text, part))
    return found


def _plausible(value: Scalar) -> float | None:
    """The number, if it is a temperature that hardware can have. Comparisons with NaN are false."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if COLDEST_C < value < HOTTEST_C else None


_LEAK_WORDS = {False: "dry", "ok": "dry", "warning": "suspicious", True: "wet", "critical": "wet"}


def _leak(name: str, value: Scalar) -> list[Finding] | None:
    """Only a wet detector cuts power; one that merely warns asks for a look at once."""
    told = value.strip().lower() if isinstance(value, str) else value
    word = _LEAK_WORDS.get(told) if isinstance(told, str | bool) else None
    text = f"leak detector {name} is {word}" if name else f"the leak detector is {word}"
    match word:
        case "dry":
            return [over("cooling.leak", text, name), over("cooling.leak_suspected", text, name)]
        case "suspicious":
            return [stands("cooling.leak_suspected", text, name)]
        case "wet":
            return [stands("cooling.leak", text, name)]
        case _:
            return None


def _health(condition: str, part: str, states: list[Scalar]) -> list[Finding] | None:
    """The worst word counts; a word we do not know neither convicts nor clears."""
    grave = SENSOR_RULES[condition].words
    words = [state.strip().lower() if isinstance(state, str) else "" for state in states]
    bad = sorted((word for word in words if word in grave), key=lambda word: -grave[word])
    if bad:
        return [stands(condition, f"{part} is {bad[0]}", part, {"state": bad[0]}, grave[bad[0]])]
    if all(word in _GOOD for word in words):
        return [over(condition, f"{part} is {words[0]}", part)]
    return None


def unreadable(names: list[str]) -> list[Finding]:
    """One finding for all readings that cannot be believed, by name."""
    if not names:
        return []
    shown = printable(", ".join(names[:NAMES_SHOWN]))
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    text = f"no plausible reading from {shown}{more}"
    return [stands("observation.unreadable", text, UNREADABLE, {"readings": shown, "count": len(names)})]


def sensor_look(node: Node, sku: Sku | None, seen: Observation, at: datetime) -> SensorLook:
    """The reading as one look at this moment."""
    told = subjects(seen, node, sku)
    standing = [(part, f) for part, one in told.items() for f in one.findings if f.standing]
    grave = [
        (part, f) for part, f in standing if f.severity >= Severity.degraded and not f.type.startswith(_OF_SUPPLIES)
    ]
    wrong = [(f"{f.type} {part}", f.text) for part, f in grave]
    words = {name: str(seen.facts[name]).lower() for name in sorted(seen.facts) if name.endswith(("_health", "_state"))}
    groups = [word for name, word in words.items() if name.startswith("power_redundancy")]
    return SensorLook(
        at=at,
        read=sum(len(one.names) for one in told.values()),
        wrong=tuple(sorted(wrong))[:LOOK_NAMES],
        unread=tuple(sorted({name for one in told.values() for name in one.unread}))[:LOOK_NAMES],
        supplies=_supplies(words),
        redundancy=next((word for word in groups if word not in _GOOD), groups[0] if groups else ""),
        gaps=seen.text[:200],
    )


def _supplies(words: dict[str, str]) -> int | None:
    """How many supplies say that they are well in all their words, None where none is shown."""
    said: dict[str, list[str]] = {}
    for name, word in words.items():
        if name.startswith("psu"):
            said.setdefault(name.rpartition("_")[0], []).append(word)
    return sum(all(word in _GOOD for word in one) for one in said.values()) if said else None
