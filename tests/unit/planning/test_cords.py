"""Tickets of pulled cords: opened once, noted at a word, asked again without proof, closed by what came of it."""

from msgspec.structs import replace

from hostler.core.planning.cords import PROOF, beside, blocker, said_done, ticket_id
from hostler.core.state import events as e
from hostler.core.state.cases import Ticket
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Rest
from hostler.core.state.model import Node, Operation
from tests.acts import an_act
from tests.kit import NOW, a_node
from tests.unit.planning.values import a_context, an_operation

PULL = replace(an_operation("unplug"), act=an_act("unplug", components=("BIOS", "BMC")))


def a_waiting_node(operation: Operation | None = PULL) -> Node:
    return replace(a_node("a"), operation=operation)


def with_ticket(context: DecisionContext, ticket: Ticket) -> DecisionContext:
    context.fleet.put_ticket(ticket.id, ticket)
    context.fleet.merge()
    return context


def events(answer: Answer) -> tuple[e.Event, ...]:
    assert isinstance(answer, Act), answer
    return answer.events


def opened(node: Node) -> Ticket:
    """The ticket that a node's wait opens."""
    (event,) = events(beside(a_context(node), node, Rest(None)))
    assert isinstance(event, e.TicketOpened)
    return event.ticket


def test_a_ticket_is_opened_once_and_says_which_cords_for_how_long_and_the_proof() -> None:
    """Mutant: it is opened again at each look."""
    node = a_waiting_node()
    ticket = opened(node)
    assert ticket.id == ticket_id(PULL) == "a-o1-cords"
    assert ticket.summary == "pull the cords of a, rack r1 U?: BIOS, BMC runs only after all power was off"
    assert "all of them out together for 2 min" in ticket.action
    assert "Done when: its BMC shows that it has restarted" in ticket.action
    assert beside(with_ticket(a_context(node), ticket), node, Rest(None)) == Rest(None)


def test_whoever_acts_meanwhile_is_not_held_up_and_a_node_that_waits_for_nobody_has_no_ticket() -> None:
    act = Act((e.TicketClosed("t", "why", "ann"),))
    assert beside(a_context(a_waiting_node()), a_waiting_node(), act) is act
    for none in (None, an_operation("power_on")):
        assert beside(a_context(a_waiting_node(none)), a_waiting_node(none), Rest(None)) == Rest(None)


def test_a_word_is_noted_and_closes_nothing_and_without_proof_it_is_asked_again() -> None:
    """Mutants: the word closes the ticket; who was wrong is never told; it is asked again at once."""
    node = a_waiting_node()
    context = with_ticket(a_context(node), opened(node))
    text, (noted,) = said_done(context, context.fleet.tickets[ticket_id(PULL)], "tess", "pulled")
    assert "stays open until the BMC of a shows that it has restarted" in text
    assert isinstance(noted, e.TicketUpdated)
    assert (noted.ticket.done_by, noted.ticket.done_at) == ("tess", NOW)
    waits = beside(with_ticket(a_context(node), noted.ticket), node, Rest(None))
    assert waits == Rest(NOW + PROOF)
    late = with_ticket(a_context(node, now=NOW + PROOF), noted.ticket)
    (again,) = events(beside(late, node, Rest(None)))
    assert isinstance(again, e.TicketUpdated)
    assert again.ticket.done_at is None
    assert "tess said at" in again.ticket.fault
    assert "its BMC has not restarted since" in again.ticket.fault


def test_a_ticket_closes_when_nobody_is_waited_for_and_says_what_to_do_with_the_cords() -> None:
    """Mutants: it stays open for ever; that of an earlier operation stays beside today's."""
    ended = a_waiting_node(None)
    (closed,) = events(beside(with_ticket(a_context(ended), opened(a_waiting_node())), ended, Rest(None)))
    assert closed == e.TicketClosed(
        "a-o1-cords", "the plan that waited for it has ended; leave all cords in", "hostler"
    )
    second = a_waiting_node(replace(PULL, id="a-o2"))
    found = events(beside(with_ticket(a_context(second), opened(a_waiting_node())), second, Rest(None)))
    assert [type(event) for event in found] == [e.TicketClosed, e.TicketOpened]


def test_a_word_about_a_ticket_that_nobody_waits_for_closes_it() -> None:
    ticket = opened(a_waiting_node())
    for node in (a_waiting_node(None), a_waiting_node(replace(PULL, id="a-o2"))):
        text, found = said_done(with_ticket(a_context(node), ticket), ticket, "tess", "pulled")
        assert (text, found) == ("ticket a-o1-cords closed", (e.TicketClosed(ticket.id, "pulled", "tess"),))


def test_the_wait_names_the_technician_the_time_and_the_ticket() -> None:
    wait = blocker(PULL)
    assert wait.text == "a technician is to pull its cords for 2 min (ticket a-o1-cords)"
    assert (wait.kind, wait.ends_when) == ("person", "its BMC shows that it has restarted")
