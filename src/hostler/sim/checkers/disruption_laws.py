"""Laws 4, 5, 6, 7 and 9: budgets, named waits, other people's marks, doubt, and the customer's work."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from hostler.core.state import events as e
from hostler.core.state.cases import Incident
from hostler.core.state.configuration import Pool
from hostler.core.state.intent import Intent
from hostler.core.state.model import ActClass, Condition, Phase, Plan, Profile, Severity
from hostler.core.state.verbs.maintenance import StartWork
from hostler.sim.checkers.journal_reading import OURS, JournalReading, NodeHistory
from hostler.sim.checkers.law import LawCase
from hostler.sim.world.ledger import ActualDisturbance

GUARDED = (ActClass.immediate, ActClass.pending)


class Budgets:
    """Law 4. Every disruption passes the pool's and the domains' budget, pause, brake, holds and mode."""

    def record(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Judge a plan's begin against budgets, pauses, brake, holds and mode."""
        match record.event:
            case e.PlanRecorded(plan=plan) if plan.disruptive and plan.act_class in GUARDED:
                page = case.reading.pages[plan.node]
                if plan.state != "proposed":  # a proposal takes nothing from a budget until somebody says yes
                    yield from _over_budgets(case.reading, page, plan, record.event.present.get("workloads"))
                yield from _stopped(case.reading, page, plan)
                yield from _mode(case.reading, page, plan)
                yield from _shadowed(case.reading, page, plan)
            case e.PlanApproved(node=node):
                page = case.reading.pages[node]
                if page.plan is not None and page.plan.disruptive and page.plan.act_class in GUARDED:
                    works = ",".join(work.id for work in case.world.scheduler.works(page.id))
                    yield from _over_budgets(case.reading, page, page.plan, works)
            case e.PlanUndoing(node=node, result=e.YIELDED):
                yield from _gives_way(case.reading, case.reading.pages[node])
            case e.OperationStarted(operation=operation) if operation.kind in POWER:
                page = case.reading.pages[operation.node]
                protective = page.plan is not None and page.plan.act_class is ActClass.protective
                if not protective and case.reading.held(page, "physical_work"):
                    yield f"{operation.kind} on {page.id} while somebody's hands are in it"
                if operation.kind == "power_on" and (dark := case.reading.held(page, "power")):
                    yield f"power_on of {page.id}, which {dark[0].owner} keeps powered off"
            case _:
                pass


POWER = (
    "power_on",
    "power_off",
    "update_firmware",
    "reboot",
    "set_boot_network",
    "write_bios_settings",
    "write_device_firmware",
    "ac_cycle",
    "outlet_cycle",
    "unplug",
)
"""Operations that nobody's hands may meet."""


def _over_budgets(reading: JournalReading, page: NodeHistory, plan: Plan, works: str | None) -> Iterator[str]:
    """Judge that pool and domains have room; what could run nothing and runs nothing (`works` "") costs no pool any."""
    if works != "" or not _is_unusable(page):
        yield from _over_budget(reading, page, plan)
    yield from _over_domain(reading, page, plan)


def _is_unusable(page: NodeHistory) -> bool:
    """Whether more than its kernel log shows a fault, or its agent is silent, for which a plan needs a second path."""
    seen = any(
        c.severity >= Severity.critical and c.unknown_since is None and set(c.paths) - {"kernel_log"}
        for c in page.conditions.values()
        if not c.type.startswith("agent.")
    )
    return seen or any(c.type.startswith("agent.") for c in page.conditions.values())


def _gives_way(reading: JournalReading, page: NodeHistory) -> Iterator[str]:
    """Judge that only what has disturbed nobody gives up its place, and only where an immediate remedy waits for it."""
    if page.acted or page.plan is None or page.plan.act_class is not ActClass.pending:
        yield f"a plan of {page.id} gives way that has disturbed somebody or cannot wait"
    scopes = {f"pool:{page.pool}", *page.domains}
    waits = [other.waiting for other in reading.pages.values() if other.waiting is not None and other.waiting.urgent]
    if not any(scopes.issuperset(blocker.name for blocker in waiting.blockers) for waiting in waits):
        yield f"a plan of {page.id} gives way to nobody"


