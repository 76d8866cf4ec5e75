"""Faults between world and controller: replies lost, doubled, late; inputs shuffled; controllers cut off."""

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from hostler.controller.inputs import Input, IntentAsked, Observed, Replied
from hostler.core.state.model import Outcome

APPEND, APPENDED, SEND, SENT, REPLY = "append", "appended", "send", "sent", "reply"
"""Boundaries of a step: before the append; after it, before anybody is told; before each send; after all of them,
before the answers; and when a driver's reply arrives, its work done."""

BOUNDARIES = (APPEND, APPENDED, SEND, SENT, REPLY)

GO_ON, CRASH, FAIL, PAUSE = "", "crash", "fail", "pause"
"""Fates of a controller at a boundary: nothing; it dies; its append fails; it stands still for a while."""


class Troubles(Protocol):
    """Faults of messages, operations and controllers."""

    def replies(self, outcome: Outcome, after_s: float, due_s: float) -> Iterable[tuple[float, Outcome]]:
        """When and how a driver's answer arrives: (delay in seconds, outcome), none for a lost one.

        `due_s`: how far the operation's deadline is.
        """
        ...

    def lateness_s(self, node: str) -> float:
        """How much later than asked an act takes place."""
        ...

    def staleness_s(self, node: str) -> float:
        """How long the scheduler goes on telling of a node what was so before it changed."""
        ...

    def slips_in(self, node: str) -> bool:
        """Whether work that was on its way lands on an empty node just before its cordon does."""
        ...

    def inputs(self, inputs: list[Input]) -> list[Input]:
        """The inputs of a step as they arrive: doubled, reordered, some later."""
        ...

    def at(self, boundary: str) -> str:
        """Fate of the controller at this boundary: one of GO_ON, CRASH, FAIL, PAUSE."""
        ...

    def downtime_s(self) -> float:
        """How long nobody is active after a crash."""
        ...

    def pause_s(self) -> float:
        """How long a controller that stands still does so."""
        ...


class Calm:
    """World in which nothing goes wrong."""

    def replies(self, outcome: Outcome, after_s: float, due_s: float) -> Iterable[tuple[float, Outcome]]:  # noqa: ARG002
        """The reply, once and in time."""
        return ((after_s, outcome),)

    def lateness_s(self, node: str) -> float:  # noqa: ARG002
        """0: operations take effect at once."""
        return 0.0

    def staleness_s(self, node: str) -> float:  # noqa: ARG002
        """0: observations arrive at once."""
        return 0.0

    def slips_in(self, node: str) -> bool:  # noqa: ARG002
        """False: no late operation takes effect."""
        return False

    def inputs(self, inputs: list[Input]) -> list[Input]:
        """The inputs as they came."""
        return inputs

    def at(self, boundary: str) -> str:  # noqa: ARG002
        """No crash at any boundary."""
        return GO_ON

    def downtime_s(self) -> float:
        """Length of a crash's downtime, in s."""
        return 30.0

    def pause_s(self) -> float:
        """Length of a pause, in s."""
        return 0.0


class ControllerInterruption(Struct, frozen=True):
    """Fate of the controller at the next boundary of this kind, and for how long it is then away."""

    fate: str
    boundary: str
    lasts_s: float


_OVERTAKING = (Observed, Replied, IntentAsked)
_RESENT = (Observed, Replied)
SEEN_KEPT = 64

MESSAGE_TROUBLES = {
    "lost": 0.08,
    "doubled": 0.05,
    "slow": 0.05,
    "late": 0.04,
    "shuffled": 0.1,
    "resent": 0.05,
    "brink": 0.15,
    "stale": 0.3,
    "slips_in": 0.5,
}
"""How often each trouble with messages strikes where it blows at all, 0 to 1 per message or act.

`brink`: a reply arrives within a millisecond of its operation's deadline, on either side or exactly then.
"""

LATE_S = 900.0
STALE_S = 60.0


