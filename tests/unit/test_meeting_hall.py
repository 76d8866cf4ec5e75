"""Meetings: who is told what, and that nobody is blamed by a partner that is late, silent, gone or of another mind."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from hostler.core.fabric.path_blame import PairResult
from hostler.core.state.meetings import MeetingOrder, MeetingReply
from hostler.polling.meeting_hall import (
    AT_ONCE,
    CALLED_S,
    DEADLINE_S,
    GATHER_S,
    GONE_S,
    PATIENCE_S,
    SECONDS_S,
    SLACK_S,
    WAYS_MOST,
    MeetingHall,
    MeetingTold,
    Visitor,
    Way,
    agreed,
    passes,
)
from tests.drawing import first_in_gate

VIA = "mlx5_0"
START = datetime(2026, 1, 1, tzinfo=UTC)


class Hall:
    """A hall whose time is the test's, and agents that ask as often as they do."""

    def __init__(self) -> None:
        self.now = START
        self.results: list[PairResult] = []
        self.places: dict[str, tuple[str, str]] = {}
        self.takes = 2
        self.hall = MeetingHall(self.results.extend, lambda: self.now)

    def ask(self, node: str, via: str = VIA, operation: str = "") -> MeetingReply:
        way = Way(via, f"10.0.0.{len(node)}", 4000, "ib0")
        fabric, leaf = self.places.get(node, ("", ""))
        return self.hall.ask(Visitor(node, operation or f"{node}-o1", way, fabric, leaf, self.takes))

    def order(self, node: str) -> MeetingOrder:
        found = self.ask(node).order
        assert found is not None
        return found

    def tell(self, node: str, meeting: str, gbps: float | None) -> None:
        self.hall.tell(f"{node}-o1", MeetingTold(meeting, gbps))

    def wait(self, seconds: float, *waiting: str) -> None:
        """Time passes, and those that wait ask every second."""
        for _ in range(int(seconds)):
            self.now += timedelta(seconds=1)
            for node in waiting:
                self.ask(node)

    def meet(self, one: str, other: str, gbps: float) -> None:
        """The two that wait are brought together, and say the same."""
        self.ask(one)
        meeting = self.order(other).meeting
        for node in (one, other):
            assert self.order(node).meeting == meeting
            self.tell(node, meeting, gbps)


@pytest.fixture
def hall() -> Hall:
    return Hall()


def test_two_that_ask_are_told_the_same_place_port_and_secret_and_a_rank_each(hall: Hall) -> None:
    """Mutants: both are rank 0; each is told its own address; a secret of before."""
    assert hall.ask("a").order is None
    second, first = hall.order("bb"), hall.order("a")
    assert (first.rank, second.rank, first.names) == (0, 1, ("a", "bb"))
    assert (second.address, second.port) == (first.address, first.port) == ("10.0.0.1", 4000)
    assert first.secret == second.secret
    assert len(first.secret) >= 16
    hall.tell("a", first.meeting, 300.0)
    hall.tell("bb", first.meeting, 310.0)
    assert {(one.a, one.z, one.gbps) for one in hall.results} == {
        (f"a:{VIA}", f"bb:{VIA}", 300.0), (f"bb:{VIA}", f"a:{VIA}", 300.0),
    }  # fmt: skip
    assert [hall.ask(node).standing for node in ("a", "bb", "c", "d")] == ["passed", "passed", "open", "open"]


def test_who_passed_with_one_waits_for_a_second_and_then_nobody_is_left(hall: Hall) -> None:
    """Of bad nodes one test of ten passes wrongly. Mutants: one pass is enough; two sound nodes wait for each other."""
    crowd = Crowd(hall, {}, random.Random(1), count=4)
    hall.meet("n0", "n1", 300.0)
    assert not hall.ask("n0").is_done
    crowd.screen()
    assert set(crowd.standings.values()) == {"sound"}
    assert len(crowd.meetings) <= 4
    assert hall.now - START < timedelta(seconds=PATIENCE_S)


def test_the_same_order_is_told_until_its_end_is(hall: Hall) -> None:
    """A lost reply. Mutant: whoever asks twice is told to meet twice."""
    hall.ask("a")
    assert hall.order("b") == hall.order("b")
    assert hall.order("a").meeting == hall.order("b").meeting