def _over_budget(reading: JournalReading, page: NodeHistory, plan: Plan) -> Iterator[str]:
    pool = reading.pool(page.pool)
    if pool is None or not page.healthy:
        return
    out, limit = max(0, pool.target - reading.healthy[pool.name]), _limit(pool, plan)
    if out + 1 > limit:
        yield f"{plan.name} of {page.id}: {out} of {pool.target} of {pool.name} are out already, {limit} may be"


def _limit(pool: Pool, plan: Plan) -> int:
    share = pool.target * pool.budget.percent / 100
    percent = max(1, int(share)) if share > 0 else 0
    reserve = pool.budget.reserve if plan.act_class is ActClass.immediate else 0
    return min(pool.budget.count, percent) + reserve


def _over_domain(reading: JournalReading, page: NodeHistory, plan: Plan) -> Iterator[str]:
    assert reading.configuration is not None, "nothing is planned without a configuration"
    for domain in page.domains:
        budget = reading.configuration.policy.domains.get(domain.partition(":")[0])
        if budget is None or plan.group:
            continue
        inside = reading.inside[domain]
        busy = sum(other.disrupted for other in inside)
        limit = min(budget.count, max(1, int(len(inside) * budget.percent / 100)))
        if busy + 1 > limit:
            yield f"{plan.name} of {page.id}: {busy} of {domain} are disturbed already, {limit} may be"


def _stopped(reading: JournalReading, page: NodeHistory, plan: Plan) -> Iterator[str]:
    if reading.brake:
        yield f"{plan.name} of {page.id} under the storm brake"
    if any(scope in reading.paused for scope in reading.scopes(page)):
        yield f"{plan.name} of {page.id} while its scope is paused"
    held = reading.held(page, "operator", "override", "power", "physical_work")
    if held and (plan.name != "cordon" or held[0].kind.value != "physical_work"):
        yield f"{plan.name} of {page.id} against the hold {held[0].id}"
    causes = [page.conditions[cause] for cause in plan.causes if cause in page.conditions]
    for incident in reading.incidents.values():
        if page.id in incident.members and incident.holds and causes and _explains(incident, causes):
            yield f"{plan.name} of {page.id} for what incident {incident.id} explains"


def _explains(incident: Incident, causes: list[Condition]) -> bool:
    return all(cause.type in incident.conditions and not cause.remedy for cause in causes)


def _mode(reading: JournalReading, page: NodeHistory, plan: Plan) -> Iterator[str]:
    pool = reading.pool(page.pool)
    if pool is None or plan.name == "cordon" or any(_requested(page, cause) for cause in plan.causes):
        return
    remedy = plan.remedy or plan.name
    stages = (
        reading.modes.get((pool.name, remedy)),
        reading.modes.get((pool.name, "*")),
        pool.modes.get(remedy),
        pool.modes.get("*"),
    )
    mode = next((str(stage) for stage in stages if stage), "observe")
    if mode == "observe" or (mode == "propose" and plan.state != "proposed"):
        yield f"{plan.name} of {page.id} runs, and its pool stands at {mode}"


def _shadowed(reading: JournalReading, page: NodeHistory, plan: Plan) -> Iterator[str]:
    rule = reading.configuration.policy.rules.get(plan.rule) if reading.configuration else None
    if rule is not None and rule.shadow and not any(_requested(page, cause) for cause in plan.causes):
        yield f"{plan.name} of {page.id} answers {plan.rule}, whose rule stands in shadow"


def _requested(page: NodeHistory, cause: str) -> bool:
    condition = page.conditions.get(cause)
    return condition is not None and bool(condition.remedy)


