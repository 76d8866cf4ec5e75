"""Agents of a simulated world that meet after a check, as the controller's orders say: measured, late, never, or lied.

What a meeting measures follows from what is really wrong: a node, a port, a leaf, the up-links of a leaf.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from random import Random

from msgspec import Struct, field
from msgspec.structs import replace

from hostler.agent.meetings import MET_S, MeetingResult, result_of, verdict_of
from hostler.core.fabric.design import Port
from hostler.core.state.meetings import TAKES_MOST, MeetingOrder, MeetingReply
from hostler.core.state.model import Operation, Outcome, Verdict
from hostler.core.state.operations import RunChecks
from hostler.polling.meeting_hall import MeetingTold, Way
from hostler.polling.meeting_questions import MeetingQuestion
from hostler.sim.world.simulated_host import SimulatedHost
from hostler.sim.world.simulated_network import ADAPTERS, SimulatedNetwork
from hostler.sim.world.world_context import Site, Span

ASK_S, LOOK_S = 2.0, 2.0
"""Intervals between questions, and between looks whether all have come: coarser than an agent's, to spare events."""
TAKES_S: Span = (6.0, 14.0)
LATE_S: Span = (20.0, 200.0)
FAST, SLOW = 372.0, 150.0
NOISE = 0.02
SHIFT_S = 4 * 3600.0
"""Nodes that were racked together are burnt in together: burn-ins end every four hours of the world."""
BURN_IN_S = 2 * 3600.0

NEVER, LATE, LIES, WRONG, TWICE, NOTHING = "never", "late", "lies", "wrong", "twice", "nothing"
FATES = (NEVER, LATE, LIES, WRONG, TWICE, NOTHING)
"""Fates of a node's agent: it never joins, tells late, tells wrong sums that nobody else had, tells a rate that nobody
else had, tells twice, or measures nothing."""

Ask = Callable[[str, MeetingQuestion], MeetingReply | None]
"""Asks the active controller for a node; None where none answers, or it refuses."""


class Ears(Struct, frozen=True):
    """Whether an agent still runs and its check was not called off, and who is told what became of the check."""

    goes_on: Callable[[], bool]
    ended: Callable[[Outcome], None]


class WayFault(Struct, frozen=True):
    """Fault of a way: `gbps` through it, 0 for wrong sums."""

    gbps: float


class _Meeting(Struct):
    """A meeting as it really goes: who has come, and what was measured once it was."""

    began: datetime
    present: dict[str, None] = field(default_factory=dict)
    gbps: float | None = None


class _Visit(Struct):
    """A node's meetings after one check, by one port after the other."""

    operation: Operation
    host: SimulatedHost
    until: datetime
    goes_on: Callable[[], bool]
    ended: Callable[[MeetingResult], None]
    left: list[str]
    told: dict[str, str] = field(default_factory=dict)
    word: MeetingTold | None = None
    standing: str = "open"


