"""From a record to a target over real HTTP: nothing lost, nothing twice under another key, one delivers at a time."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.notify.messages import Message
from hostler.core.policy import documents
from hostler.core.state import events as e
from hostler.core.state.assets import Position
from hostler.core.state.cases import Ticket
from hostler.core.state.evidence import KeptBundle
from hostler.core.state.fleet import Fleet
from hostler.core.state.fold import evolve
from hostler.core.state.model import Assignment, Condition, Node, Phase, Severity
from hostler.core.state.notify_routes import Route
from hostler.drivers.notify.http_targets import http_targets
from hostler.drivers.tickets.ticket_target import TicketTarget, ticket_systems
from hostler.journal.bundle_files import BundleFiles
from hostler.journal.memory import MemoryJournal
from hostler.journal.outbox import open_outbox
from hostler.ports import Batch, Journal, NotificationDriver, Outbox, RefusedError, UnreachableError
from hostler.runtime import notifier as notifiers
from hostler.runtime.notifier import Notifier
from hostler.runtime.subscribers import Subscribers, Subscription
from tests.contract.notify_twin import FIELDS, NotifyTwin, notify_twin
from tests.contract.test_notify_targets import LOOPBACK, Kept
from tests.contract.ticket_twins import FIELDS as JIRA
from tests.contract.ticket_twins import JiraTwin, serving
from tests.kit import POLICY, a_node

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
CONFIGURATION = documents.parse(
    {"policy.yaml": POLICY, "f.yaml": "skus: {h100: {gpus: 8}}\npools: {train: {sku: h100, target: 8, tenant: acme}}"}
)


class Recorded:
    """A cell as notifications see one: its journal and its fleet, a clock that a test moves, and a lease."""

    name = "c1"

    def __init__(self, journal: MemoryJournal, *routes: Route) -> None:
        self.journal: Journal = journal
        self.epoch = journal.acquire("me")
        self.leads = True
        self.view = Fleet()
        self._now = BEGAN
        self._subscribers = Subscribers(journal.records)
        for record in journal.records():
            evolve(self.view, record)
        self.view.merge()
        if not self.view.configuration.routes:
            configured = replace(CONFIGURATION, routes={route.name: route for route in routes})
            self.record(e.ConfigActivated(configured, {}, "pat"))

    def now(self) -> datetime:
        return self._now

    def passes(self, **length: float) -> None:
        self._now += timedelta(**length)

    def may_send(self) -> bool:
        return self.leads

    def subscribe(self, after: int) -> Subscription:
        return self._subscribers.follow(after)

    def record(self, *events: e.Event) -> None:
        seq = self.journal.latest_seq()
        records = tuple(e.Record(seq + n, self._now, self.epoch, "clock", event) for n, event in enumerate(events, 1))
        self.journal.append(Batch(records=records), self.epoch)
        for record in records:
            evolve(self.view, record)
        self.view.merge()
        self._subscribers.publish(records)


@pytest.fixture
async def twin() -> AsyncIterator[NotifyTwin]:
    async with notify_twin() as running:
        yield running


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock that counts is the test's; how often it is looked at is the machine's."""
    monkeypatch.setattr(notifiers, "TICK_S", 0.01)


@pytest.fixture
def outbox(tmp_path: Path) -> Any:
    found = open_outbox(tmp_path / "outbox.db")
    yield found
    found.close()


def pager(twin: NotifyTwin, **more: Any) -> Route:
    given = {"url": twin.url, "secret": "folder:x", "networks": LOOPBACK, "wait_s": 0.0, **more}
    return Route("pager", "pagerduty", **given)


@asynccontextmanager
async def telling(cell: Recorded, outbox: Outbox, drivers: Any = None) -> AsyncIterator[Notifier]:
    notifier = Notifier(cell, outbox, drivers or http_targets("c1", Kept(FIELDS)))
    task = asyncio.create_task(notifier.run())
    try:
        await until(lambda: outbox.position() is not None)
        yield notifier
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)


def states(outbox: Outbox) -> list[str]:
    return [one.state for one in reversed(outbox.listed("", "", None, 100))]


async def test_a_record_becomes_a_page_and_its_end_resolves_it(twin: NotifyTwin, outbox: Outbox) -> None:
    cell = Recorded(MemoryJournal(), pager(twin))
    async with telling(cell, outbox) as notifier:
        cell.record(e.BrakeLatched("21 disruptions in an hour"))
        await until(lambda: twin.open)
        cell.record(e.BrakeReleased("pat", "looked at it"))
        await until(lambda: states(outbox) == ["delivered", "delivered"])
    assert (len(twin.paged), twin.open, notifier.sent["pager"]) == (1, {}, 2)


