"""Jira and ServiceNow, each played by a server that speaks its documented API: one ticket there for one here."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.step_output import Reply
from hostler.core.notify.message_grouping import Moment
from hostler.core.notify.messages import Message
from hostler.core.notify.notices import Place
from hostler.core.notify.outside_tickets import label_of, told_outside
from hostler.core.policy.route_check import route_problems
from hostler.core.state import events as e
from hostler.core.state.cases import DUE_DAY, Ticket
from hostler.core.state.evidence import KeptBundle
from hostler.core.state.fleet import Fleet
from hostler.core.state.intent import Intent
from hostler.core.state.notify_routes import Route
from hostler.drivers.tickets import json_api, ticket_target
from hostler.drivers.tickets.ticket_target import TicketTarget, ticket_systems
from hostler.journal.outbox import SqlOutbox, open_outbox
from hostler.ports import BusyTargetError, RefusedError, Secret, UnreachableError
from hostler.runtime import ticket_returns
from hostler.runtime.ticket_returns import TicketReturns
from tests.contract.ticket_twins import FIELDS, JiraTwin, ServiceNowTwin, Twin, serving, text_of
from tests.kit import Drive, a_node, configuration, pool_document

LOOPBACK = ("127.0.0.0/8",)
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
TWINS: dict[str, Any] = {
    "jira cloud": JiraTwin,
    "jira data center": lambda: JiraTwin(cloud=False),
    "servicenow": ServiceNowTwin,
}
WICKED = "fan 3 [~admin] {noformat} ^state=7 \"labels\" 'x' \x1b[31m\u202e <script>"
TICKET = Ticket(
    "n1-cooling-fan-fan3",
    "n1",
    "condition",
    WICKED,
    NOW,
    hardware="SN-1",
    component="fan3",
    fault="cooling.fan",
    action="Bring: a fan.",
    owner="technician",
    due=DUE_DAY,
)


class Kept:
    def __init__(self, fields: dict[str, str]) -> None:
        self.fields = fields

    async def read(self, name: str, *, anew: bool = False) -> Secret:
        return Secret(self.fields)


class Shelf:
    """The bundles that this controller keeps."""

    def __init__(self, *bundles: bytes) -> None:
        self.kept = {sha256(data).hexdigest(): data for data in bundles}

    def get(self, digest: str) -> bytes | None:
        return self.kept.get(digest)


@pytest.fixture(params=TWINS)
async def twin(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    async with serving(TWINS[request.param]()) as running:
        yield running


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[SqlOutbox]:
    found = open_outbox(tmp_path / "outbox.db")
    yield found
    found.close()


def route_to(twin: Twin, **more: Any) -> Route:
    given: dict[str, Any] = {"url": twin.url, "secret": "folder:x", "networks": LOOPBACK, "project": "OPS"}
    return Route("desk", twin.kind, **{**given, "timeout_s": 5.0, **more})


def target(twin: Twin, outbox: SqlOutbox) -> TicketTarget:
    return TicketTarget("c1", ticket_systems("c1", Kept(FIELDS[twin.kind]))[twin.kind], outbox.links, Shelf())


def message(event: e.Event, twin: Twin, seq: int = 7) -> Message:
    (found,) = told_outside(event, Place("train", "acme", "s1", "r1"), [route_to(twin)], "c1", Moment(seq, NOW))
    return found


OPENED = e.TicketOpened(TICKET)
CHANGED = e.TicketUpdated(replace(TICKET, summary="still there"))
CLOSED = e.TicketClosed(TICKET.id, "the fan turns", "hostler")


async def told(twin: Twin, outbox: SqlOutbox, *events: e.Event) -> None:
    for number, event in enumerate(events):
        await target(twin, outbox).deliver(message(event, twin, number), route_to(twin))


async def test_a_ticket_is_made_told_on_and_closed_once_and_its_link_is_kept(twin: Any, outbox: SqlOutbox) -> None:
    await told(twin, outbox, OPENED)
    (key,) = twin.names()
    assert twin.state(key) == "new"
    (link,) = outbox.links.links()
    assert (link.key, link.ticket, link.done) == (key, TICKET.id, False)
    assert link.url.startswith(twin.url)
    await told(twin, outbox, CHANGED)
    assert "still there" in twin.comments(key)[-1]
    await told(twin, outbox, CLOSED)
    assert twin.state(key) == "done"
    assert outbox.links.links()[0].done
    assert len(twin.names()) == 1


async def test_what_is_sent_twice_makes_nothing_twice(twin: Any, outbox: SqlOutbox) -> None:
    await told(twin, outbox, OPENED, OPENED, OPENED)
    assert len(twin.names()) == 1
    await told(twin, outbox, CLOSED, CLOSED)
    assert [twin.state(key) for key in twin.names()] == ["done"]


@pytest.mark.parametrize("fault", ["500 after", "hang after", "html after"])
async def test_an_answer_that_never_came_makes_no_second_ticket(
    twin: Any, outbox: SqlOutbox, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ticket was made, nobody said so, and a search shows it late. Mutant: `tried` is not kept."""
    twin.faults.append(fault)
    twin.indexed = False
    quick = route_to(twin, timeout_s=0.5)
    with pytest.raises(UnreachableError):
        await target(twin, outbox).deliver(message(OPENED, twin), quick)
    with pytest.raises(BusyTargetError) as waits:
        await target(twin, outbox).deliver(message(OPENED, twin), route_to(twin))
    assert 0 < waits.value.again_s <= 60
    twin.appear()
    await told(twin, outbox, OPENED)
    assert len(twin.names()) == 1
    assert outbox.links.links()[0].key == twin.names()[0]