def test_ports_of_different_names_do_not_meet_and_no_node_meets_itself(hall: Hall) -> None:
    hall.ask("a", "mlx5_0")
    assert hall.ask("b", "mlx5_1").order is None
    assert hall.ask("a", "mlx5_0", "a-o2").order is None


def test_who_never_comes_convicts_nobody_and_the_other_meets_somebody_else(hall: Hall) -> None:
    """Mutants: silence is a failed test; who waited is a suspect; the silent one is waited for for ever."""
    hall.ask("a")
    meeting = hall.order("b").meeting
    hall.order("a")
    hall.tell("a", meeting, None)
    assert hall.ask("a").order is None
    hall.wait(DEADLINE_S + SECONDS_S + SLACK_S + 1, "a")
    assert hall.results == []
    hall.meet("a", "c", 300.0)
    assert (hall.ask("a").standing, hall.ask("c").standing) == ("passed", "passed")


def test_two_that_say_different_things_tell_nothing(hall: Hall) -> None:
    """Mutants: the faster, or the slower, is believed."""
    for told in ((300.0, 3.0), (0.0, 300.0), (300.0, None)):
        hall.ask("a")
        meeting = hall.order("b").meeting
        hall.order("a")
        hall.tell("a", meeting, told[0])
        hall.tell("b", meeting, told[1])
        hall = Hall()
    assert hall.results == []
    assert agreed([0.0, 0.0]) == 0.0
    assert agreed([310.0, 300.0, 320.0]) == 300.0
    assert [agreed(told) for told in ([0.0, 300.0], [None, 1.0], [300.0, 3.0], [300.0, 300.0, 3.0])] == [None] * 4


def test_what_is_told_twice_or_of_another_meeting_counts_once_or_never(hall: Hall) -> None:
    """Mutants: a stranger ends a meeting; the second word replaces the first."""
    hall.ask("a")
    meeting = hall.order("b").meeting
    hall.tell("c", meeting, 0.0)
    hall.tell("a", "of another controller", 0.0)
    hall.tell("a", meeting, 300.0)
    hall.tell("a", meeting, 0.0)
    hall.tell("b", meeting, 300.0)
    hall.tell("b", meeting, 0.0)
    assert {one.gbps for one in hall.results} == {300.0}


def test_a_controller_that_takes_over_between_two_tellings_brings_them_together_anew(hall: Hall) -> None:
    """The first has an order of before; its word is not known, and its secret is nobody's."""
    hall.ask("a")
    old = hall.order("b")
    after = Hall()
    after.ask("a")
    new = after.order("b")
    assert (old.meeting == new.meeting, old.secret == new.secret) == (False, False)
    after.tell("b", old.meeting, 0.0)
    for node in ("a", "b"):
        after.tell(node, new.meeting, 300.0)
    assert {one.gbps for one in after.results} == {300.0}


def test_a_bad_node_is_blamed_beside_three_sound_ones_and_none_of_them_is(hall: Hall) -> None:
    """Wrong sums. Mutants: its first partner is blamed; one failure is enough; a suspect is a witness."""
    present, last = list("xabcde"), dict[str, str]()
    for _ in range(30):
        hall.wait(1)
        answers = {node: hall.ask(node) for node in present}
        last |= {node: answer.standing for node, answer in answers.items()}
        present = [node for node in present if not answers[node].is_done]
        for order in {one.order.meeting: one.order for one in answers.values() if one.order}.values():
            for node in order.names:
                hall.tell(node, order.meeting, 0.0 if "x" in order.names else 300.0)
    assert present == []
    assert last.pop("x") == "blamed"
    assert last.pop("a") in ("acquitted", "sound")
    assert set(last.values()) == {"sound"}


def test_a_slow_way_is_slow_beside_others_once_there_are_some() -> None:
    """Mutants: one slow test of two is a failure; a median of what is slow."""
    assert passes(30.0, [300.0] * 5)
    assert not passes(30.0, [300.0] * 6)
    assert passes(300.0, [300.0] * 6)
    assert not passes(0.0, [])