async def test_the_active_policy_says_what_rings_a_pager(twin: NotifyTwin, outbox: Outbox) -> None:
    """Mutant: the rules are those that the notifier began with."""
    pages = pager(twin, pages=True)
    cell = Recorded(MemoryJournal(), pages)
    quiet = replace(CONFIGURATION.policy, pages=replace(CONFIGURATION.policy.pages, brake=False))
    async with telling(cell, outbox):
        cell.record(e.ConfigActivated(replace(CONFIGURATION, policy=quiet, routes={"pager": pages}), {}, "pat"))
        cell.record(e.BrakeLatched("21 disruptions in an hour"))
        cell.record(e.JournalRestored(1, 1, BEGAN))
        await until(lambda: states(outbox) == ["delivered"])
        assert len(twin.paged) == 1, "the restored journal's"
        assert "brake" not in twin.paged[0]
        cell.record(e.BrakeReleased("pat", "looked at it"))
        cell.record(e.ConfigActivated(replace(CONFIGURATION, routes={"pager": pages}), {}, "pat"))
        cell.record(e.BrakeLatched("21 disruptions in an hour"))
        await until(lambda: len(twin.paged) == 2)
    assert "brake" in twin.paged[1]


async def test_a_target_that_is_down_for_an_hour_loses_nothing_and_gets_the_same_key(
    twin: NotifyTwin, outbox: Outbox
) -> None:
    cell = Recorded(MemoryJournal(), pager(twin))
    twin.faults.extend(["500"] * 12)
    async with telling(cell, outbox) as notifier:
        cell.record(e.BrakeLatched("x"), e.JournalRestored(1, 1, BEGAN))
        await until(lambda: notifier.failed["pager"] == 2)
        while states(outbox) != ["delivered", "delivered"]:
            await until(lambda: not notifier._sending)  # noqa: SLF001 - nothing else tells that it is idle
            tried = notifier.failed.total() + notifier.sent.total()
            cell.passes(minutes=10)
            await until(partial(_tried_again, notifier, tried))
            await until(lambda: not notifier._sending)  # noqa: SLF001 - the same
    assert len(twin.paged) == 2
    bodies = [body for body in twin.seen if "brake" in body]
    assert len(bodies) > 1
    assert len(set(bodies)) == 1, "the same message, to the letter"


async def test_slack_that_is_down_for_an_hour_is_told_all_of_it_afterwards_and_keeps_no_pager_waiting(
    twin: NotifyTwin, outbox: Outbox
) -> None:
    """Mutants: what ended meanwhile is not told any more; an end comes before its beginning; other routes wait too."""
    chat = Route("chat", "slack", secret="folder:x", networks=LOOPBACK, wait_s=0.0)
    cell = Recorded(MemoryJournal(), chat, pager(twin))
    away, sent = True, list[Message]()

    class Chat:
        async def deliver(self, message: Message, _route: Route) -> None:
            if away:
                raise UnreachableError("connection refused")
            sent.append(message)

    drivers = {**http_targets("c1", Kept(FIELDS)), "slack": Chat()}
    async with telling(cell, outbox, drivers) as notifier:
        for turn in range(6):
            cell.record(e.BrakeLatched(f"storm {turn}"))
            await until(partial(_more_than, twin.paged, turn))
            cell.record(e.BrakeReleased("pat", "looked at it"))
            await until(lambda: not twin.open)
            cell.passes(minutes=10)
        await until(lambda: notifier.sent["pager"] == 12)
        assert (notifier.sent["chat"], notifier.failed["chat"] > 0) == (0, True)
        away = False
        while len(sent) < 12:
            tried = len(sent)
            cell.passes(minutes=5)
            await until(partial(_more_than, sent, tried))
    by_key = {one.key: [m.action for m in sent if m.key == one.key] for one in sent}
    assert list(by_key.values()) == [["open", "over"]] * 6
    assert len({m.id for m in sent}) == 12, "nothing twice under another id"
    assert not outbox.listed("chat", "dead", None, 100)


async def test_two_thousand_conditions_of_one_cause_ring_one_pager_once(twin: NotifyTwin, outbox: Outbox) -> None:
    """Through journal, outbox and HTTP. Mutants: a page for each node; the pager is never told that it is over."""
    cell, names = Recorded(MemoryJournal(), pager(twin, wait_s=30.0)), [f"n{number}" for number in range(2_000)]
    nodes = [Node(name, Position("c1", rack="r1"), "h100", Phase.production, BEGAN, BEGAN) for name in names]
    cell.record(*(e.NodeRegistered(node) for node in nodes))
    cell.record(*(e.NodeAssigned(name, Assignment("train", "acme", "k1", BEGAN)) for name in names))
    async with telling(cell, outbox):
        cell.record(*(e.ConditionRaised(_leak(name)) for name in names))
        await until(lambda: (outbox.position() or (0,))[0] == cell.journal.latest_seq())
        cell.passes(seconds=31)
        await until(lambda: twin.open)
        cell.record(*(e.ConditionCleared(name, f"{name}/cooling.leak", "pat", "dried") for name in names))
        await until(lambda: not twin.open)
    assert len(twin.paged) == 1


