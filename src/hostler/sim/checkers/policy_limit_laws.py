"""Law 4, of limits that bind seldom: brake, windows, removals a day, spares and whose places they take, groups."""

from collections.abc import Iterator
from datetime import timedelta

from hostler.core.state import events as e
from hostler.core.state.configuration import Pool
from hostler.core.state.model import ActClass, Phase, Plan, Waiting
from hostler.core.state.scopes import ActGroup
from hostler.sim.checkers.journal_reading import OURS, JournalReading, NodeHistory
from hostler.sim.checkers.law import LawCase

BRAKE = "storm brake"
WINDOW = "maintenance window"
REMOVALS = "removals a day"
FLOOR = "floor of spares"
GROUP = "domain budget of a group"
UNKNOWN_USE = "work whose parts are unknown"
SPOKE = "a node that spoke of another"
MET = (BRAKE, WINDOW, REMOVALS, FLOOR, GROUP, UNKNOWN_USE, SPOKE)
"""Limits that drawn worlds must have met somewhere, or their watcher has seen nothing."""

DAY = timedelta(days=1)
_OF_A_DOMAIN = " of its nodes to be disturbed at once, and this takes "
"""Words of the answer to a request for more of a failure domain than its budget can ever hold."""


class PolicyLimits:
    """Limits of pool, domain and cell, beyond which nothing begins; each is counted anew, from the records alone."""

    def __init__(self) -> None:
        self._together: dict[ActGroup, list[str]] = {}

    def record(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Judge what begins against the limits."""
        match record.event:
            case e.PlanRecorded(plan=plan) if _is_guarded(plan):
                yield from self._asked(case, case.reading.pages[plan.node], plan)
                if plan.state != "proposed":
                    yield from self._begins(case, case.reading.pages[plan.node], plan)
                    yield from _storm(case.reading, case.reading.pages[plan.node], plan)
            case e.PlanApproved(node=node):
                page = case.reading.pages[node]
                if page.plan is not None and _is_guarded(page.plan):
                    yield from self._asked(case, page, page.plan)
                    yield from self._begins(case, page, page.plan)
            case e.NodeAssigned(node=node, assignment=assignment):
                page = case.reading.pages[node]
                yield from _last_spares(case.reading, page, assignment.pool)
                yield from _beyond_target(case, page, assignment.pool)
                yield from _suspected(case.reading, page)
            case e.BrakeLatched():
                case.met[BRAKE] += 1
            case e.IntentRecorded(granted=False, answer=answer) if _OF_A_DOMAIN in answer:
                case.met[GROUP] += 1
            case e.WaitingChanged(node=node, waiting=waiting) if waiting is not None:
                _count(case, case.reading.pages[node], waiting)
            case _:
                pass

    def batch(self, case: LawCase) -> Iterator[str]:
        """Count plans that begin together once all of them have begun."""
        for group, begun in self._together.items():
            yield from _over_domains(case.reading, group, begun)
        self._together.clear()

    def _asked(self, case: LawCase, page: NodeHistory, plan: Plan) -> Iterator[str]:
        if plan.act_class is ActClass.pending:
            yield from _outside(case.reading, page, plan)

    def _begins(self, case: LawCase, page: NodeHistory, plan: Plan) -> Iterator[str]:
        if plan.group:
            self._together.setdefault(plan.group, []).append(page.id)
        if plan.name == "triage" and (pool := case.reading.pool(page.pool)) is not None:
            yield from _too_many_leave(case.reading, page, pool)
            if plan.act_class is ActClass.pending:
                yield from _unreplaced(case.reading, page, pool)


def _is_guarded(plan: Plan) -> bool:
    return plan.disruptive and plan.act_class in (ActClass.immediate, ActClass.pending)


def _storm(reading: JournalReading, page: NodeHistory, plan: Plan) -> Iterator[str]:
    """Find a plan without a person's word that passed the brake instead of latching it; a person's word counts too."""
    requested = any((c := page.conditions.get(cause)) is not None and c.remedy for cause in plan.causes)
    if requested or plan.name == "cordon" or reading.configuration is None:
        return
    brake = reading.configuration.policy.brake
    since = reading.clock - timedelta(seconds=brake.window_s)
    since = max(since, reading.calm) if reading.calm is not None else since
    before = sum(one.at > since and one.name not in ("release", "cordon") for one in reading.begun)
    nodes = sum(other.phase is not Phase.retired for other in reading.pages.values())
    limit = max(brake.disruptions, int(nodes * brake.percent / 100))
    if before + 1 > limit:
        yield f"{plan.name} of {page.id} is the {before + 1}. in {brake.window_s:.0f} s, the brake allows {limit}"


def _outside(reading: JournalReading, page: NodeHistory, plan: Plan) -> Iterator[str]:
    """Judges that what can wait waits where windows are set for it and none is open."""
    scopes = reading.scopes(page)
    ahead = [one for one in reading.windows.values() if one.scope.text in scopes and one.ends > reading.clock]
    if ahead and all(one.starts > reading.clock for one in ahead):
        yield f"{plan.name} of {page.id} begins now is outside the maintenance window of {ahead[0].scope}"


def _too_many_leave(reading: JournalReading, page: NodeHistory, pool: Pool) -> Iterator[str]:
    left = sum(one.name == "triage" and one.pool == pool.name and one.at > reading.clock - DAY for one in reading.begun)
    if left + 1 > pool.budget.removals_per_day:
        limit = pool.budget.removals_per_day
        yield f"{page.id} leaves {pool.name}, and {left} have left it within a day; {limit} may"


def _spares(reading: JournalReading, sku: str) -> int:
    """Count possible spares of the model, however they are: no fewer than there really are."""
    return sum(p.sku == sku and p.phase is Phase.production and not p.pool for p in reading.pages.values())


def _unreplaced(reading: JournalReading, page: NodeHistory, pool: Pool) -> Iterator[str]:
    spares, floor = _spares(reading, pool.sku), pool.budget.spares_floor
    if floor and spares <= floor:
        yield f"{page.id} leaves {pool.name} though it could wait, with {spares} spares of which {floor} are kept back"


def _last_spares(reading: JournalReading, page: NodeHistory, name: str) -> Iterator[str]:
    pool = reading.pool(name)
    if pool is not None and (left := _spares(reading, page.sku) - 1) < pool.budget.spares_floor:
        floor = pool.budget.spares_floor
        yield f"{page.id} is delivered to {name}, and {left} spares are left where {floor} are kept back"


def _beyond_target(case: LawCase, page: NodeHistory, name: str) -> Iterator[str]:
    """A spare comes for a member that is missing or dark, never for one that works and only is not heard."""
    pool = case.reading.pool(name)
    if pool is None:
        return
    working = sum(other.pool == name and not _is_dark(case, other) for other in case.reading.pages.values())
    if working >= pool.target:
        yield f"{page.id} is delivered to {name}, {working} of whose {pool.target} places are taken"


def _is_dark(case: LawCase, page: NodeHistory) -> bool:
    """Held by an incident and dead in truth, or off under our own hold. What boots just now counts as dead still."""
    if any(hold.owner == OURS and hold.scope.text == page.id for hold in case.reading.held(page, "power")):
        return True
    if not any(page.id in incident.members and incident.holds for incident in case.reading.incidents.values()):
        return False
    host = case.world.hosts[page.id]
    return not (host.severed and host.running and host.boot_id == page.boot)


def _suspected(reading: JournalReading, page: NodeHistory) -> Iterator[str]:
    """Tell whether the node is behind the part that is blamed for silence: it may be the next to fall silent."""
    for incident in reading.incidents.values():
        if incident.holds and incident.syndrome == "silence" and incident.scope.text in page.domains:
            yield f"{page.id} is delivered, and incident {incident.id} suspects its {incident.scope}"


def _over_domains(reading: JournalReading, group: ActGroup, begun: list[str]) -> Iterator[str]:
    """The budgets of all domains but the one that is taken whole, by name or because nobody of it is left over."""
    assert reading.configuration is not None, "nothing is planned without a configuration"
    scope, _, _ = group.text.partition("/")
    for domain in dict.fromkeys(domain for node in begun for domain in reading.pages[node].domains):
        budget = reading.configuration.policy.domains.get(domain.partition(":")[0])
        if budget is None or domain == scope:
            continue
        inside = reading.inside[domain]
        spared = [page for page in inside if page.id not in begun and page.phase is Phase.production]
        busy = sum(page.disrupted for page in inside)
        limit = min(budget.count, max(1, int(len(inside) * budget.percent / 100)))
        if busy > limit and (spared or len(begun) == 1):
            yield f"{group} takes {', '.join(begun)}: {busy} of {domain} are disturbed at once, {limit} may be"


def _count(case: LawCase, page: NodeHistory, waiting: Waiting) -> None:
    """Count the limit that has stopped a node, by what the journal says the node waits for."""
    grouped = any(c.group for c in page.conditions.values())
    parts_fail = any(fault.kind.ends == "part" for fault in case.world.hosts[page.id].faults)
    unknown = {work.id for work in case.world.scheduler.works(page.id) if work.parts is None}
    for blocker in waiting.blockers:
        match blocker.kind:
            case "window":
                case.met[WINDOW] += 1
            case "budget" if blocker.name.startswith("removals:"):
                case.met[REMOVALS] += 1
            case "budget" if blocker.name.startswith("spares:"):
                case.met[FLOOR] += 1
            case "budget" if grouped and blocker.name in page.domains:
                case.met[GROUP] += 1
            case "workload" if parts_fail and blocker.name in unknown:
                case.met[UNKNOWN_USE] += 1
            case _:
                pass
