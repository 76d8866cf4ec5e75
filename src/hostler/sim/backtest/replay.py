"""Walks through recorded history under two policies at once, the recorded one and the one on trial.

Until a node's first difference the recorded world is the world that the policy on trial would have met, and both are
asked the same question in the same state. From there on what the node would have answered is nobody's knowledge: it
is followed as recorded, and compared again when it is well, as a different past.
"""

from collections import defaultdict, deque
from datetime import datetime, timedelta

from msgspec import Struct

from hostler.controller.observation_intake import of_observation
from hostler.core.report.backtest_result import Fidelity
from hostler.core.state import events as e
from hostler.core.state.configuration import Configuration
from hostler.core.state.fleet import Fleet
from hostler.core.state.fold import evolve
from hostler.core.state.model import Node, Observation, Operation, Phase
from hostler.core.state.operations import Evict
from hostler.sim.backtest.decisions import (
    ACTS,
    NOTHING,
    PROPOSES,
    TELLS,
    WAITS,
    Decision,
    RecordedLiveState,
    Under,
    decide,
)
from hostler.sim.backtest.history import History
from hostler.sim.backtest.outage_durations import Stays

LATE = timedelta(minutes=5)
"""Records of an observation come with it; what has not come by then never will."""
SEEN = (e.ConditionRaised, e.ConditionUpdated, e.ConditionCleared)


class PolicyDifference(Struct):
    """Difference that the policy on trial makes, and how the recorded stay went on.

    `kind`: added, removed, changed, earlier, later, told, diagnosis (another SKU finds otherwise). `first`: the node's
    first difference; later ones rest on a past that would have been another. `out_s`: how long its place was out of
    service as recorded, from there until it or another served again (`ended`; None where none did); `out_before_s` is
    what it had been out before. `evicted`: workloads that were ended by operations meanwhile.
    """

    node: str
    at: datetime
    seq: int
    kind: str
    recorded: Decision
    trial: Decision
    first: bool
    pool: str = ""
    out_s: float = 0.0
    out_before_s: float = 0.0
    evicted: int = 0
    plans: tuple[str, ...] = ()
    ended: datetime | None = None


