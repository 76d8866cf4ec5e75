"""Law 10. Every wait has a way out that works: it is tried, as it stands, where it stands.

The waits are read from the journal. Of each that is new every way is tried on the controller's own state: an act is
decided on trial, as its command would be, by a person who may ask for it; a moment must be to come; an observation must
be one that this world makes, and where it is of another node's doing that node's wait is followed in turn. In drawn
cases the act is done for real, on a copy of the controller: the wait is over then, or another stands whose ways are
tried there. A chain that comes back to where it began is no way out.
"""

import pickle
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from msgspec.structs import replace

from hostler.controller.inputs import IntentAsked
from hostler.controller.loop import Controller
from hostler.core.intents.ask import Answered, Ask
from hostler.core.intents.intent_decision import decide_intent
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.intent import Intent
from hostler.core.state.model import Blocker, HoldKind, Waiting
from hostler.core.state.verbs.command_line import TO_SAY
from hostler.core.state.ways_out import ByAct, ByTime, WayOut, WhenObserved
from hostler.sim.checkers.law import LawCase

OFTEN = 6
"""A wait with so many changes behind it is told anew after a while only (`controller.wakeups`), and is not judged."""
WAITS_MOST = 3_000
"""Waits that are tried in one world; a run of thousands of nodes for weeks has the same ones over and over."""
REAL_SHARE = 0.02
"""Share of accepted acts that are done for real, beside the first of each kind."""
REAL_MOST = 40
CHAIN_MOST = 8
STANDS = timedelta(seconds=30)
"""A wait that is over before is nobody's to read: what is said of it may already be done."""
NEVER = datetime.max.replace(tzinfo=UTC)
LATE = timedelta(hours=1)
"""A moment that passed longer ago ends nothing: the controller looks at its clock before."""
NOBODY = timedelta(minutes=10)
"""So long without a batch, no controller ran: what stands since then is looked at before it is judged."""
OBSERVERS = frozenset({"", "agent", "bmc", "scheduler", "network", "site", "hostler"})
PERSON, SECOND = "olga", "erik"
WAITS, ACTS, TIMES, SEEN, CHAINS, REAL = (
    "waits with a way out",
    "ways: acts accepted on trial",
    "ways: moments to come",
    "ways: observations that the world makes",
    "ways: chains followed to their end",
    "ways: acts done for real that ended the wait",
)

PROVED = (WAITS, ACTS, TIMES, SEEN, CHAINS, REAL)
"""Ways that were tried, as the soak's report counts it."""


class WaysOut:
    """Tries the ways out of each wait that stands.

    `_new` are nodes with a wait that has not been tried, and since when it stands, `_first` a moment before which none
    does. `_known` are the waits that were tried, `_done` the kinds of acts that were done for real.
    """

    def __init__(self) -> None:
        self._new: dict[str, datetime] = {}
        self._first = NEVER
        self._known: set[tuple[str, str, tuple[tuple[str, str], ...]]] = set()
        self._done: dict[tuple[str, str], int] = {}
        self._chance = Random("ways out")
        self._last: datetime | None = None

    def record(self, _case: LawCase, record: e.Record) -> Iterator[str]:
        """Note a wait that begins or changes; one that ends is not tried."""
        match record.event:
            case e.WaitingChanged(node=node, waiting=waiting) if waiting is not None:
                self._new[node] = record.at
                self._first = min(self._first, record.at)
            case e.WaitingChanged(node=node):
                self._new.pop(node, None)
            case _:
                pass
        yield from ()

    def committed(self, case: LawCase, controller: Controller) -> Iterator[str]:
        """Judge the waits that have stood for a while, under a controller that looked at them."""
        if self._last is not None and controller.now - self._last > NOBODY:
            self._new = dict.fromkeys(self._new, controller.now)
        self._last = controller.now
        if controller.now - self._first < STANDS:
            return
        due = [node for node, at in self._new.items() if controller.now - at >= STANDS]
        for node in due:
            del self._new[node]
        self._first = min(self._new.values(), default=NEVER)
        for node in due:
            page = case.reading.pages.get(node)
            waiting = page.waiting if page is not None else None
            if waiting is None or len(self._known) >= WAITS_MOST:
                continue
            key = (node, waiting.what, tuple((b.kind, b.name) for b in waiting.blockers))
            if key in self._known or waiting.changes >= OFTEN:
                continue
            self._known.add(key)
            found = list(self._judge(case, controller, node, waiting))
            if not found:
                case.met[WAITS] += 1
            yield from found

    def _judge(self, case: LawCase, controller: Controller, node: str, waiting: Waiting) -> Iterator[str]:
        trial = _Trial(case, controller)
        yield from trial.of_wait(node, waiting, (node,))
        for blocker in waiting.blockers:
            for way in blocker.ways:
                if isinstance(way, ByAct) and not way.act.facts.route and self._is_drawn(blocker, way):
                    yield from _for_real(case, controller, node, blocker, way)

    def _is_drawn(self, blocker: Blocker, way: ByAct) -> bool:
        kind = (blocker.kind, type(way.act).__name__)
        drawn = kind not in self._done or self._chance.random() < REAL_SHARE
        if drawn and sum(self._done.values()) < REAL_MOST:
            self._done[kind] = self._done.get(kind, 0) + 1
            return True
        return False


