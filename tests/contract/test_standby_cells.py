"""Two controllers over one journal: who decides, what the other knows, and that nobody acts whose lease has run out."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from hostler.controller.inputs import WorkSeen
from hostler.core.state.events import ConfigActivated, Event, NodeRegistered, Record, name_of
from hostler.core.state.model import Node, Observation, Operation, Outcome
from hostler.core.tables.operations import OPERATIONS
from hostler.journal.codec import UnknownEventError
from hostler.journal.opening import open_journal
from hostler.ports import Batch, JournalError, UnreachableError, WorkloadView
from hostler.runtime.cell_controllers import ControllerIdentity
from hostler.runtime.input_queues import BusyError, StandbyError
from hostler.runtime.lease_validity import LeaseTerms
from hostler.runtime.performers import Wiring, performers
from hostler.runtime.runner import Cell
from hostler.server.event_stream import Streams
from hostler.server.problems import ProblemError
from hostler.server.tokens import Grant, Identity, Role
from tests.kit import a_node, configuration, digest, intent_of

TERMS = LeaseTerms(lease_s=1.0, send_s=0.2)
CALM = LeaseTerms(lease_s=4.0, send_s=0.2)
"""For controllers that nobody holds up: none loses its lease because the machine does something else for a second."""

LONG = LeaseTerms(lease_s=600.0, send_s=0.2)
DEADLINE_S = 60.0
ANN = Identity("t", Grant("ann", Role.operator))


class Held:
    """A journal whose callers can be held up at any call, as if their process stood still; or told what to say."""

    def __init__(self, journal: Any) -> None:
        self.real = journal
        self._go_on = threading.Event()
        self.says: dict[str, Callable[..., Any]] = {}
        self.go_on()

    def hold(self) -> None:
        self._go_on.clear()

    def go_on(self) -> None:
        self._go_on.set()

    def __getattr__(self, name: str) -> Any:
        real = getattr(self.real, name)

        def call(*given: Any) -> Any:
            self._go_on.wait()
            return self.says[name](*given) if name in self.says else real(*given)

        return call


class WritingHand:
    """Writes down what it is asked for, and has done it."""

    def __init__(self) -> None:
        self.kinds = frozenset(kind for kind, row in OPERATIONS.items() if row.port != "present")
        self.performed: list[str] = []

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        self.performed.append(operation.kind)
        return Outcome(operation.id, node.id, "done", attempt=operation.attempt)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        return Outcome(operation.id, node.id, "not_done", attempt=operation.attempt)

    async def revoke(self, operation: Operation, node: Node) -> None:
        pass


class One:
    """A controller, its way to the journal, and its hand."""

    def __init__(self, name: str, place: str, terms: LeaseTerms) -> None:
        self.journal = Held(open_journal(place))
        self.driver = WritingHand()
        seat = ControllerIdentity(controller=name, mark=f"{name}/1", address=f"http://{name}", alone=False, terms=terms)
        self.cell = Cell(self.journal, performers(Wiring((self.driver,))), seat=seat)

    async def until(self, holds: Callable[["Cell"], object], what: str) -> None:
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not holds(self.cell):  # noqa: ASYNC110 - another thread or process rings no bell
                    await asyncio.sleep(0.005)
        except TimeoutError:
            waiting = {node.id: node.waiting for node in self.cell.view.nodes.values() if node.waiting}
            raise AssertionError(f"in vain for: {what}; {self.cell.health()} {waiting}") from None

    async def role(self, role: str) -> None:
        await self.until(lambda cell: cell.role == role, role)

    async def asks(self, verb: str, target: str) -> bool:
        """Ask in a person's name; whether it was granted."""
        intent = intent_of(f"{verb}-{target}", verb, target, "ann", "because", datetime.now(UTC), {"now": "true"})
        return (await self.cell.ask(intent)).granted

    async def hold(self, scope: str) -> bool:
        intent = intent_of(f"hold-{scope}", "hold", scope, "ann", "because", datetime.now(UTC))
        return (await self.cell.ask(intent)).granted

    def sees_no_work(self) -> None:
        """The schedulers say that nothing runs anywhere."""
        views = tuple(WorkloadView(n, ()) for n in self.cell.view.nodes)
        for pool in self.cell.view.configuration.pools.values():
            self.cell.tell(WorkSeen(views, whole=True, cluster=pool.cluster))


@pytest.fixture
async def make(place: str) -> AsyncIterator[Callable[..., Any]]:
    """Starts controllers over one journal, the first of them active; they end with the test."""
    async with AsyncExitStack() as stack:

        @asynccontextmanager
        async def running(name: str, terms: LeaseTerms) -> AsyncIterator[One]:
            one = One(name, place, terms)
            try:
                await one.cell.start()
                yield one
            finally:
                one.journal.go_on()
                await one.cell.stop()
                one.journal.close()

        async def start(*names: str, terms: LeaseTerms = TERMS) -> tuple[One, ...]:
            return tuple([await stack.enter_async_context(running(name, terms)) for name in names])

        yield start


