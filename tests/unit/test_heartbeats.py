"""Nodes that have fallen silent: after a start none, for one whole interval; then each once."""

from datetime import datetime, timedelta

from hostler.core.state.live_state import AgentAbilities, AgentVerbs
from hostler.runtime.heartbeats import AT_ONCE, HeartbeatTable
from tests.kit import NOW, after

LIMIT_S = 30.0
FLEET = [f"n{number:06d}" for number in range(100_000)]


def told(table: HeartbeatTable, now: datetime) -> list[tuple[str, datetime]]:
    """Work that is overdue at that moment, piece by piece."""
    found: list[tuple[str, datetime]] = []
    while some := table.overdue(now, LIMIT_S):
        found += some
    return found


def test_after_a_takeover_100_000_nodes_have_one_whole_interval_to_be_heard() -> None:
    """Mutants: a node that was never heard is silent at once; it is told again at every look."""
    table = HeartbeatTable()
    table.begin(FLEET, NOW)
    assert table.overdue(after(seconds=LIMIT_S - 1), LIMIT_S) == []
    for node in FLEET[::2]:
        assert table.beat(node, "b1", after(seconds=LIMIT_S - 1)), "the first beat is news"
    silent = told(table, after(seconds=LIMIT_S))
    assert silent == [(node, NOW) for node in FLEET[1::2]]
    assert table.overdue(after(seconds=LIMIT_S), LIMIT_S) == []
    assert len(told(table, after(seconds=2 * LIMIT_S))) == len(FLEET) / 2


def test_after_a_gap_those_of_before_have_an_interval_again() -> None:
    """Mutant: what was silent before the gap stays silent, or the gap counts as silence."""
    table = HeartbeatTable()
    table.begin(["a", "b"], NOW)
    table.beat("a", "b1", after(seconds=20))
    assert [node for node, _ in table.overdue(after(seconds=40), LIMIT_S)] == ["b"]
    woken = NOW + timedelta(hours=7)
    table.begin_anew(woken)
    assert table.overdue(woken + timedelta(seconds=LIMIT_S - 1), LIMIT_S) == []
    assert table.beat("a", "b1", woken), "the same boot is news after a gap"
    assert [node for node, _ in table.overdue(woken + timedelta(seconds=LIMIT_S), LIMIT_S)] == ["b", "a"]


def test_an_interval_that_was_given_is_no_word_of_an_agent() -> None:
    """Mutant: a node that nobody has ever heard is shown as heard when the controller started."""
    table = HeartbeatTable()
    table.begin(["a", "b"], NOW)
    table.beat("a", "b1", after(seconds=20))
    table.begin(["a", "b"], after(seconds=25))
    assert (table.last("a"), table.last("b")) == (after(seconds=20), None)
    told(table, after(days=1))
    assert (table.last("a"), table.last("b")) == (after(seconds=20), None)
    table.begin_anew(after(days=2))
    assert (table.last("a"), table.last("b")) == (None, None)
    table.beat("b", "b1", after(days=2))
    assert table.last("b") == after(days=2)


def test_who_is_retired_is_never_missed() -> None:
    table = HeartbeatTable()
    table.begin(["a", "b"], NOW)
    table.forget("a")
    assert [node for node, _ in table.overdue(after(days=1), LIMIT_S)] == ["b"]
    assert table.last("a") is None


def test_a_whole_fleet_that_falls_silent_is_told_piece_by_piece_and_whole() -> None:
    table = HeartbeatTable()
    names = [f"n{number}" for number in range(AT_ONCE * 2 + 7)]
    table.begin(names, NOW)
    pieces = [table.overdue(after(days=1), LIMIT_S) for _ in range(4)]
    assert [len(piece) for piece in pieces] == [AT_ONCE, AT_ONCE, 7, 0]
    assert [node for piece in pieces for node, _ in piece] == names


def test_other_checks_are_news_and_a_post_that_says_nothing_of_them_forgets_none() -> None:
    """Mutants: an upgraded agent's new check is known at its next boot only; a post of observations erases it."""
    table = HeartbeatTable()
    assert table.beat("a", "b1", NOW, AgentAbilities(("gate",)))
    assert not table.beat("a", "b1", after(seconds=5), AgentAbilities(("gate",)))
    assert not table.beat("a", "b1", after(seconds=6))
    assert table.abilities("a").profiles == ("gate",)
    assert table.beat("a", "b1", after(seconds=10), AgentAbilities(("gate", "suspect")))
    assert table.abilities("a").profiles == ("gate", "suspect")


def test_an_agent_that_is_started_with_permission_is_news() -> None:
    """Mutants: verbs are compared in one boot only; an agent that leaves them out now is taken for one without any."""
    table, barred = HeartbeatTable(), AgentVerbs(("reboot",), ("reboot",))
    assert table.beat("a", "b1", NOW, AgentAbilities(("gate",), barred))
    assert not table.beat("a", "b1", after(seconds=5), AgentAbilities(("gate",)))
    assert table.abilities("a").verbs == barred
    assert table.beat("a", "b1", after(seconds=9), AgentAbilities(("gate",), AgentVerbs(("reboot",))))
    assert table.abilities("a") == AgentAbilities(("gate",), AgentVerbs(("reboot",)))


def test_what_a_release_can_is_one_value_for_a_fleet() -> None:
    """Mutant: each of 100,000 nodes keeps texts of its own."""
    table = HeartbeatTable()
    for number in range(300):
        table.beat(f"n{number}", "b", NOW, AgentAbilities(("gate",), AgentVerbs(("reboot", "sanitise"))))
    assert len({id(table.abilities(f"n{number}")) for number in range(300)}) == 1
