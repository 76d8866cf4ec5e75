"""Pass rules of a SKU, laid over a profile: hours, which checks count, floors and bounds, stages. Checked whole.

The controller freezes them into the order, and the agent hands them on as a file. Whatever of it is not understood
refuses all of it: a profile with half of its rules would pass whom the others were to fail.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from yaml.nodes import Node

from hostler_checks import yaml_reader as y
from hostler_checks.catalogue import CHECKS
from hostler_checks.limits import ReadingRule
from hostler_checks.profiles import MAX_FOR_S, Profile, Stage, Step
from hostler_checks.trusted_files import refuse_untrusted

_RULES = frozenset({"profile", "hours", "required", "optional", "without", "limits", "stages"})
_READING = frozenset({"floor", "bound"})
_STAGE = frozenset({"share", "repeats", "failed", "inconclusive_percent"})
MOST = 1e15
HOUR_S = 3600.0


class RulesRefusedError(ValueError):
    """Pass rules that are refused whole; the message has a line for each problem."""


@dataclass(frozen=True)
class StageRule:
    """Rules of one stage; None is the profile's own."""

    share: float | None = None
    repeats: int | None = None
    failed: int | None = None
    inconclusive_percent: float | None = None


@dataclass(frozen=True)
class PassRules:
    """Rules as they were read. `digest` is of the file's bytes, `text` the file itself."""

    digest: str
    text: str
    for_s: float | None = None
    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    limits: Mapping[str, Mapping[str, ReadingRule]] = field(default_factory=dict)
    stages: Mapping[str, StageRule] = field(default_factory=dict)


def ruled(profile: Profile, path: Path) -> tuple[Profile, float | None]:
    """The profile under the rules of this file, and its seconds under load where they say so.

    Raises RulesRefusedError for a file that others can read or write, and for what is not understood.
    """
    try:
        refuse_untrusted((path,), os.geteuid())
        if path.stat().st_mode & 0o077:
            raise RulesRefusedError(f"{path}: others may read it; chmod 600")
        raw = path.read_bytes()
        rules = parsed(raw, path.name, profile)
    except OSError as error:
        raise RulesRefusedError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise RulesRefusedError(str(error)) from None
    return applied(profile, rules), rules.for_s


def parsed(raw: bytes, name: str, profile: Profile) -> PassRules:
    """Rules for this profile from a file's bytes. Raises ProfileError with a line for each problem."""
    problems = y.Problems(name)
    text = raw.decode("utf-8", "replace")
    root = y.tree(text, problems)
    found = y.fields(root, _RULES, problems, needed="profile")
    if "profile" in found and (told := y.text(found["profile"], problems)) != profile.name:
        problems.add(found["profile"], f"they are of {told[:40]!r}, and {profile.name} is run")
    lists = {key: _checks(found.get(key), profile, problems) for key in ("required", "optional", "without")}
    for name_ in sorted({one for names in lists.values() for one in names}):
        if len(holders := [key for key, names in lists.items() if name_ in names]) > 1:
            problems.add(root, f"{name_} stands in {' and '.join(holders)}")
    hours = y.number(found.get("hours"), (1e-6, MAX_FOR_S / HOUR_S), problems, 0.0)
    rules = PassRules(
        digest=sha256(raw).hexdigest(),
        text=text,
        for_s=hours * HOUR_S if hours else None,
        **lists,
        limits=_limits(found.get("limits"), profile, lists["without"], problems),
        stages=_stages(found.get("stages"), profile, problems),
    )
    if not problems.found:
        _weigh(applied(profile, rules), rules, root, problems)
    problems.raise_any()
    return rules


def applied(profile: Profile, rules: PassRules) -> Profile:
    """The profile with the rules laid over it, its digest the one of both.

    A share of a stage of which no check is left goes to the other stages that have one.
    """
    laid = [_laid(stage, rules) for stage in profile.stages]
    kept, gone = [one for one in laid if one.steps], sum(one.share for one in laid if not one.steps)
    if rest := sum(stage.share for stage in kept):
        kept = [replace(stage, share=stage.share * (rest + gone) / rest) for stage in kept]
    both = sha256(f"{profile.digest}\0{rules.digest}".encode()).hexdigest()[:16]
    return replace(profile, stages=tuple(kept), digest=both, rules_digest=rules.digest, rules=rules.text)


