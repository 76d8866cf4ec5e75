"""Readings in a check's outcome: taken out of it, so that they go to the archive of readings and nowhere else."""

import math
from collections.abc import Callable
from datetime import datetime

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.diagnose.gate.readings import PAIR, READING, STACK
from hostler.core.fabric.pair_rows import GBPS_MOST
from hostler.core.fabric.path_blame import PairResult
from hostler.core.state.model import Node, Outcome
from hostler.journal.readings import Reading
from hostler.logs.clean import escaped

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


class ToldPairs(Struct, frozen=True):
    """Results between ports that an outcome tells; or why none of them counts."""

    results: tuple[PairResult, ...] = ()
    why: str = ""


def pairs_of(node: Node, outcome: Outcome, received: datetime, known: Callable[[str], str]) -> ToldPairs:
    """Results between the node's ports and others of the same name, all or none.

    `known`: a node's id, or a host's name in a design, by any of its names; "" where there is none.
    """
    found: dict[tuple[str, str], PairResult] = {}
    for name, value in outcome.facts.items():
        if not name.startswith(PAIR):
            continue
        port, towards, peer = name.removeprefix(PAIR).partition(">")
        is_number = type(value) in (int, float) and math.isfinite(value) and 0 <= value <= GBPS_MOST  # type: ignore[arg-type,operator]
        far = known(peer) if port and towards and name.isprintable() else ""
        if not is_number or not far or far == node.id:
            wrong = "no rate in Gbit/s" if not is_number else "no other node, as PORT>NODE"
            return ToldPairs(why=f"{escaped(name.removeprefix(PAIR))[:NAME_CHARS]}: {wrong}")
        result = PairResult(f"{node.id}:{port}", f"{far}:{port}", float(value), received)  # type: ignore[arg-type]
        if found.setdefault((result.a, result.z), result) is not result:
            return ToldPairs(why=f"{result.a} to {result.z} is told twice")
    return ToldPairs(tuple(found.values()))
