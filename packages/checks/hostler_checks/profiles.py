"""Profiles: which checks run, in which stages, for how long, and when that is a pass. YAML, checked whole.

`gate`, `idle`, `burn_in` and `suspect` lie beside this module; a site names a file of its own instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from yaml.nodes import Node, ScalarNode

from hostler_checks import yaml_reader as y
from hostler_checks.catalogue import CHECKS, CheckSpec
from hostler_checks.limits import Limit, ReadingRule

FOLDER = Path(__file__).parent / "profiles"
NAMES = ("gate", "idle", "burn_in", "suspect")
MAX_FOR_S = 14 * 86_400.0
_PROFILE = frozenset({"profile", "about", "for", "resume", "history", "stages"})
_STAGE = frozenset({"name", "share", "repeats", "checks", "pass"})
_STEP = frozenset({"check", "seconds", "required", "with"})
_PASS = frozenset({"failed", "inconclusive_percent"})


@dataclass(frozen=True)
class Step:
    """One check of a stage. Not `required`: that it is inconclusive does not keep the profile from passing."""

    spec: CheckSpec
    seconds: float
    required: bool = True
    params: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Limit] = field(default_factory=dict)
    rules: Mapping[str, ReadingRule] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """Checks that run in turn: `repeats` times, or until this share of the profile's time under load is reached.

    It has passed with at most `failed` failures, and at most this percentage of required runs inconclusive.
    """

    name: str
    steps: tuple[Step, ...]
    share: float = 0.0
    repeats: int = 1
    failed: int = 0
    inconclusive_percent: float = 0.0


@dataclass(frozen=True)
class Profile:
    """A profile as it is run. `resume`: an unfinished run goes on. `digest` is of its document.

    `rules` is the file of pass rules that was laid over it, `rules_digest` that file's; "" for none.
    """

    name: str
    about: str
    for_s: float
    stages: tuple[Stage, ...]
    resume: bool = False
    history: bool = False
    digest: str = ""
    rules_digest: str = ""
    rules: str = ""


def load(name: str) -> Profile:
    """A profile by name, or from a file whose name ends with .yaml. Raises ProfileError, OSError."""
    path = Path(name) if name.endswith(".yaml") else FOLDER / f"{name}.yaml"
    if path.parent == FOLDER and name not in NAMES:
        raise y.ProfileError(f"a profile is one of {', '.join(NAMES)}, or a file NAME.yaml, not {name[:40]!r}")
    return parsed(path.read_text("utf-8", "replace"), path.name)


def parsed(text: str, name: str) -> Profile:
    """A profile from its text. Raises ProfileError with a line for each problem."""
    problems = y.Problems(name)
    found = y.fields(y.tree(text, problems), _PROFILE, problems, needed="stages")
    stages = tuple(_stage(one, problems) for one in y.items(found.get("stages"), problems))
    if "stages" in found and not stages:
        problems.add(found["stages"], "a profile has at least one stage")
    if sum(stage.share for stage in stages) > 1.0 + 1e-9:
        problems.add(found["stages"], "the shares of all stages are at most 1 together")
    profile = Profile(
        name=y.text(found.get("profile"), problems, name.removesuffix(".yaml")),
        about=y.text(found.get("about"), problems),
        for_s=y.duration(found.get("for"), (1.0, MAX_FOR_S), problems, 60.0),
        stages=stages,
        resume=y.truth(found.get("resume"), problems, default=False),
        history=y.truth(found.get("history"), problems, default=False),
        digest=sha256(text.encode()).hexdigest()[:16],
    )
    problems.raise_any()
    return profile


def _stage(node: Node, problems: y.Problems) -> Stage:
    found = y.fields(node, _STAGE, problems, needed="checks")
    steps = tuple(step for one in y.items(found.get("checks"), problems) if (step := _step(one, problems)))
    if "checks" in found and not found["checks"].value:
        problems.add(found["checks"], "a stage has at least one check")
    if "share" in found and "repeats" in found:
        problems.add(node, "a stage has a share of the time or a number of repeats, not both")
    rules = y.fields(found["pass"], _PASS, problems) if "pass" in found else {}
    return Stage(
        name=y.text(found.get("name"), problems, "checks"),
        steps=steps,
        share=y.number(found.get("share"), (0.0, 1.0), problems, 0.0),
        repeats=int(y.number(found.get("repeats"), (1, 100_000), problems, 1)),
        failed=int(y.number(rules.get("failed"), (0, 1_000), problems, 0)),
        inconclusive_percent=y.number(rules.get("inconclusive_percent"), (0, 100), problems, 0.0),
    )


def _step(node: Node, problems: y.Problems) -> Step | None:
    """A check's name alone, or a mapping."""
    found = {"check": node} if isinstance(node, ScalarNode) else y.fields(node, _STEP, problems, needed="check")
    if "check" not in found:
        return None
    spec = CHECKS.get(y.text(found["check"], problems))
    if spec is None:
        problems.add(found["check"], f"no check of this name; there are {', '.join(CHECKS)}")
        return None
    return Step(
        spec,
        seconds=y.duration(found.get("seconds"), (0.1, 86_400.0), problems, spec.seconds),
        required=y.truth(found.get("required"), problems, default=True),
        params=_params(found.get("with"), spec, problems),
    )


def _params(node: Node | None, spec: CheckSpec, problems: y.Problems) -> dict[str, Any]:
    """Parameters of a check, each of the catalogue's type."""
    if node is None:
        return {}
    known = {**spec.cpu, **spec.gpu}
    found = y.fields(node, frozenset(known), problems)
    told: dict[str, Any] = {}
    for name, value in found.items():
        if isinstance(known[name], list):
            told[name] = [y.text(one, problems) for one in y.items(value, problems)]
        elif isinstance(known[name], str):
            told[name] = y.text(value, problems)
        else:
            told[name] = type(known[name])(y.number(value, (0, 1 << 20), problems, known[name]))
    return told