async def test_a_creation_that_did_nothing_is_tried_again_once_a_search_would_show_it(
    twin: Any, outbox: SqlOutbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin.faults.append("500")
    with pytest.raises(UnreachableError):
        await told(twin, outbox, OPENED)
    monkeypatch.setattr(ticket_target, "SHOWN_AFTER", timedelta(0))
    await told(twin, outbox, OPENED)
    assert len(twin.names()) == 1


async def test_a_busy_system_says_when_it_may_be_asked_again(twin: Any, outbox: SqlOutbox) -> None:
    twin.faults.append("any:429")
    with pytest.raises(BusyTargetError) as busy:
        await told(twin, outbox, OPENED)
    assert busy.value.again_s == 7
    assert not twin.names()


async def test_a_page_of_html_with_200_is_no_success(twin: Any, outbox: SqlOutbox) -> None:
    twin.faults.append("any:html")
    with pytest.raises(UnreachableError, match="not with JSON"):
        await told(twin, outbox, OPENED)
    assert not twin.names()


async def test_what_will_never_be_taken_is_refused_and_its_reason_told(twin: Any, outbox: SqlOutbox) -> None:
    twin.faults.append("400")
    with pytest.raises(RefusedError, match="no such type"):
        await told(twin, outbox, OPENED)
    await told(twin, outbox, OPENED)
    assert len(twin.names()) == 1, "a refusal leaves nothing that could still show"


async def test_a_wrong_password_is_a_persons_to_mend_and_is_told_to_nobody(twin: Any, outbox: SqlOutbox) -> None:
    wrong = ticket_systems("c1", Kept({"token": "very-secret"}))[twin.kind]
    with pytest.raises(UnreachableError) as denied:
        await TicketTarget("c1", wrong, outbox.links, Shelf()).deliver(message(OPENED, twin), route_to(twin))
    assert "denies it (401)" in str(denied.value)
    assert "very-secret" not in str(denied.value)


async def test_duplicates_are_closed_and_the_first_is_told(twin: Any, outbox: SqlOutbox) -> None:
    await told(twin, outbox, OPENED)
    first = twin.names()[0]
    system, route = ticket_systems("c1", Kept(FIELDS[twin.kind]))[twin.kind], route_to(twin)
    await system.create(label_of("c1", TICKET.id), message(OPENED, twin), route)
    await told(twin, outbox, CHANGED)
    second = twin.names()[1]
    assert (twin.state(first), twin.state(second)) == ("new", "done")
    assert outbox.links.links()[0].key == first


async def test_what_comes_back_opens_the_same_ticket_there(twin: Any, outbox: SqlOutbox) -> None:
    await told(twin, outbox, OPENED, CLOSED, OPENED)
    (key,) = twin.names()
    assert twin.state(key) != "done"


async def test_who_was_not_told_of_a_beginning_is_told_of_no_end(twin: Any, outbox: SqlOutbox) -> None:
    await told(twin, outbox, CLOSED)
    assert not twin.names()


async def test_a_test_makes_no_ticket_and_shows_whether_the_sign_in_works(twin: Any, outbox: SqlOutbox) -> None:
    ask = replace(message(OPENED, twin), action="test", details={})
    await target(twin, outbox).deliver(ask, route_to(twin))
    assert twin.requests
    assert not twin.names()


async def test_nothing_that_is_told_becomes_markup_or_a_query(twin: Any, outbox: SqlOutbox) -> None:
    await told(twin, outbox, OPENED)
    sent = text_of(twin)
    assert "\\u001b" not in sent
    assert "\\u202e" not in sent
    if twin.kind == "jira":
        (issue,) = twin.issues.values()
        assert issue["description"].count("{noformat}") == 2


async def test_jira_without_a_way_to_done_says_what_it_offers(outbox: SqlOutbox) -> None:
    async with serving(JiraTwin()) as twin:
        twin.dead_end = True
        await told(twin, outbox, OPENED)
        with pytest.raises(RefusedError, match="no transition leads to done; it offers Start"):
            await told(twin, outbox, CLOSED)


async def test_a_record_that_servicenow_has_closed_for_good_gets_a_successor(outbox: SqlOutbox) -> None:
    async with serving(ServiceNowTwin(archives=True)) as twin:
        await told(twin, outbox, OPENED)
        twin.person_closes(twin.names()[0])
        await told(twin, outbox, replace(CHANGED, ticket=replace(TICKET, summary="again")))
        assert [twin.state(key) for key in twin.names()] == ["done", "new"]


def test_labels_are_words_and_never_shared() -> None:
    names = ["a b", "a-b", "a/b", "x" * 300, "x" * 301, "é"]
    labels = {label_of(cell, name) for name in names for cell in ("c1", "c2")}
    assert len(labels) == 2 * len(names)
    assert all(len(one) <= 100 and set(one) <= set("abcdefghijklmnopqrstuvwxyz0123456789-._") for one in labels)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"project": ""}, "project is no key"),
        ({"project": 'X" OR project = Y'}, "project is no key"),
        ({"digest_s": 60.0}, "digest_s"),
        ({"topics": ("incident",)}, "topics"),
        ({"table": "incident?x"}, "no table"),
        ({"secret": ""}, "secret is missing"),
        ({"attach_mib": 41}, "attach_mib"),
    ],
)
def test_a_route_that_cannot_work_is_refused_with_what_to_write(fields: dict[str, Any], said: str) -> None:
    route = Route("desk", "jira", **{"url": "https://j.example", "secret": "folder:x", "project": "OPS", **fields})
    assert any(said in wrong.what for wrong in route_problems(route))


