"""Messages of a route: one per cause, its end, quiet hours and digests, and whom it tells nothing of."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import fields, replace

from hostler.core.notify.message_grouping import EpisodeMessages, OpenEpisodes
from hostler.core.notify.messages import Message
from hostler.core.notify.notices import Place, concerned, notices
from hostler.core.policy import documents
from hostler.core.state import events as e
from hostler.core.state.cases import Incident, Ticket
from hostler.core.state.configuration import Configuration
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.model import Condition, Evidence, Severity
from hostler.core.state.notify_routes import PageRules, Route, quiet_until
from hostler.core.state.scopes import Scope
from hostler.core.state.windows import Window
from tests.kit import NOW, POLICY, after

ACME = Place(pool="train", tenant="acme", rack="r1")
GLOBEX = Place(pool="other", tenant="globex", rack="r9")
PAGER = Route("pager", "pagerduty", pages=True)


class Played:
    """Records shown to a teller one after the other, and every message that came of them."""

    def __init__(self, *routes: Route, place: Place = ACME) -> None:
        self.routes = routes
        self.place = place
        self.told = OpenEpisodes()
        self.sent: list[Message] = []
        self.seq = 0

    def show(self, event: e.Event, at: datetime = NOW) -> list[Message]:
        """Returns the messages that are sent at once."""
        self.seq += 1
        places = dict.fromkeys(concerned(event), (self.place,))
        found = [
            message
            for notice in notices(event, places, PageRules())
            for message in EpisodeMessages("c1", self.told).take(notice, self.seq, at, self.routes)
        ]
        self.sent += found
        return found

    def wait(self, at: datetime) -> list[Message]:
        """Returns the messages sent by then, the state having been written and read again."""
        self.told = msgspec.msgpack.decode(msgspec.msgpack.encode(self.told), type=OpenEpisodes)
        found = list(EpisodeMessages("c1", self.told).due(at, self.routes))
        self.sent += found
        return found


def ticket(number: int, fault: str = "cooling.leak", due: str = "now") -> Ticket:
    return Ticket(f"n{number}-t1", f"n{number}", "stuck", f"see to n{number}", NOW, fault=fault, due=due)


def leak(node: str, severity: Severity = Severity.catastrophic) -> Condition:
    said = Evidence(NOW, "bmc", f"leak at {node}, seen by pat@acme")
    return Condition(
        f"{node}/cooling.leak", "cooling.leak", node, severity, NOW, NOW, "operator", "x", evidence=(said,)
    )


def test_a_storm_of_one_cause_is_one_page() -> None:
    """Mutant: a new episode for every notice."""
    played = Played(PAGER)
    for number in range(2_000):
        played.show(e.TicketOpened(ticket(number)), after(seconds=number / 100))
    played.wait(after(seconds=60))
    assert [(m.action, m.count) for m in played.sent] == [("open", 2_000)]
    for number in range(2_000):
        played.show(e.TicketClosed(f"n{number}-t1", "mended", "pat"), after(seconds=100))
    assert [m.action for m in played.sent] == ["open", "over"]
    assert played.sent[0].key == played.sent[1].key
    assert len({m.id for m in played.sent}) == 2


def test_a_storm_of_two_thousand_conditions_of_one_cause_is_one_page() -> None:
    """Mutants: conditions are told node by node; the page is over with the first of them that is."""
    played = Played(PAGER)
    for number in range(2_000):
        played.show(e.ConditionRaised(leak(f"n{number}")), after(seconds=number / 100))
        if not number % 100:
            played.wait(after(seconds=number / 100))
    played.wait(after(seconds=60))
    assert [m.action for m in played.sent if m.action != "more"] == ["open"]
    assert len({m.key for m in played.sent}) == 1
    for number in range(2_000):
        assert not [m for m in played.sent if m.action == "over"]
        over = e.ConditionCleared(f"n{number}", f"n{number}/cooling.leak", "pat", "dried")
        played.show(over, after(seconds=100))
    assert [m.action for m in played.sent if m.action != "more"] == ["open", "over"]


def test_a_storm_that_goes_on_is_told_again_under_its_key_and_seldom() -> None:
    played = Played(PAGER)
    for second in range(0, 600, 2):
        played.show(e.TicketOpened(ticket(second)), after(seconds=second))
        played.wait(after(seconds=second))
    assert [m.action for m in played.sent] == ["open", "more"]
    assert len({m.key for m in played.sent}) == 1


def test_another_fault_of_the_same_kind_a_day_later_is_another_page() -> None:
    played = Played(PAGER)
    for day in (0, 1):
        played.show(e.TicketOpened(ticket(day)), after(days=day))
        played.wait(after(days=day, minutes=1))
    assert [m.action for m in played.sent] == ["open", "open"]
    assert len({m.key for m in played.sent}) == 2


def test_what_is_over_before_it_was_told_is_not_told() -> None:
    played = Played(PAGER)
    played.show(e.TicketOpened(ticket(1)))
    played.show(e.TicketClosed("n1-t1", "explained by an incident", "hostler"), after(seconds=20))
    assert not played.wait(after(minutes=10))
    assert not played.sent


def test_the_brake_is_a_page_at_once_and_its_release_ends_it() -> None:
    played = Played(PAGER)
    assert [(m.action, m.page) for m in played.show(e.BrakeLatched("21 disruptions"))] == [("open", True)]
    assert not played.show(e.BrakeLatched("still"))
    assert [m.action for m in played.show(e.BrakeReleased("pat", "looked at it"))] == ["over"]


@pytest.mark.parametrize(
    ("event", "page"),
    [
        (e.TicketOpened(ticket(1, due="now")), True),
        (e.TicketOpened(ticket(1, due="day")), False),
        (e.TicketOpened(ticket(1, due="")), False),
        (e.TicketOpened(replace(ticket(1, due="now"), kind="condition", fault="of.a_newer_controller")), True),
        (e.ConditionRaised(leak("n1")), True),
        (e.ConditionRaised(leak("n1", Severity.critical)), False),
        (e.JournalRestored(1, 2, NOW), True),
        (e.ClockGap(5.0, doubt="leapt"), True),
        (e.ClockGap(5.0), None),
        (e.ConditionRaised(leak("n1", Severity.degraded)), None),
        (e.WindowScheduled(Window("w1", Scope.of("n1"), NOW, after(hours=1), "switch", "ops")), False),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, bool | None) else str(value),
)
def test_only_what_automation_cannot_finish_is_a_page(event: e.Event, page: bool | None) -> None:
    found = list(notices(event, dict.fromkeys(concerned(event), (ACME,)), PageRules()))
    assert [n.page for n in found] == ([] if page is None else [page])


BEGINNINGS: dict[str, e.Event] = {
    "tickets": e.TicketOpened(ticket(1, due="now")),
    "incidents": e.IncidentOpened(
        Incident(
            "i1", Scope.of("leaf:l3"), "link", ("network.link",), {"n1": NOW}, 8, 3, NOW, after(hours=1), "ops", "t1"
        )
    ),
    "brake": e.BrakeLatched("21 disruptions"),
    "cell": e.JournalRestored(1, 2, NOW),
    "severity": e.ConditionRaised(leak("n1")),
}
"""A page by each rule of the policy."""


@pytest.mark.parametrize("rule", BEGINNINGS)
def test_each_rule_of_pages_in_the_policy_switches_its_own_kind_off_and_no_other(rule: str) -> None:
    """Mutants: a rule is read and not asked; what is switched off is told to nobody any more."""
    assert BEGINNINGS.keys() == {field.name for field in fields(PageRules)}
    off = '""' if rule == "severity" else "false"
    policy = re.sub(rf"(?m)^(  pages: .*\b{rule}: )\w+", rf"\g<1>{off}", POLICY)
    assert policy != POLICY
    rules = documents.parse({"policy.yaml": policy}).policy.pages
    for kind, event in BEGINNINGS.items():
        [notice] = notices(event, dict.fromkeys(concerned(event), (ACME,)), rules)
        assert notice.page is (kind != rule), kind


def test_a_graver_condition_is_a_page_where_the_policy_says_from_which_severity() -> None:
    rules = documents.parse(
        {"policy.yaml": POLICY.replace("severity: catastrophic}", "severity: critical}")}
    ).policy.pages
    for severity, page in ((Severity.critical, True), (Severity.catastrophic, True)):
        event = e.ConditionRaised(leak("n1", severity))
        assert [one.page for one in notices(event, dict.fromkeys(concerned(event), (ACME,)), rules)] == [page]


def test_pages_come_through_quiet_hours_and_the_rest_waits_for_their_end() -> None:
    route = Route("chat", "slack", quiet=("22:00-07:00",), utc_offset="+01:00", wait_s=0)
    played = Played(route)
    night = NOW + timedelta(hours=23)
    assert [m.page for m in played.show(e.BrakeLatched("x"), night)] == [True]
    assert not played.show(e.TicketOpened(ticket(1, due="day")), night)
    assert not played.wait(NOW + timedelta(hours=29, minutes=59))
    assert [m.topic for m in played.wait(NOW + timedelta(hours=30))] == ["ticket"]


@pytest.mark.parametrize(("hour", "ends"), [(21, 30), (23, 30), (30, None), (12, None)])
def test_quiet_hours_over_midnight_end_in_the_morning(hour: int, ends: int | None) -> None:
    route = Route("chat", "slack", quiet=("22:00-07:00",), utc_offset="+01:00")
    expected = NOW + timedelta(hours=ends) if ends is not None else None
    assert quiet_until(route, NOW + timedelta(hours=hour)) == expected


def test_a_digest_collects_what_is_no_page_and_counts_what_it_does_not_list() -> None:
    played = Played(Route("daily", "email", digest_s=86_400))
    for number in range(300):
        played.show(e.TicketOpened(ticket(number, due="day")), after(minutes=number))
    assert [m.action for m in played.show(e.BrakeLatched("x"), after(hours=6))] == ["open"]
    [digest] = played.wait(after(days=1))
    assert (digest.action, digest.count, len(digest.lines)) == ("digest", 300, 200)
    assert not played.wait(after(days=2))


def test_a_tenant_is_told_of_its_own_nodes_in_fields_and_of_nothing_else() -> None:
    """Mutant: the operator's summary, which quotes free text, for tenants too."""
    own = Route("acme", "webhook", tenant="acme", wait_s=0)
    played = Played(own)
    [failed] = played.show(e.ConditionRaised(leak("n1")))
    assert "pat@acme" not in failed.summary
    assert failed.details == {}
    assert "n1: cooling.leak since" in failed.summary
    [over] = played.show(e.ConditionCleared("n1", "n1/cooling.leak", "pat", "globex wiped it"), after(hours=1))
    assert "globex" not in over.summary
    played.place = GLOBEX
    assert not played.show(e.ConditionRaised(leak("n2")))
    played.place = ACME
    for event in (e.TicketOpened(ticket(1)), e.BrakeLatched("x")):
        assert not played.show(event)


