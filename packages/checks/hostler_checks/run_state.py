"""The state of a profile's run, step by step: where it stands, what it has found, hours under load. Pure.

A step is one check on all parts. What a step came to is recorded with the place that follows it, so that a run which
was cut off goes on at the step that it had not recorded.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hostler_checks.answers import CheckResult, Verdict, as_document, result_of
from hostler_checks.profiles import Profile, Stage, Step

FORMAT = 1
MAX_FINDINGS, MAX_BOOTS, MAX_SERIES = 100, 100, 400
NO_LOAD_TURNS, NO_LOAD_S = 3, 0.05
"""A stage ends, not passed, after so many turns that made no load: its hours would never be reached."""


@dataclass
class Series:
    """A reading over the run: count, extremes, running mean and sum of squares (Welford), least-squares slope."""

    count: int = 0
    low: float = math.inf
    high: float = -math.inf
    mean: float = 0.0
    squares: float = 0.0
    last: float = 0.0
    lag: float = 0.0
    """Sum of (index - mean index) x (value - mean), for the slope."""

    def add(self, value: float) -> None:
        """Take one more value in."""
        self.count += 1
        before = self.mean
        self.low, self.high, self.last = min(self.low, value), max(self.high, value), value
        self.mean += (value - before) / self.count
        self.squares += (value - before) * (value - self.mean)
        self.lag += (self.count - 1) / 2 * (value - before)

    @property
    def deviation(self) -> float:
        """Standard deviation of a sample; 0 for fewer than two values."""
        return math.sqrt(max(self.squares, 0.0) / (self.count - 1)) if self.count > 1 else 0.0

    @property
    def drift_percent(self) -> float:
        """How far the fitted line moves over the run, in percent of the mean."""
        if self.count < 3 or not self.mean:
            return 0.0
        slope = self.lag / (self.count * (self.count**2 - 1) / 12)
        return slope * (self.count - 1) / self.mean * 100


@dataclass
class StageTally:
    """One stage's runs so far."""

    load_s: float = 0.0
    turns: int = 0
    idle_turns: int = 0
    runs: int = 0
    failed: int = 0
    inconclusive: int = 0
    required: int = 0
    ended: str = ""


