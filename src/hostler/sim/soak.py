"""Many worlds, and every story cut at every boundary: what broke, for how many node-years it did not, what was done."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from multiprocessing import get_context

from msgspec import Struct

from hostler.sim.checkers.policy_limit_laws import MET
from hostler.sim.crash_points import FATES, Cut, each, pairs
from hostler.sim.fault_injection.scenario import Scenario
from hostler.sim.hostile_worlds import WorldVerdict, replay, trial
from hostler.sim.minimiser import least, story
from hostler.sim.stories import SHORT, STORIES

DAYS_PER_YEAR = 365.25
TOLD = 3
"""How many failing worlds are minimised and told."""

SHARES = 4
"""Into how many jobs the pairs of a story are divided."""


class Failure(Struct, frozen=True):
    """A world that broke a law: the command that shows the least of it, and its story."""

    seed: int
    violation: str
    replay: str
    story: str


class Soak(Struct):
    """Results of many worlds.

    `injected` counts faults by kind, `fenced` what deposed controllers were kept from.

    `met` counts how often each of the limits that bind seldom has stopped somebody.
    """

    worlds: int = 0
    node_years: float = 0.0
    records: int = 0
    takeovers: int = 0
    fenced: int = 0
    violations: int = 0
    failures: list[Failure] = []
    injected: dict[str, int] = {}
    met: dict[str, int] = {}

    @property
    def unmet(self) -> tuple[str, ...]:
        """Limits that stopped nobody: nothing has been proved of them."""
        return tuple(limit for limit in MET if not self.met.get(limit))


class Cuts(Struct):
    """Runs of stories that were cut: how many by kind of cut, and those that ended otherwise than the whole story."""

    runs: dict[str, int] = {}
    wrong: list[str] = []


def soak(scenarios: Iterable[Scenario], jobs: int, tell: Callable[[WorldVerdict], object]) -> Soak:
    """Run these worlds in so many processes. The first that fail are minimised; all are told as soon as they have."""
    injected: Counter[str] = Counter()
    met: Counter[str] = Counter()
    total = Soak(failures=[], injected={})
    failing: list[WorldVerdict] = []
    with get_context("spawn").Pool(jobs) as pool:
        for verdict in pool.imap_unordered(trial, scenarios, chunksize=4):
            total.worlds += 1
            total.node_years += verdict.node_days / DAYS_PER_YEAR
            total.records += verdict.events
            total.takeovers += verdict.takeovers
            total.fenced += verdict.fenced
            total.violations += len(verdict.violations)
            injected.update(verdict.injected)
            met.update(verdict.met)
            if verdict.violations:
                failing.append(verdict)
                tell(verdict)
    total.injected, total.met = dict(injected.most_common()), dict(met.most_common())
    total.failures = [_told(verdict) for verdict in sorted(failing, key=lambda v: v.scenario.seed)[:TOLD]]
    return total


def _told(verdict: WorldVerdict) -> Failure:
    found = least(verdict)
    told = story(found.scenario, found.violation)
    return Failure(verdict.scenario.seed, str(found.violation), replay(found.scenario), told)


def cut(jobs: int) -> Cuts:
    """Every story cut at each boundary by each fate, and the short ones at each pair."""
    work = [(name, fate, 0) for name in STORIES for fate in FATES]
    work += [(name, "pair", share) for name in SHORT for share in range(SHARES)]
    runs: Counter[str] = Counter()
    wrong: list[str] = []
    with get_context("spawn").Pool(jobs) as pool:
        for kind, count, bad in pool.imap_unordered(_cut, work):
            runs[kind] += count
            wrong.extend(bad)
    return Cuts(dict(sorted(runs.items())), sorted(wrong))


def _cut(work: tuple[str, str, int]) -> tuple[str, int, list[str]]:
    name, kind, share = work
    cuts: partial[Iterator[Cut]] = (
        partial(pairs, STORIES[name], SHARES, share) if kind == "pair" else partial(each, STORIES[name], kind)
    )
    made = list(cuts())
    return kind, len(made), [str(one) for one in made if one.wrong]