def test_filters_narrow_a_route() -> None:
    played = Played(Route("r9", "slack", racks=("r9",), topics=("node_failed",), least="critical", wait_s=0))
    assert not played.show(e.ConditionRaised(leak("n1")))
    played.place = GLOBEX
    assert len(played.show(e.ConditionRaised(leak("n2")))) == 1
    assert not played.show(e.TicketOpened(ticket(3)))


HERE = Place(pool="train", tenant="acme", site="ams", rack="r1")
THERE = Place(pool="other", tenant="globex", site="fra", rack="r9")


@pytest.mark.parametrize(
    "narrowed",
    [{"pools": ("train",)}, {"tenants": ("acme",)}, {"sites": ("ams",)}, {"racks": ("r1",)}],
    ids=lambda fields: next(iter(fields)),
)
def test_each_filter_lets_its_own_through_and_nothing_of_another_place(narrowed: dict[str, tuple[str, ...]]) -> None:
    """Mutant: a filter that is written down and not asked."""
    played = Played(replace(Route("some", "slack", wait_s=0), **narrowed), place=THERE)
    assert not played.show(e.ConditionRaised(leak("n1")))
    played.place = HERE
    assert len(played.show(e.ConditionRaised(leak("n2")))) == 1


@pytest.mark.parametrize("least", ["info", "warning", "degraded", "critical", "catastrophic"])
def test_a_route_is_told_of_what_is_as_grave_as_its_least(least: str) -> None:
    """Mutant: the least severity is compared by its name."""
    played = Played(Route("some", "slack", least=least, wait_s=0))
    told = [severity for severity in Severity if played.show(e.ConditionRaised(leak(f"n-{severity.name}", severity)))]
    told_of = [severity for severity in Severity if severity >= Severity.critical]  # what a node in service is told for
    assert told == [severity for severity in told_of if severity >= Severity[least]]


