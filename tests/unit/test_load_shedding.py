"""Places for agents' posts: as many as the controller keeps up with, urgent ones apart, turns one after the other."""

from itertools import pairwise

import pytest

from hostler.server.load_shedding import LATEST_S, SENDER_MAX, SOONEST_S, Admission, NotYetError


def wait_s(admission: Admission, sender: str, now: float) -> float:
    with pytest.raises(NotYetError) as refused:
        admission.enter(sender, urgent=False, now=now)
    return refused.value.wait_s


def test_there_are_so_many_places_and_each_is_free_again_after_its_post() -> None:
    admission = Admission(at_once=2)
    places = [admission.enter(f"a{number}", urgent=False, now=0.0) for number in range(2)]
    assert wait_s(admission, "a2", 0.0) >= SOONEST_S
    admission.leave(places[0])
    assert not admission.enter("a2", urgent=False, now=0.1).urgent
    wait_s(admission, "a3", 0.1)


def test_an_urgent_post_passes_a_full_house_but_nobody_has_two_urgent_places() -> None:
    admission = Admission(at_once=1)
    admission.enter("a0", urgent=False, now=0.0)
    place = admission.enter("a1", urgent=True, now=0.0)
    assert place.urgent
    with pytest.raises(NotYetError):
        admission.enter("a1", urgent=True, now=0.0)
    admission.leave(place)
    assert admission.enter("a1", urgent=True, now=0.0).urgent


def test_urgent_places_are_bounded_and_urgent_posts_then_take_ordinary_ones() -> None:
    admission = Admission(at_once=1, urgent_at_once=1)
    admission.enter("a0", urgent=True, now=0.0)
    assert not admission.enter("a1", urgent=True, now=0.0).urgent
    with pytest.raises(NotYetError):
        admission.enter("a2", urgent=True, now=0.0)


def test_turns_are_spaced_by_the_pace_at_which_posts_leave() -> None:
    """Posts leave in bursts of ten, one burst with each commit. Mutant: the time from one to the next is measured."""
    admission = Admission(at_once=20)
    now = 0.0
    inside = [admission.enter(f"a{number}", urgent=False, now=now) for number in range(20)]
    for number in range(100):
        wait_s(admission, f"refused{number}", now)
        now += 0.5
        for _ in range(10):
            admission.leave(inside.pop(0))
        inside.extend(admission.enter(f"a{number}", urgent=False, now=now) for _ in range(10))
    turns = [wait_s(admission, f"b{number}", now) for number in range(10)]
    spaces = [later - sooner for sooner, later in pairwise(turns)]
    assert all(space == pytest.approx(0.05, rel=0.1) for space in spaces)


def test_a_turn_is_never_too_far_away_and_those_given_long_ago_are_forgotten() -> None:
    admission = Admission(at_once=1)
    admission.enter("a", urgent=False, now=0.0)
    assert max(wait_s(admission, f"b{number}", 0.0) for number in range(100_000)) == LATEST_S
    assert wait_s(admission, "c", 10_000.0) == pytest.approx(SOONEST_S, abs=0.1)


def test_one_sender_has_few_posts_under_way_stalled_ones_among_them() -> None:
    """Mutant: they are counted when they have their place, and a body that never comes whole is none of them."""
    admission = Admission()
    for _ in range(SENDER_MAX):
        admission.begin("a")
    with pytest.raises(NotYetError):
        admission.begin("a")
    admission.begin("b")
    admission.end("a")
    admission.begin("a")
