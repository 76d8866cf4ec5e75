"""A node's story while its records are read: conditions from raised to cleared, plans with what was done under them."""

from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec.structs import replace

from hostler.core.conditions.uninvited import UNINVITED
from hostler.core.diagnose.gate.readings import LOOK
from hostler.core.report.explanation_chains import (
    CausalChain,
    Link,
    Note,
    OperationStory,
    PhaseMove,
    Remedy,
    WaitSpell,
)
from hostler.core.state import events as e
from hostler.core.state import light
from hostler.core.state.boot_medium import EJECT
from hostler.core.state.durations import duration
from hostler.core.state.model import Condition, Operation, Phase, Plan
from hostler.core.tables.operations import IDLE_CHECK, OPERATIONS


class ConditionEpisode:
    """A condition from raised to cleared, while the records are read."""

    def __init__(self, record: e.Record, condition: Condition) -> None:
        self.seq = record.seq
        self.cause = record.cause
        self.condition = condition
        self.cleared: e.ConditionCleared | None = None
        self.cleared_at: datetime | None = None
        self.shadows: tuple[str, ...] = ()
        self.acts: dict[str, OperationStory] = {}

    def link(self) -> Link:
        """The condition as it is shown."""
        condition, cleared = self.condition, self.cleared
        return Link(
            id=condition.id,
            type=condition.type,
            severity=int(condition.severity),
            part=condition.part,
            since=condition.since,
            count=condition.count,
            cause=self.cause,
            evidence=condition.evidence,
            cleared=self.cleared_at,
            cleared_by=cleared.by if cleared else "",
            why=cleared.reason if cleared else "",
            shadows=self.shadows,
            unknown=condition.unknown_since if cleared is None else None,
        )


class Course:
    """A plan with what was done under it, while the records are read."""

    def __init__(self, record: e.Record, plan_id: str, plan: Plan | None = None) -> None:
        self.seq = record.seq
        self.at = plan.recorded_at if plan else record.at
        self.id = plan_id
        self.plan = plan
        self.episodes: list[ConditionEpisode] = []
        self.acts: dict[str, OperationStory] = {}
        self.moves: list[PhaseMove] = []
        self.index = 0
        self.approved_by = ""
        self.reason = ""
        self.undoing = False
        self.ended: e.PlanEnded | None = None
        self.ended_at: datetime | None = None

    def remedy(self) -> Remedy:
        """The plan as it is shown."""
        plan, ended = self.plan, self.ended
        return Remedy(
            id=self.id,
            name=plan.name if plan else "plan from before this history",
            act_class=plan.act_class.value if plan else "",
            rule=plan.rule if plan else "",
            config=plan.config if plan else "",
            steps=tuple(step.operation for step in plan.steps) if plan else (),
            unproven=plan.unproven if plan else (),
            index=self.index,
            state=self._state(),
            recorded=plan.recorded_at if plan else None,
            approved_by=self.approved_by,
            ended=self.ended_at,
            result=ended.result if ended else "",
            reason=(ended.reason if ended else "") or self.reason,
        )

    def _state(self) -> str:
        if self.ended:
            return "ended"
        if self.undoing:
            return "undoing"
        waits = self.plan is not None and self.plan.state == "proposed" and not self.approved_by
        return "proposed" if waits else "running"

    def answers(self, spell: WaitSpell) -> bool:
        """Whether the wait is this plan's: before it began, for the remedy that it is, or while it ran."""
        named = self.plan is not None and spell.what in (self.plan.name, self.plan.remedy)
        return named and (self.ended_at is None or spell.since < self.ended_at)

    def chain(self, waits: tuple[WaitSpell, ...] = ()) -> CausalChain:
        """The plan with what led to it, what it waited for and what came of it."""
        remedy = self.remedy()
        links = tuple(episode.link() for episode in self.episodes)
        first = min((link.since for link in links), default=self.at)
        return CausalChain(
            at=first,
            seq=self.seq,
            open=self.ended is None,
            outcome=_outcome(remedy, links, self.moves, waits),
            conditions=links,
            remedy=remedy,
            operations=tuple(self.acts.values()),
            moves=tuple(self.moves),
            waits=waits,
        )