def test_no_more_meet_at_once_than_may(hall: Hall) -> None:
    names = [f"n{number}" for number in range(2 * AT_ONCE + 2)]
    orders = [hall.ask(name).order for name in names for _ in range(2)]
    assert len({one.meeting for one in orders if one}) == AT_ONCE


def test_who_waits_for_a_place_does_not_give_up(hall: Hall) -> None:
    """Mutant: of many nodes that end together most meet nobody."""
    for number in range(2 * AT_ONCE):
        hall.ask(f"n{number}")
    hall.ask("last")
    hall.wait(PATIENCE_S + 5, "last")
    assert not hall.ask("last").is_done


def test_one_agent_cannot_fill_the_hall(hall: Hall) -> None:
    answers = [hall.ask("a", f"port{number}") for number in range(WAYS_MOST + 1)]
    assert [one.is_done for one in answers] == [*[False] * WAYS_MOST, True]


def test_nobody_waits_for_ever_and_who_has_gone_is_met_by_nobody(hall: Hall) -> None:
    """Mutants: a node that is alone never ends its check; a dead agent is handed out as a partner."""
    hall.ask("a")
    hall.wait(GONE_S + 2)
    assert hall.ask("b").order is None
    hall.wait(PATIENCE_S - 2, "b")
    assert not hall.ask("b").is_done
    hall.wait(2)
    assert hall.ask("b").is_done


def seated(hall: Hall, **leaves: int) -> list[str]:
    """Nodes under leaves of one network, whose agents take groups of eight: named by leaf and number."""
    hall.takes = 8
    names = [f"{leaf}{number}" for leaf, count in leaves.items() for number in range(count)]
    hall.places = {name: ("ib0", name[0]) for name in names}
    return names


class Floor:
    """Seated nodes that ask every second and meet: `slow` fail what they are in, `silent` take orders and say nothing.

    Meetings across fail where either leaf is in `slow`.
    """

    def __init__(self, hall: Hall, names: list[str], *slow: str, silent: str = "") -> None:
        self.hall, self.names, self.slow, self.silent = hall, names, frozenset(slow), silent
        self.meetings: list[tuple[str, ...]] = []
        self.standings: dict[str, str] = {}

    def screen(self, seconds: int = 400) -> None:
        present = [name for name in self.names if name != self.silent]
        for _ in range(seconds):
            self.hall.wait(1, *[self.silent] * bool(self.silent))
            answers = {name: self.hall.ask(name) for name in present}
            self.standings |= {name: answer.standing for name, answer in answers.items()}
            present = [name for name in present if not answers[name].is_done]
            for order in {one.order.meeting: one.order for one in answers.values() if one.order}.values():
                self._meet(order)
            if not present:
                return
        raise AssertionError(f"{present} still wait")

    def _meet(self, order: MeetingOrder) -> None:
        self.meetings.append(order.names)
        leaves = {name[0] for name in order.names}
        is_slow = not self.slow.isdisjoint({*order.names, *(leaves if len(leaves) > 1 else ())})
        gbps = None if self.silent in order.names else 0.0 if is_slow else 300.0
        for name in order.names:
            if name != self.silent:
                self.hall.tell(name, order.meeting, gbps)

    def blamed(self) -> list[str]:
        return [name for name, standing in self.standings.items() if standing == "blamed"]


def test_nodes_under_one_leaf_meet_as_a_group_and_then_across(hall: Hall) -> None:
    """All members have one secret and a rank each. Mutants: each is told its own address; leaves are mixed."""
    names = seated(hall, a=4, b=4)
    hall.wait(GATHER_S + 1, *names)
    orders = [hall.order(name) for name in names[:4]]
    assert len({(one.meeting, one.secret, one.address, one.port) for one in orders}) == 1
    assert sorted(one.rank for one in orders) == [0, 1, 2, 3]
    assert {one.names for one in orders} == {orders[0].names}
    assert set(orders[0].names) == set(names[:4])
    floor = Floor(hall, names)
    floor.screen()
    assert set(floor.standings.values()) == {"sound"}
    assert all(len(met) == 2 for met in floor.meetings if len({name[0] for name in met}) > 1)
    assert any(len({name[0] for name in met}) > 1 for met in floor.meetings)