# --- bundles of evidence

BUNDLE = b"PK\x03\x04" + bytes(range(256)) * 40
DIGEST = sha256(BUNDLE).hexdigest()
NAME = f"evidence-n1-{DIGEST[:12]}.zip"
KEPT = e.EvidenceKept("n1", KeptBundle(NOW, DIGEST, len(BUNDLE), 9, tickets=(TICKET.id,)))


async def filed(twin: Twin, outbox: SqlOutbox, shelf: Shelf | None = None, **route: Any) -> None:
    system = ticket_systems("c1", Kept(FIELDS[twin.kind]))[twin.kind]
    found = TicketTarget("c1", system, outbox.links, Shelf(BUNDLE) if shelf is None else shelf)
    await found.deliver(message(KEPT, twin), route_to(twin, **route))


async def test_a_bundle_is_attached_to_its_ticket_once_byte_by_byte(twin: Any, outbox: SqlOutbox) -> None:
    """Mutants: it is attached with each try; its name has no digest; a ticket is made for it."""
    await filed(twin, outbox)
    assert not twin.names(), "who was told of no ticket is given nothing"
    await told(twin, outbox, OPENED)
    (key,) = twin.names()
    before = twin.comments(key)
    for _ in range(3):
        await filed(twin, outbox)
    assert twin.files(key) == [(NAME, BUNDLE)]
    assert twin.comments(key) == before
    assert len(twin.names()) == 1


