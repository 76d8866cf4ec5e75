"""Counters and durations of what is recorded: remedies, repairs, phases, drains, detection. Since the process began.

Only records of this controller's own term are counted, so that of several controllers of a cell each record is counted
once. What began before the process did is timed from what the fleet says of it.
"""

import asyncio
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import datetime

from msgspec import Struct
from prometheus_client import CollectorRegistry, Counter, Histogram

from hostler.core.state import events as e
from hostler.core.state.events import Record
from hostler.core.state.fleet import Fleet
from hostler.core.state.intent import Intent
from hostler.core.state.model import Phase, Plan
from hostler.core.state.verbs.every import VERBS
from hostler.runtime.subscribers import SlowSubscriberError
from hostler.server.cell_view import CellView

MINUTE_S, HOUR_S, DAY_S = 60.0, 3_600.0, 86_400.0
SECONDS = (0.1, 0.5, 1.0, 5.0, 10.0, 30.0, MINUTE_S, 300.0, 900.0, HOUR_S)
HOURS = (MINUTE_S, 300.0, 900.0, 1_800.0, HOUR_S, 2 * HOUR_S, 6 * HOUR_S, 12 * HOUR_S, DAY_S, 3 * DAY_S, 7 * DAY_S)
AGAIN_S = 1.0


class TimedPlan(Struct):
    """A running plan as it is timed: what it is for, since when, and since when it drains."""

    remedy: str
    began: datetime
    steps: tuple[str, ...]
    draining: datetime | None = None


class RecordCounters:
    """Counts records of the cell; `registry` holds what came of it."""

    def __init__(self, cell: CellView) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self._cell = cell
        self._plans: dict[str, TimedPlan] = {}
        self._phases: dict[str, datetime] = {}
        self._remedies = Counter(
            "hostler_remedies",
            "Plans that have ended, by remedy or recipe.",
            ["remedy", "result"],
            registry=self.registry,
        )
        self._repairs = Histogram(
            "hostler_repair_duration_seconds",
            "From the first evidence of what a plan was for to the plan's end, of plans that were done.",
            ["remedy"],
            buckets=HOURS,
            registry=self.registry,
        )
        self._drains = Histogram(
            "hostler_drain_wait_seconds",
            "For how long a plan has waited for work to leave its node.",
            buckets=HOURS,
            registry=self.registry,
        )
        self._stays = Histogram(
            "hostler_phase_duration_seconds",
            "For how long a node was in a phase that it has left.",
            ["phase"],
            buckets=HOURS,
            registry=self.registry,
        )
        self._latency = Histogram(
            "hostler_detection_latency_seconds",
            "From when something was seen to when its condition was recorded, by the way of seeing.",
            ["source"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self._operations = Counter(
            "hostler_operations", "Operations that have ended, by kind.", ["kind", "result"], registry=self.registry
        )
        self._tickets = Counter("hostler_tickets_opened", "Tickets that were opened.", ["kind"], registry=self.registry)
        self._asked = Counter(
            "hostler_intents", "Intents that were decided.", ["verb", "result"], registry=self.registry
        )

    async def run(self) -> None:
        """Count until cancelled. Whoever is too slow begins again with what comes then."""
        while True:
            self._begin(self._cell.view)
            with suppress(SlowSubscriberError), closing(self._cell.subscribe(self._cell.view.cell.seq)) as batches:
                async for batch in batches:
                    self._take_all(batch)
            await asyncio.sleep(AGAIN_S)

    def _begin(self, fleet: Fleet) -> None:
        plans = (node.plan for node in fleet.nodes.values() if node.plan is not None)
        self._plans = {plan.id: _timed(plan, plan.recorded_at) for plan in plans}
        self._phases = {node.id: node.phase_since for node in fleet.nodes.values()}

    def _take_all(self, batch: Sequence[Record]) -> None:
        for record in batch:
            self.take(record, own=record.epoch == self._cell.epoch and self._cell.role == "active")

    def take(self, record: Record, *, own: bool = True) -> None:
        """Follow what the record says, and count it where it is of this controller's own term."""
        event, at = record.event, record.at
        match event:
            case e.PlanRecorded(plan=plan):
                seen = min((one.at for one in event.evidence), default=plan.recorded_at)
                self._plans[plan.id] = _timed(plan, min(seen, plan.recorded_at))
            case e.PlanAdvanced(plan=name, index=index):
                self._advance(name, index, at, own=own)
            case e.PlanEnded(plan=name, result=result):
                self._end(name, result, at, own=own)
            case e.NodeRegistered(node=node):
                self._phases[node.id] = at
            case e.PhaseChanged(node=node_id, before=before):
                since = self._phases.pop(node_id, None)
                if since is not None and own:
                    self._stays.labels(before.value).observe((at - since).total_seconds())
                if event.after is not Phase.retired:
                    self._phases[node_id] = at
            case _ if own:
                self._count(record)
            case _:
                pass

    def _count(self, record: Record) -> None:
        match record.event:
            case e.ConditionRaised(condition=condition) if condition.evidence:
                seen = condition.evidence[-1]
                late_s = max(0.0, (record.at - seen.at).total_seconds())
                self._latency.labels(seen.path or seen.source).observe(late_s)
            case e.OperationFinished(kind=kind, result=result):
                self._operations.labels(kind, result).inc()
            case e.TicketOpened(ticket=ticket):
                self._tickets.labels(ticket.kind).inc()
            case e.IntentRecorded(intent=intent, granted=granted):
                self._asked.labels(_verb(intent), "granted" if granted else "refused").inc()
            case _:
                pass

    def _advance(self, name: str, index: int, at: datetime, *, own: bool) -> None:
        plan = self._plans.get(name)
        if plan is None:
            return
        if plan.draining is not None and own:
            self._drains.observe((at - plan.draining).total_seconds())
        drains = index < len(plan.steps) and plan.steps[index] == "drain"
        plan.draining = at if drains else None

    def _end(self, name: str, result: str, at: datetime, *, own: bool) -> None:
        plan = self._plans.pop(name, None)
        if plan is None or not own:
            return
        self._remedies.labels(plan.remedy, result).inc()
        if result == "done":
            self._repairs.labels(plan.remedy).observe((at - plan.began).total_seconds())


def _timed(plan: Plan, began: datetime) -> TimedPlan:
    return TimedPlan(plan.remedy or plan.name, began, tuple(step.operation for step in plan.steps))


def _verb(intent: Intent) -> str:
    """The verb as a label: one that there is not is unknown, whatever it is called."""
    return intent.verb if intent.verb in VERBS else "unknown"
