"""The run of a profile: step after step, each kept on disk before the next, from where an earlier run was cut off."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from hostler_checks import history, progress, report, run_state, state_dir
from hostler_checks.answers import CheckResult, Verdict, clean
from hostler_checks.catalogue import CheckSpec
from hostler_checks.profiles import Profile, Step
from hostler_checks.run_state import RunState
from hostler_checks.runner import CheckRunner, Request
from hostler_checks.state_dir import DamagedError, InUseError

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
HOST = "host"


@dataclass(frozen=True)
class SuiteRun:
    """Names the checks to run, and where. `device`: auto, gpu (none is inconclusive), cpu (GPU checks not required)."""

    profile: Profile
    folder: Path
    node: str
    for_s: float
    device: str = "auto"
    run_id: str = ""
    plant: str = ""
    told: Callable[[str], None] = field(default=lambda _: None)


def run(wanted: SuiteRun, runner: CheckRunner) -> RunState:
    """Run the profile to its end, or until it is called off. Never raises: what is amiss is inconclusive."""
    state = run_state.begun(wanted.profile, wanted.node, wanted.for_s, (), wanted.run_id)
    try:
        with state_dir.held(wanted.folder):
            state = _opened(wanted, runner)
            return _through(wanted, runner, state)
    except InUseError as error:
        run_state.end(state, Verdict.inconclusive, str(error))
    except OSError as error:
        _unkept(wanted, state, error)
    return state


def refused(wanted: SuiteRun, why: str) -> RunState:
    """The end of a run that never began; nothing is written, and an unfinished run stays as it is."""
    state = run_state.begun(wanted.profile, wanted.node, wanted.for_s, (), wanted.run_id)
    run_state.end(state, Verdict.inconclusive, clean(why, 500))
    return state


def _unkept(wanted: SuiteRun, state: RunState, error: OSError) -> None:
    """End a run whose state or report could not be written: never passed, and what has convicted the node stands."""
    why = f"{error.filename or wanted.folder}: {error.strerror or error}"
    if state.verdict in (Verdict.failed, Verdict.suspect):
        state.notes.append(f"the report could not be kept in {why}")
    elif state.steps_done:
        text = f"what was found could not be kept in {why}; the last step kept stands"
        run_state.end(state, Verdict.inconclusive, text)
    else:
        text = f"nothing was run, as nothing can be kept in {why}; name a folder that may be written (--state)"
        run_state.end(state, Verdict.inconclusive, text)


def state_file(wanted: SuiteRun) -> Path:
    """Path of an unfinished run."""
    return wanted.folder / f"{wanted.profile.name}.state.json"


def _opened(wanted: SuiteRun, runner: CheckRunner) -> RunState:
    """The run that was cut off, or a new one."""
    notes: list[str] = []
    state = _kept(wanted, notes) if wanted.profile.resume else None
    if state is not None and state.verdict:
        return state
    if state is not None:
        state.interruptions += 1
        state.notes += notes
    else:
        parts, amiss = runner.parts(wanted.device)
        state = run_state.begun(wanted.profile, wanted.node, wanted.for_s, parts, wanted.run_id)
        state.started = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        state.planted, state.notes = wanted.plant, [*notes, *filter(None, (amiss,))]
        if amiss and wanted.device == "gpu":
            run_state.end(state, Verdict.inconclusive, amiss)
    boot = _boot_id()
    if not state.boots or state.boots[-1] != boot:
        state.boots = [*state.boots, boot][-run_state.MAX_BOOTS :]
    return state


def _kept(wanted: SuiteRun, notes: list[str]) -> RunState | None:
    """The state on disk, where it is of this run. One of another run is set aside, and so is a damaged one."""
    path = state_file(wanted)
    try:
        body = state_dir.read(path)
    except DamagedError as error:
        notes.append(str(error))
        return None
    if body is None:
        return None
    try:
        state = run_state.state_of(body, wanted.profile)
    except ValueError as error:
        _set_aside(path, str(error), notes)
        return None
    if state.verdict and _is_told(wanted, state):
        return None
    asked = (wanted.run_id, wanted.for_s, wanted.node, wanted.plant)
    if (state.run_id, state.for_s, state.node, state.planted) != asked:
        _set_aside(path, "it is of another run", notes)
        return None
    return state


def _is_told(wanted: SuiteRun, state: RunState) -> bool:
    """Whether a finished run is over for good: it is another's, or has no id to ask for it by and left its report."""
    if state.run_id != wanted.run_id:
        return True
    if wanted.run_id:
        return False
    try:
        kept = state_dir.read(wanted.folder / f"{wanted.profile.name}.report.json") or {}
    except DamagedError:
        return False
    return (kept.get("started"), kept.get("steps")) == (state.started, state.steps_done)


def _set_aside(path: Path, why: str, notes: list[str]) -> None:
    notes.append(
        f"an earlier run's state was not taken up: {why}; it is kept as {state_dir.set_aside(path, 'earlier')}"
    )


def _through(wanted: SuiteRun, runner: CheckRunner, state: RunState) -> RunState:
    past = _history(wanted, state)
    while (at := run_state.next_step(wanted.profile, state)) is not None:
        _, step = at
        requests = [_request(wanted, state, step, part) for part in _parts(step.spec, state)]
        began = monotonic()
        results = runner.run(requests, past if wanted.profile.history else None)
        if runner.is_called_off:
            run_state.end(state, Verdict.inconclusive, f"called off during {step.spec.name}")
            return state
        run_state.record(wanted.profile, state, results, monotonic() - began)
        _remember(runner, requests, results, past)
        if wanted.profile.resume:
            state_dir.write(state_file(wanted), run_state.as_body(state))
        progress.write(wanted.folder, wanted.profile, state)
        wanted.told(progress.sentence(wanted.profile, state))
    if state.planted and state.verdict == Verdict.passed:
        run_state.end(state, Verdict.inconclusive, f"a fault was planted and not found: {state.planted}")
    if wanted.profile.history:
        history.save(wanted.folder, past)
    report.write(wanted.folder, wanted.profile, state)
    return state


def _history(wanted: SuiteRun, state: RunState) -> dict[str, list[float]]:
    try:
        return history.load(wanted.folder) if wanted.profile.history else {}
    except DamagedError as error:
        state.notes.append(str(error))
        return {}


def _remember(
    runner: CheckRunner, requests: list[Request], results: list[CheckResult], past: dict[str, list[float]]
) -> None:
    """Residuals of sound readings; a planted run teaches nothing, nor one beside others' work."""
    for request, result in zip(requests, results, strict=True):
        if result.verdict in (Verdict.passed, Verdict.failed) and not (result.planted or result.disturbed):
            history.add(past, runner.residuals(request, result))


def _parts(spec: CheckSpec, state: RunState) -> tuple[str, ...]:
    return (HOST,) if spec.host else state.parts


def _request(wanted: SuiteRun, state: RunState, step: Step, part: str) -> Request:
    spec = step.spec
    on_gpus = any(one != "cpu" for one in state.parts)
    params: dict[str, Any] = {**(spec.gpu if on_gpus else spec.cpu), **step.params}
    if spec.entry == "storage:fio":
        params["directory"] = str(wanted.folder)
    return Request(
        spec,
        part,
        run_state.step_seconds(wanted.profile, step, state.for_s),
        params,
        step.required and not (spec.gpu_only and wanted.device == "cpu"),
        wanted.plant,
        step.limits,
        step.rules,
    )


def _boot_id() -> str:
    with contextlib.suppress(OSError):
        return BOOT_ID.read_text("ascii").strip()
    return "unknown"