class Hostile:
    """Faults drawn from streams of the nodes' own.

    `healed` ends it.

    `message_troubles` names the troubles with messages, `blows` what happens to controllers, in order; `injected`
    counts what struck, by kind.
    """

    def __init__(self, seed: int) -> None:
        self.injected: Counter[str] = Counter()
        self.message_troubles: dict[str, None] = {}
        self.blows: list[ControllerInterruption] = []
        self.healed = False
        self._seed = seed
        self._chances: dict[str, Random] = {}
        self._seen: list[Input] = []
        self._blow = ControllerInterruption(GO_ON, "", 0.0)

    def _chance(self, stream: str) -> Random:
        found = self._chances.get(stream)
        if found is None:
            found = self._chances[stream] = Random(f"{self._seed}/{stream}")
        return found

    def _strikes(self, trouble: str, chance: Random) -> bool:
        if self.healed or trouble not in self.message_troubles or chance.random() >= MESSAGE_TROUBLES[trouble]:
            return False
        self.injected[f"message {trouble}"] += 1
        return True

    def replies(self, outcome: Outcome, after_s: float, due_s: float) -> Iterable[tuple[float, Outcome]]:
        """A lost reply becomes what the runner makes of silence: unknown."""
        chance = self._chance(f"replies {outcome.node}")
        if self._strikes("lost", chance):
            return ((after_s + 30.0, replace(outcome, result="unknown", detail="no answer came", facts={})),)
        if self._strikes("doubled", chance):
            return ((after_s, outcome), (after_s + chance.uniform(0, 300), outcome))
        if self._strikes("slow", chance):
            return ((after_s + chance.uniform(0, 600), outcome),)
        if due_s > after_s and self._strikes("brink", chance):
            return ((due_s + chance.choice((-0.001, 0.0, 0.001)), outcome),)
        return ((after_s, outcome),)

    def lateness_s(self, node: str) -> float:
        """How much later the node's next operation takes effect, in s."""
        chance = self._chance(f"acts {node}")
        return chance.uniform(0, LATE_S) if self._strikes("late", chance) else 0.0

    def staleness_s(self, node: str) -> float:
        """How much later the node's next observation arrives, in s."""
        chance = self._chance(f"words {node}")
        return chance.uniform(0, STALE_S) if self._strikes("stale", chance) else 0.0

    def slips_in(self, node: str) -> bool:
        """Whether an operation that was called off takes effect all the same."""
        return self._strikes("slips_in", self._chance(f"landings {node}"))

    def inputs(self, inputs: list[Input]) -> list[Input]:
        """The inputs in another order, with an old one sent again."""
        chance = self._chance("inputs")
        found = self._interleaved(inputs, chance) if self._strikes("shuffled", chance) else list(inputs)
        if self._seen and self._strikes("resent", chance):
            found.append(chance.choice(self._seen))
        self._seen = [*self._seen, *(one for one in inputs if isinstance(one, _RESENT))][-SEEN_KEPT:]
        return found

    def _interleaved(self, inputs: list[Input], chance: Random) -> list[Input]:
        """Posts and answers overtake each other; what one watcher of the present tells stays in its order."""
        loose = [one for one in inputs if isinstance(one, _OVERTAKING)]
        found: list[Input] = [one for one in inputs if not isinstance(one, _OVERTAKING)]
        for one in loose:
            found.insert(chance.randint(0, len(found)), one)
        return found

    def at(self, boundary: str) -> str:
        """The first blow that waits for this boundary strikes; its length is what is asked for next."""
        if self.healed or not self.blows:
            return GO_ON
        blow = next((blow for blow in self.blows if blow.boundary == boundary), None)
        if blow is None:
            return GO_ON
        self.blows.remove(blow)
        self._blow = blow
        self.injected[f"controller {blow.fate} at {boundary}"] += 1
        return blow.fate

    def downtime_s(self) -> float:
        """Length of the downtime that was drawn, in s."""
        return self._blow.lasts_s

    def pause_s(self) -> float:
        """Length of the pause that was drawn, in s."""
        return self._blow.lasts_s


class Scripted(Calm):
    """Counts the boundaries that a run passes from `begin` on, and strikes at those whose numbers `fates` names."""

    def __init__(self, fates: dict[int, str] | None = None, downtime_s: float = 7.0, pause_s: float = 30.0) -> None:
        self.passed: list[str] = []
        self._fates = fates or {}
        self._downtime_s = downtime_s
        self._pause_s = pause_s
        self._begun = False

    def begin(self) -> None:
        """Boundaries count from here."""
        self._begun = True

    def at(self, boundary: str) -> str:
        """Count the boundary; the fate that was named for it, or none."""
        if not self._begun:
            return GO_ON
        self.passed.append(boundary)
        return self._fates.get(len(self.passed) - 1, GO_ON)

    def downtime_s(self) -> float:
        """Length of the downtime that was given, in s."""
        return self._downtime_s

    def pause_s(self) -> float:
        """Length of the pause that was given, in s."""
        return self._pause_s
