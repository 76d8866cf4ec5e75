"""The order in which an answer is judged: digest → physical sanity → named slowness → hard floor → peers → own history.

Wrong bits convict whatever else ran on the node; what is only slow or hot does not beside others' work.

Pure: values in, a verdict out. A reading that nothing is known to compare with is not judged, and an answer of which
nothing was judged is inconclusive.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hostler_checks.answers import Answer, Verdict, clean
from hostler_checks.catalogue import CheckSpec
from hostler_checks.limits import Limit, ReadingRule, limit_of

MIN_PEERS, MIN_HISTORY = 5, 30
PEER_Z = 4.0
CUSUM_SLACK, CUSUM_LIMIT, CUSUM_CLIP = 1.0, 12.0, 3.0
"""In standard deviations: what of each residual is let pass, what sum convicts, and the most that one run adds.

With noise of 1 % and 300 seeds of 180 runs: 0 healthy nodes flagged, a step of -2 % found on .997 of them (after 13
runs in the middle), one of -4 % on all (after 7).
"""
MIN_SPREAD = 0.004
"""Least standard deviation of residuals, so that a history without noise does not convict by rounding."""


@dataclass(frozen=True)
class PeerReading:
    """A reading of a cohort: same check, device model and driver. `spread` is 1.4826 times the median deviation."""

    median: float
    spread: float
    count: int


@dataclass(frozen=True)
class Comparison:
    """Standards to compare an answer with. `history` holds earlier residuals per reading, oldest first.

    `golden` is the peers' digest for exactly this stack, "" for none; `near` tells of goldens of other stacks.
    `disturbed` says who else worked on the node meanwhile, "" for nobody.
    """

    device: str = "cpu"
    cores: int = 1
    golden: str = ""
    golden_peers: int = 0
    near: str = ""
    peers: Mapping[str, PeerReading] = field(default_factory=dict)
    history: Mapping[str, Sequence[float]] = field(default_factory=dict)
    limits: Mapping[str, Limit] = field(default_factory=dict)
    rules: Mapping[str, ReadingRule] = field(default_factory=dict)
    disturbed: str = ""


@dataclass(frozen=True)
class Judgement:
    """A verdict, why, and what it rests on."""

    verdict: Verdict
    detail: str
    basis: tuple[str, ...] = ()
    uncompared: bool = False
    """The check measured, and there is nothing to compare it with."""


def judge(spec: CheckSpec, answer: Answer, beside: Comparison) -> Judgement:
    """The verdict on one answer."""
    if answer.unable:
        return Judgement(Verdict.inconclusive, answer.unable)
    said = _bits(spec, answer, beside) or _sanity(spec, answer, beside)
    if said is not None:
        return said
    basis = _bits_basis(spec, answer, beside)
    for rule in (_slowness, _floor, _peers, _history):
        found, rests_on = rule(spec, answer, beside)
        if found and beside.disturbed:
            text = f"{clean(beside.disturbed, 200)} meanwhile, which proves nothing of the node: {found}"
            return Judgement(Verdict.inconclusive, f"{text}; run it again when nothing else runs there"[:500], basis)
        if found:
            return Judgement(Verdict.failed, found, (*basis, rests_on))
        basis = (*basis, rests_on) if rests_on else basis
    return _unconvicted(spec, answer, beside, basis)


def residual(value: float, reading: str, beside: Comparison) -> float:
    """A reading beside its peers' median, as a ratio; beside 1 where there are no peers."""
    peers = beside.peers.get(reading)
    return value / peers.median if peers is not None and peers.count >= MIN_PEERS and peers.median > 0 else value


