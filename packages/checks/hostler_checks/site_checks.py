"""A site's own checks of the suite: one YAML file each, which names the command, its readings and who runs it."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from yaml.nodes import Node

from hostler_checks import yaml_reader as y
from hostler_checks.catalogue import CHECKS, CheckSpec, Reading
from hostler_checks.limits import INF, Limit
from hostler_checks.profiles import NAMES, Profile, Stage, Step
from hostler_checks.tool_outputs import READERS

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
    }
)
_READING = frozenset({"unit", "better", "floor", "bound"})


def added(profile: Profile, directory: Path, owner: int = 0) -> Profile:
    """The profile with the checks that a site has for it, as its last stage. Raises ProfileError, OSError.

    The directory and its files must belong to `owner` or root and be writable by nobody else.
    """
    if not directory.is_dir():
        return profile
    _refuse_untrusted((directory,), owner)
    files = sorted(directory.glob("*.yaml"))
    if len(files) > MAX_FILES:
        raise y.ProfileError(f"{directory}: at most {MAX_FILES} checks are read")
    _refuse_untrusted(files, owner)
    steps = [step for file in files if (step := _for(profile.name, file)) is not None]
    if not steps:
        return profile
    return Profile(**{**vars(profile), "stages": (*profile.stages, Stage("site", tuple(steps)))})


def _for(profile: str, file: Path) -> Step | None:
    step, profiles = parsed(file.read_text("utf-8", "replace"), file.name)
    return step if profile in profiles else None


def parsed(text: str, name: str) -> tuple[Step, tuple[str, ...]]:
    """A site's check, and the profiles that run it. Raises ProfileError."""
    problems = y.Problems(name)
    found = y.fields(y.tree(text, problems), _CHECK, problems, needed="check")
    command = [y.text(one, problems) for one in y.items(found.get("command"), problems)]
    script = y.text(found.get("script"), problems)
    if bool(command) == bool(script):
        problems.found.append((1, "a check has a command (a list of words) or a script, one of the two"))
    title = y.text(found.get("check"), problems, "check")
    if title in CHECKS or not title.replace("_", "").isalnum():
        problems.add(found["check"], f"{title[:40]!r} is taken by the suite, or no word of letters, digits and _")
    readings = _readings(found.get("readings"), problems)
    spec = CheckSpec(
        name=title,
        version=int(y.number(found.get("version"), (1, 1_000_000), problems, 1)),
        detects=y.text(found.get("detects"), problems, "what the site says"),
        entry="site:run",
        cost="the site's",
        memory="the site's",
        readings={reading: row for reading, (row, _) in readings.items()},
        deadline_s=y.duration(found.get("deadline"), (1.0, 3600.0), problems, 60.0),
        exact=not readings,
        host=True,
    )
    tool = y.text(found.get("tool"), problems)
    if tool and tool not in READERS:
        problems.add(found["tool"], f"a tool is one of {', '.join(READERS)}")
    profiles = tuple(_profile(one, problems) for one in y.items(found.get("profiles"), problems))
    seconds = y.duration(found.get("seconds"), (0.1, 3600.0), problems, 1.0)
    required = y.truth(found.get("required"), problems, default=True)
    problems.raise_any()
    limits = {reading: limit for reading, (_, limit) in readings.items()}
    params: dict[str, Any] = {"command": command or ["/bin/sh", "-c", script]}
    params |= {"tool": tool, "wanted": list(readings)} if tool else {}
    return Step(spec, seconds, required, params, limits), profiles


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


def _refuse_untrusted(places: Iterable[Path], owner: int) -> None:
    for place in places:
        found = os.lstat(place)
        if stat.S_ISLNK(found.st_mode) or found.st_uid not in (owner, 0):
            raise y.ProfileError(f"{place}: it is a link, or belongs to user {found.st_uid}, not to root")
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise y.ProfileError(f"{place}: others than its owner may write it; chmod go-w")
