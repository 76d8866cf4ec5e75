"""Changes of tickets as entries in the journals of NetBox's devices, once each, whatever its answers are like."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.notify.message_grouping import Moment
from hostler.core.notify.messages import Message
from hostler.core.notify.notices import Place
from hostler.core.notify.outside_tickets import told_outside
from hostler.core.policy.route_check import route_problems
from hostler.core.state import events as e
from hostler.core.state.cases import DUE_NOW
from hostler.core.state.notify_routes import Route
from hostler.drivers.netbox import journal_target
from hostler.drivers.netbox.journal_target import TEXT_MAX, JournalTarget
from hostler.journal.outbox import open_outbox
from hostler.ports import BusyTargetError, RefusedError, TicketLinks, UnreachableError
from tests.contract.netbox_twin import TOKEN, NetboxTwin, netbox_twin
from tests.contract.test_ticket_systems import CHANGED, CLOSED, KEPT, LOOPBACK, NOW, OPENED, TICKET, Kept

PLACE = Place("train", "acme", "s1", "r1", "SN-n1")


@dataclass
class NetBoxSite:
    """A NetBox with a device `n1`, and what is told there."""

    netbox: NetboxTwin
    links: TicketLinks
    token: str = TOKEN

    def route(self, **more: Any) -> Route:
        given: dict[str, Any] = {"url": self.netbox.url, "secret": "folder:netbox", "networks": LOOPBACK}
        return Route("dcim", "netbox", **{**given, "timeout_s": 5.0, **more})

    async def told(self, event: e.Event, seq: int = 7, *, place: Place = PLACE, **more: Any) -> None:
        await self.deliver(self.message(event, seq, place), **more)

    def message(self, event: e.Event, seq: int = 7, place: Place = PLACE) -> Message:
        (found,) = told_outside(event, place, [self.route()], "c1", Moment(seq, NOW))
        return found

    async def deliver(self, message: Message, **more: Any) -> None:
        await JournalTarget("c1", Kept({"token": self.token}), self.links).deliver(message, self.route(**more))

    def kinds(self) -> list[str]:
        return [entry["kind"] for entry in self.netbox.entries]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[NetBoxSite]:
    outbox = open_outbox(tmp_path / "outbox.db")
    with netbox_twin() as netbox:
        netbox.add("other", "SN-other", [])
        netbox.add("n1", "sn-N1", [])
        yield NetBoxSite(netbox, outbox.links)
    outbox.close()


async def test_each_change_of_a_ticket_is_one_entry_of_its_nodes_device(site: NetBoxSite) -> None:
    """Mutants: the entry is another device's; every entry has one kind; the close is told nowhere."""
    await site.told(OPENED, 7)
    await site.told(CHANGED, 8)
    await site.told(CLOSED, 9)
    assert site.kinds() == ["warning", "info", "success"]
    assert {entry["assigned_object_id"] for entry in site.netbox.entries} == {2}
    assert "the fan turns" in site.netbox.entries[-1]["comments"]
    assert "Bring: a fan." in site.netbox.entries[0]["comments"]
    (link,) = site.links.links()
    assert (link.key, link.done, link.tried) == ("2", True, None)
    assert link.url == f"{site.netbox.url}/dcim/devices/2/"


async def test_what_is_due_now_is_a_danger(site: NetBoxSite) -> None:
    await site.told(e.TicketOpened(replace(TICKET, due=DUE_NOW)))
    assert site.kinds() == ["danger"]


async def test_what_is_sent_twice_is_written_once_and_another_change_again(site: NetBoxSite) -> None:
    """Mutants: the mark is the ticket's alone; that of record 7 is found in that of record 77."""
    for _ in range(3):
        await site.told(CHANGED, 77)
    for _ in range(2):
        await site.told(CHANGED, 7)
    assert len(site.netbox.entries) == 2