def _bits(spec: CheckSpec, answer: Answer, beside: Comparison) -> Judgement | None:
    """Wrong bits: definite faults, a result that does not repeat itself, one that differs from peers'."""
    if answer.faults:
        return Judgement(Verdict.failed, "; ".join(answer.faults)[:500], ("exact",))
    repeats = all(replay == answer.digest for replay in answer.replays)
    if not repeats and spec.sites:
        return (
            _unrepeated(answer, beside)
            if answer.digest == beside.golden or not beside.golden
            else _differs(answer, beside)
        )
    if not repeats:
        return Judgement(Verdict.failed, "the same work gave other bits when it was done again", ("replay",))
    if spec.golden and beside.golden and answer.digest != beside.golden:
        return _differs(answer, beside)
    return None


def _differs(answer: Answer, beside: Comparison) -> Judgement:
    stack = ", ".join(f"{k} {v}" for k, v in answer.stack.items() if not k.startswith("param") and v)
    text = (
        f"its bits {answer.digest[:12]} differ from {beside.golden[:12]} of {beside.golden_peers} peers with this "
        f"stack; a witness must tell apart the node, the stack ({stack}) and the golden: run it on another node"
    )
    return Judgement(Verdict.suspect, text[:500], ("golden",))


def _unrepeated(answer: Answer, beside: Comparison) -> Judgement:
    """A site's own code that gave other bits when it was run again: peers tell whether it does that everywhere."""
    if not beside.golden:
        text = f"{answer.looked}: the module does not repeat itself, or the node does not; no peers tell which"
        return Judgement(Verdict.inconclusive, text[:500])
    text = f"{answer.looked}, and {beside.golden_peers} peers have one result: the node does not repeat its bits"
    return Judgement(Verdict.failed, text[:500], ("replay", f"golden of {beside.golden_peers} peers"))


def _sanity(spec: CheckSpec, answer: Answer, beside: Comparison) -> Judgement | None:
    """Readings that cannot be: the test is broken, and nothing else of it counts."""
    for name, value in answer.readings.items():
        reading = spec.readings.get(name)
        if reading is None:
            return Judgement(Verdict.inconclusive, f"{name} is no reading of this check")
        if not math.isfinite(value):
            return Judgement(Verdict.inconclusive, f"{name} is {value}: the test is broken")
        if value < 0 and name not in _SIGNED:
            return Judgement(Verdict.inconclusive, f"{name} is negative ({value:g}): the test is broken")
        limit = _limit(name, beside, higher=reading.higher)
        if limit and limit.floor and (limit.floor > limit.bound if reading.higher else limit.floor < limit.bound):
            text = f"the pass rules ask {limit.floor:g} {reading.unit} of {name}, beyond the bound {limit.bound:g}"
            return Judgement(Verdict.inconclusive, f"{text}: no node could pass")
        if limit and (value > limit.bound if reading.higher else value < limit.bound):
            text = (
                f"{name} is {value:.4g} {reading.unit}, beyond the physical bound {limit.bound:g}: the test is broken"
            )
            return Judgement(Verdict.inconclusive, text)
    if unseen := sorted(beside.rules.keys() - answer.readings.keys()):
        text = f"it did not measure {', '.join(unseen)}, which the pass rules judge"
        return Judgement(Verdict.inconclusive, text[:500])
    return None


_SIGNED = frozenset({"fade_percent", "loss"})


def _limit(name: str, beside: Comparison, *, higher: bool) -> Limit | None:
    known = beside.limits.get(name) or limit_of(name, beside.device, beside.cores)
    rule = beside.rules.get(name)
    return known if rule is None else rule.over(known, higher=higher)


def _bits_basis(spec: CheckSpec, answer: Answer, beside: Comparison) -> tuple[str, ...]:
    found = ["exact"] if spec.exact else []
    if spec.golden and beside.golden and answer.digest:
        found.append(f"golden of {beside.golden_peers} peers")
    return tuple(found)


def _judged(spec: CheckSpec, answer: Answer) -> list[tuple[str, float, bool, str]]:
    """The readings that are judged: name, value, whether more is better, unit."""
    rows = ((name, value, spec.readings[name]) for name, value in answer.readings.items())
    return [(name, value, reading.higher, reading.unit) for name, value, reading in rows if not reading.informative]