class NodeStory:
    """A node's records as far as they have been read. `say` makes an event's sentence."""

    def __init__(self, say: Callable[[e.Event], str]) -> None:
        self._say = say
        self.node = ""
        self.phase: Phase | None = None
        self.partial = False
        self.notes: list[Note] = []
        self._standing: dict[str, ConditionEpisode] = {}
        self._episodes: list[ConditionEpisode] = []
        self._courses: dict[str, Course] = {}
        self._last: Course | None = None
        self._alone: list[CausalChain] = []
        self._lights: set[str] = set()
        self._spells: list[WaitSpell] = []

    def waits(self) -> list[WaitSpell]:
        """Waits that are no plan's: a phase's, a ticket's, or those of a remedy that has not begun yet."""
        return [spell for spell in self._spells if not any(c.answers(spell) for c in self._courses.values())]

    def _waits_of(self, course: Course) -> tuple[WaitSpell, ...]:
        """Waits of the plan that no earlier one of the same name has waited already."""
        courses = self._courses.values()
        mine = (one for one in self._spells if next((c for c in courses if c.answers(one)), None) is course)
        return tuple(mine)

    def chains(self) -> list[CausalChain]:
        """Plans with what led to them; then conditions that no plan answered, and moves outside any plan."""
        answered = {id(episode) for course in self._courses.values() for episode in course.episodes}
        watched = [_watched(episode) for episode in self._episodes if id(episode) not in answered]
        planned = [course.chain(self._waits_of(course)) for course in self._courses.values()]
        return [*planned, *watched, *self._alone]

    def note(self, record: e.Record, _event: e.Event) -> None:
        """Tell it beside the chains."""
        self.notes.append(Note(record.at, record.seq, self._say(record.event), record.cause))

    def waited(self, record: e.Record, event: e.WaitingChanged) -> None:
        """End the wait for what it was for, and begin that for what it is for now."""
        self._ends_wait(record.at)
        if (waiting := event.waiting) is not None:
            kinds, reasons = (tuple(getattr(b, name) for b in waiting.blockers) for name in ("kind", "text"))
            spell = WaitSpell(waiting.what, record.at, None, None, kinds, reasons, waiting.by_turns)
            self._spells.append(spell)

    def _ends_wait(self, at: datetime) -> None:
        if self._spells and self._spells[-1].until is None:
            spell = self._spells[-1]
            took = round((at - spell.since).total_seconds(), 3)
            self._spells[-1] = replace(spell, until=at, seconds=took)

    def registered(self, record: e.Record, event: e.NodeRegistered) -> None:
        """Begin with the node's place."""
        self.node, self.phase = event.node.id, event.node.phase
        self.note(record, event)

    def raised(self, record: e.Record, event: e.ConditionRaised | e.ConditionUpdated) -> None:
        """Begin the episode of a condition."""
        condition = event.condition
        self.node = condition.node
        episode = ConditionEpisode(record, condition)
        self._standing[condition.id] = episode
        self._episodes.append(episode)

    def updated(self, record: e.Record, event: e.ConditionUpdated) -> None:
        """Show the condition as it now stands; it began before where nothing is known of it."""
        condition = event.condition
        episode = self._standing.get(condition.id)
        if episode is None:
            self.partial = True
            self.raised(record, event)
        else:
            episode.condition = condition

    def cleared(self, record: e.Record, event: e.ConditionCleared) -> None:
        """End the episode."""
        episode = self._standing.pop(event.condition, None)
        if episode is None:
            self.partial = True
            self.note(record, event)
        else:
            episode.cleared, episode.cleared_at = event, record.at

    def known(self, record: e.Record, event: e.KnowledgeChanged) -> None:
        """Mark this node's conditions alone: the record may tell of many nodes."""
        for changed, since in ((event.unknown, record.at), (event.known, None)):
            for condition_id in (c for some in changed.values() for c in some):
                if (episode := self._standing.get(condition_id)) is not None:
                    episode.condition = replace(episode.condition, unknown_since=since)

    def overshadowed(self, record: e.Record, event: e.ShadowNoted) -> None:
        """Tell it beside the conditions that the rule answers; beside all chains where those began before."""
        met = [episode for episode in self._standing.values() if episode.condition.type == event.shadow.rule]
        if not met:
            self.note(record, event)
        for episode in met:
            episode.shadows = (*episode.shadows, self._say(event))

    def planned(self, record: e.Record, event: e.PlanRecorded) -> None:
        """Begin the course of a plan, with the conditions that it answers."""
        plan = event.plan
        self.node = plan.node
        course = self._courses[plan.id] = Course(record, plan.id, plan)
        course.episodes = [self._standing[cause] for cause in plan.causes if cause in self._standing]
        self.partial = self.partial or len(course.episodes) < len(plan.causes)
        self._last = course

    def approved(self, record: e.Record, event: e.PlanApproved) -> None:
        """Name who said yes."""
        self._course(record, event.plan).approved_by = event.person

    def advanced(self, record: e.Record, event: e.PlanAdvanced) -> None:
        """Move to the step."""
        course = self._course(record, event.plan)
        if not course.undoing:
            course.index = event.index

    def undoing(self, record: e.Record, event: e.PlanUndoing) -> None:
        """Take the plan back."""
        course = self._course(record, event.plan)
        course.undoing, course.reason = True, event.reason

    def ended(self, record: e.Record, event: e.PlanEnded) -> None:
        """End the course of the plan."""
        course = self._last = self._course(record, event.plan)
        course.ended, course.ended_at = event, record.at

    def started(self, record: e.Record, event: e.OperationStarted) -> None:
        """Begin an operation of a plan or beside it; an idle check's is recorded as a check."""
        operation = event.operation
        if operation.kind == IDLE_CHECK:
            return  # belongs to no plan; what it came to is recorded as a check
        if operation.aside and operation.kind in (light.ON, light.OFF, EJECT):
            self._lights.add(operation.id)  # ails nothing and cures nothing
            return
        if operation.aside:
            acts = self._acts_aside()
            acts[operation.id] = _begun(operation, acts.get(operation.id))
            return
        course = self._course(record, operation.plan)
        course.acts[operation.id] = _begun(operation, course.acts.get(operation.id))

    def finished(self, record: e.Record, event: e.OperationFinished) -> None:
        """End an operation."""
        if event.kind == IDLE_CHECK or event.operation in self._lights:
            return
        if (row := OPERATIONS.get(event.kind)) is not None and row.aside:
            acts = self._acts_aside()
            acts[event.operation] = _finished(record, event, acts.get(event.operation))
            return
        course = self._of_operation(event.operation) or self._last
        if course is None:
            self.partial = True
            self.note(record, event)
            return
        known = course.acts.get(event.operation)
        self.partial = self.partial or known is None
        course.acts[event.operation] = _finished(record, event, known)

    def late(self, record: e.Record, event: e.OperationSettled | e.OutcomeLate) -> None:
        """Tell the late answer with its operation."""
        course = self._of_operation(event.operation)
        if course is None:
            self.note(record, event)
            return
        act = course.acts[event.operation]
        told = "; ".join(part for part in (act.detail, self._say(event)) if part)
        course.acts[event.operation] = OperationStory(
            act.id, act.kind, act.started, act.finished, act.seconds, act.result, told, act.attempt, act.looked
        )

    def moved(self, record: e.Record, event: e.PhaseChanged) -> None:
        """Move the node along the graph, as the end of its last plan or by itself."""
        self._ends_wait(record.at)
        self.phase = event.after
        move = PhaseMove(record.at, event.before, event.after, event.reason)
        course = self._last
        if course is not None and (course.ended_at is None or course.ended_at == record.at):
            course.moves.append(move)
            return
        outcome = f"{event.before} → {event.after}: {event.reason}"
        self._alone.append(CausalChain(record.at, record.seq, open=False, outcome=outcome, moves=(move,)))

    def _course(self, record: e.Record, plan_id: str) -> Course:
        course = self._courses.get(plan_id)
        if course is None:
            self.partial = True
            course = self._courses[plan_id] = Course(record, plan_id)
        return course

    def _acts_aside(self) -> dict[str, OperationStory]:
        """Operations beside any plan, under the condition that they answer; they leave with it."""
        standing = (one for one in reversed(self._episodes) if one.condition.type == UNINVITED)
        episode = next(standing, None)
        if episode is None:
            self.partial = True
            return {}
        return episode.acts

    def _of_operation(self, operation: str) -> Course | None:
        return next((c for c in self._courses.values() if operation in c.acts), None)


