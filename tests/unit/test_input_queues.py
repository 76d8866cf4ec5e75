"""Order of decisions: outcomes, easing and people's words never wait behind observations; every queue ends."""

from itertools import cycle, islice

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import IntentAsked, Observed, Replied, WorkSeen
from hostler.core.state.model import Observation, Outcome
from hostler.runtime.input_queues import (
    BATCH_INTENTS,
    BATCH_OBSERVATIONS,
    BATCH_OTHERS,
    BATCH_URGENT,
    INTENTS_MAX,
    OBSERVATIONS_MAX,
    BusyError,
    Queues,
)
from tests.kit import NOW, Drive, a_node, configuration, intent_of, pool_document

MILLION = 1_000_000
PER_POST = 500


def a_post(node: str, kind: str = "kernel_log", count: int = PER_POST) -> Observed:
    seen = tuple(Observation(node, kind, "agent", "s", n, text="systemd: Started.", received=NOW) for n in range(count))
    return Observed(0, node, seen)


def asked(verb: str, token: int = 1, target: str = "a") -> IntentAsked:
    return IntentAsked(token, intent_of(f"i{token}", verb, target, "ann", "because", NOW))


def replied(number: int) -> Replied:
    return Replied(Outcome(f"o{number}", "a", "done"))


def taken_in(queues: Queues, post: Observed) -> bool:
    try:
        queues.put(post)
    except BusyError:
        return False
    return True


def test_an_uncordon_amid_a_million_observations_is_in_the_very_next_batch() -> None:
    """An agent that posts faster than is decided is refused; easing, and the outcome of an act, never wait.

    Mutants: easing shares the intents' queue behind what observations leave; observations are taken first; the queue
    of observations has no end.
    """
    queues, posts, refused, taken, turn = Queues(), cycle(a_post(f"n{n}") for n in range(50)), 0, 0, 0
    while taken < MILLION:
        turn += 1
        for post in islice(posts, 8):
            refused += not taken_in(queues, post)
        assert queues.observations <= OBSERVATIONS_MAX
        if turn % 50 == 0:
            queues.put(asked("cordon", 1))
            queues.put(asked("uncordon", 2))
            queues.put(replied(turn))
        batch = queues.take()
        sizes = [len(one.observations) for one in batch if isinstance(one, Observed)]
        assert 0 < sum(sizes) <= BATCH_OBSERVATIONS
        taken += sum(sizes)
        if turn % 50 == 0:
            assert isinstance(batch[0], Replied)
            assert [one.intent.verb for one in batch[1:3] if isinstance(one, IntentAsked)] == [
                "uncordon",
                "cordon",
            ]
    assert refused > 0, "the posts never came faster than they were decided"


def test_the_node_is_uncordoned_while_the_storm_goes_on() -> None:
    """The same through the controller: the easing is out in the step after it was asked for."""
    drive = Drive(configuration({"train": pool_document(target=2)}), [a_node("a"), a_node("b")])
    drive.ask("cordon", "a")
    drive.run()
    queues, post = Queues(), a_post("b")
    for _ in range(OBSERVATIONS_MAX // PER_POST):
        queues.put(post)
    with pytest.raises(BusyError):
        queues.put(post)
    queues.put(asked("uncordon"))
    ready = drive.step(*queues.take())
    assert [send.operation.kind for send in ready.sends] == ["uncordon"]
    assert queues.observations >= OBSERVATIONS_MAX - BATCH_OBSERVATIONS, "and the storm still waits"


def test_who_came_before_a_cordon_is_known_before_it_counts_as_done() -> None:
    """Mutant: what runs where waits behind the outcomes."""
    queues = Queues()
    queues.put(WorkSeen((), cluster="k1"))
    queues.put(replied(1))
    assert [type(one) for one in queues.take()] == [WorkSeen, Replied]


def urgent_post(node: str, count: int = 1) -> Observed:
    return replace(a_post(node, count=count), urgent=True)


def sizes(queues: Queues) -> dict[str, int]:
    """How many observations of each node are in the next batch, in its order."""
    return {one.node: len(one.observations) for one in queues.take() if isinstance(one, Observed)}


def test_what_may_doom_a_job_is_in_the_very_next_batch_and_that_is_small() -> None:
    """Mutants: it stands behind what came before it; its batch is as large as any; the others get nothing of it."""
    queues = Queues()
    for number in range(300):
        queues.put(a_post(f"n{number}", count=10))
    queues.put(urgent_post("u"))
    taken = sizes(queues)
    assert next(iter(taken)) == "u"
    assert sum(taken.values()) - 1 == BATCH_URGENT
    assert sum(sizes(queues).values()) == BATCH_OBSERVATIONS, "and the next is as large as ever"


def test_who_calls_everything_urgent_starves_nobody() -> None:
    """Mutant: others come when nothing urgent is left."""
    queues = Queues()
    for number in range(20):
        queues.put(urgent_post(f"u{number}", count=PER_POST))
    for number in range(50):
        queues.put(a_post(f"n{number}", count=10))
    for turn in range(1, 5):
        taken = sizes(queues)
        assert sum(count for node, count in taken.items() if node[0] == "u") == BATCH_OBSERVATIONS
        assert sum(count for node, count in taken.items() if node[0] == "n") == BATCH_OTHERS, turn


def test_what_tells_of_faults_goes_before_inventories() -> None:
    """Mutant: one queue for all observations."""
    queues = Queues()
    for _ in range(2 * BATCH_OBSERVATIONS // PER_POST):
        queues.put(a_post("b", "inventory"))
    queues.put(a_post("a", count=1))
    first = queues.take()[0]
    assert isinstance(first, Observed)
    assert first.node == "a"


@pytest.mark.parametrize("verb", ["uncordon", "cordon"])
def test_people_are_refused_rather_than_queued_without_end(verb: str) -> None:
    queues = Queues()
    for token in range(INTENTS_MAX):
        queues.put(asked(verb, token))
    with pytest.raises(BusyError):
        queues.put(asked(verb))
    assert len(queues.take()) == BATCH_INTENTS
    assert len(queues) == INTENTS_MAX - BATCH_INTENTS


def test_a_node_that_sends_a_hundred_times_as_much_waits_for_the_others() -> None:
    """The second post stands behind what a hundred others send meanwhile, in their order; its own stay in theirs.

    Mutant: first come, first served; a thousand of its own then fill the batch.
    """
    queues = Queues()
    for number in range(3):
        queues.put(a_post("greedy", count=500 - number))
    for number in range(100):
        queues.put(a_post(f"n{number}", count=10))
    batch = [one for one in queues.take() if isinstance(one, Observed)]
    assert [one.node for one in batch] == ["greedy", *(f"n{n}" for n in range(50))]
    batch = [one for one in queues.take() if isinstance(one, Observed)]
    assert [one.node for one in batch] == [*(f"n{n}" for n in range(50, 100)), "greedy", "greedy"]
    assert [len(one.observations) for one in batch[-2:]] == [499, 498]


def test_who_was_quiet_is_owed_nothing() -> None:
    """Mutant: a newcomer's turn counts from the beginning, and it stands before everybody for as long as it sends."""
    queues = Queues()
    for _ in range(10):
        queues.put(a_post("a"))
    assert len(queues.take()) == BATCH_OBSERVATIONS // PER_POST
    queues.put(a_post("new"))
    queues.put(a_post("new"))
    nodes = [one.node for one in queues.take() if isinstance(one, Observed)]
    assert nodes == ["new", "a"]