class _Trial:
    """Tries ways on a controller's state as it stands."""

    def __init__(self, case: LawCase, controller: Controller) -> None:
        self._case = case
        self._fleet = controller.fleet
        self._context = DecisionContext(controller.fleet, controller.live, controller.now)

    def blockers_of(self, node: str) -> tuple[Blocker, ...]:
        """The wait of the node by now."""
        found = self._fleet.nodes.get(node)
        return found.waiting.blockers if found is not None and found.waiting is not None else ()

    def of_wait(self, node: str, waiting: Waiting, path: tuple[str, ...]) -> Iterator[str]:
        """Say what is wrong with the ways out of the wait.

        Of blockers that come and go by turns some are gone at any moment, and their acts are done: one has to stand.
        """
        found = [list(self.of_blocker(node, blocker, path)) for blocker in waiting.blockers]
        if not (waiting.by_turns and not all(found)):
            yield from (text for texts in found for text in texts)

    def of_blocker(self, node: str, blocker: Blocker, path: tuple[str, ...]) -> Iterator[str]:
        """Say what is wrong with the ways out of one blocker of the node's wait."""
        if not blocker.ways:
            yield f"{node} waits and has no way out: {blocker.text}"
        for way in blocker.ways:
            why = self._wrong(way, path)
            if why:
                yield f"{node} waits ({blocker.kind}: {blocker.text}), and its way out {why}"

    def _wrong(self, way: WayOut, path: tuple[str, ...]) -> str:
        """The problem of the way, "" where it has none."""
        match way:
            case ByAct():
                return self._refused(way, path)
            case ByTime(at=at):
                if at is not None and at < self._context.now - LATE:
                    return f"was a moment that has passed at {at}: {way.text}"
                self._case.met[TIMES] += 1
                return ""
            case WhenObserved():
                return self._unseen(way, path)

    def _refused(self, way: ByAct, path: tuple[str, ...]) -> str:
        if way.act.facts.route:
            return ""  # a document comes with it, which nobody here has: the command line's test reads its command
        answer = tried(self._context, way)
        if answer.granted:
            self._case.met[ACTS] += 1
            return ""
        wrong = [self._wrong(other, (*path, way.command)) for other in answer.ways]
        if answer.ways and not all(wrong) and way.command not in path and len(path) <= CHAIN_MOST:
            self._case.met[CHAINS] += 1
            return ""
        return f"is refused: {way.command}: {answer.text}{''.join(f'; {one}' for one in wrong)}"

    def _unseen(self, way: WhenObserved, path: tuple[str, ...]) -> str:
        if way.by not in OBSERVERS:
            return f"is an observation by {way.by}, which nothing makes: {way.text}"
        if way.by == "network" and self._case.world.network is None:
            return f"is an observation of a network, and there is none: {way.text}"
        if not way.of:
            self._case.met[SEEN] += 1
            return ""
        return self._follow(way, path)

    def _follow(self, way: WhenObserved, path: tuple[str, ...]) -> str:
        """Follow what another node has to do first, to where its own wait ends."""
        if way.of in path or len(path) > CHAIN_MOST:
            return f"leads back to where it began: {' → '.join((*path, way.of))}"
        other = self._fleet.nodes.get(way.of)
        if other is None:
            return f"is of a node that is not there: {way.of}"
        texts = list(self.of_wait(other.id, other.waiting, (*path, other.id))) if other.waiting is not None else []
        if texts:
            return f"leads to {other.id}, whose wait has none: {texts[0]}"
        self._case.met[CHAINS] += 1
        return ""


