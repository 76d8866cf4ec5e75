"""Readings in a check's outcome: taken out of it, so that they go to the archive of readings and nowhere else."""

import math
from datetime import datetime

import msgspec
from msgspec.structs import replace

from hostler.core.diagnose.gate.readings import READING, STACK
from hostler.core.state.model import Node, Outcome
from hostler.journal.readings import Reading

NAME_CHARS = 64


def taken_out(node: Node, outcome: Outcome, received: datetime) -> tuple[Outcome, tuple[Reading, ...]]:
    """The outcome without readings, and the readings. What is no number is left out; what is no name too."""
    stacks = {name.removeprefix(STACK): str(v) for name, v in outcome.facts.items() if name.startswith(STACK)}
    readings = []
    for name, value in outcome.facts.items():
        words = name.removeprefix(READING).split("|")
        is_number = type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]
        if not name.startswith(READING) or not is_number or len(words) != 3 or not name.isprintable():
            continue
        check, part, reading = (word.strip()[:NAME_CHARS] for word in words)
        readings.append(
            Reading(
                received=received,
                node=node.id,
                source=f"{outcome.operation}/{outcome.attempt}",
                metric=f"{check}.{reading}",
                part=part,
                value=float(value),  # type: ignore[arg-type]
                sku=node.sku,
                stack=stacks.get(f"{check}|{part}", ""),
                conditions=msgspec.json.encode({"profile": outcome.facts.get("profile", "")}).decode(),
            )
        )
    if not readings and not stacks:
        return outcome, ()
    kept = {name: value for name, value in outcome.facts.items() if not name.startswith((READING, STACK))}
    return replace(outcome, facts=kept), tuple(readings)
