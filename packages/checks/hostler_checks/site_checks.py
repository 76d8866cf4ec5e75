"""A site's own checks of the suite: one YAML file each, which names a command, a model or drives, and who runs it."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from yaml.nodes import Node

from hostler_checks import yaml_reader as y
from hostler_checks.catalogue import CHECKS, TRAIN_MODEL, CheckSpec, Reading
from hostler_checks.limits import INF, Limit
from hostler_checks.profiles import NAMES, Profile, Stage, Step
from hostler_checks.tool_outputs import READERS
from hostler_checks.trusted_files import refuse_untrusted

DIRECTORY = Path("/etc/hostler/suite.d")
MAX_FILES = 64
_CHECK = frozenset(
    {
        "check",
        "version",
        "detects",
        "command",
        "script",
        "profiles",
        "readings",
        "seconds",
        "deadline",
        "required",
        "tool",
        "model",
        "shapes",
        "steps",
        "every",
        "folders",
        "mib",
    }
)
_OF = {
    "command": frozenset({"tool", "readings"}),
    "model": frozenset({"shapes", "steps", "every"}),
    "folders": frozenset({"mib", "readings"}),
}
_KINDS_OWN = frozenset().union(*_OF.values())
MAX_FOLDERS = 16
_ENTRY = re.compile(r"(/[^:\0]{1,200}\.py|[A-Za-z_][\w.]{0,99}):[A-Za-z_]\w{0,63}")
MAX_SHAPES, MAX_SHAPE = 16, 1 << 30
_READING = frozenset({"unit", "better", "floor", "bound"})


def added(profile: Profile, directory: Path, owner: int = 0) -> Profile:
    """The profile with the checks that a site has for it, as its last stage. Raises ValueError, OSError.

    The directory and its files must belong to `owner` or root and be writable by nobody else.
    """
    if not directory.is_dir():
        return profile
    refuse_untrusted((directory,), owner)
    files = sorted(directory.glob("*.yaml"))
    if len(files) > MAX_FILES:
        raise y.ProfileError(f"{directory}: at most {MAX_FILES} checks are read")
    refuse_untrusted(files, owner)
    steps = [step for file in files if (step := _for(profile.name, file)) is not None]
    return with_steps(profile, steps)


def with_steps(profile: Profile, steps: list[Step]) -> Profile:
    """The profile with these steps behind its own."""
    return replace(profile, stages=(*profile.stages, Stage("site", tuple(steps)))) if steps else profile


def model_step(entry: str, shapes: list[str], seconds: float) -> Step:
    """The step that trains a site's own module, `FILE.py:NAME` or `package.module:NAME`. Raises ProfileError."""
    problems = y.Problems("--model")
    wrong = _wrong_entry(entry)
    told: dict[str, int] = {}
    for shape in shapes:
        name, _, number = shape.partition("=")
        if not name.isidentifier() or not number.isdecimal() or not 0 < int(number[:12]) <= MAX_SHAPE:
            wrong = wrong or f"{shape[:40]!r} is no shape: NAME=NUMBER is expected, as batch=4"
        else:
            told[name] = int(number)
    if wrong:
        problems.found.append((1, wrong))
    problems.raise_any()
    return Step(TRAIN_MODEL, seconds, True, {**TRAIN_MODEL.cpu, "model": entry, "shapes": dict(sorted(told.items()))})


def _wrong_entry(entry: str) -> str:
    if _ENTRY.fullmatch(entry):
        return ""
    return f"{entry[:80]!r} names no model: /FOLDER/FILE.py:FUNCTION or package.module:FUNCTION is expected"


def _for(profile: str, file: Path) -> Step | None:
    step, profiles = parsed(file.read_text("utf-8", "replace"), file.name)
    return step if profile in profiles else None


def parsed(text: str, name: str) -> tuple[Step, tuple[str, ...]]:
    """A site's check, and the profiles that run it. Raises ProfileError."""
    problems = y.Problems(name)
    found = y.fields(y.tree(text, problems), _CHECK, problems, needed="check")
    command = [y.text(one, problems) for one in y.items(found.get("command"), problems)]
    script, model = y.text(found.get("script"), problems), y.text(found.get("model"), problems)
    folders = [y.text(one, problems) for one in y.items(found.get("folders"), problems)]
    if sum(map(bool, (command, script, model, folders))) != 1:
        problems.found.append((1, "a check has one of these: a command (a list of words), a script, a model, folders"))
    kind = "model" if model else "folders" if folders else "command"
    for key in sorted(_KINDS_OWN & found.keys() - _OF[kind]):
        whose = " or ".join(one for one, keys in _OF.items() if key in keys)
        problems.add(found[key], f"{key} is for checks with {whose}")
    title = y.text(found.get("check"), problems, "check")
    if title in CHECKS or title == TRAIN_MODEL.name or not title.replace("_", "").isalnum():
        problems.add(found["check"], f"{title[:40]!r} is taken by the suite, or no word of letters, digits and _")
    readings = _readings(found.get("readings"), problems)
    spec = _spec(kind, found, title, readings, problems)
    tool = y.text(found.get("tool"), problems)
    if tool and tool not in READERS:
        problems.add(found["tool"], f"a tool is one of {', '.join(READERS)}")
    profiles = tuple(_profile(one, problems) for one in y.items(found.get("profiles"), problems))
    if not profiles:
        problems.found.append((1, f"profiles is missing, so that nothing would run it: a list of {', '.join(NAMES)}"))
    seconds = y.duration(found.get("seconds"), (0.1, 3600.0), problems, 1.0)
    required = y.truth(found.get("required"), problems, default=True)
    params: dict[str, Any] = {"command": command or ["/bin/sh", "-c", script]}
    params |= {"tool": tool, "wanted": list(readings)} if tool else {}
    if model:
        params = _model_params(found, model, problems)
    elif folders:
        params = _drive_params(found, folders, problems)
    problems.raise_any()
    limits = {reading: limit for reading, (_, limit) in readings.items()}
    return Step(spec, seconds, required, params, limits), profiles


