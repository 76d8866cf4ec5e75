"""When a boot medium is recorded, and when it is ejected: before a power-on, and as soon as its boot is over."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.planning import boot_media
from hostler.core.state import events as e
from hostler.core.state.boot import BootConfiguration, BootLoader, BootMedia, BootRecord
from hostler.core.state.boot_medium import EJECT_FAILED, FIRST_S, LOOK_S, MOST_S, TRIES_MOST, BootMedium
from hostler.core.state.cases import Ticket
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Wait
from hostler.core.state.model import Node, Operation, Plan
from hostler.core.state.operations import EjectBootMedium, plain
from tests.kit import NOW, a_node
from tests.unit.planning.values import TWO, a_context, a_plan

IMAGES = "http://boot:8081/n/a/"
MEDIUM = BootMedium("p1", IMAGES, NOW - timedelta(hours=1))
BOOTS = BootConfiguration("http://boot:8081", media=BootMedia({"x86_64": BootLoader("b.iso", "ab" * 32)}))
WAITS = Wait("initializing", (), until=None)


def at_step(index: int) -> Plan:
    """The bring-up of a new machine, standing at this step."""
    return a_plan("initializing", id="p1", index=index)


def bound(**more: Any) -> Node:
    return a_node("a", pool="", **more)


def asked(node: Node, boots: BootConfiguration | None = BOOTS) -> DecisionContext:
    return a_context(node, config=replace(TWO, boot=boots))


def under_way(kind: str, *, aside: bool = False) -> Operation:
    act = EjectBootMedium(IMAGES) if kind == "eject_boot_medium" else plain(kind)
    return Operation("o1", act, "a", "" if aside else "p1", 0, NOW, NOW + timedelta(minutes=1), aside=aside)


@pytest.mark.parametrize("kind", ["set_boot_network", "power_on", "reboot"])
def test_a_medium_is_recorded_before_what_may_put_it_in(kind: str) -> None:
    node = bound(plan=at_step(0))
    assert boot_media.due(asked(node), node, at_step(0), kind) == (e.BootMediumDue("a", "p1", IMAGES),)
    other = replace(BOOTS, media=BootMedia(BOOTS.media.files if BOOTS.media else {}, "http://oob:8081"))
    assert boot_media.due(asked(node, other), node, at_step(0), kind)[0].images == "http://oob:8081/n/a/"


def test_it_is_recorded_once_and_where_one_may_go_in_alone() -> None:
    """Mutants: each power-on of a plan records it anew, and its first reader is forgotten; nodes without a BMC."""
    node = bound(plan=at_step(0))
    held = replace(node, medium=MEDIUM)
    assert boot_media.due(asked(held), held, at_step(1), "power_on") == ()
    later = replace(at_step(1), id="p2")
    assert boot_media.due(asked(held), held, later, "power_on")[0].plan == "p2"
    assert boot_media.due(asked(node), node, at_step(0), "power_off") == ()
    assert boot_media.due(asked(node, replace(BOOTS, media=None)), node, at_step(0), "power_on") == ()
    assert boot_media.due(asked(node, None), node, at_step(0), "power_on") == ()
    by_ironic = replace(node, provisioner="ironic")
    assert boot_media.due(asked(by_ironic), by_ironic, at_step(0), "power_on") == ()
    bare = replace(node, bindings=())
    assert boot_media.due(asked(bare), bare, at_step(0), "power_on") == ()


def test_it_is_ejected_when_its_boot_is_over() -> None:
    """Mutants: it is ejected under the machine that boots from it; beside an act on the same BMC; never."""
    node = bound(plan=at_step(2), medium=MEDIUM)
    assert boot_media.beside(asked(node), node, WAITS) == WAITS
    home = replace(node, boot=BootRecord("p1", NOW, home=NOW))
    begun = boot_media.beside(asked(home), home, WAITS)
    assert isinstance(begun, Act)
    (started,) = begun.events
    assert isinstance(started, e.OperationStarted)
    assert (started.operation.act, started.operation.aside) == (EjectBootMedium(IMAGES), True)
    assert started.operation.deadline == NOW + timedelta(minutes=3)
    for busy in (
        replace(home, operation=under_way("power_off")),
        replace(home, aside=under_way("locate_on", aside=True)),
        replace(home, bindings=()),
    ):
        assert boot_media.beside(asked(busy), busy, WAITS) == WAITS
    failed = replace(bound(), medium=MEDIUM)
    assert isinstance(boot_media.beside(asked(failed), failed, WAITS), Act), "its plan is over"


def test_what_came_to_nothing_is_tried_ever_later_and_then_looked_for_seldom() -> None:
    """Mutant: what a person has taken out by hand is never seen to be gone."""
    once = replace(MEDIUM, failures=1, failed_at=NOW)
    node = bound(medium=once)
    answer = boot_media.beside(asked(node), node, WAITS)
    assert isinstance(answer, Wait)
    assert answer.until == NOW + timedelta(seconds=FIRST_S)
    assert replace(MEDIUM, failures=3, failed_at=NOW).again_at == NOW + timedelta(seconds=4 * FIRST_S)
    assert replace(MEDIUM, failures=TRIES_MOST - 1, failed_at=NOW).again_at == NOW + timedelta(seconds=960)
    assert FIRST_S * 64 < MOST_S < LOOK_S
    for failures in (TRIES_MOST, TRIES_MOST + 99):
        late = replace(MEDIUM, failures=failures, failed_at=NOW)
        assert late.again_at == NOW + timedelta(seconds=LOOK_S)
    assert [replace(MEDIUM, failures=n).given_up for n in (TRIES_MOST - 1, TRIES_MOST)] == [False, True]


@pytest.mark.parametrize(
    ("fault", "done_s", "looks"),
    [(EJECT_FAILED, 1, True), (EJECT_FAILED, -1, False), ("psu.failed", 1, False), (EJECT_FAILED, None, False)],
)
def test_who_says_that_it_is_out_has_it_looked_at(fault: str, done_s: float | None, looks: bool) -> None:
    """Mutants: the word of before the last try counts for ever, so it is tried without a pause; any ticket's counts."""
    node = bound(medium=replace(MEDIUM, failures=TRIES_MOST, failed_at=NOW))
    context = asked(node)
    done_at = NOW + timedelta(seconds=done_s) if done_s is not None else None
    context.fleet.put_ticket("t1", Ticket("t1", "a", "condition", "stays", NOW, fault=fault, done_at=done_at))
    later = replace(context, now=NOW + timedelta(seconds=5))
    assert isinstance(boot_media.beside(later, node, WAITS), Act) is looks


def test_a_boot_waits_for_an_eject_under_way() -> None:
    """Mutant: the new medium goes in, and the old eject takes it out."""
    node = bound(aside=under_way("eject_boot_medium", aside=True))
    assert [one.name for one in boot_media.ejecting(node, "power_on")] == ["o1"]
    assert boot_media.ejecting(node, "power_off") == ()
    assert boot_media.ejecting(bound(aside=under_way("locate_on", aside=True)), "power_on") == ()