@pytest.mark.parametrize("fault", ["500 after", "hang after", "html after", "another after", "elsewhere after"])
async def test_an_answer_that_never_came_or_is_wrong_writes_no_second_entry(
    site: NetBoxSite, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry was written, nobody said so, and it shows late. Mutant: `tried` is not kept."""
    site.netbox.faults.append(fault)
    site.netbox.shows_entries = False
    with pytest.raises(UnreachableError):
        await site.told(OPENED, timeout_s=0.5)
    with pytest.raises(BusyTargetError) as waits:
        await site.told(OPENED)
    assert 0 < waits.value.again_s <= 60
    site.netbox.shows_entries = True
    monkeypatch.setattr(journal_target, "SHOWN_AFTER", timedelta(0))
    await site.told(OPENED)
    assert len(site.netbox.entries) == 1
    assert site.links.links()[0].tried is None


@pytest.mark.parametrize("fault", ["500", "hang", "html"])
async def test_an_entry_that_was_not_written_is_written_later(
    site: NetBoxSite, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: a sign-in page with 200 counts as taken."""
    site.netbox.faults.append(fault)
    with pytest.raises(UnreachableError):
        await site.told(OPENED, timeout_s=0.5)
    assert not site.netbox.entries
    monkeypatch.setattr(journal_target, "SHOWN_AFTER", timedelta(0))
    await site.told(OPENED)
    assert site.kinds() == ["warning"]


async def test_a_busy_netbox_says_when_it_may_be_asked_again(site: NetBoxSite) -> None:
    site.netbox.faults.append("any:429")
    with pytest.raises(BusyTargetError) as busy:
        await site.told(OPENED)
    assert busy.value.again_s == 7
    assert not site.netbox.entries


async def test_a_refusal_is_final_and_the_next_change_is_not_held_back(site: NetBoxSite) -> None:
    """Mutant: what was refused counts as tried."""
    site.netbox.faults.append("400")
    with pytest.raises(RefusedError, match="may not be blank"):
        await site.told(OPENED)
    await site.told(CHANGED, 8)
    assert site.kinds() == ["info"]


async def test_a_denied_token_is_tried_again_and_not_told(site: NetBoxSite) -> None:
    site.token = "f" * 40
    with pytest.raises(UnreachableError, match="correct the key or password") as denied:
        await site.told(OPENED)
    assert site.token not in str(denied.value)
    site.token = ""
    with pytest.raises(UnreachableError, match="no field token"):
        await site.told(OPENED)
    assert site.netbox.tokens == [f"Token {'f' * 40}"]


async def test_the_device_is_found_by_its_serial_number_before_its_name(site: NetBoxSite) -> None:
    """Mutant: a machine that was put in another's place is told of at the other's device."""
    site.netbox.devices[0]["name"] = "n1"
    site.netbox.devices[1]["name"] = "old name"
    await site.told(OPENED)
    assert site.netbox.entries[0]["assigned_object_id"] == 2


async def test_without_a_serial_number_the_name_says_it_where_one_device_has_it(site: NetBoxSite) -> None:
    nameless = replace(PLACE, serial="")
    await site.told(OPENED, place=nameless)
    assert site.netbox.entries[0]["assigned_object_id"] == 2
    site.netbox.add("n1", "SN-third", [])
    with pytest.raises(RefusedError, match="several devices with the name n1"):
        await site.told(CHANGED, 8, place=nameless)


async def test_a_node_that_netbox_does_not_have_is_refused_with_what_to_do(site: NetBoxSite) -> None:
    """A NetBox that passes filters over is not believed. Mutant: the first device that is shown is taken."""
    del site.netbox.devices[1]
    with pytest.raises(RefusedError, match="no device with the serial number SN-n1 or name n1; add it there"):
        await site.told(OPENED)
    site.netbox.knows_filters = False
    with pytest.raises(RefusedError, match="no device"):
        await site.told(OPENED)
    assert not site.netbox.entries


async def test_a_close_of_what_was_never_told_writes_nothing(site: NetBoxSite) -> None:
    await site.told(CLOSED)
    assert not site.netbox.entries
    assert not site.netbox.asked


async def test_what_is_told_is_bounded_and_becomes_no_markup(site: NetBoxSite) -> None:
    """Mutant: a kernel's line ends the fence, and a link of its own follows."""
    wicked = "``` [free](https://evil.example) \x1b[31m \u202e" + "x" * 20_000
    await site.told(e.TicketOpened(replace(TICKET, summary=wicked, action=wicked)))
    (entry,) = site.netbox.entries
    assert entry["comments"].count("```") == 2
    assert len(entry["comments"]) < TEXT_MAX + 200
    assert not {"\x1b", "\u202e"} & set(entry["comments"])


async def test_a_test_writes_nothing_and_shows_whether_the_token_works(site: NetBoxSite) -> None:
    ask = replace(site.message(OPENED), action="test", details={})
    await site.deliver(ask)
    assert not site.netbox.entries
    site.token = "f" * 40
    with pytest.raises(UnreachableError):
        await site.deliver(ask)


async def test_a_private_network_that_the_route_does_not_name_is_not_asked(site: NetBoxSite) -> None:
    """Mutant: whoever may change the configuration reads what only the controller's host may."""
    with pytest.raises(RefusedError, match="private network"):
        await site.told(OPENED, networks=("10.0.0.0/8",))
    assert not site.netbox.asked


def test_bundles_and_tickets_of_no_node_are_not_for_netbox() -> None:
    route = Route("dcim", "netbox")
    for event in (KEPT, e.TicketOpened(replace(TICKET, node=""))):
        assert not list(told_outside(event, PLACE, [route], "c1", Moment(7, NOW)))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"url": ""}, "url is missing"),
        ({"secret": ""}, "secret is missing"),
        ({"quiet": ("22:00-07:00",)}, "netbox takes no tenant, digest_s, quiet or pages"),
        ({"topics": ("incident",)}, "netbox takes no topics but ticket"),
    ],
)
def test_a_route_that_cannot_work_is_refused_with_what_to_write(fields: dict[str, Any], said: str) -> None:
    route = Route("dcim", "netbox", **{"url": "https://n.example", "secret": "folder:x", **fields})
    assert any(said in wrong.what for wrong in route_problems(route))