def test_a_route_that_is_no_more_is_forgotten() -> None:
    played = Played(PAGER)
    played.show(e.BrakeLatched("x"))
    played.routes = ()
    assert not played.wait(after(hours=1))
    assert not played.told.routes


# --- the document


def parsed(route: str) -> Configuration:
    return documents.parse({"policy.yaml": POLICY, "routes.yaml": f"routes:\n  main:\n{route}"})


def lines(**fields: Any) -> Iterator[str]:
    for name, value in fields.items():
        yield f"    {name}: {value}\n"


GOOD: dict[str, Any] = {"kind": "webhook", "url": "https://hook.example/x", "secret": "folder:hook"}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"kind": "pigeon"}, "no kind 'pigeon'"),
        ({"url": "http://hook.example/x"}, "plain http"),
        ({"url": "https://me:pw@hook.example"}, "password in it"),
        ({"url": "ftp://hook.example"}, "no address"),
        ({"secret": "''"}, "secret is missing"),
        ({"secret": "plaintext"}, "names no secret"),
        ({"kind": "slack"}, "itself a secret"),
        ({"topics": "[gossip]"}, "no topic"),
        ({"tenant": "acme", "topics": "[brake]"}, "not told of 'brake'"),
        ({"least": "grave"}, "no severity"),
        ({"quiet": "['25:00-07:00']"}, "no time of day"),
        ({"utc_offset": "CET"}, "no offset"),
        ({"networks": "[here]"}, "no network"),
        ({"timeout_s": "600"}, "timeout_s"),
        ({"kind": "email", "url": "smtp://mx.example"}, "to or sender is missing"),
        ({"kind": "email", "url": "smtp://mx.example", "to": "['a@b, c@d']", "sender": "x@y"}, "no address"),
        ({"shout": "true"}, "unknown field"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_route_that_is_wrong_is_refused_with_its_line(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parsed("".join(lines(**{**GOOD, **fields})))
    assert any(told in p.what and 1 <= p.line <= 9 for p in refused.value.problems), refused.value


def test_a_good_route_is_taken_with_its_name() -> None:
    assert parsed("".join(lines(**GOOD))).routes["main"] == Route("main", "webhook", GOOD["url"], GOOD["secret"])