def test_of_a_group_that_passed_each_port_has_its_rate_and_a_slow_one_says_of_no_two(hall: Hall) -> None:
    """Mutants: every two of a slow group are slow; a group that passed clears no link."""
    floor = Floor(hall, seated(hall, a=4))
    floor.screen()
    assert {one.a for one in hall.results} == {f"a{number}:{VIA}" for number in range(4)}
    slow = Hall()
    Floor(slow, seated(slow, a=8), "a3").screen()
    tested = {frozenset((one.a, one.z)) for one in slow.results if not one.gbps}
    assert tested
    assert all(f"a3:{VIA}" in pair for pair in tested)


def test_a_bad_member_of_a_group_is_named_and_no_other(hall: Hall) -> None:
    floor = Floor(hall, seated(hall, a=8, b=8), "a5")
    floor.screen()
    assert floor.blamed() == ["a5"]
    assert [len(met) for met in floor.meetings if "a5" in met][:3] == [8, 4, 2]


def test_slow_up_links_are_no_node_s(hall: Hall) -> None:
    """Mutant: rates of pairs between leaves judge nodes."""
    floor = Floor(hall, seated(hall, a=4, b=4, c=4), "b")
    floor.screen()
    assert floor.blamed() == []
    assert {floor.standings[f"b{number}"] for number in range(4)} == {"beyond_leaf"}


def test_a_silent_member_convicts_nobody_and_the_others_go_on_without_it(hall: Hall) -> None:
    """The node takes every order, and never tells. Mutants: the others wait for it each time; they are suspects."""
    floor = Floor(hall, seated(hall, a=6), silent="a2")
    floor.screen()
    assert set(floor.standings.values()) <= {"sound", "passed"}
    assert set(floor.meetings[1]) == set(floor.names) - {"a2"}


def test_ports_of_two_networks_do_not_meet_whatever_they_are_called(hall: Hall) -> None:
    hall.places = {"a": ("ib0", "l1"), "b": ("ib1", "l1")}
    hall.ask("a")
    assert hall.ask("b").order is None


def test_links_between_leaves_have_rates_of_their_own(hall: Hall) -> None:
    """Links may be narrower by design. Mutant: what crosses them is slow beside what does not."""
    floor = Floor(hall, seated(hall, a=8, b=8))
    tell = hall.tell
    hall.tell = lambda node, meeting, gbps: tell(  # type: ignore[method-assign]
        node, meeting, 100.0 if gbps and len({name[0] for name in floor.meetings[-1]}) > 1 else gbps
    )
    floor.screen()
    assert set(floor.standings.values()) == {"sound"}


MANY, BAD = 129, {17, 90}
"""An odd number of nodes, of which two fail beside all others, and one passes wrongly in ten tests."""


class Crowd:
    """Nodes that end their checks together, some of which answer badly. `behaviour` by node; else what was measured."""

    def __init__(self, hall: Hall, behaviour: dict[int, str], rng: random.Random, count: int = MANY) -> None:
        self.hall, self.behaviour, self.rng, self.count = hall, behaviour, rng, count
        self.standings: dict[str, str] = {}
        self.meetings: set[str] = set()
        self._late: list[tuple[str, str]] = []
        self._gone: set[str] = set()

    def screen(self) -> None:
        """Ask every second until nobody is left; a meeting takes one."""
        present = [f"n{number}" for number in range(self.count)]
        for _ in range(1_000):
            present = [node for node in present if node not in self._gone]
            if not present:
                return
            self.hall.wait(1)
            answers = {node: self.hall.ask(node) for node in present}
            self.standings |= {node: answer.standing for node, answer in answers.items()}
            present = [node for node in present if not answers[node].is_done]
            for order in {one.order.meeting: one.order for one in answers.values() if one.order}.values():
                self._meet(order)
        raise AssertionError(f"after 1,000 s there wait {present[:8]}")

    def _meet(self, order: MeetingOrder) -> None:
        numbers = {int(name[1:]) for name in order.names}
        fails = self.rng.random() >= 0.1 if numbers & BAD else self.rng.random() < 0.01
        self.meetings.add(order.meeting)
        for node in order.names:
            self._say(node, order.meeting, 0.0 if fails else 300.0)

    def _say(self, node: str, meeting: str, gbps: float) -> None:
        match self.behaviour.get(int(node[1:]), ""):
            case "never":
                return
            case "leaves":
                self._gone.add(node)
            case "late":
                self.hall.tell(node, "of an hour ago", 0.0)
                self._late.append((node, meeting))
            case "twice":
                self.hall.tell(node, meeting, gbps)
                self.hall.tell(node, meeting, 0.0)
            case "contradicts":
                self.hall.tell(node, meeting, 0.0 if gbps else 300.0)
            case "nothing":
                self.hall.tell(node, meeting, None)
            case _:
                self.hall.tell(node, meeting, gbps)

    def tell_late(self) -> None:
        """Tell the old meetings of those that were late, as failures."""
        for node, meeting in self._late:
            self.hall.tell(node, meeting, 0.0)