def _command_spec(
    found: Mapping[str, Node], title: str, readings: Mapping[str, tuple[Reading, Limit]], problems: y.Problems
) -> CheckSpec:
    return CheckSpec(
        name=title,
        version=_version(found, problems),
        detects=y.text(found.get("detects"), problems, "what the site says"),
        entry="site:run",
        cost="the site's",
        memory="the site's",
        readings={reading: row for reading, (row, _) in readings.items()},
        deadline_s=y.duration(found.get("deadline"), (1.0, 3600.0), problems, 60.0),
        exact=not readings,
        host=True,
    )


def _spec(
    kind: str,
    found: Mapping[str, Node],
    title: str,
    readings: Mapping[str, tuple[Reading, Limit]],
    problems: y.Problems,
) -> CheckSpec:
    """The check of a command, or the suite's own for a model or drives under the site's name."""
    if kind == "command":
        return _command_spec(found, title, readings, problems)
    own = TRAIN_MODEL if kind == "model" else CHECKS["nvme_fio"]
    return replace(
        own,
        name=title,
        version=_version(found, problems),
        detects=y.text(found.get("detects"), problems, own.detects),
        deadline_s=y.duration(found.get("deadline"), (1.0, 3600.0), problems, own.deadline_s),
    )


def _drive_params(found: Mapping[str, Node], folders: list[str], problems: y.Problems) -> dict[str, Any]:
    if len(folders) > MAX_FOLDERS or not all(folder.startswith("/") for folder in folders):
        problems.add(found["folders"], f"at most {MAX_FOLDERS} folders are named by their whole paths")
    return {"folders": folders, "mib": int(y.number(found.get("mib"), (1, 1 << 16), problems, 1024))}


def _model_params(found: Mapping[str, Node], model: str, problems: y.Problems) -> dict[str, Any]:
    if wrong := _wrong_entry(model):
        problems.add(found["model"], wrong)
    rows = y.pairs(found.get("shapes"), problems)
    if len(rows) > MAX_SHAPES:
        problems.add(found["shapes"], f"at most {MAX_SHAPES} shapes are taken")
    shapes = {name: int(y.number(value, (1, MAX_SHAPE), problems, 1)) for name, value in rows}
    steps = int(y.number(found.get("steps"), (1, 100_000), problems, TRAIN_MODEL.cpu["steps"]))
    every = int(y.number(found.get("every"), (1, 100_000), problems, min(steps, TRAIN_MODEL.cpu["every"])))
    if every > steps:
        problems.add(found["every"], f"of {steps} steps none is each {every}th: nothing would be compared")
    return {"model": model, "shapes": dict(sorted(shapes.items())), "steps": steps, "every": every}


def _version(found: Mapping[str, Node], problems: y.Problems) -> int:
    return int(y.number(found.get("version"), (1, 1_000_000), problems, 1))


def _profile(node: Node, problems: y.Problems) -> str:
    name = y.text(node, problems)
    if name not in NAMES:
        problems.add(node, f"a profile is one of {', '.join(NAMES)}")
    return name


def _readings(node: Node | None, problems: y.Problems) -> dict[str, tuple[Reading, Limit]]:
    """Each reading: which way is better, the floor under which it has failed, the bound beyond which it cannot be."""
    told: dict[str, tuple[Reading, Limit]] = {}
    for name, value in y.pairs(node, problems):
        found = y.fields(value, _READING, problems, needed="floor")
        better = y.text(found.get("better"), problems, "higher")
        if better not in ("higher", "lower"):
            problems.add(found["better"], "higher or lower is expected")
        higher = better != "lower"
        floor = y.number(found.get("floor"), (0.0, 1e15), problems, 0.0)
        bound = y.number(found.get("bound"), (0.0, 1e15), problems, INF if higher else 0.0)
        told[name] = (Reading(y.text(found.get("unit"), problems), higher), Limit(floor, bound))
    return told