class NamedWaits:
    """Law 5. Who waits says for whom, and what ends it; nobody stands still without a word."""

    def record(self, _case: LawCase, record: e.Record) -> Iterator[str]:
        """Judge that a wait names a blocker, and each blocker what ends it."""
        match record.event:
            case e.WaitingChanged(node=node, waiting=waiting) if waiting is not None:
                if not waiting.blockers:
                    yield f"{node} waits for {waiting.what}, and names no blocker"
                for blocker in waiting.blockers:
                    if not (blocker.kind and blocker.name and blocker.text and blocker.ends_when):
                        yield f"{node} waits for a blocker that is not described: {blocker}"
            case _:
                pass

    def batch(self, case: LawCase) -> Iterator[str]:
        """Judge that no node of the batch stands still without a wait."""
        yield from (text for node in case.nodes if (text := _mute(case.reading, case.reading.pages[node])))

    def end(self, case: LawCase) -> Iterator[str]:
        """Judge the same for every node at the end, and that no wait was forgotten."""
        yield from (text for page in case.reading.pages.values() if (text := _mute(case.reading, page)))
        yield from _forgotten(case.reading)


def _forgotten(reading: JournalReading) -> Iterator[str]:
    """Find a spare left idle, without a word, beside a pool that lacks a node and is not stopped."""
    if reading.brake or reading.paused or reading.holds or reading.incidents or reading.configuration is None:
        return
    for pool in reading.configuration.pools.values():
        idle = [page.id for page in reading.pages.values() if _fits(page, pool) and _is_idle(page)]
        members = sum(page.pool == pool.name for page in reading.pages.values())
        if members < pool.target and len(idle) > pool.budget.spares_floor:
            yield f"{idle[0]} is idle and waits for nobody, and {pool.name} has {members} of its {pool.target} nodes"


def _fits(page: NodeHistory, pool: Pool) -> bool:
    return page.sku == pool.sku and page.managed is (pool.profile is Profile.managed)


def _is_idle(page: NodeHistory) -> bool:
    busy = page.plan or page.operation or page.waiting or page.settling or page.conditions or page.cordoned
    return page.phase is Phase.production and not page.pool and not page.unproven and not busy


def _mute(reading: JournalReading, page: NodeHistory) -> str:
    if page.operation is not None or page.waiting is not None or page.settling:
        return ""
    why = _should_wait(reading, page)
    return f"{page.id} {why}, does nothing, and waits for nobody" if why else ""


_PEOPLE = (Phase.onboard, Phase.rma, Phase.zap_fail, Phase.debug)


def _should_wait(reading: JournalReading, page: NodeHistory) -> str:
    if page.plan is not None:
        return f"has the plan {page.plan.name}"
    if page.phase in _PEOPLE:
        return f"stands at {page.phase}"
    if page.phase is Phase.production and page.managed:
        return next((f"has {c.type}" for c in page.conditions.values() if _asks(reading, page, c)), "")
    return ""


def _asks(reading: JournalReading, page: NodeHistory, condition: Condition) -> bool:
    if condition.boot_id and condition.boot_id != page.boot and condition.boot_id in page.boots:
        return False
    rule = reading.configuration.policy.rules.get(condition.type) if reading.configuration else None
    return bool(condition.remedy or (rule and rule.remedy and not rule.shadow))


KNOWN = timedelta(minutes=2)
"""So long after it was told that a person has lifted our cordon, nobody can say that he has not heard yet."""


