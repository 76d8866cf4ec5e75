"""Worlds in which new nodes meet: a bad node is named, no innocent is failed, and the same seed brings the same."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from msgspec.structs import replace

from hostler.core.state import events as e
from hostler.core.state.model import CheckResult, Verdict
from hostler.journal.memory import MemoryJournal
from hostler.sim.cell_shapes import meeting_shape
from hostler.sim.fault_injection.scenario import InjectedFault, Scenario
from hostler.sim.hostile_worlds import START, build, judge, replay
from hostler.sim.world.meeting_agents import MeetingAgents

pytestmark = pytest.mark.nightly("whole worlds are lived through")

SEED, NODES = 5, 14
"""Two leaves a rail with six new nodes each."""
FIRST = timedelta(hours=5)
"""The first burn-ins have ended, and nothing else has begun."""


class Together:
    """A world in which nothing goes wrong but these, until its first burn-ins have ended."""

    def __init__(self, *kinds: str, node: int = 2) -> None:
        faults = tuple(InjectedFault(index, kind, node, 10.0) for index, kind in enumerate(kinds))
        injection = build(Scenario(SEED, replace(meeting_shape(SEED), nodes=NODES), faults), MemoryJournal())
        found = injection.world.actuators.meetings
        assert found is not None
        self.agents: MeetingAgents = found
        self.checks: list[tuple[str, CheckResult]] = []
        self.drive = injection.drive
        self.drive.watchers.append(lambda record: self.checks.extend(self._burn_ins(record)))
        self.fates = dict[str, str]()

    def run(self) -> None:
        self.agents.fates.update(self.fates)
        self.drive.run(START + FIRST)
        assert self.drive.violations() == []
        assert len(self.checks) == NODES - 2, "all but the two in service are new"

    @staticmethod
    def _burn_ins(record: e.Record) -> Iterator[tuple[str, CheckResult]]:
        if isinstance(record.event, e.CheckRecorded) and record.event.check.profile == "burn_in":
            yield record.event.node, record.event.check

    def failed(self) -> list[str]:
        return [node for node, check in self.checks if check.verdict is Verdict.failed]

    def words(self, node: str) -> str:
        return next(check.detail for name, check in self.checks if name == node)


def test_new_nodes_meet_in_groups_under_their_leaves_and_pass() -> None:
    """By the leaves of the validated design. Mutants: no leaf is known; nobody meets."""
    world = Together()
    world.run()
    assert world.failed() == []
    assert all("mlx5_0: sound; mlx5_1: sound" in check.detail for _, check in world.checks)
    assert {4, 5, 6} & world.agents.sizes.keys(), world.agents.sizes
    assert 7 not in world.agents.sizes


def test_a_node_that_is_wrong_by_all_its_ports_is_failed_and_no_other() -> None:
    world = Together("meeting_node_wrong")
    world.run()
    assert world.failed() == ["n00002"]


def test_a_node_that_meetings_failed_comes_back_by_a_person_s_word_alone_where_nobody_meets_it() -> None:
    """Suspect checks come when nobody else is under check. Mutants: who met nobody is acquitted; no blame."""
    world, told = Together("meeting_node_wrong"), list[tuple[str, str]]()

    def see(record: e.Record) -> None:
        match record.event:
            case e.CheckRecorded(node="n00002", check=check) if check.profile == "suspect":
                told.append((check.verdict.value, check.person or check.detail))
            case e.ConditionCleared(node="n00002", condition=name, by=by) if name.endswith("check.meetings_failed"):
                told.append(("no longer blamed", by))
            case _:
                pass

    world.drive.watchers.append(see)
    world.run()
    world.drive.run(START + FIRST + timedelta(hours=20))
    assert world.drive.violations() == []
    first, answered = told[0], [by for what, by in told if what == "no longer blamed"]
    assert first[0] == Verdict.inconclusive.value
    assert "it has not passed with two others: mlx5_0: open, mlx5_1: open" in first[1]
    assert "observation" not in answered
    assert world.failed() == ["n00002"]


@pytest.mark.parametrize("kind", ["meeting_port_wrong", "meeting_leaf_wrong", "meeting_up_links_wrong"])
def test_what_is_no_node_s_own_fails_no_node(kind: str) -> None:
    """Mutants: one port convicts; a leaf's nodes are blamed; what fails across is the node's."""
    world = Together(kind)
    world.run()
    assert world.failed() == []
    assert any(word not in check.detail for _, check in world.checks for word in ("mlx5_0: sound", "mlx5_1: sound"))


@pytest.mark.parametrize("fate", ["never", "late", "lies", "wrong", "twice", "nothing"])
def test_an_agent_that_answers_badly_fails_nobody(fate: str) -> None:
    """Mutants: silence convicts; the lower rate is believed; the second word counts."""
    world = Together()
    world.fates = {"n00003": fate}
    world.run()
    assert world.failed() == []
    others = [check.detail for node, check in world.checks if node != "n00003"]
    assert sum("mlx5_0: sound; mlx5_1: sound" in detail for detail in others) >= len(others) - 2, others
    assert ("sound" in world.words("n00003")) is (fate == "twice") or fate == "late"


def test_a_hostile_world_in_which_nodes_meet_breaks_no_law_and_is_the_same_again() -> None:
    one, again = judge(3, meets=True), judge(3, meets=True)
    assert one.violations == ()
    assert one.digest == again.digest
    assert "--meets" in replay(one.scenario)
