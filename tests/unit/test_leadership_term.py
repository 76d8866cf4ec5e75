"""One term of office beside clocks turned by hand: what is looked at when, who is told, and who is not accused."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hostler.controller.inputs import Input, IntentAsked, NodeSeen
from hostler.controller.step_output import Reply, Send, StepOutput
from hostler.core.state import events as e
from hostler.core.state.clock_doubt import GAP_S
from hostler.core.state.live_state import Release
from hostler.journal.opening import open_journal
from hostler.ports import Batch, JournalError
from hostler.runtime import checkpoints
from hostler.runtime import leadership_term as offices
from hostler.runtime.checkpoints import Checkpoints
from hostler.runtime.input_queues import BusyError
from hostler.runtime.leadership_term import SWEEP_S, TICK_S, Around, LeadershipTerm
from hostler.runtime.replica import Follower
from hostler.runtime.subscribers import Subscribers
from tests.kit import NOW, a_node, configuration, intent_of

PATIENCE_S = 60.0


class Term:
    """A term of office over a journal of its own. Commits and steps are counted, `swept` has each share's nodes."""

    def __init__(self, place: Path) -> None:
        self.now, self.moment_s = NOW, 1_000.0
        self.real = open_journal(str(place))
        self.subscribers = Subscribers(self.real.records)
        self.appended = 0
        self.refuses = False
        self.sent: list[Send] = []
        self.background: list[Coroutine[Any, Any, None]] = []
        self.swept: list[list[str]] = []
        self.steps = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def append(self, batch: Batch, epoch: int) -> None:
        self.appended += 1
        self.pass_by(0.25)
        if self.refuses:
            raise JournalError("the disk is full")
        self.real.append(batch, epoch)

    async def begin(self, nodes: Iterable[str]) -> None:
        epoch = self.real.acquire("test")
        seed: list[e.Event] = [e.ConfigActivated(configuration(), {}, "ann")]
        seed += [e.NodeRegistered(a_node(node)) for node in nodes]
        records = tuple(e.Record(seq, NOW, epoch, "seed", event) for seq, event in enumerate(seed, 1))
        self.real.append(Batch(records=records), epoch)
        release = Release()
        follower = Follower(self.real, release.reads, lambda: self.moment_s)
        await follower.load()
        around = Around(
            journal=self,
            checkpoints=Checkpoints(self.real),
            follower=follower,
            subscribers=self.subscribers,
            send=self.sent.append,
            followed=lambda _: None,
            background=self.background.append,
            clock=lambda: self.now,
            moment=lambda: self.moment_s,
            release=release,
        )
        self.fleet = follower.fleet
        self.term = LeadershipTerm(around, epoch, {"a/agent": ("s", 7)})
        assert (self.term.commit_ms, self.term.now) == (0.0, NOW), "before it is open, it is as late as the journal"
        await self.term.open(None)
        self._listen_to(self.term)

    def _listen_to(self, term: LeadershipTerm) -> None:
        controller = term._controller  # noqa: SLF001 - what finds nothing leaves no other trace
        sweep, step = controller.sweep, controller.step

        def heard(nodes: Iterable[str]) -> None:
            self.swept.append(list(nodes))
            sweep(self.swept[-1])

        def stepped(inputs: list[Input], now: datetime) -> StepOutput:
            self.steps += 1
            return step(inputs, now)

        controller.sweep = heard  # type: ignore[method-assign, assignment]
        controller.step = stepped  # type: ignore[method-assign, assignment]

    def pass_by(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.moment_s += seconds

    def recorded(self, kind: type) -> list[Any]:
        return [record.event for record in self.real.records() if isinstance(record.event, kind)]

    def lost(self) -> list[str]:
        found = (event for event in self.recorded(e.ConditionRaised) if event.condition.type == "agent.lost")
        return [event.condition.node for event in found]


@pytest.fixture
async def term(tmp_path: Path) -> AsyncIterator[Term]:
    made = Term(tmp_path / "journal")
    yield made
    for work in made.background:
        work.close()
    with suppress(sqlite3.Error):
        made.real.close()


def hold(node: str) -> Callable[[int], Input]:
    return lambda token: IntentAsked(token, intent_of(f"i{token}", "hold", node, "ann", "because", NOW))


async def test_the_time_is_that_of_the_last_turn_though_nothing_was_decided(term: Term) -> None:
    """Mutant: the time is the controller's, which stands still between its steps."""
    await term.begin(["a"])
    await term.term.decide()
    before, began = term.appended, term.now
    for _ in range(2):
        term.pass_by(0.1)
        await term.term.decide()
    assert term.term.now == began + timedelta(seconds=0.2)
    assert term.appended == before, "nothing was to be decided, so nothing is written"


async def test_what_is_due_is_decided_at_its_moment_and_nothing_without_cause(term: Term) -> None:
    """Mutants: what is due alone is not decided; it is a moment late; each turn decides because something will be."""
    await term.begin(["a"])
    await term.term.decide()
    agenda, before = term.term._controller.agenda, term.steps  # noqa: SLF001 - whatever it is that wakes
    agenda.wake("a", term.now + timedelta(seconds=10), term.now)
    term.pass_by(9.9)
    await term.term.decide()
    assert term.steps == before
    term.pass_by(0.1)
    await term.term.decide()
    assert term.steps == before + 1
    await term.term.decide()
    assert term.steps == before + 1
    term.pass_by(SWEEP_S)
    await term.term.decide()
    assert (term.steps, term.swept) == (before + 2, [["a"]]), "what is swept is looked at in the same turn"


async def test_a_turn_waits_for_work_and_not_beside_it(term: Term, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: what came while the last turn was completed waits for a tick; a turn without work does not wait."""
    monkeypatch.setattr(offices, "TICK_S", 10 * PATIENCE_S)
    await term.begin(["a"])
    turning = asyncio.create_task(term.term.turn())
    for _ in range(50):
        await asyncio.sleep(0)
    assert not turning.done()
    async with asyncio.timeout(PATIENCE_S):
        asked = asyncio.create_task(term.term.ask(hold("a")))
        await turning
        assert (await asked).granted
    asked = asyncio.create_task(term.term.ask(hold("a")))
    await asyncio.sleep(0)
    assert term.term.queued == 1
    term.term._work.clear()  # noqa: SLF001 - rung by another before it, and heard
    async with asyncio.timeout(PATIENCE_S):
        await term.term.turn()
        await asked


async def test_an_answer_nobody_waits_for_any_more_keeps_no_other_from_its_own(term: Term) -> None:
    """Mutants: an answer to a question that was given up ends the turn, or one that has its answer gets another."""
    await term.begin(["a", "b"])
    given_up = asyncio.create_task(term.term.ask(hold("a")))
    asked = asyncio.create_task(term.term.ask(hold("b")))
    await asyncio.sleep(0)
    assert term.term.queued == 2
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    await term.term.decide()
    assert (await asked).granted
    assert not term.term._answers, "nobody is waited for any more"  # noqa: SLF001
    assert {event.hold.scope.text for event in term.recorded(e.HoldPlaced)} == {"a", "b"}, "both were decided"


async def test_who_asked_is_answered_after_the_commit_or_told_to_come_again(term: Term) -> None:
    """Mutants: answers are given before the commit; who waits at the end of the term waits for ever."""
    await term.begin(["a"])
    asked = asyncio.create_task(term.term.ask(hold("a")))
    await asyncio.sleep(0)
    assert term.term.queued == 1
    term.refuses = True
    with pytest.raises(JournalError):
        await term.term.decide()
    assert not asked.done()
    term.term.close(7.0)
    with pytest.raises(BusyError) as told:
        await asked
    assert told.value.retry_after_s == 7.0
    assert term.term.queued == 0
    assert not term.sent
    assert not term.fleet.holds_of("a"), "what was not committed is forgotten"


async def test_who_follows_is_told_what_was_committed_and_how_long_that_took_is_known(term: Term) -> None:
    """Mutants: nobody who follows is told; the time is in other units, or not a difference."""
    await term.begin(["a"])
    assert term.term.commit_ms == 250.0
    following = term.subscribers.follow(0)
    known = await anext(following)
    asked = asyncio.create_task(term.term.ask(hold("a")))
    await asyncio.sleep(0)
    fresh = asyncio.ensure_future(anext(following))
    await term.term.decide()
    async with asyncio.timeout(PATIENCE_S):
        assert (await fresh)[0].seq == known[-1].seq + 1
        await asked
    following.close()


async def test_a_question_that_is_answered_as_the_term_ends_keeps_its_answer(term: Term) -> None:
    await term.begin(["a"])
    future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    future.set_result(Reply(1))
    term.term._answers[1] = future  # noqa: SLF001 - between its answer and the end of who asked
    term.term.close(1.0)
    assert future.result() == Reply(1)


def test_how_far_an_agents_spool_was_read_is_known_and_of_no_other_nothing(term: Term) -> None:
    asyncio.run(term.begin(["a"]))
    assert (term.term.read_to("a"), term.term.read_to("b")) == (("s", 7), ("", 0))


async def test_what_is_told_wakes_and_is_decided(term: Term, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: what nobody waits for is not queued, or rings no bell; a bell without work ends no wait."""
    monkeypatch.setattr(offices, "TICK_S", 10 * PATIENCE_S)
    await term.begin(["a"])

    def tell() -> None:
        term.term.tell(NodeSeen("a", "off"))

    for wake in (tell, term.term.wake):
        turning = asyncio.create_task(term.term.turn())
        await asyncio.sleep(0)
        assert not turning.done()
        wake()
        async with asyncio.timeout(PATIENCE_S):
            await turning
    assert term.term.live.of("a").power == "off"


async def test_a_snapshot_is_taken_in_the_background_when_one_is_due(
    term: Term, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: nobody looks how old the newest is; one is begun each turn while another is being taken."""
    await term.begin(["a"])
    assert not term.background, "so few records need none"
    monkeypatch.setattr(checkpoints, "EVERY", term.fleet.cell.seq + 1)
    for number in range(2):
        asked = asyncio.create_task(term.term.ask(hold(f"pool:{number}")))
        await asyncio.sleep(0)
        await term.term.decide()
        await asked
    assert len(term.background) == 1
    await term.background.pop()
    assert term.real.snapshot_seq() > 0


# silence


async def test_who_is_not_heard_for_long_is_silent_once_and_a_node_nobody_knows_never(term: Term) -> None:
    """Mutants: the table begins anew each turn, so that nobody ever is; who has gone is accused."""
    await term.begin(["a", "b"])
    term.term.heartbeats.begin(["gone"], term.term.now)
    silence_s = term.term._view.policy.agent_silence_s  # noqa: SLF001
    for _ in range(int(silence_s / 5) + 2):
        term.pass_by(5)
        term.term.heartbeats.beat("b", "b-b1", term.term.now)
        await term.term.decide()
    await term.term.decide()
    assert term.lost() == ["a"]


async def test_nobody_fell_silent_while_nobody_listened(term: Term) -> None:
    """Mutant: who was not heard while the process stood still counts as silent at its next turn."""
    await term.begin(["a", "b"])
    term.pass_by(GAP_S + 1)
    await term.term.decide()
    await term.term.decide()
    assert term.lost() == []
    assert term.recorded(e.ClockGap)


async def test_a_wall_clock_that_leapt_is_doubted_until_it_agrees(term: Term) -> None:
    """Mutants: whether the time is doubted is not read; the doubt is never over."""
    await term.begin(["a"])
    term.now += timedelta(days=30)
    await term.term.decide()
    assert term.fleet.cell.doubt is not None
    for _ in range(3):
        term.pass_by(1)
        await term.term.decide()
        assert term.term.now - NOW < timedelta(minutes=1), "what is doubted is not followed"
    term.now -= timedelta(days=30)
    for _ in range(3):
        await term.term.decide()
    assert term.fleet.cell.doubt is None


# the sweep


async def test_each_node_is_swept_once_a_minute_in_even_shares(term: Term) -> None:
    """Mutants: a share is twice as large; shares come more often than a tick; who was swept is swept again."""
    names = [f"n{number}" for number in range(240)]
    await term.begin(names)
    for name in names:
        term.term.heartbeats.forget(name)  # who falls silent is another's test
    for _ in range(int(SWEEP_S / TICK_S) * 2 + 1):
        await term.term.decide()
        term.pass_by(TICK_S / 2)
    each = SWEEP_S / TICK_S
    assert {len(share) for share in term.swept} == {int(240 / each)}
    assert len(term.swept) == each, "two turns fall into a tick, and one of them sweeps"
    assert sorted(name for share in term.swept for name in share) == sorted(names)


async def test_a_small_fleet_is_swept_as_soon_as_a_share_is_a_node(term: Term) -> None:
    """Mutant: time that was too short for a node is forgotten."""
    await term.begin(["a", "b"])
    moments: list[int] = []
    for second in range(62):
        await term.term.decide()
        if len(term.swept) > len(moments):
            moments.append(second)
        term.pass_by(1)
    assert moments == [30, 60]
    assert sorted(name for share in term.swept for name in share) == ["a", "b"]


async def test_after_a_long_pause_a_sweep_looks_at_each_node_once(term: Term) -> None:
    """Mutant: for the time that was missed each is looked at as often."""
    await term.begin(["a", "b", "c"])
    await term.term.decide()
    term.pass_by(GAP_S * 100)
    await term.term.decide()
    assert [sorted(share) for share in term.swept] == [["a", "b", "c"]]


async def test_a_node_that_has_gone_meanwhile_is_not_swept(term: Term) -> None:
    """Mutants: only those that have gone are looked at; a node that is gone is asked for."""
    await term.begin(["a", "b"])
    term.term._unswept = ["gone", "a"]  # noqa: SLF001 - listed when it was there still
    await term.term.decide()
    term.pass_by(SWEEP_S)
    await term.term.decide()
    assert term.swept == [["a"]]