def seed(place: str, nodes: int) -> None:
    """A configuration and nodes in production, written by somebody who has resigned."""
    journal, now = open_journal(place), datetime.now(UTC)
    epoch = journal.acquire("seed")
    events: list[Event] = [ConfigActivated(configuration(), {}, "ann")]
    events += [NodeRegistered(a_node(f"n{number}")) for number in range(nodes)]
    records = tuple(Record(seq, now, epoch, "seed", event) for seq, event in enumerate(events, 1))
    journal.append(Batch(records), epoch)
    journal.resign(epoch)
    journal.close()


def names(records: Iterator[Record]) -> list[str]:
    return [name_of(record.event) for record in records]


async def test_the_second_stands_by_follows_and_says_who_decides(make: Any, place: str) -> None:
    a, b = await make("a", "b", terms=CALM)
    assert (a.cell.role, b.cell.role) == ("active", "standby")
    assert await a.hold("rack:far")
    await b.until(lambda cell: cell.view.cell.seq == a.cell.view.cell.seq, "the hold at the standby")
    assert digest(b.cell.view) == digest(a.cell.view)
    health = b.cell.health()
    assert (health.ok, health.active, health.active_address, health.behind) == (True, "a/1", "http://a", 0)
    with pytest.raises(StandbyError) as refused:
        await b.hold("rack:near")
    assert refused.value.address == b.cell.elsewhere == "http://a"
    await b.until(lambda cell: {p.name: p.alive for p in cell.health().peers} == {"a": True, "b": True}, "the roll")


async def test_records_reach_who_follows_a_standby(make: Any, place: str) -> None:
    a, b = await make("a", "b")
    stream = b.cell.subscribe(b.cell.view.cell.seq)
    coming = asyncio.ensure_future(anext(stream))
    await a.hold("rack:far")
    async with asyncio.timeout(DEADLINE_S):
        assert name_of((await coming)[0].event) == "intent_recorded"
    stream.close()


async def test_a_stream_goes_on_at_a_standby_from_what_the_active_one_listed(make: Any, place: str) -> None:
    """Mutant: the standby's own fold decides what is recorded; it then sends everybody away who knows more."""
    a, b = await make("a", "b", terms=CALM)
    await b.until(lambda cell: cell.view.cell.seq == a.cell.view.cell.seq, "b has read all")
    slow, read = threading.Event(), b.journal.real.records

    def late(after: int = 0) -> Iterator[Record]:
        slow.wait()
        yield from read(after)

    b.journal.says["records"] = late
    try:
        await a.hold("rack:far")
        listed = a.cell.view.cell.seq
        assert b.cell.view.cell.seq < listed
        streams = Streams(b.cell, 1)
        assert await streams.begin(ANN, listed) == listed
        with pytest.raises(ProblemError) as refused:
            await streams.begin(ANN, listed + 1)
        assert f"ends at {listed}" in str(refused.value.problem.detail)
        coming = asyncio.ensure_future(anext(b.cell.subscribe(listed)))
        await a.hold("rack:near")
    finally:
        slow.set()
    async with asyncio.timeout(DEADLINE_S):
        assert (await coming)[0].seq == listed + 1


async def test_who_resigns_is_followed_at_once(make: Any, place: str) -> None:
    """The lease lasts ten minutes: nobody waits for its end. Mutant: a stop that does not resign."""
    a, b = await make("a", "b", terms=LONG)
    await a.cell.stop()
    await b.role("active")
    assert b.cell.epoch == a.cell.epoch + 1


async def test_what_disturbs_waits_for_what_the_one_before_may_have_sent(make: Any, place: str) -> None:
    """Protection does not wait, nor does looking. Mutant: a takeover that sends at once."""
    seed(place, 4)
    a, b = await make("a", "b", terms=LeaseTerms(lease_s=1.0, send_s=600.0))
    a.journal.hold()
    await b.role("active")
    b.sees_no_work()
    assert await b.asks("power-cycle", "n0")
    await b.until(lambda cell: cell.view.nodes["n0"].operation, "an operation that is recorded")
    now = datetime.now(UTC)
    leak = Observation("n1", "sensors", "bmc", "s1", 1, facts={"leak_tray": "critical"}, received=now)
    await b.cell.observe("n1", (leak,))
    await b.until(lambda _: b.driver.performed, "protection")
    assert b.driver.performed == ["power_off"]
    waits = b.cell.view.nodes["n0"].operation
    assert waits is not None
    assert waits.kind == "cordon"


async def test_an_append_of_a_controller_that_was_replaced_is_refused_and_it_stands_by(make: Any, place: str) -> None:
    """Stopped just before its append: its epoch has ended, and its records do not follow the last one.

    Mutant: an append that checks neither.
    """
    a, b = await make("a", "b")
    a.journal.hold()
    asked = asyncio.ensure_future(a.hold("rack:far"))
    await b.role("active")
    assert await b.hold("rack:near")
    a.journal.go_on()
    with pytest.raises(BusyError):
        await asked
    await a.until(lambda cell: cell.role == "standby" and cell.health().ok, "the first stands by, without a restart")
    assert await b.hold("rack:there")
    await a.until(lambda cell: cell.view.cell.seq == b.cell.view.cell.seq, "the first follows")
    assert digest(a.cell.view) == digest(b.cell.view)
    assert {h.scope.text for h in b.cell.view.holds.values()} == {"rack:near", "rack:there"}


