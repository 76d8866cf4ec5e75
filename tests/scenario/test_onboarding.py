"""A node is inspected by hands: every item looked at, then certified; or rejected, and inspected anew."""

from typing import Any

import pytest

from hostler.controller.inputs import FellowsSeen
from hostler.core.policy import documents
from hostler.core.state import events as e
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Phase
from hostler.core.state.onboarding import REJECTED
from tests.kit import POLICY, Drive, a_node, configuration

SITE = ["earth strap is fixed"]
ITEMS = ["cables sit in their ports", "serial label matches"]


def site_items(policy: dict[str, Any]) -> None:
    policy["checklist"] = SITE


def at_onboard(**sku: Any) -> Drive:
    config = configuration({}, site_items if sku else None, **sku)
    drive = Drive(config, [a_node("a", pool="", phase=Phase.onboard)])
    drive.step(FellowsSeen((Fellow("this", Release().reads),)))
    return drive


def ticked(drive: Drive, *items: int, person: str = "tess") -> None:
    for item in items:
        reply = drive.ask("tick-item", "a", person, item=str(item), note="seen")
        assert reply.granted, reply.text


def test_a_node_without_items_is_certified_by_one_word() -> None:
    drive = at_onboard()
    assert drive.ask("certify", "a", "tess").granted
    assert drive.node("a").phase is Phase.seatrial


def test_it_is_certified_when_every_item_is_ticked_and_a_refusal_names_the_others() -> None:
    """Mutants: the site's items count for nothing; a refusal leaves an item out; another's tick counts."""
    drive = at_onboard(checklist=ITEMS)
    refused = drive.ask("certify", "a", "tess")
    assert not refused.granted
    assert (
        "3 of 3 items of a are not ticked: 1. earth strap is fixed; 2. cables sit in their ports; 3. serial"
        in refused.text
    )
    assert "hostler node tick-item a --item 1" in refused.text
    ticked(drive, 1, 3)
    assert "1 of 3 items of a are not ticked: 2. cables" in drive.ask("certify", "a", "tess").text
    ticked(drive, 2)
    ticks = {tick.item: (tick.person, tick.note) for tick in drive.node("a").inspection.ticks}  # type: ignore[union-attr]
    assert ticks == dict.fromkeys([*SITE, *ITEMS], ("tess", "seen"))
    assert drive.ask("certify", "a", "tess").granted
    assert (drive.node("a").phase, drive.node("a").certified_by) == (Phase.seatrial, "tess")
    assert drive.node("a").inspection is None
    assert len(drive.events(e.OnboardTicked, "a")) == 3


def test_a_tick_belongs_to_its_item_whatever_its_number_is_tomorrow() -> None:
    """Mutant: ticks count by number, so an item that is put before others is ticked unseen."""
    drive = at_onboard(checklist=ITEMS)
    ticked(drive, 1, 2, 3)
    drive.activate(configuration({}, site_items, checklist=["lid is closed", *ITEMS]))
    refused = drive.ask("certify", "a", "tess")
    assert "1 of 4 items of a are not ticked: 2. lid is closed" in refused.text


def test_a_rejected_node_stays_with_a_ticket_and_is_inspected_anew() -> None:
    """Mutants: what was ticked before the repair counts after it; the ticket outlives the certificate."""
    drive = at_onboard(checklist=ITEMS)
    ticked(drive, 1, 2)
    assert drive.ask("fail-inspection", "a", "tess").granted
    assert drive.node("a").phase is Phase.onboard
    (ticket,) = [t for t in drive.fleet.tickets_about("a") if t.kind == REJECTED]
    assert (ticket.owner, ticket.hardware) == ("technician", "S-a")
    assert ticket.fault in ticket.summary
    assert f"rejected already, in ticket {ticket.id}" in drive.ask("fail-inspection", "a", "tess").text
    assert "3 of 3 items of a are not ticked" in drive.ask("certify", "a", "tess").text
    ticked(drive, 1, 2, 3)
    assert drive.ask("certify", "a", "tess").granted
    assert not [t for t in drive.fleet.tickets_about("a") if t.kind == REJECTED]


@pytest.mark.parametrize("verb", ["tick-item", "fail-inspection", "certify", "add-item-file"])
def test_what_is_not_being_inspected_is_refused(verb: str) -> None:
    config = configuration({}, checklist=ITEMS)
    drive = Drive(config, [a_node("a", pool="")])
    drive.step(FellowsSeen((Fellow("this", Release().reads),)))
    args = {"item": "1"} if verb.endswith(("item", "file")) else {}
    if verb == "add-item-file":
        args |= {"digest": "0" * 64, "name": "x", "media_type": "text/plain", "size": "1"}
    assert "in phase production" in drive.ask(verb, "a", "tess", **args).text


def test_an_item_that_is_not_on_the_list_is_refused() -> None:
    drive = at_onboard(checklist=ITEMS)
    assert "has 3 items, and no 4" in drive.ask("tick-item", "a", "tess", item="4").text


@pytest.mark.parametrize(
    ("items", "says"),
    [([""], "is no item"), (["x" * 201], "is no item"), (["a\nb"], "is no item"), (["same", "same"], "twice")],
)
def test_items_that_nobody_could_tick_are_refused_with_their_place(items: list[str], says: str) -> None:
    tree = {"policy.yaml": POLICY, "skus.yaml": f"skus:\n  h100: {{gpus: 8, checklist: {items!r}}}\n"}
    if "\n" in items[0]:
        tree["skus.yaml"] = 'skus:\n  h100: {gpus: 8, checklist: ["a\\nb"]}\n'
    with pytest.raises(InvalidInputError) as refused:
        documents.parse(tree)
    assert says in str(refused.value)


def test_more_items_than_fit_are_refused() -> None:
    items = [f"item {number}" for number in range(51)]
    with pytest.raises(InvalidInputError, match="50"):
        documents.parse({"policy.yaml": POLICY, "skus.yaml": f"skus:\n  h100: {{gpus: 8, checklist: {items!r}}}\n"})