def _laid(stage: Stage, rules: PassRules) -> Stage:
    own = rules.stages.get(stage.name, StageRule())
    share, repeats = stage.share, stage.repeats
    if own.repeats is not None:
        share, repeats = 0.0, own.repeats
    elif own.share is not None:
        share, repeats = own.share, 1
    return replace(
        stage,
        steps=tuple(_step(step, rules) for step in stage.steps if step.spec.name not in rules.without),
        share=share,
        repeats=repeats,
        failed=stage.failed if own.failed is None else own.failed,
        inconclusive_percent=(
            stage.inconclusive_percent if own.inconclusive_percent is None else own.inconclusive_percent
        ),
    )


def _step(step: Step, rules: PassRules) -> Step:
    name = step.spec.name
    required = name in rules.required or (step.required and name not in rules.optional)
    return replace(step, required=required, rules=rules.limits.get(name, {}))


def _weigh(profile: Profile, rules: PassRules, root: Node, problems: y.Problems) -> None:
    """Rules that are well one by one, and together would require nothing or never end."""
    if not any(step.required for stage in profile.stages for step in stage.steps):
        problems.add(root, f"{profile.name} would require no check: whatever is on the node would pass")
    share = sum(stage.share for stage in profile.stages)
    if share > 1.0 + 1e-9:
        problems.add(root, f"the shares of all stages are at most 1 together, not {share:g}")
    if rules.for_s is not None and not share:
        problems.add(root, "hours are given, and no stage is repeated for a share of them")


def _checks(node: Node | None, profile: Profile, problems: y.Problems) -> frozenset[str]:
    return frozenset(_known(y.text(one, problems), one, profile, problems) for one in y.items(node, problems)) - {""}


def _known(name: str, node: Node, profile: Profile, problems: y.Problems) -> str:
    there = {step.spec.name: None for stage in profile.stages for step in stage.steps}
    if name in there:
        return name
    if name:
        problems.add(node, f"{profile.name} runs no check {name[:40]!r}; it runs {', '.join(there)}")
    return ""


def _limits(
    node: Node | None, profile: Profile, without: frozenset[str], problems: y.Problems
) -> dict[str, dict[str, ReadingRule]]:
    told: dict[str, dict[str, ReadingRule]] = {}
    for name, value in y.pairs(node, problems):
        if not _known(name, value, profile, problems):
            continue
        if name in without:
            problems.add(value, f"{name} is left out (without), and has limits")
        told[name] = dict(_readings(name, value, problems))
    return told


def _readings(check: str, node: Node, problems: y.Problems) -> list[tuple[str, ReadingRule]]:
    spec, told = CHECKS[check], []
    judged = [name for name, reading in spec.readings.items() if not reading.informative]
    for name, value in y.pairs(node, problems):
        if name not in judged:
            which = f"those are {', '.join(judged)}" if judged else "it has none"
            problems.add(value, f"{check} has no reading {name[:40]!r} that is judged; {which}")
            continue
        found = y.fields(value, _READING, problems)
        floor, bound = (_optional(found.get(key), (0.0, MOST), problems) for key in ("floor", "bound"))
        higher = spec.readings[name].higher
        if floor and bound is not None and (floor > bound if higher else floor < bound):
            problems.add(value, f"{check} {name}: no reading is between the floor {floor:g} and the bound {bound:g}")
        if floor is None and bound is None:
            problems.add(value, f"{check} {name}: a floor or a bound is expected")
        told.append((name, ReadingRule(floor, bound)))
    return told


def _stages(node: Node | None, profile: Profile, problems: y.Problems) -> dict[str, StageRule]:
    there = [stage.name for stage in profile.stages]
    told: dict[str, StageRule] = {}
    for name, value in y.pairs(node, problems):
        found = y.fields(value, _STAGE, problems)
        if name not in there:
            problems.add(value, f"{profile.name} has no stage {name[:40]!r}; it has {', '.join(there)}")
        if "share" in found and "repeats" in found:
            problems.add(value, "a stage has a share of the time or a number of repeats, not both")
        repeats = _optional(found.get("repeats"), (1, 100_000), problems)
        failed = _optional(found.get("failed"), (0, 1_000), problems)
        told[name] = StageRule(
            _optional(found.get("share"), (1e-6, 1.0), problems),
            None if repeats is None else int(repeats),
            None if failed is None else int(failed),
            _optional(found.get("inconclusive_percent"), (0, 100), problems),
        )
    return told


def _optional(node: Node | None, bounds: tuple[float, float], problems: y.Problems) -> float | None:
    return None if node is None else y.number(node, bounds, problems, bounds[0])
