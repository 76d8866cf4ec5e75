"""Judges readings of temperature, leak detectors and power supplies.

A reading that is missing or impossible proves nothing: it neither convicts nor clears, and it is shown.
"""

import re

from hostler.core.configuration import Sku
from hostler.core.diagnose import Finding
from hostler.core.diagnose.findings import over, stands
from hostler.core.diagnose.line import printable
from hostler.core.model import Facts, Node, Observation, Scalar

COLDEST_C, HOTTEST_C = 0.0, 125.0
"""Between these a temperature is believed. Dead sensors read 0, 127, 128 or 255."""

CLEAR_MARGIN_C = 5.0
"""How far below its limit a temperature must fall before the condition is over."""

NAMES_SHOWN = 16

_LIMIT = "_limit_c"
_LEAK = re.compile(r"leak_detected|(?P<before>\w+)_leak_detected|leak_(?P<after>\w+)")
_SUPPLY = re.compile(r"(psu[0-9]{0,3}|\w+(?=_health))(?:_(?:state|health|status))?")
_SUPPLY_OK = frozenset({"ok", "enabled"})
_SUPPLY_BAD = frozenset(
    {
        "warning",
        "critical",
        "failed",
        "absent",
        "disabled",
        "off",
        "no_input",
        "input_lost",
        "unavailableoffline",
    }
)

Readings = list[tuple[str, Scalar]]


def judge_sensors(observation: Observation, _node: Node, sku: Sku | None) -> list[Finding]:
    """What the facts of a reading say; facts of other names (fans, watts, volts) are for display.

    "NAME_c" is in °C and may have a "NAME_limit_c". "leak_NAME" is ok, warning or critical,
    "[NAME_]leak_detected" true or false. "NAME_health" and "psuN[_state]" are a power supply's words.
    """
    temperatures, detectors, supplies = _sorted_out(observation.facts)
    judged = [
        *((name, _temperature(name, value, observation, sku)) for name, value in temperatures),
        *((name, _leak(name, value)) for name, value in detectors),
        *((name, _supply(name, states)) for name, states in supplies.items()),
    ]
    findings = [finding for _, found in judged for finding in found or ()]
    return findings + _unreadable([name for name, found in judged if found is None])


def _sorted_out(facts: Facts) -> tuple[Readings, Readings, dict[str, list[Scalar]]]:
    """Temperatures and leak detectors by name, and what is said of each power supply."""
    temperatures: Readings = []
    detectors: Readings = []
    supplies: dict[str, list[Scalar]] = {}
    for name, value in sorted(facts.items()):
        if name.endswith("_c") and not name.endswith(_LIMIT):
            temperatures.append((name.removesuffix("_c"), value))
        elif (leak := _LEAK.fullmatch(name)) is not None:
            detectors.append((leak["before"] or leak["after"] or "", value))
        elif (supply := _SUPPLY.fullmatch(name)) is not None:
            supplies.setdefault(supply[1], []).append(value)
    return temperatures, detectors, supplies


def _temperature(name: str, value: Scalar, observation: Observation, sku: Sku | None) -> list[Finding] | None:
    """None where the reading cannot be believed, or where nobody has said what the limit is."""
    measured = _plausible(value)
    limit = _plausible(observation.facts.get(name + _LIMIT))
    if limit is None and sku is not None:
        limit = sku.temperature_limit_c
    if measured is None or limit is None:
        return None
    text = f"{name} is at {measured:g} °C, the limit is {limit:g} °C"
    if measured > limit:
        return [stands("thermal.over_limit", text, name, {"temperature_c": measured, "limit_c": limit})]
    if measured <= limit - CLEAR_MARGIN_C:
        return [over("thermal.over_limit", text, name)]
    return []


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


def _supply(name: str, states: list[Scalar]) -> list[Finding] | None:
    """The worst word counts; a word we do not know neither convicts nor clears."""
    words = [state.strip().lower() if isinstance(state, str) else "" for state in states]
    bad = [word for word in words if word in _SUPPLY_BAD]
    if bad:
        return [stands("power.supply", f"{name} is {bad[0]}", name, {"state": bad[0]})]
    if all(word in _SUPPLY_OK for word in words):
        return [over("power.supply", f"{name} is {words[0]}", name)]
    return None


def _unreadable(names: list[str]) -> list[Finding]:
    if not names:
        return []
    shown = printable(", ".join(names[:NAMES_SHOWN]))
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    text = f"no believable reading from {shown}{more}"
    return [stands("observation.unreadable", text, "sensors", {"readings": shown, "count": len(names)})]
