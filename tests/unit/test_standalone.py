"""The scheduler port without a scheduler: whom it serves, whom it refuses and why, and what it shows."""

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import WorkSeen
from hostler.controller.scheduler_views import see_work
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import LiveNode, LiveState
from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.state.operations import RunChecks
from hostler.core.tables.operations import IDLE_CHECK
from hostler.drivers.standalone.scheduler import StandaloneScheduler, StandaloneWork
from hostler.ports import SCHEDULED, RefusedError, UnreachableError, WorkloadView
from tests.acts import an_act
from tests.kit import NOW, a_node, after, configuration, pool_document

HAND = StandaloneScheduler(lambda: None)


class Agents:
    """The agents' hand: what it was asked, and its answer."""

    kinds = frozenset({"run_checks"})

    def __init__(self) -> None:
        self.asked: list[tuple[str, Operation]] = []

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        self.asked.append(("perform", operation))
        return Outcome(operation.id, node.id, "done", "quiet", {"verdict": "passed"}, attempt=operation.attempt)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        self.asked.append(("observe", operation))
        return Outcome(operation.id, node.id, "busy", attempt=operation.attempt)

    async def revoke(self, operation: Operation, node: Node) -> None:
        assert node.id == operation.node
        self.asked.append(("revoke", operation))


def an_operation(kind: str) -> Operation:
    return Operation("a-o1", an_act(kind), "a", "a-p1", 0, NOW, after(minutes=1), attempt=3)


@pytest.mark.parametrize("kind", sorted(SCHEDULED))
async def test_a_spares_acts_are_done_at_once_and_a_clusters_node_is_refused(kind: str) -> None:
    """Mutants: a node of a cluster is served; another attempt is answered."""
    asked = an_operation(kind)
    done = Outcome("a-o1", "a", "done", attempt=3)
    assert await HAND.perform(asked, a_node("a", pool="")) == done
    assert await HAND.observe(asked, a_node("a", pool="")) == done
    for ask in (HAND.perform, HAND.observe):
        with pytest.raises(RefusedError, match=r"^a serves cluster k1, and no scheduler driver is set up for it; "):
            await ask(asked, a_node("a"))
    await HAND.revoke(asked, a_node("a"))


async def test_an_idle_check_of_a_node_without_a_cluster_is_its_agents() -> None:
    """Mutants: another id or attempt; the agent is asked for an act that it does not know."""
    agents, check = Agents(), an_operation(IDLE_CHECK)
    hand, node = StandaloneScheduler(lambda: agents), a_node("a", pool="")
    assert (await hand.perform(check, node)).facts == {"verdict": "passed"}
    assert (await hand.observe(check, node)).result == "busy"
    await hand.revoke(check, node)
    assert [how for how, _ in agents.asked] == ["perform", "observe", "revoke"]
    assert {one for _, one in agents.asked} == {replace(check, act=RunChecks("idle"))}


async def test_nobody_checks_a_cluster_s_idle_nodes_here_and_a_controller_that_starts_sends_nothing() -> None:
    """Mutants: the agent is asked beside a scheduler that may place work; a start is a refusal."""
    agents, check = Agents(), an_operation(IDLE_CHECK)
    hand = StandaloneScheduler(lambda: agents)
    for ask in (hand.perform, hand.observe, hand.revoke):
        with pytest.raises(RefusedError, match=r"^no scheduler of cluster k1 can check idle nodes: set the pool's"):
            await ask(check, a_node("a"))
    assert agents.asked == []
    with pytest.raises(UnreachableError, match="the controller has not started"):
        await HAND.perform(check, a_node("a", pool=""))


def test_only_nodes_of_pools_without_a_cluster_are_shown_and_shown_whole() -> None:
    """Mutants: nodes of a cluster are shown as idle; what is shown is a part."""
    assert StandaloneWork().news(a_fleet(), LiveState()) == [WorkSeen((WorkloadView("b", ()),), whole=True)]


def test_what_the_present_knows_is_not_told_again_and_who_comes_is() -> None:
    """Mutants: every turn tells all; who joins the pool is never told; after a gap nobody is."""
    fleet, live, work = a_fleet(), LiveState(), StandaloneWork()
    see_work(DecisionContext(fleet, live, NOW), work.news(fleet, live)[0])
    assert work.news(fleet, live) == []
    fleet.put_node("d", a_node("d", pool="bare"))
    fleet.merge()
    assert work.news(fleet, live) == [WorkSeen((WorkloadView("d", ()),))]
    live.forget(NOW)
    both = [WorkSeen((WorkloadView("b", ()), WorkloadView("d", ())), whole=True)]
    assert work.news(fleet, live) == both
    see_work(DecisionContext(fleet, live, NOW), both[0])
    assert work.news(fleet, live) == []


def test_what_was_told_and_not_taken_is_told_again() -> None:
    """Mutant: who was told once counts as known, though the controller never took it."""
    fleet, live, work = a_fleet(), LiveState(), StandaloneWork()
    assert work.news(fleet, live) == work.news(fleet, live)
    see_work(DecisionContext(fleet, live, NOW), work.news(fleet, live)[0])
    fleet.put_node("d", a_node("d", pool="bare"))
    fleet.merge()
    assert work.news(fleet, live) == work.news(fleet, live) == [WorkSeen((WorkloadView("d", ()),))]


def test_whom_the_present_knows_is_not_looked_at_again() -> None:
    """A look at each node twice a second costs a large fleet's loop its answers. Mutant: every turn looks at all."""
    fleet, live, work = a_fleet(), LiveState(), StandaloneWork()
    see_work(DecisionContext(fleet, live, NOW), work.news(fleet, live)[0])
    assert work.news(fleet, live) == []
    live.nodes = Unread(live.nodes)
    assert work.news(fleet, live) == []


class Unread(dict[str, LiveNode]):
    """Nodes of which nobody asks."""

    def __contains__(self, key: object) -> bool:
        raise AssertionError(f"{key} is looked at")


def test_a_cell_without_such_nodes_is_told_once_that_there_are_none() -> None:
    """Mutant: nothing is told, and what runs there stays unknown for ever."""
    fleet, live = Fleet(configuration({"train": pool_document(target=1)})), LiveState()
    (seen,) = StandaloneWork().news(fleet, live)
    assert seen == WorkSeen((), whole=True)
    see_work(DecisionContext(fleet, live, NOW), seen)
    assert StandaloneWork().news(fleet, live) == []


def a_fleet() -> Fleet:
    """One node in a cluster, one in none, one in no pool."""
    fleet = Fleet(configuration({"train": pool_document(target=1), "bare": pool_document(target=1, cluster="")}))
    for node in (a_node("a"), a_node("b", pool="bare"), a_node("c", pool="")):
        fleet.put_node(node.id, node)
    fleet.merge()
    return fleet
