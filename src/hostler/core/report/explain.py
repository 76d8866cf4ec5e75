"""From a node's history to why: evidence → condition → rule → remedy → operations → outcome, latest chain first.

Pure, and content with part of a history: what began before its first record is shown from where it is known.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.conditions.own_conditions import UNINVITED
from hostler.core.diagnose.gate.readings import LOOK
from hostler.core.report.sentences import sentence
from hostler.core.state import events as e
from hostler.core.state.model import Condition, Evidence, Node, Operation, Phase, Plan, Waiting
from hostler.core.tables.operations import ASIDE, IDLE_CHECK

CHAINS_MAX = 50
NOTES_MAX = 50


class Link(Struct, frozen=True):
    """A condition while it stood. `cause` is the observation, intent or other input that raised it.

    `shadows`: what a rule in shadow would have done about it, as sentences. `unknown`: since when nobody can say
    whether it still stands.
    """

    id: str
    type: str
    severity: int
    part: str
    since: datetime
    count: int
    cause: str
    evidence: tuple[Evidence, ...]
    cleared: datetime | None = None
    cleared_by: str = ""
    why: str = ""
    shadows: tuple[str, ...] = ()
    unknown: datetime | None = None


class OperationStory(Struct, frozen=True):
    """An operation: what was asked, and how it ended. `result` "" while it is under way.

    `looked`: what a gate looked at, part by part, with what it found.
    """

    id: str
    kind: str
    started: datetime | None
    finished: datetime | None = None
    seconds: float | None = None
    result: str = ""
    detail: str = ""
    attempt: int = 1
    looked: tuple[str, ...] = ()


class Remedy(Struct, frozen=True):
    """The plan that answered: under which class, by which rule of which configuration, step by step."""

    id: str
    name: str
    act_class: str = ""
    rule: str = ""
    config: str = ""
    steps: tuple[str, ...] = ()
    index: int = 0
    state: str = ""
    recorded: datetime | None = None
    approved_by: str = ""
    ended: datetime | None = None
    result: str = ""
    reason: str = ""


class PhaseMove(Struct, frozen=True):
    """A change of phase."""

    at: datetime
    before: Phase
    after: Phase
    reason: str


class CausalChain(Struct, frozen=True):
    """One story: what was seen, what it meant, what was done, how it ended. `open` while it goes on."""

    at: datetime
    seq: int
    open: bool
    outcome: str
    conditions: tuple[Link, ...] = ()
    remedy: Remedy | None = None
    operations: tuple[OperationStory, ...] = ()
    moves: tuple[PhaseMove, ...] = ()


class Note(Struct, frozen=True):
    """Something that happened beside the chains (a boot, a hold, an assignment, a person's request)."""

    at: datetime
    seq: int
    text: str
    cause: str


class Explanation(Struct, frozen=True):
    """Why a node is where it is. `partial`: something began before the first record that was given."""

    node: str
    phase: Phase | None
    phase_since: datetime | None
    waiting: Waiting | None
    chains: tuple[CausalChain, ...]
    notes: tuple[Note, ...]
    partial: bool = False


def explain(records: Sequence[e.Record], node: Node | None) -> Explanation:
    """The explanation of one node from records about it, in any order. `node` None: it is retired or unknown."""
    story = _Story()
    for record in sorted(records, key=lambda r: r.seq):
        story.take(record)
    chains = sorted(story.chains(), key=lambda c: (c.open, c.seq), reverse=True)
    return Explanation(
        node=node.id if node else story.node,
        phase=node.phase if node else story.phase,
        phase_since=node.phase_since if node else None,
        waiting=node.waiting if node else None,
        chains=tuple(chains[:CHAINS_MAX]),
        notes=tuple(reversed(story.notes[-NOTES_MAX:])),
        partial=story.partial,
    )


class _Episode:
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


class _Course:
    """A plan with what was done under it, while the records are read."""

    def __init__(self, record: e.Record, plan_id: str, plan: Plan | None = None) -> None:
        self.seq = record.seq
        self.at = plan.recorded_at if plan else record.at
        self.id = plan_id
        self.plan = plan
        self.episodes: list[_Episode] = []
        self.acts: dict[str, OperationStory] = {}
        self.moves: list[PhaseMove] = []
        self.index = 0
        self.approved_by = ""
        self.reason = ""
        self.undoing = False
        self.ended: e.PlanEnded | None = None
        self.ended_at: datetime | None = None

    def remedy(self) -> Remedy:
        plan, ended = self.plan, self.ended
        return Remedy(
            id=self.id,
            name=plan.name if plan else "a plan from before this history",
            act_class=plan.act_class.value if plan else "",
            rule=plan.rule if plan else "",
            config=plan.config if plan else "",
            steps=tuple(step.operation for step in plan.steps) if plan else (),
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

    def chain(self) -> CausalChain:
        remedy = self.remedy()
        links = tuple(episode.link() for episode in self.episodes)
        first = min((link.since for link in links), default=self.at)
        return CausalChain(
            at=first,
            seq=self.seq,
            open=self.ended is None,
            outcome=_outcome(remedy, links, self.moves),
            conditions=links,
            remedy=remedy,
            operations=tuple(self.acts.values()),
            moves=tuple(self.moves),
        )


class _Story:
    """The records as far as they have been read."""

    def __init__(self) -> None:
        self.node = ""
        self.phase: Phase | None = None
        self.partial = False
        self.notes: list[Note] = []
        self._standing: dict[str, _Episode] = {}
        self._episodes: list[_Episode] = []
        self._courses: dict[str, _Course] = {}
        self._last: _Course | None = None
        self._alone: list[CausalChain] = []

    def chains(self) -> list[CausalChain]:
        """Plans with what led to them; then conditions that no plan answered, and moves outside any plan."""
        answered = {id(episode) for course in self._courses.values() for episode in course.episodes}
        watched = [_watched(episode) for episode in self._episodes if id(episode) not in answered]
        return [*(course.chain() for course in self._courses.values()), *watched, *self._alone]

    def take(self, record: e.Record) -> None:  # noqa: C901, PLR0912 - one flat table of cases
        event = record.event
        match event:
            case e.NodeRegistered(node=node):
                self.node, self.phase = node.id, node.phase
                self._note(record)
            case e.ConditionRaised(condition=condition):
                self._raise(record, condition)
            case e.ConditionUpdated(condition=condition):
                self._update(record, condition)
            case e.KnowledgeChanged():
                self._know(record, event)
            case e.ShadowNoted():
                self._overshadow(record, event)
            case e.ConditionCleared():
                self._clear(record, event)
            case e.PlanRecorded(plan=plan):
                self._record(record, plan)
            case e.PlanApproved():
                self._course(record, event.plan).approved_by = event.person
            case e.PlanAdvanced():
                course = self._course(record, event.plan)
                if not course.undoing:
                    course.index = event.index
            case e.PlanUndoing():
                course = self._course(record, event.plan)
                course.undoing, course.reason = True, event.reason
            case e.PlanEnded():
                course = self._last = self._course(record, event.plan)
                course.ended, course.ended_at = event, record.at
            case e.OperationStarted(operation=operation):
                self._start(record, operation)
            case e.OperationFinished():
                self._finish(record, event)
            case e.OperationSettled() | e.OutcomeLate():
                self._late(record, event)
            case e.PhaseChanged():
                self._move(record, event)
            case e.WaitingChanged():
                pass  # what it waits for now is shown from the node; what it once waited for is in the history
            case (
                e.AssetRegistered()
                | e.AssetChanged()
                | e.BindingChanged()
                | e.SourcesChanged()
                | e.RecurrenceCounted()
                | e.BootObserved()
                | e.CheckRecorded()
                | e.InventorySeen()
                | e.PartMoved()
                | e.NodeAssigned()
                | e.NodeReleased()
                | e.NodeCertified()
                | e.HoldPlaced()
                | e.HoldReleased()
                | e.WindowScheduled()
                | e.WindowEnded()
                | e.PauseSet()
                | e.ModeSet()
                | e.RemediatorsFound()
                | e.RemediatorAccepted()
                | e.BrakeLatched()
                | e.BrakeReleased()
                | e.ConfigActivated()
                | e.IntentRecorded()
                | e.ApprovalRequested()
                | e.ApprovalEnded()
                | e.WorkConsented()
                | e.RolloutStarted()
                | e.SliceStarted()
                | e.SliceErrorSeen()
                | e.RolloutStopped()
                | e.RolloutCompleted()
                | e.TicketOpened()
                | e.TicketUpdated()
                | e.TicketClosed()
                | e.IncidentOpened()
                | e.IncidentUpdated()
                | e.IncidentClosed()
                | e.ControllerStarted()
                | e.ClockGap()
                | e.ClockConfirmed()
                | e.FormatRaised()
                | e.JournalRestored()
                | e.NodeCompared()
                | e.RestoreReleased()
            ):
                self._note(record)
            case _:
                assert_never(event)

    def _note(self, record: e.Record) -> None:
        self.notes.append(Note(record.at, record.seq, sentence(record.event), record.cause))

    def _raise(self, record: e.Record, condition: Condition) -> None:
        self.node = condition.node
        episode = _Episode(record, condition)
        self._standing[condition.id] = episode
        self._episodes.append(episode)

    def _update(self, record: e.Record, condition: Condition) -> None:
        episode = self._standing.get(condition.id)
        if episode is None:
            self.partial = True
            self._raise(record, condition)
        else:
            episode.condition = condition

    def _clear(self, record: e.Record, event: e.ConditionCleared) -> None:
        episode = self._standing.pop(event.condition, None)
        if episode is None:
            self.partial = True
            self._note(record)
        else:
            episode.cleared, episode.cleared_at = event, record.at

    def _know(self, record: e.Record, event: e.KnowledgeChanged) -> None:
        """Of this node's conditions alone: the record may tell of many nodes."""
        for changed, since in ((event.unknown, record.at), (event.known, None)):
            for condition_id in (c for some in changed.values() for c in some):
                if (episode := self._standing.get(condition_id)) is not None:
                    episode.condition = replace(episode.condition, unknown_since=since)

    def _overshadow(self, record: e.Record, event: e.ShadowNoted) -> None:
        """Told beside the conditions that the rule answers; beside all chains where those began before."""
        met = [episode for episode in self._standing.values() if episode.condition.type == event.shadow.rule]
        if not met:
            self._note(record)
        for episode in met:
            episode.shadows = (*episode.shadows, sentence(event))

    def _record(self, record: e.Record, plan: Plan) -> None:
        self.node = plan.node
        course = self._courses[plan.id] = _Course(record, plan.id, plan)
        course.episodes = [self._standing[cause] for cause in plan.causes if cause in self._standing]
        self.partial = self.partial or len(course.episodes) < len(plan.causes)
        self._last = course

    def _course(self, record: e.Record, plan_id: str) -> _Course:
        course = self._courses.get(plan_id)
        if course is None:
            self.partial = True
            course = self._courses[plan_id] = _Course(record, plan_id)
        return course

    def _start(self, record: e.Record, operation: Operation) -> None:
        if operation.kind == IDLE_CHECK:
            return  # belongs to no plan; what it came to is recorded as a check
        if operation.aside:
            acts = self._acts_aside()
            acts[operation.id] = _begun(operation, acts.get(operation.id))
            return
        course = self._course(record, operation.plan)
        course.acts[operation.id] = _begun(operation, course.acts.get(operation.id))

    def _finish(self, record: e.Record, event: e.OperationFinished) -> None:
        if event.kind == IDLE_CHECK:
            return
        if event.kind in ASIDE:
            acts = self._acts_aside()
            acts[event.operation] = _finished(record, event, acts.get(event.operation))
            return
        course = self._of_operation(event.operation) or self._last
        if course is None:
            self.partial = True
            self._note(record)
            return
        known = course.acts.get(event.operation)
        self.partial = self.partial or known is None
        course.acts[event.operation] = _finished(record, event, known)

    def _acts_aside(self) -> dict[str, OperationStory]:
        """Operations beside any plan, under the condition that they answer; they leave with it."""
        standing = (one for one in reversed(self._episodes) if one.condition.type == UNINVITED)
        episode = next(standing, None)
        if episode is None:
            self.partial = True
            return {}
        return episode.acts

    def _of_operation(self, operation: str) -> _Course | None:
        return next((c for c in self._courses.values() if operation in c.acts), None)

    def _late(self, record: e.Record, event: e.OperationSettled | e.OutcomeLate) -> None:
        course = self._of_operation(event.operation)
        if course is None:
            self._note(record)
            return
        act = course.acts[event.operation]
        told = "; ".join(part for part in (act.detail, sentence(event)) if part)
        course.acts[event.operation] = OperationStory(
            act.id, act.kind, act.started, act.finished, act.seconds, act.result, told, act.attempt, act.looked
        )

    def _move(self, record: e.Record, event: e.PhaseChanged) -> None:
        self.phase = event.after
        move = PhaseMove(record.at, event.before, event.after, event.reason)
        course = self._last
        if course is not None and (course.ended_at is None or course.ended_at == record.at):
            course.moves.append(move)
            return
        outcome = f"{event.before} → {event.after}: {event.reason}"
        self._alone.append(CausalChain(record.at, record.seq, open=False, outcome=outcome, moves=(move,)))


def _watched(episode: _Episode) -> CausalChain:
    """A condition that no plan answered, with what was done about it beside any plan."""
    link, acts = episode.link(), tuple(episode.acts.values())
    if link.cleared:
        outcome = f"cleared by {link.cleared_by}: {link.why}"
    elif link.unknown:
        outcome = "unknown: nobody is heard who could say whether it still stands"
    elif acts:
        outcome = f"stands; {acts[-1].kind} {acts[-1].result.replace('_', ' ') or 'is under way'}"
    else:
        outcome = "stands; nothing has been done about it"
    return CausalChain(
        link.since, episode.seq, open=link.cleared is None, outcome=outcome, conditions=(link,), operations=acts
    )


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


def _outcome(remedy: Remedy, links: Sequence[Link], moves: Sequence[PhaseMove]) -> str:
    said = [_how(remedy)]
    cleared = [link.type for link in links if link.cleared is not None and link.cleared_by == "remedy"]
    if cleared:
        said.append(f"{', '.join(cleared)} cleared")
    said.extend(f"{move.before} → {move.after}" for move in moves)
    return "; ".join(said)


def _how(remedy: Remedy) -> str:
    if remedy.ended is None:
        at = f", step {remedy.index + 1} of {len(remedy.steps)}" if remedy.steps and remedy.state == "running" else ""
        return f"{remedy.name} {remedy.state}{at}"
    took = f" after {duration((remedy.ended - remedy.recorded).total_seconds())}" if remedy.recorded else ""
    return f"{remedy.name} {remedy.result}{took}" + (f": {remedy.reason}" if remedy.reason else "")


def duration(seconds: float) -> str:
    """A length of time for people: "45 s", "6 min 12 s", "3 h 5 min", "2 d 4 h"."""
    whole = int(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"


def text(explanation: Explanation) -> str:
    """The explanation for people, plain lines, latest chain first."""
    lines = [f"{explanation.node} stands at {explanation.phase or 'unknown'}{_since(explanation.phase_since)}"]
    if explanation.waiting:
        lines.append(f"  {explanation.waiting.what} waits{_since(explanation.waiting.since)} for")
        lines.extend(f"    {b.text} (ends when {b.ends_when})" for b in explanation.waiting.blockers)
    for chain in explanation.chains:
        lines.extend(("", *_told(chain)))
    if explanation.partial:
        lines.extend(("", "The history before its first record shown here is not included."))
    return "\n".join(lines)


def _since(at: datetime | None) -> str:
    return f" since {_moment(at)}" if at else ""


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _told(chain: CausalChain) -> list[str]:
    lines = [f"{_moment(chain.at)}  {chain.outcome}"]
    for link in chain.conditions:
        where = f" on {link.part}" if link.part else ""
        lines.append(f"  condition  {link.type}{where}, {link.count} time{'s' if link.count > 1 else ''}")
        lines.extend(f"    evidence {seen.at:%H:%M:%S} {seen.source}: {seen.text}" for seen in link.evidence)
        if link.unknown:
            lines.append(f"    unknown since {_moment(link.unknown)}: whoever could confirm or revoke it is silent")
        lines.extend(f"    {told}" for told in link.shadows)
    if chain.remedy:
        lines.extend(_remedy_told(chain.remedy))
    for act in chain.operations:
        lines.append(f"    {_act_told(act)}")
        lines.extend(f"      {look}" for look in act.looked)
    lines.extend(f"  phase      {move.before} → {move.after}: {move.reason}" for move in chain.moves)
    return lines


def _remedy_told(remedy: Remedy) -> list[str]:
    lines = []
    if remedy.rule:
        lines.append(f"  rule       {remedy.rule} (configuration {remedy.config[:12]})")
    how = f" ({remedy.act_class})" if remedy.act_class else ""
    lines.append(f"  remedy     {remedy.name}{how}: {' → '.join(remedy.steps)}")
    if remedy.approved_by:
        lines.append(f"  approved   by {remedy.approved_by}")
    return lines


def _act_told(act: OperationStory) -> str:
    began = f"{act.started:%H:%M:%S}" if act.started else "earlier "
    took = f" in {duration(act.seconds)}" if act.seconds is not None else ""
    detail = f": {act.detail}" if act.detail else ""
    return f"{began} {act.kind} {act.result.replace('_', ' ') or 'is under way'}{took}{detail}"
