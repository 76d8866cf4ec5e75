"""Laws 1, 2, 3 and 8: who writes, what a restart may do, how plans run, and that everything ends."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from hostler.core.state import events as e
from hostler.core.state.model import ActClass, Operation, Phase, Plan, Step
from hostler.core.state.operations import Evict
from hostler.sim.checkers.journal_reading import UNINVITED, JournalReading, NodeHistory
from hostler.sim.checkers.law import LawCase

SLACK = timedelta(seconds=65)
"""How much later than due a clock may notice: the controller looks at everything within a minute."""


class OneWriter:
    """Law 1. Epochs only rise, each begins with a start, numbers have no gap, the deposed are refused."""

    def record(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Judge the record's number and epoch."""
        reading = case.reading
        if record.seq != reading.seq + 1:
            yield f"record {record.seq} follows record {reading.seq}"
        if record.epoch < reading.epoch:
            yield f"epoch {record.epoch} writes after epoch {reading.epoch}"
        if record.epoch > reading.epoch and not isinstance(record.event, e.ControllerStarted):
            yield f"epoch {record.epoch} writes before it has said that it started"
        if record.epoch <= reading.epoch and isinstance(record.event, e.ControllerStarted):
            yield f"a controller starts under epoch {record.epoch}, which another has held"
        if reading.now is not None and record.at < reading.now:
            yield f"time goes back from {reading.now} to {record.at}"

    def batch(self, case: LawCase) -> Iterator[str]:
        """Judge that deposed controllers were refused."""
        if not all(case.world.site.ledger.fences):
            case.world.site.ledger.fences.clear()
            yield "a deposed controller has written to the journal"
        trespasses = case.world.site.ledger.trespasses
        yield from (f"a deposed controller has sent {what}" for what in trespasses)
        trespasses.clear()