async def test_a_crash_between_send_and_record_sends_the_same_again(twin: NotifyTwin, outbox: Outbox) -> None:
    """The target has taken it and its answer never came."""
    cell = Recorded(MemoryJournal(), pager(twin))
    twin.faults.append("reset")
    async with telling(cell, outbox) as notifier:
        cell.record(e.BrakeLatched("x"))
        await until(lambda: notifier.failed["pager"])
    async with telling(cell, outbox):
        cell.passes(minutes=1)
        await until(lambda: states(outbox) == ["delivered"])
    assert len({body["dedup_key"] for _, body in twin.taken}) == 1
    assert len(twin.paged) == 1


async def test_who_takes_over_goes_on_where_the_other_stopped(twin: NotifyTwin, outbox: Outbox) -> None:
    journal = MemoryJournal()
    first = Recorded(journal, pager(twin, wait_s=60.0))
    ticket = e.TicketOpened(_ticket("n1"))
    async with telling(first, outbox):
        first.record(ticket)
        await until(lambda: (outbox.position() or (0,))[0] == journal.latest_seq())
    second = Recorded(journal)
    second.record(e.BrakeLatched("between the two"))
    second.passes(seconds=61)
    async with telling(second, outbox):
        await until(lambda: len(twin.paged) == 2)
        second.record(e.TicketClosed("t-n1", "mended", "pat"))
        await until(lambda: len(twin.open) == 1)
    assert "c1/brake" in next(iter(twin.open))


async def test_who_has_lost_the_lease_sends_nothing(twin: NotifyTwin, outbox: Outbox) -> None:
    cell = Recorded(MemoryJournal(), pager(twin))
    cell.leads = False
    async with telling(cell, outbox):
        cell.record(e.BrakeLatched("x"))
        await until(lambda: states(outbox) == ["queued"])
        cell.passes(hours=1)
        assert not twin.seen
        cell.leads = True
        await until(lambda: states(outbox) == ["delivered"])


async def test_of_two_that_both_read_one_queues(twin: NotifyTwin, outbox: Outbox) -> None:
    """A controller that was stopped in the middle goes on beside the one that took over."""
    cell = Recorded(MemoryJournal(), pager(twin))
    async with telling(cell, outbox), telling(cell, outbox):
        for number in range(20):
            cell.record(e.BrakeLatched(f"{number}"), e.BrakeReleased("pat", f"{number}"))
        await until(lambda: states(outbox).count("delivered") == 40)
    assert len({one.message.id for one in outbox.listed("", "", None, 100)}) == 40
    assert len(twin.paged) == 20


class Unwilling:
    """A driver that fails as it is told to."""

    def __init__(self, failure: Exception) -> None:
        self.failure = failure
        self.calls = 0

    async def deliver(self, message: Message, route: Route) -> None:
        self.calls += 1
        raise self.failure


@pytest.mark.parametrize(
    ("failure", "end"),
    [(RefusedError("no"), "dead"), (UnreachableError("gone"), "queued"), (KeyError("a bug"), "queued")],
    ids=["refused", "unreachable", "bug"],
)
async def test_what_fails_is_kept_and_neither_stops_the_rest(
    twin: NotifyTwin, outbox: Outbox, failure: Exception, end: str
) -> None:
    cell = Recorded(MemoryJournal(), pager(twin), Route("sick", "slack", secret="folder:x", wait_s=0.0))
    sick: NotificationDriver = Unwilling(failure)
    async with telling(cell, outbox, {**http_targets("c1", Kept(FIELDS)), "slack": sick}):
        cell.record(e.BrakeLatched("x"))
        await until(lambda: twin.paged)
        await until(lambda: outbox.listed("sick", "", None, 1)[0].why)
        assert outbox.listed("sick", "", None, 1)[0].state == end


async def test_a_message_that_nobody_takes_for_a_day_is_a_dead_letter_and_not_lost(
    twin: NotifyTwin, outbox: Outbox
) -> None:
    cell = Recorded(MemoryJournal(), pager(twin))
    async with telling(cell, outbox, {"pagerduty": Unwilling(UnreachableError("gone"))}):
        cell.record(e.BrakeLatched("x"))
        await until(lambda: outbox.listed("", "", None, 1) and outbox.listed("", "", None, 1)[0].attempts)
        cell.passes(hours=25)
        await until(lambda: states(outbox) == ["dead"])
    [dead] = outbox.listed("", "dead", None, 10)
    outbox.retry(dead.number, cell.now())
    async with telling(cell, outbox):
        await until(lambda: states(outbox) == ["delivered"])
    assert twin.paged == [dead.message.key]