def _watched(episode: ConditionEpisode) -> CausalChain:
    """A condition that no plan answered, with what was done about it beside any plan."""
    link, acts = episode.link(), tuple(episode.acts.values())
    if link.cleared:
        outcome = f"cleared by {link.cleared_by}: {link.why}"
    elif link.unknown:
        outcome = "unknown: its sources are silent"
    elif acts:
        outcome = f"active; {acts[-1].kind} {acts[-1].result.replace('_', ' ') or 'is under way'}"
    else:
        outcome = f"active; no remedy has been started; {_ends(episode.condition)}"
    return CausalChain(
        link.since, episode.seq, open=link.cleared is None, outcome=outcome, conditions=(link,), operations=acts
    )


def _ends(condition: Condition) -> str:
    """Words for what ends a condition that nothing is done about."""
    if condition.expires_at is not None:
        return f"it fades at {condition.expires_at:%Y-%m-%d %H:%M} UTC unless it is seen again"
    match condition.clears:
        case "observation":
            return "it ends when it is seen to be gone"
        case "operator":
            word = f"hostler node clear-condition {condition.node} --condition {condition.type} --reason …"
            return f"it ends on a person's word ({word})"
        case _:
            return "it ends with a remedy that is done"


def _begun(operation: Operation, known: OperationStory | None) -> OperationStory:
    """The act under way; `known` is its first attempt, None where this is that."""
    started = known.started if known else operation.started
    return OperationStory(operation.id, operation.kind, started, attempt=operation.attempt)