@pytest.mark.parametrize("fault", ["500 after", "hang after", "html after"])
async def test_an_upload_without_a_good_answer_is_looked_for_before_it_is_sent_again(
    twin: Any, outbox: SqlOutbox, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer came late, never, or as a page with 200. Mutant: 200 is believed, or the file is there twice."""
    monkeypatch.setattr(json_api, "UPLOAD_S", 0.5)
    await told(twin, outbox, OPENED)
    twin.faults.append(fault)
    with pytest.raises(UnreachableError):
        await filed(twin, outbox)
    await filed(twin, outbox)
    assert twin.files(twin.names()[0]) == [(NAME, BUNDLE)]


@pytest.mark.parametrize("fault", ["500", "html"])
async def test_an_upload_that_did_nothing_is_sent_again(twin: Any, outbox: SqlOutbox, fault: str) -> None:
    """Mutant: a sign-in page with 200 counts as taken."""
    await told(twin, outbox, OPENED)
    twin.faults.append(fault)
    with pytest.raises(UnreachableError):
        await filed(twin, outbox)
    assert not twin.files(twin.names()[0])
    await filed(twin, outbox)
    assert twin.files(twin.names()[0]) == [(NAME, BUNDLE)]


async def test_a_busy_system_is_given_the_bundle_later(twin: Any, outbox: SqlOutbox) -> None:
    await told(twin, outbox, OPENED)
    twin.faults.append("429")
    with pytest.raises(BusyTargetError) as busy:
        await filed(twin, outbox)
    assert busy.value.again_s == 7


@pytest.mark.parametrize("fault", ["413", "403"])
async def test_a_bundle_that_is_refused_leaves_the_reason_and_how_it_is_fetched(
    twin: Any, outbox: SqlOutbox, fault: str
) -> None:
    """Mutants: it is tried for a day; the ticket does not say that there is evidence."""
    await told(twin, outbox, OPENED)
    twin.faults.append(fault)
    await filed(twin, outbox)
    (key,) = twin.names()
    assert not twin.files(key)
    assert f"({fault})" in twin.comments(key)[-1]
    assert f"`hostler node evidence n1 --bundle {DIGEST[:12]}`" in twin.comments(key)[-1]


async def test_a_bundle_larger_than_the_route_lets_is_not_sent(twin: Any, outbox: SqlOutbox) -> None:
    """Mutant: the bound of the route is in bytes, or none."""
    await told(twin, outbox, OPENED)
    big = bytes((1 << 20) + 1)
    system = ticket_systems("c1", Kept(FIELDS[twin.kind]))[twin.kind]
    about = replace(KEPT, bundle=replace(KEPT.bundle, digest=sha256(big).hexdigest()))
    shown = TicketTarget("c1", system, outbox.links, Shelf(big))
    await shown.deliver(message(about, twin), route_to(twin, attach_mib=1))
    (key,) = twin.names()
    assert "the route lets 1 MiB at most" in twin.comments(key)[-1]
    said = len(twin.comments(key))
    await shown.deliver(message(about, twin), route_to(twin, attach_mib=0))
    assert (len(twin.comments(key)), twin.files(key)) == (said, [])


async def test_jira_says_beforehand_what_it_takes(outbox: SqlOutbox) -> None:
    """Mutant: megabytes are sent to be refused."""
    async with serving(JiraTwin()) as twin:
        await told(twin, outbox, OPENED)
        twin.upload_limit = 1_000
        await filed(twin, outbox)
        twin.uploads_enabled = False
        await filed(twin, outbox)
        (key,) = twin.names()
        assert "this Jira takes 1,000 at most" in twin.comments(key)[-2]
        assert "attachments switched off" in twin.comments(key)[-1]
        assert not any(path.endswith("/attachments") for _, path, _ in twin.requests)


async def test_a_bundle_that_lies_elsewhere_is_told_of(twin: Any, outbox: SqlOutbox) -> None:
    await told(twin, outbox, OPENED)
    await filed(twin, outbox, Shelf())
    assert "it lies with the controller that kept it" in twin.comments(twin.names()[0])[-1]


def test_nothing_that_was_kept_is_no_file() -> None:
    """Mutant: a bundle that could not be made is attached as nothing."""
    none = e.EvidenceKept("n1", KeptBundle(NOW, missing=("all of it",), tickets=(TICKET.id,)))
    assert not list(told_outside(none, Place(), [Route("desk", "jira")], "c1", Moment(7, NOW)))


# --- closed there


class Mirrored:
    """A cell and its ticket system: what is recorded is told there at once, what is closed there is looked at."""

    name = "c1"

    def __init__(self, twin: Any, outbox: SqlOutbox) -> None:
        pool = pool_document(target=1, budget={"count": 1, "percent": 100, "removals_per_day": 9})
        self.route = route_to(twin)
        routed = replace(configuration({"train": pool}), routes={"desk": self.route})
        self.drive = Drive(routed, [a_node("a")])
        self.target = target(twin, outbox)
        self.returns = TicketReturns(self, outbox.links, ticket_systems("c1", Kept(FIELDS[twin.kind])))
        self.told = len(self.drive.journal)

    @property
    def view(self) -> Fleet:
        return self.drive.fleet

    def now(self) -> datetime:
        return self.drive.now

    async def ask(self, intent: Intent) -> Reply:
        return self.drive.ask(intent.verb, intent.target, intent.person)

    async def tell(self) -> None:
        fresh, self.told = self.drive.journal[self.told :], len(self.drive.journal)
        for record in fresh:
            for one in told_outside(record.event, Place(), [self.route], "c1", Moment(record.seq, self.now())):
                await self.target.deliver(one, self.route)

    async def look(self) -> None:
        self.drive.wait(seconds=61)
        await self.tell()
        await self.returns.look()
        await self.tell()

    def supply(self, word: str) -> None:
        for _ in range(3):
            self.drive.observe("a", "sensors", source="bmc", facts={"psu1": word})


async def test_closed_there_is_noted_here_and_opened_there_again_where_the_proof_is_missing(
    twin: Any, outbox: SqlOutbox
) -> None:
    """Mutants: the close is believed; the reopening is taken for another close; a close is sent back for ever."""
    cell = Mirrored(twin, outbox)
    cell.supply("Critical")
    await cell.tell()
    (key,) = twin.names()
    twin.person_closes(key)
    await cell.look()
    (ticket,) = cell.drive.fleet.tickets.values()
    assert ticket.done_by == f"{twin.kind}:desk"
    assert twin.state(key) == "done", "it stays closed there while it is looked at"
    for _ in range(10):
        cell.drive.wait(minutes=5)
        cell.supply("Critical")
        await cell.look()
    (again,) = cell.drive.fleet.tickets.values()
    assert again.reopened is not None
    assert twin.state(key) != "done"
    assert any("still shown" in text for text in twin.comments(key))
    assert len([1 for one in cell.drive.events(e.TicketUpdated) if one.ticket.done_by]) == 1
    cell.supply("OK")
    await cell.look()
    assert not cell.drive.fleet.tickets
    assert twin.state(key) == "done"
    assert len(twin.names()) == 1


async def test_closed_there_and_mended_is_over_on_both_sides(twin: Any, outbox: SqlOutbox) -> None:
    cell = Mirrored(twin, outbox)
    cell.supply("Critical")
    await cell.tell()
    (key,) = twin.names()
    twin.person_closes(key)
    await cell.look()
    cell.supply("OK")
    await cell.look()
    assert not cell.drive.fleet.tickets
    assert twin.state(key) == "done"


async def test_a_system_that_gives_no_good_answer_closes_nothing_and_is_left_in_peace(
    twin: Any, outbox: SqlOutbox
) -> None:
    cell = Mirrored(twin, outbox)
    cell.supply("Critical")
    await cell.tell()
    twin.person_closes(twin.names()[0])
    for fault in ("any:html", "any:500", "any:429"):
        twin.faults.append(fault)
        await cell.look()
        assert not next(iter(cell.drive.fleet.tickets.values())).done_by
        cell.drive.wait(seconds=ticket_returns.LOOK_AFTER_FAILURE_S)
    asked = len(twin.requests)
    await cell.look()
    assert next(iter(cell.drive.fleet.tickets.values())).done_by
    assert len(twin.requests) > asked


async def test_many_tickets_are_asked_for_together(outbox: SqlOutbox) -> None:
    async with serving(JiraTwin()) as twin:
        for number in range(60):
            await told(twin, outbox, e.TicketOpened(replace(TICKET, id=f"t{number}")))
        cell = Mirrored(twin, outbox)
        cell.drive.fleet.tickets.base.update({f"t{n}": replace(TICKET, id=f"t{n}") for n in range(60)})
        before = len(twin.requests)
        await cell.returns.look()
        assert len(twin.requests) - before == 2