@dataclass
class RunState:
    """A run of one profile. `stage`, `turn` and `step` are the place of the next step."""

    profile: str
    digest: str
    for_s: float
    node: str
    run_id: str = ""
    parts: tuple[str, ...] = ("cpu",)
    stage: int = 0
    step: int = 0
    steps_done: int = 0
    load_s: float = 0.0
    elapsed_s: float = 0.0
    turn_load_s: float = 0.0
    interruptions: int = 0
    boots: list[str] = field(default_factory=list)
    stages: list[StageTally] = field(default_factory=list)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    series: dict[str, Series] = field(default_factory=dict)
    latest: dict[str, CheckResult] = field(default_factory=dict)
    findings: list[CheckResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    started: str = ""
    verdict: str = ""
    detail: str = ""
    planted: str = ""


def begun(profile: Profile, node: str, for_s: float, parts: tuple[str, ...], run_id: str = "") -> RunState:
    """A run that has not done anything yet."""
    tallies = [StageTally() for _ in profile.stages]
    return RunState(profile.name, profile.digest, for_s, node, run_id, parts, stages=tallies)


def next_step(profile: Profile, state: RunState) -> tuple[Stage, Step] | None:
    """The step to run now; None once the run has ended."""
    if state.verdict or state.stage >= len(profile.stages):
        return None
    stage = profile.stages[state.stage]
    return stage, stage.steps[state.step]


def step_seconds(profile: Profile, step: Step, for_s: float) -> float:
    """A step's seconds: shorter in a run that is shorter than its profile."""
    return max(0.2, step.seconds * min(1.0, for_s / profile.for_s))


def record(profile: Profile, state: RunState, results: Sequence[CheckResult], elapsed_s: float) -> None:
    """Take the results of the present step and move to the next place. `elapsed_s` is by the monotonic clock.

    Time under load is what each part worked, at most what passed; the least of all parts counts.
    """
    tally = state.stages[state.stage]
    load_s = max(0.0, min((min(one.load_s, elapsed_s) for one in results), default=0.0))
    tally.load_s += load_s
    state.load_s += load_s
    state.turn_load_s += load_s
    state.elapsed_s += max(0.0, elapsed_s)
    state.steps_done += 1
    for one in results:
        _count(state, tally, one)
    grave = next((one for one in results if one.grave), None)
    if grave is not None:
        tally.ended = f"ended early: {grave.check} on {grave.part} {grave.verdict}"
        end(state, grave.verdict, f"{grave.check} on {grave.part}: {grave.detail}")
        return
    state.step += 1
    if state.step >= len(profile.stages[state.stage].steps):
        _end_turn(profile, state, tally)


def end(state: RunState, verdict: Verdict, detail: str) -> None:
    """End the run with a verdict."""
    state.verdict, state.detail = verdict.value, detail[:500]


def _count(state: RunState, tally: StageTally, result: CheckResult) -> None:
    name = f"{result.check}/{result.part}"
    row = state.counts.setdefault(name, {})
    row[result.verdict.value] = row.get(result.verdict.value, 0) + 1
    tally.runs += 1
    tally.required += result.required
    tally.failed += result.verdict in (Verdict.failed, Verdict.suspect)
    tally.inconclusive += result.required and result.verdict is Verdict.inconclusive
    state.latest[name] = result
    if result.verdict is not Verdict.passed and (len(state.findings) < MAX_FINDINGS or result.grave):
        known = any((f.check, f.part, f.detail) == (result.check, result.part, result.detail) for f in state.findings)
        if not known:
            state.findings.append(result)
    if result.verdict in (Verdict.passed, Verdict.failed) and not result.disturbed:
        for reading, value in result.readings.items():
            if math.isfinite(value) and (f"{name}/{reading}" in state.series or len(state.series) < MAX_SERIES):
                state.series.setdefault(f"{name}/{reading}", Series()).add(value)


def _end_turn(profile: Profile, state: RunState, tally: StageTally) -> None:
    """All checks of the stage have run once more: again, or the next stage, or the end."""
    stage = profile.stages[state.stage]
    tally.turns += 1
    tally.idle_turns = tally.idle_turns + 1 if state.turn_load_s < NO_LOAD_S else 0
    state.step, state.turn_load_s = 0, 0.0
    wanted_s = stage.share * state.for_s
    without_load = bool(stage.share) and tally.idle_turns >= NO_LOAD_TURNS
    if not without_load and (tally.load_s < wanted_s if stage.share else tally.turns < stage.repeats):
        return
    tally.ended = _stage_end(stage, tally, without_load=without_load)
    state.stage += 1
    if tally.failed > stage.failed:
        end(state, Verdict.failed, _failures(state, stage))
    elif state.stage >= len(profile.stages):
        _conclude(profile, state)


def _stage_end(stage: Stage, tally: StageTally, *, without_load: bool) -> str:
    if tally.failed > stage.failed:
        return f"failed: {tally.failed} of {tally.runs} runs failed, {stage.failed} may"
    if without_load:
        return f"inconclusive: {tally.idle_turns} turns made no load, the time under load is not reached"
    share = tally.inconclusive / tally.required * 100 if tally.required else 0.0
    if share > stage.inconclusive_percent:
        return f"inconclusive: {tally.inconclusive} of {tally.required} required runs said nothing"
    return "passed"


def _failures(state: RunState, stage: Stage) -> str:
    told = [f"{one.check} on {one.part}: {one.detail}" for one in state.findings if one.verdict is Verdict.failed]
    return f"stage {stage.name}: {'; '.join(told[-3:])}"


def _conclude(profile: Profile, state: RunState) -> None:
    """The verdict of the whole run: passed only where each stage has, and at least one check that is required has."""
    opened = [
        f"{stage.name} {tally.ended}"
        for stage, tally in zip(profile.stages, state.stages, strict=True)
        if tally.ended != "passed"
    ]
    silent = sorted(
        name for name, one in state.latest.items() if one.verdict is Verdict.inconclusive and not one.required
    )
    passed = sum(row.get("passed", 0) for row in state.counts.values())
    failed = sum(tally.failed for tally in state.stages)
    if opened or not any(one.required and one.verdict is Verdict.passed for one in state.latest.values()):
        said = [f"{o.check} on {o.part}: {o.detail}" for o in state.latest.values() if _is_missing(o)]
        end(state, Verdict.inconclusive, "; ".join([*opened, *said]) or "no check that is required has passed")
        return
    told = f"{passed} runs passed, {state.load_s / 3600:.2f} h under load"
    told += f", {failed} failed within what the profile allows" if failed else ""
    told += f"; not judged: {', '.join(silent)}" if silent else ""
    end(state, Verdict.passed, told)


def _is_missing(result: CheckResult) -> bool:
    return result.required and result.verdict is Verdict.inconclusive


def as_body(state: RunState) -> dict[str, Any]:
    """The state as a document."""
    told = dataclasses.asdict(state)
    told["latest"] = {name: as_document(one) for name, one in state.latest.items()}
    told["findings"] = [as_document(one) for one in state.findings]
    return {"format": FORMAT, "state": told}


def state_of(body: dict[str, Any], profile: Profile) -> RunState:
    """Read a state back. Raises ValueError for one of another format, profile or shape."""
    if body.get("format") != FORMAT:
        raise ValueError(f"format {body.get('format')} is not {FORMAT}")
    told = dict(body["state"])
    if (told.get("profile"), told.get("digest")) != (profile.name, profile.digest):
        raise ValueError("it is of another profile, or the profile has changed since")
    try:
        told["stages"] = [StageTally(**one) for one in told["stages"]]
        told["series"] = {name: Series(**one) for name, one in told["series"].items()}
        told["latest"] = {name: result_of(one) for name, one in told["latest"].items()}
        told["findings"] = [result_of(one) for one in told["findings"]]
        told["parts"] = tuple(told["parts"])
        state = RunState(**told)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"it cannot be read: {error}") from None
    if len(state.stages) != len(profile.stages) or not 0 <= state.stage <= len(profile.stages):
        raise ValueError("its stages are not the profile's")
    return state
