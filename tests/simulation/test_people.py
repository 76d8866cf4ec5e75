"""People of simulated worlds: what they ask is heard once, however long nobody answers."""

from datetime import UTC, datetime

import pytest

from hostler.controller.inputs import IntentAsked
from hostler.controller.step_output import Reply
from hostler.core.state.verbs.tickets import CloseTicket
from hostler.sim.world.people import RETRY_S, Errand
from hostler.sim.world.world import World, WorldSetup

pytestmark = pytest.mark.nightly("whole worlds are lived through")

ERRAND = Errand(CloseTicket(), "t1", "erik", "looked at")


def asked(world: World, until_s: float) -> list[IntentAsked]:
    """Requests until then."""
    while (due := world.clock.next()) is not None and (due - world.clock.start).total_seconds() <= until_s:
        world.clock.turn()
    return [one for one in world.site.inbox if isinstance(one, IntentAsked)]


@pytest.mark.parametrize(
    ("how", "answer", "times"),
    [
        ("ask", None, 3),
        ("mention", None, 3),
        ("blurt", None, 1),
        ("ask", False, 3),
        ("mention", False, 1),
        ("ask", True, 1),
        ("mention", True, 1),
    ],
)
def test_who_gets_no_answer_asks_again_and_whose_word_was_refused_only_if_they_insist(
    how: str, answer: bool | None, times: int
) -> None:
    """Mutant: a word that was said while no controller was there is lost, and its ticket stands open for good."""
    world = World(WorldSetup(1, 7, datetime(2026, 3, 1, tzinfo=UTC)))
    getattr(world.people, how)(ERRAND)
    (first,) = asked(world, 0.0)
    if answer is not None:
        world.site.answer(Reply(first.token, granted=answer))
    found = asked(world, 2.5 * RETRY_S)
    assert len(found) == times
    if answer is None:
        assert len({one.intent.key for one in found}) == 1, "it is the same request"
