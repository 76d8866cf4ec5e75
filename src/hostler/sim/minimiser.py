"""From a world that breaks a law to the least of it that still does: fewer things that go wrong, and fewer nodes."""

import re
from collections import deque
from collections.abc import Callable

from msgspec import Struct

from hostler.core.report.sentences import sentence
from hostler.core.state.events import Record, subjects_of
from hostler.sim import hostile_worlds
from hostler.sim.checkers.law import Violation
from hostler.sim.fault_injection.scenario import Scenario
from hostler.sim.hostile_worlds import WorldVerdict

MOST_TRIALS = 120
STORY_RECORDS = 60
"""How many records before the violation are told."""

Trial = Callable[[Scenario], WorldVerdict]


class Least(Struct, frozen=True):
    """The least world that still breaks the law, how it does, and how many trials it took to find."""

    scenario: Scenario
    violation: Violation
    trials: int


class Minimiser:
    """Tries smaller worlds against one law, within a number of trials. A world in which the trial fails breaks none."""

    def __init__(self, law: int, trial: Trial = hostile_worlds.trial, most: int = MOST_TRIALS) -> None:
        self.trials = 0
        self._law = law
        self._trial = trial
        self._most = most

    def least(self, scenario: Scenario, violation: Violation) -> Least:
        """Drop nodes from the end, then injected faults in ever smaller shares (delta debugging), then nodes again."""
        best = Least(scenario, violation, 0)
        best = self._fewer_nodes(best)
        best = self._fewer_faults(best)
        best = self._fewer_nodes(best)
        return Least(best.scenario, best.violation, self.trials)

    def _breaks(self, scenario: Scenario) -> Violation | None:
        if self.trials >= self._most:
            return None
        self.trials += 1
        try:
            found = self._trial(scenario).violations
        except Exception:  # noqa: BLE001 - another world may fail in another way; it is this law that is looked for
            return None
        return next((violation for violation in found if violation.law == self._law), None)

    def _fewer_nodes(self, best: Least) -> Least:
        """Halve the nodes while that helps, then take one by one."""
        step = best.scenario.shape.nodes // 2
        while step:
            nodes = best.scenario.shape.nodes - step
            smaller = best.scenario.smaller(nodes) if nodes >= 2 else None
            if smaller is not None and (violation := self._breaks(smaller)):
                best = Least(smaller, violation, 0)
            else:
                step //= 2
        return best

    def _fewer_faults(self, best: Least) -> Least:
        size = len(best.scenario.faults)
        while size:
            size = min(size, len(best.scenario.faults))
            kept, best = best, self._without_shares(best, size)
            if best is kept or len(best.scenario.faults) < size:
                size //= 2
        return best

    def _without_shares(self, best: Least, size: int) -> Least:
        """Leave out one run of this many after the other, and keep what still breaks the law."""
        indexes = [one.index for one in best.scenario.faults]
        for start in range(0, len(indexes), size):
            fewer = best.scenario.without(tuple(indexes[start : start + size]))
            if violation := self._breaks(fewer):
                best = Least(fewer, violation, 0)
        return best


def least(verdict: WorldVerdict, trial: Trial = hostile_worlds.trial) -> Least:
    """The least of a world that has broken a law, by its first violation."""
    first = verdict.violations[0]
    return Minimiser(first.law, trial).least(verdict.scenario, first)


def story(scenario: Scenario, violation: Violation) -> str:
    """Tell what was injected, and the records about the nodes that the violation names, its own record last."""
    told: deque[Record] = deque(maxlen=STORY_RECORDS)
    named = frozenset(_NODE.findall(violation.text))

    def tell(record: Record) -> None:
        subjects = subjects_of(record.event)
        if record.seq <= violation.seq + 1 and (not named or not named.isdisjoint(subjects)):
            told.append(record)

    hostile_worlds.trial(scenario, watcher=tell)
    lines = [f"{scenario.shape.nodes} nodes ({scenario.shape.kind})", *map(str, scenario.faults)]
    for record in told:
        about = next(iter(subjects_of(record.event)), "")
        lines.append(f"{record.seq:>6} {record.at:%d %H:%M:%S.%f} {about}: {sentence(record.event)}")
    return "\n".join([*lines, str(violation)])


_NODE = re.compile(r"\bn\d{5}\b")
