"""Sites that look after a fleet in different ways: what each sees of it, when it removes a node, what that costs.

Every site that checks at all compares bits with peers' whenever it checks; the rules differ in what they make of
readings. A flag removes its node the same day: nobody's people are quicker than another's.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hostler.core.statistics.drift import judge
from hostler.core.statistics.false_alarms import AlarmBudget
from hostler.core.statistics.medians import Flags, Floats, Whole
from hostler.core.statistics.series import BASELINE_DAYS, MIN_JUDGED, Cohort, Scale
from hostler.sim.degrading.idle_world import HOURS, IdleFleet
from hostler.sim.degrading.rules import fixed_limit, robust_z

HOT_C = 10.0
"""A node so much hotter than the fleet's middle is flagged by sites with fixed limits and by robust z alike."""
CHECK_MIN, SCREEN_MIN = 20.0, 1.0
"""Minutes of an idle check, and of the weekly screen."""
SERIES = 3


@dataclass(frozen=True)
class Removals:
    """The day on which each node is removed (n,), the number of days for never; idle minutes spent in all."""

    day: Whole
    spent_min: float


Site = Callable[[IdleFleet], Removals]


def no_checks(fleet: IdleFleet) -> Removals:
    """Remove nobody: of these faults none makes a node fail by itself."""
    nodes, days, _ = fleet.idle.shape
    return Removals(np.full(nodes, days), 0.0)


def weekly_screen(fleet: IdleFleet) -> Removals:
    """One run in the first idle hour of each week: 5 % below the fleet's figure, 10 °C above it, or wrong bits."""
    nodes, days, _ = fleet.idle.shape
    found, spent = np.full(nodes, days), 0.0
    known = float(np.nanmedian(fleet.gemm[:, :BASELINE_DAYS])), float(np.nanmedian(fleet.link[:, :BASELINE_DAYS]))
    warm = float(np.nanmedian(fleet.heat[:, :BASELINE_DAYS]))
    for week in range(0, days, 7):
        hours = fleet.idle[:, week : week + 7].reshape(nodes, -1)
        first, has = np.argmax(hours, axis=1), hours.any(axis=1)
        day, hour = np.minimum(week + first // HOURS, days - 1), first % HOURS
        at = (np.arange(nodes), day, hour)
        bad = (fleet.gemm[at] < 0.95 * known[0]) | (fleet.link[at] < 0.95 * known[1]) | (fleet.heat[at] > warm + HOT_C)
        found = np.where(has & (bad | fleet.wrong[at]), np.minimum(found, day), found)
        spent += SCREEN_MIN * int(has.sum())
    return Removals(found, spent)


def _every_idle_hour(fleet: IdleFleet, by_readings: Whole) -> Removals:
    """Removals by readings or wrong bits, whichever comes first; checks run until the node is removed."""
    days = fleet.idle.shape[1]
    wrong: Flags = np.any(fleet.wrong, axis=2)
    by_bits = np.where(np.any(wrong, axis=1), np.argmax(wrong, axis=1), days)
    day = np.minimum(by_readings, by_bits)
    checked = fleet.idle & (np.arange(days)[None, :, None] <= day[:, None, None])
    return Removals(day, CHECK_MIN * float(checked.sum()))


def with_rule(rule: Callable[[Floats, Whole], Whole], *, of_heat: bool = False) -> Site:
    """A site that checks in every idle hour and judges daily medians of throughput and bandwidth by this rule.

    `of_heat`: heat too, beside the limit that every site has.
    """

    def site(fleet: IdleFleet) -> Removals:
        stacks = np.zeros(fleet.idle.shape[:2], dtype=np.int64)
        heat = _daily(fleet.heat)
        warm = float(np.nanmedian(heat[:, :BASELINE_DAYS]))
        with np.errstate(invalid="ignore"):
            hot = np.nan_to_num(heat, nan=warm) > warm + HOT_C
        days = heat.shape[1]
        found = np.where(hot.any(axis=1), np.argmax(hot, axis=1), days)
        for daily in (_daily(fleet.gemm), _daily(fleet.link), *((-heat,) if of_heat else ())):
            found = np.minimum(found, rule(daily, stacks))
        return _every_idle_hour(fleet, found)

    return site


def ours(fleet: IdleFleet) -> Removals:
    """Checks in every idle hour; three series of a node share its budget of 0.3 % a month, judged every day."""
    stacks = np.zeros(fleet.idle.shape[:2], dtype=np.int64)
    series = ((fleet.gemm, Scale.ratio, True), (fleet.link, Scale.ratio, True), (fleet.heat, Scale.difference, False))
    nodes, days, _ = fleet.idle.shape
    found = np.full(nodes, days)
    for runs, scale, is_better in series:
        daily = _daily(runs)
        for day in range(BASELINE_DAYS + MIN_JUDGED, days + 1):
            cohort = Cohort(daily[:, :day], stacks[:, :day], None, scale, is_better)
            rows = np.array([one.row for one in judge(cohort, AlarmBudget(), SERIES).drifts], dtype=np.int64)
            found[rows] = np.minimum(found[rows], day - 1)
    return _every_idle_hour(fleet, found)


def _daily(runs: Floats) -> Floats:
    ordered = np.sort(runs, axis=2)
    count = np.count_nonzero(~np.isnan(runs), axis=2)
    low = np.take_along_axis(ordered, np.maximum((count - 1) // 2, 0)[..., None], axis=2)[..., 0]
    high = np.take_along_axis(ordered, np.minimum(count // 2, HOURS - 1)[..., None], axis=2)[..., 0]
    return np.where(count > 0, (low + high) / 2, np.nan)


SITES: dict[str, Site] = {
    "no checks": no_checks,
    "weekly screen, fixed −5 %": weekly_screen,
    "idle checks, fixed −5 %": with_rule(fixed_limit),
    "idle checks, robust z < −4": with_rule(robust_z, of_heat=True),
    "ours (CUSUM, budget 0.3 %)": ours,
}
