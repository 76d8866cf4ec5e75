"""Waits of a node in triage: for a technician, or for the next try of an examination that could not be made."""

from msgspec.structs import replace

from hostler.core.planning.triage import AGAIN_S, EXAMINE, waits
from hostler.core.state import events as e
from hostler.core.state.decisions import Act, Wait
from hostler.core.state.model import Attempt, Node, Phase
from tests.kit import NOW, a_node, after
from tests.unit.planning.values import a_condition, a_context


def in_triage(times: int = 0, **attempt: object) -> Node:
    tried = tuple(replace(Attempt(EXAMINE, "", NOW, failed=True), **attempt) for _ in range(times))
    return replace(a_node("a", pool="", phase=Phase.triage), attempts=tried)


def test_who_was_never_tried_is_examined_now() -> None:
    assert waits(a_context(in_triage()), in_triage()) is None


def test_one_that_could_not_be_made_is_tried_again_later_each_time() -> None:
    """Mutant: the pause does not grow, and a BMC that is away is asked every ten minutes for good."""
    for times, pause_s in enumerate(AGAIN_S[:-1], 1):
        node = in_triage(times)
        answer = waits(a_context(node), node)
        assert isinstance(answer, Wait)
        assert answer.until == after(seconds=pause_s)
        assert waits(a_context(node, now=after(seconds=pause_s)), node) is None


def test_after_as_many_tries_as_there_are_pauses_a_technician_is_asked() -> None:
    node = in_triage(len(AGAIN_S))
    answer = waits(a_context(node), node)
    assert isinstance(answer, Act)
    (opened,) = answer.events
    assert isinstance(opened, e.TicketOpened)
    assert (opened.ticket.kind, opened.ticket.owner, opened.ticket.action) == ("stuck", "technician", "examine")


def test_tries_of_another_visit_those_that_were_made_and_those_forgiven_do_not_count() -> None:
    for attempt in ({"at": after(seconds=-1)}, {"failed": False}, {"forgiven": True}, {"remedy": "reboot"}):
        node = in_triage(3, **attempt)
        assert waits(a_context(node), node) is None, attempt


def test_who_was_taken_out_for_maintenance_is_left_to_the_technician() -> None:
    node = replace(in_triage(), conditions=(a_condition("operator.maintenance", owner="pat"),))
    answer = waits(a_context(node), node)
    assert isinstance(answer, Wait)
    assert (answer.what, answer.blockers[0].text) == ("maintenance", "pat took the node out for maintenance")