@pytest.mark.parametrize("seed", first_in_gate(range(6), 2))
def test_many_meet_of_which_some_answer_badly_or_leave_and_only_the_bad_are_blamed(hall: Hall, seed: int) -> None:
    """Mutants: who contradicts, is silent or has left makes others suspects; the odd one out meets nobody."""
    behaviour = {3: "never", 40: "leaves", 41: "late", 64: "twice", 77: "contradicts", 120: "nothing"}
    crowd = Crowd(hall, behaviour, random.Random(seed))
    crowd.screen()
    before = dict(crowd.standings)
    crowd.tell_late()
    odd = {f"n{number}" for number in behaviour}
    assert {node for node, standing in before.items() if standing == "blamed"} <= {f"n{number}" for number in BAD}
    told = {node: standing for node, standing in before.items() if node not in odd and int(node[1:]) not in BAD}
    assert set(told.values()) <= {"sound", "acquitted"}, {k: v for k, v in told.items() if v != "sound"}
    assert before["n64"] in ("sound", "acquitted")
    assert {before[f"n{number}"] for number in (3, 40, 41, 77, 120)} == {"open"}
    assert MANY - len(odd) < len(crowd.meetings) < 3 * MANY


@pytest.mark.nightly("many crowds")
def test_over_some_crowds_nearly_all_bad_nodes_are_blamed() -> None:
    """Mutants: one pass beside another believes a bad node; whoever wanted a test once is waited for ever after."""
    found, longest = 0, 0.0
    for seed in range(20):
        crowd = Crowd(Hall(), {}, random.Random(100 + seed))
        crowd.screen()
        found += sum(crowd.standings[f"n{number}"] == "blamed" for number in BAD)
        longest = max(longest, (crowd.hall.now - START).total_seconds())
    assert found >= 0.9 * 20 * len(BAD)
    assert longest < PATIENCE_S, "nobody waits in vain"


def test_who_was_blamed_meets_by_two_and_waits_for_those_that_are_called(hall: Hall) -> None:
    """Mutants: it is told that nobody is left after a minute; a group's pass counts as one with two others."""
    way = Way(VIA, "10.0.0.1", 4000, "ib0")
    blamed = Visitor("n", "n-o1", way, takes=2, calls=True)
    for _ in range(int(CALLED_S) - 5):
        hall.now += timedelta(seconds=1)
        assert not hall.hall.ask(blamed).is_done
    hall.takes = 8
    for other in ("p1", "p2"):
        hall.ask(other)
        hall.wait(GATHER_S + 1, other)
        reply = hall.hall.ask(blamed)
        order = reply.order or hall.hall.ask(blamed).order
        assert order is not None
        assert sorted(order.names) == ["n", other]
        for node in ("n", other):
            hall.tell(node, order.meeting, 300.0)
        for _ in range(int(GONE_S) + 1):
            hall.now += timedelta(seconds=1)
            hall.hall.ask(blamed)
    assert hall.hall.ask(blamed).standing == "sound"


def test_who_was_blamed_is_told_that_nobody_came(hall: Hall) -> None:
    """Mutant: it waits for ever."""
    blamed = Visitor("n", "n-o1", Way(VIA, "10.0.0.1", 4000, "ib0"), calls=True)
    waited = 0
    while not (reply := hall.hall.ask(blamed)).is_done:
        hall.now += timedelta(seconds=1)
        waited += 1
    assert (waited, reply.standing) == (CALLED_S, "open")