def _slowness(_: CheckSpec, answer: Answer, __: Comparison) -> tuple[str, str]:
    return "; ".join(answer.slowness)[:500], "exact" if answer.slowness else ""


def _floor(spec: CheckSpec, answer: Answer, beside: Comparison) -> tuple[str, str]:
    used = False
    for name, value, higher, unit in _judged(spec, answer):
        limit = _limit(name, beside, higher=higher)
        if limit is None or not limit.floor:
            continue
        used = True
        if value < limit.floor if higher else value > limit.floor:
            way = "under the floor" if higher else "over the limit"
            return f"{name} is {value:.4g} {unit}, {way} of {limit.floor:g}", "floor"
    return "", "floor" if used else ""


def _peers(spec: CheckSpec, answer: Answer, beside: Comparison) -> tuple[str, str]:
    fewest = 0
    for name, value, higher, unit in _judged(spec, answer):
        peers = beside.peers.get(name)
        if peers is None or peers.count < MIN_PEERS or peers.median <= 0:
            continue
        fewest = min(fewest or peers.count, peers.count)
        z = (value - peers.median) / max(peers.spread, MIN_SPREAD * peers.median) * (1 if higher else -1)
        if z < -PEER_Z:
            told = f"{name} is {value:.4g} {unit}, {peers.count} peers have {peers.median:.4g}: z {z:.1f}"
            return told, f"{peers.count} peers"
    return "", f"{fewest} peers" if fewest else ""


def _history(spec: CheckSpec, answer: Answer, beside: Comparison) -> tuple[str, str]:
    fewest = 0
    for name, value, higher, _ in _judged(spec, answer):
        past = beside.history.get(name, ())
        if len(past) < MIN_HISTORY:
            continue
        fewest = min(fewest or len(past), len(past))
        total = cusum((*past, residual(value, name, beside)), higher=higher)
        if total > CUSUM_LIMIT:
            middle = _median(past[:MIN_HISTORY])
            now = residual(value, name, beside)
            text = f"{name} has drifted from its own history: {now / middle - 1:+.1%} now, CUSUM {total:.1f}"
            return text, f"own history of {len(past)}"
    return "", f"own history of {fewest}" if fewest else ""


def cusum(residuals: Sequence[float], *, higher: bool) -> float:
    """The one-sided cumulative sum, in standard deviations, of what is worse than the first MIN_HISTORY residuals.

    Page (1954); one run adds CUSUM_CLIP at most, so that a single bad run convicts nobody. It has a slack for the
    error of the baseline's own middle.
    """
    first = residuals[:MIN_HISTORY]
    middle = _median(first)
    if middle <= 0:
        return 0.0
    spread = max(1.4826 * _median([abs(one - middle) for one in first]), MIN_SPREAD * middle)
    total = 0.0
    for one in residuals[MIN_HISTORY:]:
        worse = (middle - one if higher else one - middle) / spread
        total = max(0.0, total + min(worse, CUSUM_CLIP) - CUSUM_SLACK)
    return total


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _unconvicted(spec: CheckSpec, answer: Answer, beside: Comparison, basis: tuple[str, ...]) -> Judgement:
    if spec.golden and not beside.golden:
        near = f"; {beside.near}" if beside.near else ""
        text = f"{answer.looked}: nobody to compare bits {answer.digest[:12]} with, no golden of this stack{near}"
        return Judgement(Verdict.inconclusive, text[:500], basis, uncompared=True)
    if not basis:
        text = f"{answer.looked}: compared with nothing (no floor, peers or history)"
        return Judgement(Verdict.inconclusive, text, uncompared=True)
    told = ", ".join(
        f"{name} {value:.4g} {spec.readings[name].unit}".rstrip() for name, value in answer.readings.items()
    )
    return Judgement(Verdict.passed, f"{answer.looked}: {told}".rstrip(": ")[:500], basis)