def _finished(record: e.Record, event: e.OperationFinished, known: OperationStory | None) -> OperationStory:
    """The act with its end; `known` is its beginning, None where that was before the first record."""
    started = known.started if known else None
    return OperationStory(
        event.operation,
        event.kind,
        started,
        record.at,
        round((record.at - started).total_seconds(), 3) if started else None,
        event.result,
        event.detail,
        known.attempt if known else 1,
        tuple(f"{name.removeprefix(LOOK)} {said}" for name, said in event.facts.items() if name.startswith(LOOK)),
    )


def _outcome(remedy: Remedy, links: Sequence[Link], moves: Sequence[PhaseMove], waits: Sequence[WaitSpell] = ()) -> str:
    said = [_how(remedy, waits)]
    cleared = [link.type for link in links if link.cleared is not None and link.cleared_by == "remedy"]
    if cleared:
        said.append(f"{', '.join(cleared)} cleared")
    said.extend(f"{move.before} → {move.after}" for move in moves)
    return "; ".join(said)


def _how(remedy: Remedy, waits: Sequence[WaitSpell]) -> str:
    if remedy.ended is None:
        at = f", step {remedy.index + 1} of {len(remedy.steps)}" if remedy.steps and remedy.state == "running" else ""
        return f"{remedy.name} {remedy.state}{at}"
    took = _took(remedy, remedy.ended, waits)
    return f"{remedy.name} {remedy.result}{took}" + (f": {remedy.reason}" if remedy.reason else "")


def _took(remedy: Remedy, ended: datetime, waits: Sequence[WaitSpell]) -> str:
    """How long it took from when it was needed, and how much of that it waited before it began."""
    if remedy.recorded is None:
        return ""
    began = min((remedy.recorded, *(spell.since for spell in waits)))
    waited_s = (remedy.recorded - began).total_seconds()
    waited = f", {duration(waited_s)} of it before it began" if waited_s >= 1 else ""
    return f" after {duration((ended - began).total_seconds())}{waited}"
