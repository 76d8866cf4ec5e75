"""Goldens and cohorts: what peers measured, learned from their results, looked up by stack.

A golden needs three nodes with the same stack that agree and outnumber those that do not. A planted result teaches
nothing, readings beside others' work neither, and a node counts once.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from statistics import median
from typing import Any

from hostler_checks.answers import CheckResult, Verdict, clean
from hostler_checks.judging import PeerReading

FORMAT, MIN_WITNESSES = 1, 3
MAX_BYTES, MAX_KEYS = 8 << 20, 20_000
COHORT = ("device", "driver")


@dataclass(frozen=True)
class Golden:
    """The bits of a check on one stack, and how many peers gave them."""

    check: str
    digest: str
    peers: int
    stack: dict[str, str]


@dataclass(frozen=True)
class Reference:
    """Knowledge that was learned from peers: goldens by stack key, readings by cohort key."""

    goldens: Mapping[str, Golden] = field(default_factory=dict)
    cohorts: Mapping[str, Mapping[str, PeerReading]] = field(default_factory=dict)

    def near(self, check: str, stack: Mapping[str, str]) -> str:
        """Tells what the nearest golden of the check has otherwise: "a golden is known for driver 550.1"."""
        others = [g.stack for g in self.goldens.values() if g.check == check]
        if not others:
            return ""
        nearest = min(others, key=lambda other: len(_differing(other, stack)))
        told = ", ".join(f"{name} {nearest.get(name) or 'none'}" for name in _differing(nearest, stack)[:4])
        return f"one is known for {told}"


def _differing(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def stack_key(check: str, version: int, stack: Mapping[str, str]) -> str:
    """The key of a golden: check, version, device, driver, libraries, BLAS, threads, number format, shapes."""
    return sha256(json.dumps([check, version, sorted(stack.items())]).encode()).hexdigest()


def cohort_key(check: str, version: int, stack: Mapping[str, str]) -> str:
    """The key of a cohort: check, version, device model, driver, and the check's own parameters."""
    kept = sorted((k, v) for k, v in stack.items() if k in COHORT or k.startswith("param "))
    return sha256(json.dumps([check, version, kept]).encode()).hexdigest()


def learn(results: Iterable[tuple[str, CheckResult]]) -> tuple[Reference, list[str]]:
    """Learns goldens from the results of nodes (name, result), and tells who dissents from one."""
    digests: dict[str, dict[str, CheckResult]] = defaultdict(dict)
    readings: dict[str, dict[str, CheckResult]] = defaultdict(dict)
    for node, result in results:
        if result.planted or result.verdict not in (Verdict.passed, Verdict.inconclusive, Verdict.suspect):
            continue
        if result.digest:
            digests[stack_key(result.check, result.version, result.stack)][f"{node}/{result.part}"] = result
        if result.readings and result.verdict is Verdict.passed and not result.disturbed:
            readings[cohort_key(result.check, result.version, result.stack)][f"{node}/{result.part}"] = result
    goldens: dict[str, Golden] = {}
    dissent: list[str] = []
    for key, said in digests.items():
        if (golden := _golden(said)) is not None:
            goldens[key] = golden
            dissent += [f"{who}: {one.check}" for who, one in said.items() if one.digest != golden.digest]
    return Reference(goldens, {key: _cohort(said) for key, said in readings.items()}), sorted(dissent)


def _golden(said: Mapping[str, CheckResult]) -> Golden | None:
    nodes: dict[str, set[str]] = defaultdict(set)
    for who, result in said.items():
        nodes[result.digest].add(who.partition("/")[0])
    votes = Counter({digest: len(names) for digest, names in nodes.items()})
    (digest, count), *others = votes.most_common(2)
    if count < MIN_WITNESSES or (others and others[0][1] * 2 >= count):
        return None
    first = next(one for one in said.values() if one.digest == digest)
    return Golden(first.check, digest, count, dict(first.stack))


def _cohort(said: Mapping[str, CheckResult]) -> dict[str, PeerReading]:
    values: dict[str, list[float]] = defaultdict(list)
    for result in said.values():
        for name, value in result.readings.items():
            values[name].append(value)
    told: dict[str, PeerReading] = {}
    for name, found in values.items():
        middle = median(found)
        spread = 1.4826 * median([abs(one - middle) for one in found])
        told[name] = PeerReading(middle, spread, len(found))
    return told


def encoded(reference: Reference) -> bytes:
    """The reference as a file has it."""
    goldens = {key: vars(golden) for key, golden in sorted(reference.goldens.items())}
    cohorts = {key: {name: vars(one) for name, one in row.items()} for key, row in sorted(reference.cohorts.items())}
    return json.dumps({"format": FORMAT, "goldens": goldens, "cohorts": cohorts}, indent=1).encode()


def decoded(data: bytes) -> Reference:
    """Read a reference whole. Raises ValueError."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"a reference has at most {MAX_BYTES >> 20} MiB")
    try:
        told = json.loads(data)
        if told["format"] != FORMAT:
            raise ValueError(f"format {clean(str(told['format']), 20)} is not {FORMAT}")
        goldens = {str(key): _golden_of(row) for key, row in told["goldens"].items()}
        cohorts = {
            str(key): {str(name): _peers_of(one) for name, one in row.items()} for key, row in told["cohorts"].items()
        }
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"no reference: {type(error).__name__} {clean(str(error), 80)}") from None
    if len(goldens) + len(cohorts) > MAX_KEYS:
        raise ValueError(f"a reference has at most {MAX_KEYS} keys")
    return Reference(goldens, cohorts)


def _golden_of(row: Any) -> Golden:
    stack = {str(name): str(value) for name, value in row["stack"].items()}
    golden = Golden(str(row["check"]), str(row["digest"]), int(row["peers"]), stack)
    if golden.peers < MIN_WITNESSES or not golden.digest.isalnum():
        raise ValueError(f"a golden needs a digest of {MIN_WITNESSES} peers")
    return golden


def _peers_of(row: Any) -> PeerReading:
    peers = PeerReading(float(row["median"]), float(row["spread"]), int(row["count"]))
    if not (math.isfinite(peers.median) and math.isfinite(peers.spread) and peers.spread >= 0 and peers.count >= 0):
        raise ValueError("a cohort's reading is no finite number")
    return peers