class LevelNotEdge:
    """Law 2. An observation raises a condition once; what is over or of an earlier boot starts nothing."""

    def __init__(self) -> None:
        self._raised: dict[tuple[str, str], None] = {}

    def record(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Judge that an observation raises a condition once."""
        match record.event:
            case e.ConditionRaised(condition=c) if c.evidence and c.evidence[-1].observation:
                key = (c.id, c.evidence[-1].observation)
                if key in self._raised:
                    yield f"{c.id} is raised again by {key[1]}, which raised it before"
                self._raised[key] = None
            case e.PlanRecorded(plan=plan) if plan.causes:
                page = case.reading.pages[plan.node]
                standing = [page.conditions[cause] for cause in plan.causes if cause in page.conditions]
                if not standing:
                    yield f"{plan.name} of {plan.node} answers {plan.causes[0]}, which does not stand"
                elif plan.disruptive and all(c.boot_id in page.boots and c.boot_id != page.boot for c in standing):
                    yield f"{plan.name} of {plan.node} answers findings of an earlier boot only"
            case _:
                pass


ONCE = (
    "reboot",
    "gpu_reset",
    "reset_port",
    "update_firmware",
    "idle_check",
    "ac_cycle",
    "outlet_cycle",
    "unplug",
    "reset_bmc",
    "replace_machine",
    "inject_fault",
)
"""Operations that may not take place twice, however often anybody asks."""


class FrozenPlans:
    """Law 3. Operations are the plan's own steps in order, recorded before they take effect, never repeated blindly."""

    def __init__(self) -> None:
        self._started: dict[tuple[str, int], int] = {}
        self._judged = 0
        self._done: dict[tuple[str, int], None] = {}
        self._once: dict[str, None] = {}
        self._stayed: dict[str, tuple[str, ...]] = {}

    def record(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Judge that operations are the plan's steps in order."""
        reading, event = case.reading, record.event
        match event:
            case e.PlanRecorded(plan=plan):
                page = reading.pages[plan.node]
                self._stayed.pop(plan.node, None)
                if page.plan is not None:
                    yield f"{plan.name} is laid down for {plan.node} while {page.plan.name} runs"
            case e.OperationStarted(operation=operation):
                self._started.setdefault((operation.id, operation.attempt), record.seq)
                yield from _fits(reading, reading.pages[operation.node], operation)
                yield from self._passed_by(reading.pages[operation.node], operation)
                yield from acts_in_the_open(reading, reading.pages[operation.node], operation)
                yield from _repeated(case, reading.pages[operation.node], operation)
            case e.PlanAdvanced(node=node, index=index):
                if index != reading.pages[node].index + 1 and not _joins_again(reading.pages[node], index):
                    yield f"the plan of {node} goes from step {reading.pages[node].index} to {index}"
                self._note_drained(case, reading.pages[node])
            case e.PlanEnded(node=node) | e.PlanUndoing(node=node):
                yield from _at_boundary(reading.pages[node], event)
            case _:
                pass

    def batch(self, case: LawCase) -> Iterator[str]:
        """Judge that effects came after their records, and once."""
        effects = case.world.site.ledger.effects
        for effect in effects[self._judged :]:
            key = (effect.operation, effect.attempt)
            seq = self._started.get(key)
            if seq is None or seq > effect.journal_seq:
                yield f"{effect.kind} on {effect.node} took place before it was recorded"
            if key in self._done or (effect.kind in ONCE and effect.operation in self._once):
                yield f"{effect.kind} on {effect.node} ({effect.operation}) took place twice"
            self._done[key] = self._once[effect.operation] = None
        self._judged = len(effects)

    def _note_drained(self, case: LawCase, page: NodeHistory) -> None:
        """Note the workloads that Hostler was shown there, long ago, when the plan passed its drain."""
        plan = page.plan
        if plan is None or page.state != "running" or page.index >= len(plan.steps):
            return
        if plan.steps[page.index].operation == "drain":
            works, since = case.world.scheduler.shown.get(page.id, ([], case.reading.clock))
            lost = case.world.scheduler.seat(page.id).lost
            known = case.reading.clock - since > SHOWN
            self._stayed[page.id] = tuple(work for work in works if known and work not in lost)

    def _passed_by(self, page: NodeHistory, operation: Operation) -> Iterator[str]:
        """After the drain only those are told to go who have come since."""
        if isinstance(operation.act, Evict) and page.plan is not None:
            left = [work for work in self._stayed.get(page.id, ()) if work in operation.act.workloads]
            if left:
                yield f"{page.plan.name} of {page.id} has passed its drain and only now tells {left[0]} to go"


EMPTIED = (
    "gpu_reset",
    "reset_port",
    "reboot",
    "power_off",
    "update_firmware",
    "write_bios_settings",
    "write_device_firmware",
    "ac_cycle",
    "outlet_cycle",
    "unplug",
    "run_checks",
    "leave_cluster",
    "sanitise",
)
"""Steps that want nobody's work on the node: whoever has come since the drain goes first, and our cordon stands."""

SHOWN = timedelta(minutes=2)
"""So long after it was shown whose work runs somewhere, nobody can say that he has not heard yet."""


def acts_in_the_open(reading: JournalReading, page: NodeHistory, operation: Operation) -> Iterator[str]:
    """Tell of acts behind a cordon that was lifted, once whoever lifted it has let Hostler go on."""
    plan = page.plan
    acts = operation.kind in ACTING and operation.attempt == 1 and page.state == "running"
    if not acts or plan is None or plan.act_class is ActClass.protective or not page.lifted:
        return
    laid = any(step.operation == "cordon" for step in plan.steps[: page.index])
    if laid and not reading.held(page, "override"):
        yield f"{operation.kind} on {page.id} while it is open: its cordon was lifted, and nobody keeps it so"


ACTING = (
    "gpu_reset",
    "reset_port",
    "reboot",
    "power_off",
    "update_firmware",
    "write_device_firmware",
    "ac_cycle",
    "outlet_cycle",
    "unplug",
)
"""Operations that end all work on the node, whoever has come meanwhile."""


def _makes_way(page: NodeHistory, step: Step, operation: Operation) -> bool:
    """Whether the operation only brings about what the step presupposes, and the plan had brought about before."""
    if operation.kind == "evict":
        return step.operation in ("drain", *EMPTIED)
    return operation.kind == "cordon" and step.operation in EMPTIED and page.lifted


def _joins_again(page: NodeHistory, index: int) -> bool:
    """Whether a join begins anew: what let the kubelet in went with the controller that had issued it."""
    steps = page.plan.steps if page.plan is not None and page.state == "running" else ()
    at = [steps[i].operation for i in (page.index, index) if i < len(steps)]
    return at == ["confirm_join", "join_cluster"]


def _fits(reading: JournalReading, page: NodeHistory, operation: Operation) -> Iterator[str]:
    plan = page.plan
    if operation.aside:
        yield from _beside(reading, page, operation)
    elif operation.kind == "idle_check":  # disturbs nobody, and belongs to no plan: then none may be under way
        if plan is not None:
            yield f"{operation.kind} on {page.id} begins though {plan.name} is under way"
    elif plan is None or plan.id != operation.plan:
        yield f"{operation.kind} on {page.id} belongs to no running plan"
    elif page.state == "proposed":
        yield f"{operation.kind} on {page.id} belongs to a plan that nobody has approved"
    elif page.state == "undoing":
        if operation.kind not in _tail(plan, page.reached)[page.index : page.index + 1]:
            yield f"{operation.kind} on {page.id} is not the undo tail's step {page.index}"
    else:
        step = plan.steps[page.index] if page.index < len(plan.steps) else None
        own = step is not None and step.act == operation.act
        if step is None or not (own or _makes_way(page, step, operation)):
            yield f"{operation.kind} on {page.id} is not step {page.index} of {plan.name}"


def _beside(reading: JournalReading, page: NodeHistory, operation: Operation) -> Iterator[str]:
    """Judge what runs beside a plan: it turns a Node away, or only looks."""
    if operation.kind in UNINVITED:
        yield from _turns_away(reading, page, operation)
    elif operation.kind != "collect_evidence" or operation.plan or operation.disturbs or operation.touches:
        yield f"{operation.kind} on {page.id} runs beside its plan"


def _turns_away(reading: JournalReading, page: NodeHistory, operation: Operation) -> Iterator[str]:
    """Judge a turn-away: beside any plan, for its own condition, and where nobody keeps the node as it is."""
    if all(c.type != "node.uninvited" for c in page.conditions.values()):
        yield f"{operation.kind} on {page.id}, which no cluster lists against its journal"
    if any(scope in reading.paused for scope in reading.scopes(page)) or reading.held(
        page, "operator", "override", "power"
    ):
        yield f"{operation.kind} on {page.id}, which somebody has held or paused"


def _repeated(case: LawCase, page: NodeHistory, operation: Operation) -> Iterator[str]:
    """A further attempt needs an answer that says that the one before did not happen (or, for checks, ended).

    What was refused did not happen.
    """
    before = page.aside if operation.aside else page.operation
    if before is not None and before.id != operation.id:
        yield f"{operation.kind} on {page.id} begins while {before.kind} is under way"
    if operation.attempt == 1:
        return
    said = case.world.site.ledger.answers.get((operation.id, operation.attempt - 1), [])
    enough = not {"not_done", "refused"}.isdisjoint(said) or (operation.kind == "run_checks" and "done" in said)
    if not enough:
        yield f"{operation.kind} on {page.id} is repeated, and the last attempt's answers were {said or 'none'}"


def _at_boundary(page: NodeHistory, event: e.PlanEnded | e.PlanUndoing) -> Iterator[str]:
    if page.plan is None or page.plan.id != event.plan:
        yield f"a plan of {page.id} ends that did not run: {event.plan}"
    elif page.operation is not None:
        yield f"{page.plan.name} of {page.id} ends while {page.operation.kind} is under way"
    elif isinstance(event, e.PlanEnded) and (owed := _owed(page, event.result)):
        yield f"{page.plan.name} of {page.id} ends {event.result} and its {owed[0]} is left out"


def _owed(page: NodeHistory, result: str) -> list[str]:
    """Steps that a plan which ends early has not taken back yet."""
    assert page.plan is not None, "its caller has looked"
    if page.state == "undoing":  # protection takes the node as it is, and keeps it cordoned
        return [] if result == "superseded" else _tail(page.plan, page.reached)[page.index :]
    return _tail(page.plan, page.index - 1) if result == "cancelled" and page.state == "running" and page.index else []


def _tail(plan: Plan, reached: int) -> list[str]:
    return [name for name in reversed(plan.undo[: reached + 1]) if name]


OBSERVED_WITHIN = timedelta(minutes=5)
"""How long what was under way when nobody attended may wait to be observed before its deadline counts again."""


class EverythingEnds:
    """Law 8. No operation, step or phase outlives its deadline; the healed world comes to rest or names who is next.

    None is given up for its deadline before it was observed, where nobody attended to it for a while.
    """

    def __init__(self) -> None:
        self._told: dict[str, None] = {}
        self._resumed = datetime.min.replace(tzinfo=UTC)
        self._answered: dict[str, tuple[int, int]] = {}

    def record(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Note when a controller attends."""
        match record.event:
            case e.ControllerStarted() | e.ClockConfirmed() | e.RestoreReleased():
                self._attend(case, record.at)
            case e.ClockGap(unattended_s=gap_s) if gap_s:
                self._attend(case, record.at)
            case e.OperationFinished(node=node, result="timed_out", operation=name):
                operation = next((one for one in case.reading.pages[node].outstanding if one.id == name), None)
                early = record.at < self._resumed + OBSERVED_WITHIN
                if early and operation is not None and self._answered.get(operation.id) == _answers(case, operation):
                    yield f"{operation.kind} of {node} is given up before anybody has looked what came of it"
            case _:
                pass

    def _attend(self, case: LawCase, at: datetime) -> None:
        """Note that a controller is active again: what is outstanding is to be observed first."""
        self._resumed = at
        self._answered = {o.id: _answers(case, o) for o in _outstanding(case.reading)}

    def batch(self, case: LawCase) -> Iterator[str]:
        """Judge the deadlines of the nodes that are busy."""
        now = case.reading.now
        assert now is not None, "a batch has records"
        for page in [case.reading.pages[name] for name in case.reading.busy]:
            for what, due in _due(page):
                observed = self._resumed + OBSERVED_WITHIN if page.outstanding else due
                if max(due, observed) + SLACK < now and what not in self._told:
                    self._told[what] = None
                    yield f"{what} was due at {due:%d %H:%M:%S}, it is {now:%d %H:%M:%S}"

    def end(self, case: LawCase) -> Iterator[str]:
        """Judge that everything is over or names who is next."""
        yield from _unfinished(case.reading, case.world.clock.now)
        yield from (text for page in case.reading.pages.values() if (text := _waits_for_the_gone(case, page)))


def _outstanding(reading: JournalReading) -> list[Operation]:
    return [one for page in reading.pages.values() for one in page.outstanding]


def _answers(case: LawCase, operation: Operation) -> tuple[int, int]:
    """Number of the attempt, and how many answers about it have come so far."""
    return operation.attempt, len(case.world.site.ledger.answers.get((operation.id, operation.attempt), ()))


def _due(page: NodeHistory) -> Iterator[tuple[str, datetime]]:
    for one in page.outstanding:
        yield f"{one.kind} {one.id}", one.deadline
    kept = page.plan is None and page.waiting is not None  # by others, who are named
    writes = page.operation is not None and page.phase is Phase.zap
    if page.deadline is not None and not (kept or writes or _is_asked(page)):
        yield f"{page.phase} of {page.id} since {page.deadline:%d %H:%M}", page.deadline
    for operation, until in page.settling.items():
        yield f"settling of {operation}", until


ASKED = ("verify_inventory", "verify_cabling", "run_checks", "sanitise")
"""Steps that are to be an answer."""

UNANSWERED = ("check.inconclusive", "node.unsanitised")


def _is_asked(page: NodeHistory) -> bool:
    """An operation that waits for an answer runs into no phase's limit: asking has its own time.

    Also where the plan that asked was given up for a person's work meanwhile.
    """
    if any(c.type in UNANSWERED for c in page.conditions.values()):
        return True
    if page.operation is None or page.plan is None or page.state != "running" or page.index >= len(page.plan.steps):
        return False
    return page.plan.steps[page.index].operation in ASKED


REST = (Phase.production, Phase.retired)


MOVING = timedelta(hours=30)
"""A world in which something was recorded so lately is on its way: one after the other, as budgets have it."""


def _unfinished(reading: JournalReading, now: datetime) -> Iterator[str]:
    moving = reading.moved is not None and now - reading.moved < MOVING
    for page in reading.pages.values():
        if page.outstanding:
            for late in (one for one in page.outstanding if one.deadline < now):
                yield f"{page.id}: {late.kind} is still under way at {now:%d %H:%M}"
        elif page.phase not in REST and not (moving and page.waiting is not None):
            yield f"{page.id} has not come back: {page.phase}, {_why(page)}"
        elif page.plan is not None and page.waiting is None:
            yield f"{page.id}: {page.plan.name} runs, and nobody is named"


def _waits_for_the_gone(case: LawCase, page: NodeHistory) -> str:
    """A node that is lost with all that ran there must not wait for what only a scheduler lists."""
    seat = case.world.scheduler.seats.get(page.id)
    listed = seat.lost if seat is not None and seat.forsaken else {}
    gone = [b.name for b in page.waiting.blockers if b.name in listed] if page.waiting else []
    return f"{page.id} waits for {gone[0]}, which ended when its host died" if gone else ""


def _why(page: NodeHistory) -> str:
    return page.waiting.blockers[0].text if page.waiting else "waits for nobody"


def is_at_rest(reading: JournalReading, now: datetime) -> bool:
    """Every node serves or is spare, nothing runs but idle checks in their time, and nothing settles or waits."""
    return all(
        page.phase in REST
        and page.plan is None
        and (page.operation is None or (page.operation.kind == "idle_check" and page.operation.deadline >= now))
        and page.waiting is None
        and not page.settling
        for page in reading.pages.values()
    )