class MeetingAgents:
    """All agents' meetings. `faults` by "node", "node:port", "leaf" or "leaf^" (its up-links); `fates` by node.

    `held` counts visits, `sizes` the meetings that were measured, by their members, `met` those of each node.
    """

    def __init__(
        self, site: Site, network: SimulatedNetwork, hosts: Mapping[str, SimulatedHost], chance: Random
    ) -> None:
        self.faults: dict[str, WayFault] = {}
        self.fates: dict[str, str] = {}
        self.ask: Ask = lambda _node, _question: None
        self.held = 0
        self.sizes: dict[int, int] = {}
        self.met = Counter[str]()
        self._site = site
        self._network = network
        self._chance = chance
        self._hosts = hosts
        self._bad: dict[str, tuple[int, WayFault]] = {}
        self._meetings: dict[str, _Meeting] = {}

    def burn_in_s(self) -> float:
        """How long a burn-in that begins now takes: to the end of a shift, give or take."""
        now = self._site.clock.elapsed_s + BURN_IN_S
        return BURN_IN_S + SHIFT_S - now % SHIFT_S + self._chance.uniform(0, 15)

    def follow(self, operation: Operation, outcome: Outcome) -> bool:
        """Whether meetings follow this check: it has passed, and its profile has some."""
        profile = operation.act.profile if isinstance(operation.act, RunChecks) else ""
        return profile in MET_S and outcome.facts.get("verdict") == Verdict.passed.value

    def hold(self, operation: Operation, host: SimulatedHost, passed: Outcome, ears: Ears) -> None:
        """Meet whom the controller names, until nobody is left or the time is over; then tell what it came to."""
        assert isinstance(operation.act, RunChecks), "meetings follow checks"
        profile = operation.act.profile
        self.held += 1

        def told(met: MeetingResult) -> None:
            facts = {**passed.facts, **met.facts, "verdict": verdict_of(profile, met).value}
            detail = "; ".join(word for word in (passed.detail, met.detail) if word)
            ears.ended(replace(passed, facts=facts, detail=detail))

        until = self._site.clock.now + timedelta(seconds=MET_S[profile])
        self._turn(_Visit(operation, host, until, ears.goes_on, told, list(ADAPTERS)))

    def is_bad(self, node: str, repairs: int, fault: WayFault) -> None:
        """From now on the node itself is wrong, until it is repaired: it has been `repairs` times."""
        self._bad[node] = repairs, fault

    def is_guilty(self, host: SimulatedHost) -> bool:
        """Whether something is wrong with the node itself: all of it, or each of its ports."""
        all_ports = all(f"{host.node}:{port}" in self.faults for port in ADAPTERS)
        return all_ports or self._bad.get(host.node, (-1,))[0] == host.repairs

    # one visit

    def _turn(self, visit: _Visit) -> None:
        """Ask once; what it is told to do takes its time."""
        if not visit.goes_on():
            return
        if not visit.left or self._site.clock.now >= visit.until:
            visit.told |= dict.fromkeys(visit.left[:1], visit.standing)
            visit.ended(result_of(visit.told))
            return
        via, node = visit.left[0], visit.host.node
        way = Way(via, f"10.1.0.{visit.host.serial[-2:]}", 4000, via)
        said = self.ask(node, MeetingQuestion(visit.operation.id, way, TAKES_MOST, visit.word))
        if said is None:
            self._later(ASK_S, visit)
            return
        visit.word, visit.standing = None, said.standing
        if said.is_done:
            visit.told[visit.left.pop(0)], visit.standing = said.standing, "open"
            self._later(0.0, visit)
        elif said.order is None:
            self._later(ASK_S, visit)
        else:
            self._joins(visit, said.order)

    def _later(self, seconds: float, visit: _Visit) -> None:
        self._site.clock.after(seconds, partial(self._turn, visit))

    def _joins(self, visit: _Visit, order: MeetingOrder) -> None:
        meeting = self._meetings.setdefault(order.meeting, _Meeting(self._site.clock.now))
        if len(self._meetings) > len(self._network.designed):
            del self._meetings[next(iter(self._meetings))]
        if self.fates.get(visit.host.node) != NEVER:
            meeting.present[visit.host.node] = None
        takes_s = self._chance.uniform(*TAKES_S)
        self._site.clock.after(takes_s, partial(self._looks, visit, order, meeting))

    def _looks(self, visit: _Visit, order: MeetingOrder, meeting: _Meeting) -> None:
        """Once all are there it is measured; who waits in vain for a member tells nothing."""
        if not visit.goes_on():
            return
        late = self._site.clock.now >= meeting.began + timedelta(seconds=order.deadline_s)
        if len(meeting.present) < len(order.names) and not late:
            self._site.clock.after(LOOK_S, partial(self._looks, visit, order, meeting))
            return
        if meeting.gbps is None and len(meeting.present) == len(order.names):
            meeting.gbps = self._measured(order)
            self.sizes[len(order.names)] = self.sizes.get(len(order.names), 0) + 1
            self.met.update(order.names)
        self._tells(visit, order.meeting, meeting.gbps)

    def _tells(self, visit: _Visit, meeting: str, gbps: float | None) -> None:
        match self.fates.get(visit.host.node):
            case "nothing":
                gbps = None
            case "lies":
                gbps = 0.0
            case "wrong":
                gbps = (gbps or FAST) * 3
            case "late":
                visit.word = MeetingTold(meeting, gbps)
                self._later(self._chance.uniform(*LATE_S), visit)
                return
            case "twice":  # its first answer was lost, so it tells again, and something else
                way = Way(visit.left[0], "10.1.0.1", 4000)
                told = MeetingTold(meeting, gbps)
                self.ask(visit.host.node, MeetingQuestion(visit.operation.id, way, TAKES_MOST, told))
                gbps = 0.0
            case _:
                pass
        visit.word = MeetingTold(meeting, gbps)
        self._later(0.0, visit)

    def _measured(self, order: MeetingOrder) -> float | None:
        """Rate through all that lies between the members; None where a link is down."""
        ports = [Port(name, order.via) for name in order.names]
        if not all(self._network.is_lit(port) for port in ports):
            return None
        leaves = {self._network.links[port].device for port in ports}
        through = [*order.names, *(str(port) for port in ports), *leaves]
        through += [f"{leaf}^" for leaf in leaves] if len(leaves) > 1 else []
        wrong = [self.faults[one] for one in through if one in self.faults]
        wrong += [bad for name in order.names if (bad := self._bad_now(name)) is not None]
        worst = min((one.gbps for one in wrong), default=FAST)
        return worst * (1 + self._chance.uniform(-NOISE, NOISE))

    def _bad_now(self, node: str) -> WayFault | None:
        repairs, fault = self._bad.get(node, (-1, None))
        return fault if repairs == self._hosts[node].repairs else None


def leaves_of(network: SimulatedNetwork, node: str) -> list[str]:
    """The leaf of each port of a node, by the design."""
    return [network.designed[Port(node, port)].device for port in ADAPTERS]
