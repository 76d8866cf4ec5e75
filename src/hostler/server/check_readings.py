"""Readings in a check's outcome: taken out of it, so that they go to the archive of readings and nowhere else."""

import math
from datetime import datetime

import msgspec
from msgspec.structs import replace

from hostler.core.diagnose.gate.readings import PAIR, READING, STACK
from hostler.core.fabric.path_blame import PairResult
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
    kept = {name: value for name, value in outcome.facts.items() if not name.startswith((READING, STACK, PAIR))}
    return (replace(outcome, facts=kept) if len(kept) < len(outcome.facts) else outcome), tuple(readings)


def pairs_of(node: Node, outcome: Outcome, received: datetime) -> tuple[PairResult, ...]:
    """Results between the node's ports and others of the same name; what names no port, node or number is none."""
    found = []
    for name, value in outcome.facts.items():
        port, towards, peer = name.removeprefix(PAIR).partition(">")
        is_number = type(value) in (int, float) and math.isfinite(value) and value >= 0  # type: ignore[arg-type,operator]
        if name.startswith(PAIR) and port and towards and peer and is_number and name.isprintable():
            found.append(PairResult(f"{node.id}:{port}", f"{peer}:{port}", float(value), received))  # type: ignore[arg-type]
    return tuple(found)
