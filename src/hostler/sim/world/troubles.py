"""What goes wrong between the world and the controller: replies lost, doubled, late; inputs shuffled and resent."""

import random
from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.model import Outcome
from hostler.engine import intake


class Troubles(Protocol):
    """What befalls messages, acts and commits."""

    def replies(self, outcome: Outcome, after_s: float) -> Iterable[tuple[float, Outcome]]:
        """When and how a driver's answer arrives: (delay in seconds, outcome), none for a lost one."""
        ...

    def lateness_s(self) -> float:
        """How much later than asked an act takes place."""
        ...

    def inputs(self, inputs: list[intake.Input]) -> list[intake.Input]:
        """The inputs of a step as they arrive: doubled, reordered, some later."""
        ...

    def commit(self) -> str:
        """What befalls this commit: "" (well), failed, crash_before (nothing durable), crash_after (nothing sent)."""
        ...

    def downtime_s(self) -> float:
        """How long nobody is active after a crash."""
        ...


class Calm:
    """Nothing goes wrong."""

    def replies(self, outcome: Outcome, after_s: float) -> Iterable[tuple[float, Outcome]]:
        return ((after_s, outcome),)

    def lateness_s(self) -> float:
        return 0.0

    def inputs(self, inputs: list[intake.Input]) -> list[intake.Input]:
        return inputs

    def commit(self) -> str:
        return ""

    def downtime_s(self) -> float:
        return 30.0


class Chances(Struct, frozen=True):
    """How often each trouble strikes, 0 to 1 per message, act or commit; `late_s` is the longest delay of an act."""

    lost: float = 0.08
    doubled: float = 0.05
    slow: float = 0.05
    late: float = 0.04
    late_s: float = 900.0
    shuffled: float = 0.1
    resent: float = 0.05
    commit_failed: float = 0.004
    crash_before: float = 0.004
    crash_after: float = 0.006


_OVERTAKING = (intake.Observed, intake.Replied, intake.Asked)
_RESENT = (intake.Observed, intake.Replied)


class Hostile:
    """Everything that may go wrong does, at times drawn from a seed. `healed` ends it."""

    def __init__(self, seed: int, chances: Chances | None = None) -> None:
        self._chance = random.Random(f"troubles/{seed}")
        self._chances = chances or Chances()
        self._seen: list[intake.Input] = []
        self.healed = False

    def _strikes(self, chance: float) -> bool:
        return not self.healed and self._chance.random() < chance

    def replies(self, outcome: Outcome, after_s: float) -> Iterable[tuple[float, Outcome]]:
        """A lost reply becomes what the runner makes of silence: unknown."""
        if self._strikes(self._chances.lost):
            return ((after_s + 30.0, replace(outcome, result="unknown", detail="no answer came", facts={})),)
        if self._strikes(self._chances.doubled):
            return ((after_s, outcome), (after_s + self._chance.uniform(0, 300), outcome))
        if self._strikes(self._chances.slow):
            return ((after_s + self._chance.uniform(0, 600), outcome),)
        return ((after_s, outcome),)

    def lateness_s(self) -> float:
        return self._chance.uniform(0, self._chances.late_s) if self._strikes(self._chances.late) else 0.0

    def inputs(self, inputs: list[intake.Input]) -> list[intake.Input]:
        found = self._interleaved(inputs) if self._strikes(self._chances.shuffled) else list(inputs)
        if self._seen and self._strikes(self._chances.resent):
            found.append(self._chance.choice(self._seen))
        self._seen = [*self._seen, *(one for one in inputs if isinstance(one, _RESENT))][-64:]
        return found

    def _interleaved(self, inputs: list[intake.Input]) -> list[intake.Input]:
        """Posts and answers overtake each other; what one watcher of the present tells stays in its order."""
        loose = [one for one in inputs if isinstance(one, _OVERTAKING)]
        found: list[intake.Input] = [one for one in inputs if not isinstance(one, _OVERTAKING)]
        for one in loose:
            found.insert(self._chance.randint(0, len(found)), one)
        return found

    def commit(self) -> str:
        for what, chance in (
            ("failed", self._chances.commit_failed),
            ("crash_before", self._chances.crash_before),
            ("crash_after", self._chances.crash_after),
        ):
            if self._strikes(chance):
                return what
        return ""

    def downtime_s(self) -> float:
        """Mostly seconds; now and then hours, and clocks have moved on when somebody is there again."""
        return self._chance.uniform(3600, 4 * 3600) if self._strikes(0.1) else self._chance.uniform(5, 120)
