"""Checks a SKU's pass rules: what no check answers, no node could reach, or any node would pass is refused."""

from collections.abc import Iterator

from hostler.core.state.configuration import Sku
from hostler.core.state.input_problems import WrongEntry
from hostler.core.state.pass_rules import PassRules, ReadingRule, StageRule
from hostler.core.tables.suite_checks import LOWER, PROFILES, READINGS, ProfileRow, StageChecks, bound_of

MOST_REPEATS, MOST_FAILED = 100_000, 1_000
Place = tuple[str, ...]


def check_problems(sku: Sku) -> Iterator[WrongEntry]:
    """Problems of the SKU's pass rules."""
    for name, rules in sku.checks.items():
        place = ("skus", sku.name, "checks", name)
        if (profile := PROFILES.get(name)) is None:
            told = f"SKU {sku.name}: no profile '{name[:40]}' takes pass rules"
            yield WrongEntry(told, f"write one of {', '.join(PROFILES)}", place)
            continue
        for told, advice, where in _of(profile, rules, sku.gpu_model):
            yield WrongEntry(f"SKU {sku.name}, {name}: {told}", advice, (*place, *where))


def _of(profile: ProfileRow, rules: PassRules, gpu_model: str) -> Iterator[tuple[str, str, Place]]:
    if rules.hours is not None and not 0 < rules.hours <= profile.most_hours:
        told = f"{rules.hours:g} hours under load"
        yield told, f"write more than 0 and at most {profile.most_hours:g}, or leave hours out", ("hours",)
    yield from _lists(profile, rules)
    for name, readings in rules.limits.items():
        if name not in profile.checks:
            yield _unknown(name, profile, ("limits", name))
            continue
        if name in rules.without:
            yield f"{name} is left out, and has limits", "keep one of the two", ("limits", name)
        for reading, rule in readings.items():
            found = _reading(name, reading, rule, gpu_model)
            yield from ((told, advice, ("limits", name, reading)) for told, advice in found)
    for name, stage in rules.stages.items():
        if name not in profile.stages:
            yield f"there is no stage '{name}'", f"write some of {', '.join(profile.stages)}", ("stages", name)
        else:
            yield from ((told, advice, ("stages", name)) for told, advice in _stage(name, stage))
    yield from _together(profile, rules)


def _lists(profile: ProfileRow, rules: PassRules) -> Iterator[tuple[str, str, Place]]:
    lists = {"required": rules.required, "optional": rules.optional, "without": rules.without}
    for key, names in lists.items():
        for name in names:
            if name not in profile.checks:
                yield _unknown(name, profile, (key,))
            elif other := [k for k, others in lists.items() if k < key and name in others]:
                yield f"{name} stands in {key} and in {other[0]}", "keep it in one of them", (key,)


def _unknown(name: str, profile: ProfileRow, where: Place) -> tuple[str, str, Place]:
    return f"it runs no check '{name}'", f"write some of {', '.join(profile.checks)}", where


def _reading(check: str, reading: str, rule: ReadingRule, gpu_model: str) -> Iterator[tuple[str, str]]:
    known = READINGS.get(check, ())
    if reading not in known:
        which = f"write some of {', '.join(known)}" if known else f"leave it out: {check} judges bits, no readings"
        yield f"{check} judges no reading '{reading}'", which
        return
    if rule.floor is None and rule.bound is None:
        yield f"{check} {reading} has neither floor nor bound", "write one of them, or leave the reading out"
        return
    best = bound_of(reading, gpu_model)
    is_lower = reading in LOWER
    if rule.bound is not None:
        best = max(best, rule.bound) if is_lower else min(best, rule.bound)
    if rule.floor and (rule.floor < best if is_lower else rule.floor > best):
        whose = f" of {gpu_model}" if gpu_model else ""
        told = f"{check} {reading}: no reading can reach the floor {rule.floor:g}, its bound{whose} is {best:g}"
        yield told, f"write {'more' if is_lower else 'less'} than {best:g}"


def _stage(name: str, rule: StageRule) -> Iterator[tuple[str, str]]:
    if rule.share is not None and rule.repeats is not None:
        yield f"stage {name} has a share of the hours and a number of repeats", "keep one of them"
    if rule.share is not None and not 0 < rule.share <= 1:
        yield f"stage {name}: its share is {rule.share:g}", "write more than 0 and at most 1, as 0.3"
    if rule.repeats is not None and not 1 <= rule.repeats <= MOST_REPEATS:
        yield f"stage {name} is repeated {rule.repeats} times", f"write 1 to {MOST_REPEATS}"
    if rule.failed is not None and not 0 <= rule.failed <= MOST_FAILED:
        yield f"stage {name}: {rule.failed} runs may fail", f"write 0 to {MOST_FAILED}"
    if rule.inconclusive_percent is not None and not 0 <= rule.inconclusive_percent <= 100:
        yield f"stage {name}: inconclusive_percent is {rule.inconclusive_percent:g}", "write 0 to 100"


def _together(profile: ProfileRow, rules: PassRules) -> Iterator[tuple[str, str, Place]]:
    """Problems of all rules together: nothing is required, or no stage takes the time."""
    kept = {name: left for name, row in profile.stages.items() if (left := _left(row, rules))}
    if not any(required for checks in kept.values() for required in checks.values()):
        yield "it would require no check, and pass any node", "name one under required, or leave one in", ()
    shares = {name: _share(row, rules.stages.get(name, StageRule())) for name, row in profile.stages.items()}
    if (total := sum(shares.values())) > 1 + 1e-9:
        yield f"the shares of all stages are {total:g}", "write shares that are at most 1 together", ("stages",)
    if rules.hours is not None and not sum(shares[name] for name in kept):
        yield "it has hours, and no stage goes by them", "leave hours out, or give a stage a share", ("hours",)


def _left(row: StageChecks, rules: PassRules) -> dict[str, bool]:
    """The checks of a stage that are run, with whether each is required."""
    return {
        name: name in rules.required or (required and name not in rules.optional)
        for name, required in row.checks.items()
        if name not in rules.without
    }


def _share(row: StageChecks, rule: StageRule) -> float:
    if rule.repeats is not None:
        return 0.0
    return row.share if rule.share is None else rule.share
