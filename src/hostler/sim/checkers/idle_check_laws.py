"""Idle checks, judged from outside: on whom one begins, how many at once, how often; customers have the node."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from hostler.core.state import events as e
from hostler.core.state.configuration import IdleCheckPolicy
from hostler.core.state.model import Severity
from hostler.sim.checkers.journal_reading import NodeHistory
from hostler.sim.checkers.law import LawCase

KNOWN = timedelta(minutes=2)
"""So long after it was shown whose work runs somewhere, nobody can say that he has not heard yet."""

UNHEARD = timedelta(minutes=8)
"""So long after a cluster is known to be silent its word cannot still be on its way; the time of a start is in that."""

APART = timedelta(minutes=30)
"""Two checks of a node that are nearer than this are not two hours' slots."""


class IdleChecks:
    """Law 9 for checks: never where a customer works or anything else is wanted of the node; within the budget."""

    def __init__(self) -> None:
        self._last: dict[str, datetime] = {}
        self._begun: dict[str, None] = {}

    def record(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Judge that an idle check begins on an idle node, within the budget."""
        match record.event:
            case e.OperationStarted(operation=operation) if operation.kind == "idle_check":
                page = case.reading.pages[operation.node]
                yield from (f"an idle check of {page.id} begins though {why}" for why in _wrong(case, page, record.at))
                before = self._last.get(page.id)
                if before is not None and record.at - before < APART:
                    yield f"an idle check of {page.id} begins {record.at - before} after the last one"
                self._last[page.id] = record.at
                self._begun[page.id] = None
            case _:
                pass

    def batch(self, case: LawCase) -> Iterator[str]:
        """A customer who has been shown for a while has the node for itself: the check was called off."""
        now, unheard = case.reading.now, case.world.scheduler.unheard
        assert now is not None, "a batch has records"
        for node_id in list(self._begun):
            page = case.reading.pages.get(node_id)
            if page is None or page.operation is None or page.operation.kind != "idle_check":
                del self._begun[node_id]
                continue
            if page.plan is not None:
                yield f"{page.plan.name} of {page.id} runs beside an idle check"
            works, since = case.world.scheduler.shown.get(page.id, ([], now))
            if works and now - since > KNOWN:
                yield f"an idle check of {page.id} goes on though {works[0]} has come"
            if unheard is not None and now - unheard > UNHEARD:
                yield f"an idle check of {page.id} goes on though nobody sees who works there"


def _wrong(case: LawCase, page: NodeHistory, at: datetime) -> Iterator[str]:
    reading = case.reading
    works, since = case.world.scheduler.shown.get(page.id, ([], at))
    if works and at - since > KNOWN:
        yield f"{works[0]} works there"
    if not page.pool or not page.managed:
        yield "it serves no pool that is managed"
    if page.cordoned or reading.held(page, "operator", "cordon", "physical_work", "override", "power"):
        yield "it is cordoned or held"
    if page.unproven or page.settling:
        yield "it has not proven itself"
    if reading.brake or any(scope in reading.paused for scope in reading.scopes(page)):
        yield "it is paused"
    grave = [c for c in page.conditions.values() if c.severity >= Severity.degraded and c.part != "check:idle"]
    if grave:
        yield f"{grave[0].type} stands on it"
    pool = reading.pool(page.pool)
    if pool is None or reading.configuration is None:
        return
    mode = reading.modes.get((pool.name, "idle_check")) or pool.modes.get("idle_check", "")
    if mode != "act":
        yield "its pool has not asked for it"
    others = [p for p in reading.pages.values() if p.operation is not None and p.operation.kind == "idle_check"]
    limit = _limit(reading.configuration.policy.slots, pool.target)
    if sum(p.pool == page.pool for p in others) >= limit:
        yield f"{limit} of {pool.name} are being checked already"


def _limit(slots: IdleCheckPolicy, target: int) -> int:
    """The stricter of count and percent of the target; where the percentage allows any, it allows one."""
    share = target * slots.percent / 100
    return min(slots.count, max(1, int(share)) if share > 0 else 0)
