"""When triage is a person's: by how many visits in a row convicted nobody, and what resets that."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.planning import triage, triage_rounds
from hostler.core.state import events as e
from hostler.core.state.cases import ROUNDS, Ticket
from hostler.core.state.decisions import Act, Wait
from hostler.core.state.model import Attempt, Node, Phase
from tests.kit import NOW, a_node, fold
from tests.unit.planning.values import TWO, a_context, a_fleet


def in_triage(rounds: int) -> Node:
    return a_node("a", pool="", phase=Phase.triage, came_from=Phase.seatrial, rounds=rounds)


@pytest.mark.parametrize(("rounds", "most", "asks"), [(3, 3, False), (4, 3, True), (9, 0, False), (2, 1, True)])
def test_a_person_is_asked_after_the_policy_s_rounds(rounds: int, most: int, asks: bool) -> None:
    """Mutants: one round too early or too late; zero asks at once."""
    config = replace(TWO, policy=replace(TWO.policy, triage_rounds=most))
    said = triage.waits(a_context(in_triage(rounds), config=config), in_triage(rounds))
    assert isinstance(said, Act) is asks
    if isinstance(said, Act):
        (opened,) = said.events
        assert isinstance(opened, e.TicketOpened)
        assert (opened.ticket.kind, opened.ticket.action, opened.ticket.owner) == ("stuck", ROUNDS, "operator")


def test_the_wait_names_its_ticket_and_has_no_end_of_its_own() -> None:
    node = in_triage(4)
    context = a_context(node)
    ticket = Ticket("a-t9", "a", "stuck", "it goes round", NOW, action=ROUNDS, owner="operator")
    context.fleet.put_ticket(ticket.id, ticket)
    context.fleet.merge()
    said = triage.waits(context, node)
    assert isinstance(said, Wait)
    assert said.until is None
    (blocker,) = said.blockers
    assert (blocker.kind, blocker.name) == ("person", "operator")
    assert "4 times in a row, now from seatrial" in blocker.text
    assert "hostler ticket close a-t9" in blocker.ends_when


@pytest.mark.parametrize(
    ("before", "after", "more", "rounds"),
    [
        (Phase.seatrial, Phase.triage, {}, 3),
        (Phase.test, Phase.triage, {}, 3),
        (Phase.seatrial, Phase.triage, {"convicted": "a GPU failed"}, 2),
        (Phase.seatrial, Phase.triage, {"person": "ann"}, 2),
        (Phase.triage, Phase.seatrial, {}, 2),
        (Phase.seatrial, Phase.zap, {}, 2),
        (Phase.test, Phase.production, {}, 0),
        (Phase.triage, Phase.onboard, {}, 0),
        (Phase.triage, Phase.debug, {"person": "ann"}, 0),
        (Phase.triage, Phase.rma, {"convicted": "x"}, 0),
    ],
)
def test_what_counts_and_what_begins_anew(before: Phase, after: Phase, more: dict[str, Any], rounds: int) -> None:
    """Mutants: a convicted visit counts twice, here and as a lemon's; firmware between two falls begins anew."""
    fleet = a_fleet(a_node("a", pool="", phase=before, rounds=2))
    moved = e.PhaseChanged("a", before, after, "why", None, **more)
    fold([e.Record(99, NOW, 1, "test", moved)], fleet)
    assert fleet.nodes["a"].rounds == rounds


@pytest.mark.parametrize(("action", "rounds"), [(ROUNDS, 0), ("examine", 4)])
def test_closing_its_ticket_gives_all_rounds_back(action: str, rounds: int) -> None:
    """Mutant: closing any ticket does."""
    fleet = a_fleet(in_triage(4))
    fleet.put_ticket("t1", Ticket("t1", "a", "stuck", "s", NOW, action=action))
    fold([e.Record(99, NOW, 1, "test", e.TicketClosed("t1", "put right", "ann"))], fleet)
    assert fleet.nodes["a"].rounds == rounds


def visit(part: str, **more: Any) -> Attempt:
    return Attempt(**{"remedy": "triage", "part": part, "at": NOW, "struck": False, **more})


MINE, OTHER = visit("check:own"), visit("check:else")


@pytest.mark.parametrize(
    ("visits", "count"),
    [
        ((), 0),
        ((visit(""),), 0),
        ((visit("check:idle"), visit("check:idle")), 0),
        ((MINE, visit("check:own/gpu3")), 2),
        ((MINE, OTHER, visit(""), MINE), 2),
        ((MINE, OTHER), 1),
        ((MINE, visit("gpu3", struck=True), MINE), 1),
        ((MINE, replace(MINE, forgiven=True), MINE), 1),
        ((replace(MINE, at=NOW - timedelta(days=91)), MINE), 1),
        ((replace(MINE, at=NOW - timedelta(days=89)), MINE), 2),
        ((MINE, visit("", remedy="rma", forgiven=True), MINE), 2),
    ],
)
def test_visits_of_one_check_in_a_row(visits: tuple[Attempt, ...], count: int) -> None:
    """Mutants: a visit on evidence ends no row; Hostler's own checks are a site's; parts of one check are checks."""
    assert len(list(triage_rounds.by_one_check(a_node("a", phase=Phase.triage, visits=visits)))) == count


@pytest.mark.parametrize(("most", "asks"), [(1, True), (2, False), (0, False)])
def test_a_check_s_visits_are_bounded_by_the_same_number(most: int, asks: bool) -> None:
    node = a_node("a", pool="", phase=Phase.triage, visits=(MINE, MINE))
    config = replace(TWO, policy=replace(TWO.policy, triage_rounds=most))
    assert isinstance(triage.waits(a_context(node, config=config), node), Act) is asks


@pytest.mark.parametrize(
    ("before", "remedy", "person", "part"),
    [
        (Phase.production, "triage", "", "check:own"),
        (Phase.production, "triage", "ann", ""),
        (Phase.production, "release", "", ""),
        (Phase.test, "triage", "", ""),
    ],
)
def test_a_visit_is_remembered_with_what_its_plan_was_for(before: Phase, remedy: str, person: str, part: str) -> None:
    """Mutants: an old plan's part is taken for this visit's; a person's word counts against the check."""
    tried = (Attempt("triage", "check:own", NOW), *((Attempt(remedy, "", NOW),) if remedy != "triage" else ()))
    fleet = a_fleet(a_node("a", pool="", phase=before, attempts=tried))
    fold([e.Record(99, NOW, 1, "test", e.PhaseChanged("a", before, Phase.triage, "why", None, person))], fleet)
    assert [one.part for one in fleet.nodes["a"].visits] == [part]