def tried(context: DecisionContext, way: ByAct) -> Answered:
    """The answer to the act on trial, by the first of the people who may ask for it that is let."""
    answers: list[Answered] = []
    for person in _people(context.fleet, way):
        intent = _intent(context, way, person, dry_run=True)
        answers.append(decide_intent(Ask(context, intent)))
        if answers[-1].granted:
            return answers[-1]
    return answers[0]


def _intent(context: DecisionContext, way: ByAct, person: str, *, dry_run: bool) -> Intent:
    act = _filled(context.fleet, way)
    return Intent("way-out", act, way.target, person, "its way out is tried", context.now, dry_run=dry_run)


def _filled(fleet: Fleet, way: ByAct) -> Any:
    """The act with what only a person at the machine knows."""
    node = fleet.resolve(way.target)
    serial = node.binding("serial") if node is not None else ""
    said = {"serial": serial or "S-0", "value": f"{way.target}-again"}
    blank = [name for name in way.act.__struct_fields__ if getattr(way.act, name) == TO_SAY]
    more: dict[str, Any] = {name: said.get(name, "said") for name in blank}
    return replace(way.act, **more)


def _people(fleet: Fleet, way: ByAct) -> Iterator[str]:
    """People who may ask for it: who holds what it is about, who owns its ticket, an operator, a second one."""
    if (ticket := fleet.tickets.get(way.target)) is not None and ticket.owner:
        yield ticket.owner
    if (approval := fleet.approvals.get(way.target)) is not None:
        yield approval.intent.person
    if (node := fleet.resolve(way.target)) is not None:
        yield from (h.owner for h in fleet.holds_of(node.id) if h.kind in (HoldKind.physical_work, HoldKind.power))
    if (hold := fleet.holds.get(way.target)) is not None:
        yield hold.owner
    yield from (PERSON, SECOND)


def _for_real(case: LawCase, controller: Controller, node: str, blocker: Blocker, way: ByAct) -> Iterator[str]:
    """Do the act on a copy of the controller: the blocker is gone after it, or another's ways are tried there."""
    live = pickle.loads(pickle.dumps(controller.live))  # noqa: S301 - our own bytes; four times as fast as deepcopy
    twin = Controller(controller.fleet.committed(), live, dict(controller.cursors), controller.epoch)
    context = DecisionContext(twin.fleet, twin.live, controller.now)
    person = next((p for p in _people(twin.fleet, way) if _is_granted(context, way, p)), None)
    if person is None:
        return  # the trial has said so
    ready = twin.step([IntentAsked(0, _intent(context, way, person, dry_run=False), None, {})], controller.now)
    # what it decided stays in its overlay: the tables under it are the real controller's
    granted = any(reply.granted or "approval" in reply.detail for reply in ready.replies)
    if not granted:
        said = next((reply.text for reply in ready.replies), "no answer")
        yield f"{node} waits ({blocker.text}): {way.command} was accepted on trial, and then refused: {said}"
        return
    if any("approval" in reply.detail for reply in ready.replies):
        return
    yield from _left(_Trial(case, twin), node, blocker, way)
    case.met[REAL] += 1


def _is_granted(context: DecisionContext, way: ByAct, person: str) -> bool:
    return decide_intent(Ask(context, _intent(context, way, person, dry_run=True))).granted


def _left(trial: _Trial, node: str, blocker: Blocker, way: ByAct) -> Iterator[str]:
    """Say what is wrong with what is left of the wait once its act was done."""
    for one in trial.blockers_of(node):
        if (one.kind, one.name, one.text) == (blocker.kind, blocker.name, blocker.text):
            yield f"{node} waits ({blocker.text}): {way.command} was done, and it waits as before"
        else:
            yield from (f"after {way.command}: {text}" for text in trial.of_blocker(node, one, (node,)))