class Replay:
    """One walk. `run` it once; what was found is in `differences`, `fidelity` and `stays`."""

    def __init__(self, history: History, trial: Configuration) -> None:
        self.differences: list[PolicyDifference] = []
        self.fidelity = Fidelity(unexplained=[])
        self.stays = Stays()
        self.diverged: dict[str, datetime] = {}
        self.observed_from: datetime | None = None
        self._history = history
        self._fleet = history.fleet
        self._trial = trial
        self._under = Under(history.fleet, trial)
        self._reader = RecordedLiveState()
        self._open: dict[str, PolicyDifference] = {}
        self._queues: defaultdict[str, deque[Observation]] = defaultdict(deque)
        self._next: Observation | None = None
        self._owed: dict[str, tuple[datetime, dict[tuple[str, str], None]]] = {}
        self._begun = False

    def run(self) -> None:
        """Walk through the history once, moment by moment."""
        touched: dict[str, None] = {}
        now: datetime | None = None
        self._next = None
        for record in self._history.records:
            if not self._begun:
                self._begin()
            if now is not None and record.at != now:
                self._look(touched, now)
                touched = {}
            now = record.at
            self._observe_before(record)
            self._before(record)
            evolve(self._fleet, record)
            self._fleet.merge()
            self._after(record, touched)
            self.fidelity.records += 1
        if now is not None:
            self._look(touched, now)
        if not self._begun:
            self._begin()
        self._drain()
        self.stays.end(self._history.window.until)
        self._settle(self._history.window.until)

    def _begin(self) -> None:
        """The records before the window have been folded by now."""
        self._begun = True
        self.stays.begin(self._fleet, self._history.window.since)
        self._next = next(self._history.observations, None)
        self.observed_from = self._next.received if self._next else None

    # observations

    def _observe_before(self, record: e.Record) -> None:
        """Diagnose what had been received by then: of the record's own cause at last, so that states fit."""
        while self._next is not None and self._next.received is not None and self._next.received <= record.at:
            self._queues[self._next.node].append(self._next)
            self._next = next(self._history.observations, None)
        for node_id in dict.fromkeys(e.subjects_of(record.event)):
            queue = self._queues.get(node_id)
            while queue and (queue[0].received or record.at) < record.at and queue[0].id != record.cause:
                self._diagnose(queue.popleft())
            if queue and any(seen.id == record.cause for seen in queue):
                while queue[0].id != record.cause:
                    self._diagnose(queue.popleft())
                self._diagnose(queue.popleft())
        self._tally(record)

    def _drain(self) -> None:
        while self._next is not None:
            self._queues[self._next.node].append(self._next)
            self._next = next(self._history.observations, None)
        for node_id in sorted(self._queues):
            for seen in self._queues[node_id]:
                self._diagnose(seen)
        self.fidelity.missing += sum(len(owed) for _, owed in self._owed.values())
        self._owed.clear()

    def _diagnose(self, seen: Observation) -> None:
        self.fidelity.observations += 1
        node = self._fleet.nodes.get(seen.node)
        if node is None:
            return
        found = _conditions(self._fleet, node, seen)
        self.fidelity.findings += len(found)
        if found:
            assert seen.received is not None, "the server stamps every observation"
            self._owed[seen.id] = (seen.received, found)
        if self._trial.skus and self._trial.skus.get(node.sku) != self._fleet.configuration_of(node).skus.get(node.sku):
            self._diagnose_otherwise(node, seen, found)

    def _diagnose_otherwise(self, node: Node, seen: Observation, found: dict[tuple[str, str], None]) -> None:
        """Another description of the server makes other findings of the same observation."""
        trial = _conditions(self._under.fleet(), node, seen)
        if trial != found and node.id not in self._open and seen.received is not None:
            pair = Decision(NOTHING, rule=_words(found)), Decision(NOTHING, rule=_words(trial))
            self._differs(node, seen.received, pair)

    def _tally(self, record: e.Record) -> None:
        """Strike off what was expected; forget what never came."""
        if isinstance(record.event, SEEN):
            owed = self._owed.get(record.cause)
            if owed is not None and owed[1].pop(_key(record.event), _ABSENT) is _ABSENT:
                self.fidelity.surplus += 1
        for identity in list(self._owed)[:8]:
            at, owed_now = self._owed[identity]
            if not owed_now or record.at - at > LATE:
                self.fidelity.missing += len(owed_now)
                del self._owed[identity]

    # decisions

    def _before(self, record: e.Record) -> None:
        """A remedy is about to be recorded: both policies are asked in the state that led to it."""
        event = record.event
        if not (isinstance(event, e.PlanRecorded) and event.plan.disruptive and event.plan.rule):
            return
        plan, node = event.plan, self._fleet.nodes.get(event.plan.node)
        if node is None:
            return
        self._reader.see(event, node.assignment.cluster if node.assignment else "")
        recorded = decide(self._fleet, self._reader.live, node, record.at)
        self.fidelity.remedies += 1
        fits = recorded.does in (ACTS, PROPOSES) and recorded.remedy == (plan.remedy or plan.name)
        self.fidelity.explained += fits
        if not fits and len(self.fidelity.unexplained) < _SHOWN:
            self.fidelity.unexplained.append(f"record {record.seq}: {plan.name} of {plan.node}, replayed: {recorded}")
        self._compare(node, record.at, record.seq, recorded)

    def _look(self, touched: dict[str, None], now: datetime) -> None:
        """A batch is whole: who serves now, and what is decided about whom it touched."""
        for node_id in touched:
            node = self._fleet.nodes.get(node_id)
            if node is None:
                continue
            self.stays.see(node, now)
            if node.conditions and node.phase is Phase.production and node_id not in self._open:
                recorded = decide(self._fleet, self._reader.live, node, now)
                self._compare(node, now, self._fleet.cell.seq, recorded)
        self._rejoin(now)

    def _compare(self, node: Node, now: datetime, seq: int, recorded: Decision) -> None:
        if node.id in self._open:
            return
        trial = decide(self._under.fleet(), self._reader.live, node, now)
        if not recorded.same(trial):
            self._differs(node, now, (recorded, trial), seq)

    def _differs(self, node: Node, at: datetime, pair: tuple[Decision, Decision], seq: int = 0) -> None:
        kind = "diagnosis" if pair[0].does == pair[1].does == NOTHING else kind_of(*pair)
        first = node.id not in self.diverged
        found = PolicyDifference(node.id, at, seq or self._fleet.cell.seq, kind, *pair, first=first, pool=node.pool)
        found.out_before_s = self.stays.so_far(node.id, at)
        self.diverged.setdefault(node.id, at)
        self.differences.append(found)
        self._open[node.id] = found

    # what became of it

    def _after(self, record: e.Record, touched: dict[str, None]) -> None:
        for node_id in e.subjects_of(record.event):
            touched[node_id] = None
            if (found := self._open.get(node_id)) is not None:
                self._follow(found, record)
        if isinstance(record.event, e.PlanRecorded):
            self.stays.planned(record.event.plan, record.at)

    def _follow(self, found: PolicyDifference, record: e.Record) -> None:
        match record.event:
            case e.PlanRecorded(plan=plan) if plan.disruptive:
                found.plans = (*found.plans, plan.name)
            case e.OperationStarted(operation=Operation(act=Evict(workloads=works))):
                found.evicted += len(works)
            case _:
                pass

    def _rejoin(self, now: datetime) -> None:
        """A node that is well again, or whose place another has taken, is compared anew."""
        for found in list(self._open.values()):
            node = self._fleet.nodes.get(found.node)
            done = node is None or (not node.pool and found.pool) or is_well(node)
            if done and not self.stays.is_out(found.node):
                self._close(found, now)

    def _close(self, found: PolicyDifference, at: datetime) -> None:
        found.ended = at
        found.out_s = self.stays.so_far(found.node, at) - found.out_before_s
        del self._open[found.node]

    def _settle(self, at: datetime) -> None:
        for found in self._open.values():
            found.out_s = self.stays.so_far(found.node, at) - found.out_before_s


