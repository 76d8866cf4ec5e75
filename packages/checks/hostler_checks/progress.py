"""Progress of a run for people and for the agent: its place, hours under load of those wanted, and time left."""

from pathlib import Path
from typing import Any

from hostler_checks import state_dir
from hostler_checks.profiles import Profile
from hostler_checks.run_state import RunState

FILE = "progress.json"


def wanted_s(profile: Profile, state: RunState) -> float:
    """Seconds under load that the profile's shares ask for in all."""
    return sum(stage.share for stage in profile.stages) * state.for_s


def left_s(profile: Profile, state: RunState) -> float | None:
    """Seconds until the end, by the pace so far; None before there is one."""
    if state.verdict:
        return 0.0
    if state.load_s <= 0:
        return None
    open_s = 0.0
    for index, (stage, tally) in enumerate(zip(profile.stages, state.stages, strict=True)):
        if index >= state.stage and stage.share:
            open_s += max(0.0, stage.share * state.for_s - tally.load_s)
    return open_s * max(1.0, state.elapsed_s / state.load_s)


def sentence(profile: Profile, state: RunState) -> str:
    """The progress in one sentence."""
    if state.verdict:
        return f"{state.profile} {state.verdict}: {state.detail}"
    stage = profile.stages[state.stage]
    wanted, left = wanted_s(profile, state), left_s(profile, state)
    done = f"{duration(state.load_s)} of {duration(wanted)} under load" if wanted else f"{state.steps_done} checks done"
    eta = f", about {duration(left)} left" if wanted and left is not None else ""
    found = sum(tally.failed for tally in state.stages)
    failed = f", {found} failed" if found else ""
    cut = f", interrupted {state.interruptions} times" if state.interruptions else ""
    place = f"stage {stage.name} ({state.stage + 1} of {len(profile.stages)})"
    return f"{state.profile}: {place}, {stage.steps[state.step].spec.name}, {done}{eta}{failed}{cut}"


def write(folder: Path, profile: Profile, state: RunState) -> None:
    """Write the progress beside the state. Raises OSError."""
    body: dict[str, Any] = {
        "profile": state.profile,
        "run_id": state.run_id,
        "text": sentence(profile, state),
        "load_s": round(state.load_s, 1),
        "wanted_s": round(wanted_s(profile, state), 1),
        "left_s": None if (left := left_s(profile, state)) is None else round(left, 1),
        "steps_done": state.steps_done,
        "verdict": state.verdict,
    }
    state_dir.write(folder / FILE, body)


def duration(seconds: float) -> str:
    """A length of time for people."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