async def test_nothing_is_sent_while_the_lease_is_not_renewed(make: Any, place: str) -> None:
    """Recorded, but not sent; sent once the journal answers again. Mutant: `may_send` that only asks for the role."""

    def away(epoch: int) -> None:
        raise JournalError("no answer")

    seed(place, 4)
    (a,) = await make("a")
    a.journal.says["renew"] = away
    await a.until(lambda cell: not cell.may_send(), "the end of its right")
    assert a.cell.role == "active"
    assert a.cell.health().why == "the lease is not renewed: no answer"
    with pytest.raises(UnreachableError):
        a.cell.fence()
    a.sees_no_work()
    assert await a.asks("power-cycle", "n0")
    await a.until(lambda cell: cell.view.nodes["n0"].operation, "an operation that is recorded")
    assert not a.driver.performed
    del a.journal.says["renew"]
    await a.until(lambda _: a.driver.performed, "it is sent after all")
    assert a.cell.health().ok


async def test_who_cannot_read_a_record_says_so_and_does_not_take_over(make: Any, place: str) -> None:
    """Mutant: skip what cannot be read."""
    a, b = await make("a", "b", terms=CALM)
    await b.until(lambda cell: cell.view.cell.seq == a.cell.view.cell.seq, "b has read all")
    records = b.journal.real.records

    def unknown(after: int = 0) -> Iterator[Record]:
        for record in records(after):
            raise UnknownEventError(record.seq, "node_beamed_up", 9, "no such event")
        yield from ()

    b.journal.says["records"] = unknown
    await a.hold("rack:far")
    await b.until(lambda cell: "node_beamed_up" in cell.health().why, "b says what it cannot read")
    await a.cell.stop()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(b.role("active"), 2 * TERMS.lease_s)
    assert not b.cell.health().ok
    del b.journal.says["records"]
    await b.role("active")


async def test_who_is_behind_says_so_and_reads_on_before_it_takes_over(make: Any, place: str) -> None:
    """Mutant: take the lease first, and read what is missing then."""
    a, b = await make("a", "b")
    await b.until(lambda cell: cell.view.cell.seq == a.cell.view.cell.seq, "b has read all")
    slow, read = threading.Event(), b.journal.real.records

    def waits(after: int = 0) -> Iterator[Record]:
        slow.wait()
        yield from read(after)

    b.journal.says["records"] = waits
    try:
        await a.hold("rack:far")
        await b.until(lambda cell: cell.health().behind > 0, "b knows what it misses")
        await a.cell.stop()
        lease = a.journal.lease()
        assert lease.holder == ""
        await b.until(
            lambda cell: cell.health().behind_s > 1.5 * TERMS.lease_s, "b is behind for longer than the lease"
        )
        assert (b.cell.role, b.journal.lease()) == ("standby", lease)
    finally:
        slow.set()
    await b.role("active")
    assert {h.scope.text for h in b.cell.view.holds.values()} == {"rack:far"}, "nothing is missing"


async def test_of_two_that_stand_by_one_takes_over(make: Any, place: str) -> None:
    """Mutant: `acquire` without the lease as it was seen."""
    a, b, c = await make("a", "b", "c")
    both = threading.Barrier(2, timeout=DEADLINE_S)
    for one in (b, c):
        real = one.journal.real.acquire
        one.journal.says["acquire"] = lambda *given, real=real: (both.wait(), real(*given))[1]
    a.journal.hold()
    await b.until(lambda _: "active" in (b.cell.role, c.cell.role), "one of the two")
    taken, other = (b, c) if b.cell.role == "active" else (c, b)
    for one in (b, c):
        one.journal.says.clear()
    assert taken.cell.epoch == 2
    a.journal.go_on()
    await a.role("standby")
    await other.until(lambda cell: cell.elsewhere == taken.cell.health().active_address, "the other follows")
    assert [one.cell.role for one in (a, other)] == ["standby", "standby"]


async def test_a_takeover_of_5_000_nodes_finds_nobody_lost_and_treats_nobody(make: Any, place: str) -> None:
    """Mutant: the new one's heartbeats begin at the first beat; those of before count on."""
    seed(place, 5_000)
    a, b = await make("a", "b")
    for node in a.cell.view.nodes:
        a.cell.heartbeat(node, f"boot-{node}")
    a.sees_no_work()
    await b.until(lambda cell: cell.view.cell.seq == a.cell.view.cell.seq, "b has the fleet")
    before = b.cell.view.cell.seq
    a.journal.hold()
    await b.role("active")
    assert await b.hold("rack:far"), "it decides"
    assert await b.hold("rack:near"), "and has looked at every node by then"
    after = set(names(b.journal.records(before)))
    assert after <= {"controller_started", "clock_gap", "intent_recorded", "hold_placed", "boot_observed"}, after
    assert not any(seen.heard for seen in b.cell.live.nodes.values())
    a.journal.go_on()
    await a.role("standby")
    assert not a.cell.live.nodes, "what it knew of the present is forgotten"