_SHOWN = 20
_ABSENT = object()


def is_well(node: Node) -> bool:
    """In production, with nothing wrong, under way or waited for."""
    quiet = not node.conditions and node.plan is None and node.waiting is None and not node.cordons
    return node.phase is Phase.production and quiet


def kind_of(recorded: Decision, trial: Decision) -> str:
    """Name the difference in one word."""
    act = (ACTS, PROPOSES, WAITS)
    if trial.does == TELLS and recorded.does == NOTHING:
        return "told"
    if recorded.does not in act:
        return "added"
    if trial.does not in act:
        return "removed"
    if recorded.remedy != trial.remedy or recorded.act_class != trial.act_class or recorded.dooms != trial.dooms:
        return "changed"
    order = (ACTS, PROPOSES, WAITS)
    before, after = order.index(recorded.does), order.index(trial.does)
    return "earlier" if after < before else "later" if after > before else "changed"


def _conditions(fleet: Fleet, node: Node, seen: Observation) -> dict[tuple[str, str], None]:
    """Pairs (what, condition) of the findings of an observation, as events name them."""
    found = (caused.event for caused in of_observation(fleet, node, seen))
    return dict.fromkeys(_key(event) for event in found if isinstance(event, SEEN))


def _key(event: e.Event) -> tuple[str, str]:
    match event:
        case e.ConditionRaised(condition=c) | e.ConditionUpdated(condition=c):
            return "stands", c.id
        case e.ConditionCleared(condition=condition):
            return "over", condition
        case _:
            raise AssertionError("only events of conditions are keyed")


def _words(found: dict[tuple[str, str], None]) -> str:
    return ", ".join(f"{condition.partition('/')[2]} {what}" for what, condition in found) or "no finding"