async def test_a_busy_target_is_left_alone_for_as_long_as_it_asks(twin: NotifyTwin, outbox: Outbox) -> None:
    cell = Recorded(MemoryJournal(), pager(twin))
    twin.faults.append("429")
    async with telling(cell, outbox) as notifier:
        cell.record(e.BrakeLatched("x"), e.JournalRestored(1, 1, BEGAN))
        await until(lambda: notifier.failed["pager"] and notifier.sent["pager"] + notifier.failed["pager"] >= 1)
        asked = len(twin.seen)
        cell.passes(seconds=6)
        await until(lambda: not notifier._sending)  # noqa: SLF001 - nothing else tells that it is idle
        assert len(twin.seen) == asked
        cell.passes(seconds=2)
        await until(lambda: states(outbox) == ["delivered", "delivered"])


async def test_a_tenant_is_told_of_its_failed_node_though_it_is_released_in_the_same_moment(
    twin: NotifyTwin, outbox: Outbox
) -> None:
    """Mutant: who serves whom is read from the fleet as it is now."""
    acme = Route("acme", "webhook", f"{twin.url}/hook", "folder:x", LOOPBACK, tenant="acme", wait_s=0.0)
    globex = replace(acme, name="globex", tenant="globex")
    cell = Recorded(MemoryJournal(), acme, globex)
    node = Node("n1", Position("c1", rack="r1"), "h100", Phase.production, BEGAN, BEGAN)
    async with telling(cell, outbox):
        cell.record(
            e.NodeRegistered(node),
            e.NodeAssigned("n1", Assignment("train", "acme", "k1", cell.now())),
        )
        cell.passes(hours=1)
        lost = Condition("n1/x", "gpu.fallen_off_bus", "n1", Severity.critical, cell.now(), cell.now(), "remedy", "x")
        cell.record(
            e.ConditionRaised(lost),
            e.NodeReleased("n1", cell.now(), "to triage; globex waits for a node"),
            e.PhaseChanged("n1", Phase.production, Phase.triage, "x"),
        )
        await until(lambda: len(twin.taken) == 3)
        cell.record(e.ConditionCleared("n1", "n1/x", "remedy", "passed"))
        await until(lambda: states(outbox) == ["delivered"] * 4)
    told = [(body["type"], body["data"]["summary"]) for _, body in twin.taken]
    assert [kind for kind, _ in told] == [
        "dev.hostler.node_in.note",
        "dev.hostler.node_failed.open",
        "dev.hostler.node_out.note",
        "dev.hostler.node_failed.over",
    ]
    assert "globex" not in str(twin.taken)


def _tried_again(notifier: Notifier, before: int) -> bool:
    return notifier.failed.total() + notifier.sent.total() > before


def _more_than(found: Sequence[object], number: int) -> bool:
    return len(found) > number


def _leak(node: str) -> Condition:
    """A leak: grave enough to page."""
    return Condition(f"{node}/cooling.leak", "cooling.leak", node, Severity.catastrophic, BEGAN, BEGAN, "operator", "x")


def _ticket(node: str) -> Ticket:
    return Ticket(f"t-{node}", node, "stuck", "see to it", BEGAN, due="now")


async def test_a_ticket_system_has_each_ticket_by_itself_at_once_and_in_order(outbox: Any, tmp_path: Path) -> None:
    """Tickets of one cause are one page and as many tickets; a bundle of evidence comes after its ticket.

    Mutants: they are collected as pages are; evidence is told to nobody.
    """
    async with serving(JiraTwin()) as jira:
        given = {"url": jira.url, "secret": "folder:x", "networks": LOOPBACK, "project": "OPS"}
        cell = Recorded(MemoryJournal(), Route("desk", "jira", **given))
        system = ticket_systems("c1", Kept(JIRA["jira"]))["jira"]
        bundles = BundleFiles(tmp_path / "bundles")
        digest = bundles.put(b"PK evidence", BEGAN.timestamp())
        async with telling(cell, outbox, {"jira": TicketTarget("c1", system, outbox.links, bundles)}):
            cell.record(*(e.TicketOpened(_ticket(f"n{number}")) for number in range(3)))
            cell.record(e.TicketClosed("t-n1", "mended", "pat"))
            cell.record(e.NodeRegistered(a_node("n2")))
            cell.record(e.EvidenceKept("n2", KeptBundle(BEGAN, digest, 11, 1, tickets=("t-n2",))))
            await until(lambda: states(outbox) == ["delivered"] * 5)
        assert [data for key in jira.names() for _, data in jira.files(key)] == [b"PK evidence"]
        assert [jira.state(key) for key in jira.names()].count("done") == 1
        assert len(jira.names()) == 3