class OnlyYourOwn:
    """Law 6. A person's cordon, hold or work is ended by persons only; no BMC but the node's own is ever actuated.

    Who lifts our cordon overrides us: that is recorded, and not fought.
    """

    def __init__(self) -> None:
        self._persons: dict[str, None] = {}
        self._judged = 0

    def batch(self, case: LawCase) -> Iterator[str]:
        """Judge the BMCs that were reached, and the cordons of others."""
        misdirected_acts = case.world.site.ledger.misdirected_acts
        for misdirected in misdirected_acts[self._judged :]:
            act = f"{misdirected.kind} of {misdirected.node} ({misdirected.operation})"
            yield f"{act} reached the BMC of {misdirected.machine}"
        self._judged = len(misdirected_acts)
        for node, since in case.world.scheduler.opened.items():
            if _is_unrecorded(case.reading, case.reading.pages[node], since):
                yield f"our cordon of {node} was lifted by a person, and that is not recorded"

    def record(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Judge whose holds and work a record ends."""
        match record.event:
            case e.IntentRecorded(intent=intent):
                self._persons[intent.person] = None
                if intent.verb == "start-work" and record.event.granted:
                    yield from _wrong_machine(case.reading, intent)
            case e.HoldReleased(hold=hold, person=person):
                placed = case.reading.holds.get(hold)
                over = placed is not None and placed.until is not None and placed.until <= record.at
                if placed is not None and placed.owner != OURS and not over and person not in self._persons:
                    yield f"{person or 'nobody'} releases {hold} of {placed.owner}"
            case e.OperationStarted(operation=operation) if operation.kind == "uncordon":
                page = case.reading.pages[operation.node]
                overridden = case.reading.held(page, "override")
                if kept := case.reading.held(page, *(() if overridden else ("cordon",)), "physical_work"):
                    yield f"{page.id} is uncordoned against {kept[0].id} of {kept[0].owner}"
            case e.OperationStarted(operation=operation) if operation.kind == "cordon":
                page = case.reading.pages[operation.node]
                if lifted := case.reading.held(page, "override"):
                    yield f"{page.id} is cordoned again against {lifted[0].id}: {lifted[0].owner} has opened it"
            case _:
                pass


def _is_unrecorded(reading: JournalReading, page: NodeHistory, since: datetime) -> bool:
    """Whether the journal says that our cordon stands though who attends was told long ago that it was lifted."""
    assert reading.now is not None, "a batch has records"
    asked = page.operation is not None and page.operation.kind in ("cordon", "uncordon")
    stands = page.cordoned and not page.lifted and bool(page.pool) and not asked
    return stands and reading.now - max(since, page.cordoned_at or since, reading.attended or since) > KNOWN


def _wrong_machine(reading: JournalReading, intent: Intent) -> Iterator[str]:
    page = reading.pages.get(intent.target)
    serial = intent.act.serial if isinstance(intent.act, StartWork) else None
    if page is not None and serial != page.serial:
        yield f"work on {page.id} was granted to somebody in front of {serial}"


class DoubtIsNotHealth:
    """Law 7. Into service only with passed checks, and heard; made-up lines and mere silence convict nobody."""

    def record(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Judge convictions by their evidence, and entries into service by their checks."""
        match record.event:
            case e.ConditionRaised(condition=c) | e.ConditionUpdated(condition=c):
                seen = c.evidence[-1].observation if c.evidence else ""
                if seen in case.world.site.ledger.untrusted and c.type != "kernel_log.userspace_origin":
                    yield f"{c.type} of {c.node} rests on a line that user space wrote ({seen})"
            case e.PlanRecorded(plan=plan) if plan.disruptive:
                yield from _convicted(case, record.event)
            case e.OperationStarted(operation=operation) if operation.kind == "uncordon":
                yield from _opened(case.reading.pages[operation.node])
            case e.NodeAssigned(node=node):
                if doubt := case.reading.pages[node].doubt:
                    yield f"{node} is delivered, and nobody can say how it is: {doubt}"
            case e.PlanEnded(node=node, plan=plan_id, result="done"):
                yield from _unproven(case.reading.pages[node], plan_id)
            case e.PhaseChanged(node=node, before=Phase.test, after=Phase.production):
                if not case.reading.pages[node].passed:
                    yield f"{node} enters production without a passed burn-in"
            case _:
                pass


def _opened(page: NodeHistory) -> Iterator[str]:
    """New work is let in: to a node that is heard, and on which checks have passed since its hardware was touched."""
    if page.unproven:
        yield f"{page.id} is uncordoned after {page.unproven}, and no check has passed since"
    easing = page.plan is not None and (page.plan.act_class is ActClass.easing or page.state == "undoing")
    if not easing and any(
        c.type in ("agent.lost", "agent.outdated", "agent.refused") for c in page.conditions.values()
    ):
        yield f"{page.id} is let back to work, and nobody can say how it is: its agent is not heard"


def _convicted(case: LawCase, recorded: e.PlanRecorded) -> Iterator[str]:
    """On whose word a node is disturbed: not on silence's, and not on its own tenant's."""
    plan, live = recorded.plan, recorded.present
    page = case.reading.pages[plan.node]
    if plan.act_class is ActClass.immediate and plan.state != "proposed":
        yield from _on_the_word_of_root(case, page, plan)
    if _absent_only(page, plan) and live.get("ready") != "false" and live.get("power") != "off":
        yield f"{plan.name} of {plan.node} because it is silent, and no second witness says so"


def _on_the_word_of_root(case: LawCase, page: NodeHistory, plan: Plan) -> Iterator[str]:
    """Every cause rests only on lines that a tenant with root has forged."""
    pool, forged = case.reading.pool(page.pool), case.world.site.ledger.forged
    causes = [page.conditions[cause] for cause in plan.causes if cause in page.conditions]
    if pool is None or not pool.tenant_root or not causes:
        return
    if all(c.evidence and all(one.observation in forged for one in c.evidence) for c in causes):
        yield f"{plan.name} of {page.id} rests on what its tenant, who has root, has written"


def _absent_only(page: NodeHistory, plan: Plan) -> bool:
    causes = [page.conditions[cause].type for cause in plan.causes if cause in page.conditions]
    return bool(causes) and all(cause == "agent.lost" for cause in causes)


def _unproven(page: NodeHistory, plan_id: str) -> Iterator[str]:
    plan = page.plan
    if plan is None or plan.id != plan_id or page.state != "running":
        return
    checked = any(step.operation == "run_checks" for step in plan.steps)
    if checked and not page.passed:
        yield f"{plan.name} of {page.id} is done, and its checks have not passed"


class CustomerWork:
    """Law 9. A customer's live work ends only where it was doomed, somebody agreed, or hardware was in danger."""

    def __init__(self) -> None:
        self._judged = 0
        self._plans: dict[str, tuple[Plan, datetime, str]] = {}
        self._consented: dict[str, str] = {}
        self._sent: dict[str, datetime] = {}

    def record(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Note consents, and which plan ends work."""
        match record.event:
            case e.WorkConsented(work=works):
                self._consented |= {work.workload: work.remedy for work in works}
            case e.OperationStarted(operation=operation):
                page = case.reading.pages[operation.node]
                self._sent[operation.id] = record.at
                if page.plan is not None:
                    self._plans[operation.id] = (page.plan, page.plan.recorded_at, page.pool)
            case _:
                pass
        yield from ()

    def batch(self, case: LawCase) -> Iterator[str]:
        """Judge each workload that was ended since the last batch."""
        ledger = case.world.site.ledger
        for disturbed in ledger.disturbances[self._judged :]:
            if not (disturbed.doomed or disturbed.consent or self._excused(case.reading, disturbed)):
                yield f"{disturbed.workload} on {disturbed.node} was ended by {disturbed.by} without a right to"
        self._judged = len(ledger.disturbances)

    def _excused(self, reading: JournalReading, disturbed: ActualDisturbance) -> bool:
        """Protection, a person's consent to this remedy, or the pool's recorded agreement after its drain deadline.

        What was on its way already may still land on whom a person let in against our cordon, before we knew.
        """
        sent = self._sent.get(disturbed.by)
        if disturbed.invited and sent is not None and (disturbed.opened is None or sent < disturbed.opened):
            return True
        found = self._plans.get(disturbed.by)
        if found is None:
            return False
        plan, since, pool_name = found
        if plan.act_class is ActClass.protective:
            return disturbed.protective
        if self._consented.get(disturbed.workload) in (plan.remedy, plan.name):
            return True
        pool = reading.pool(pool_name)
        return (
            pool is not None
            and pool.evict_after_deadline
            and disturbed.at >= since + timedelta(seconds=pool.drain_deadline_s)
        )
