"""The scheduler port without a scheduler: whom it serves, whom it refuses and why, and what it shows."""

import pytest

from hostler.controller.inputs import WorkSeen
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Operation, Outcome
from hostler.core.tables.operations import IDLE_CHECK
from hostler.drivers.standalone.scheduler import StandaloneScheduler, work_of
from hostler.ports import SCHEDULED, RefusedError, WorkloadView
from tests.acts import an_act
from tests.kit import NOW, a_node, after, configuration, pool_document

HAND = StandaloneScheduler()


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


@pytest.mark.parametrize(("pool", "of"), [("train", "cluster k1"), ("", "nodes without a cluster")])
async def test_nobody_here_checks_idle_nodes(pool: str, of: str) -> None:
    """Mutants: the cluster is left out, or made up."""
    with pytest.raises(RefusedError, match=f"^no scheduler of {of} can check idle nodes: set the pool's mode"):
        await HAND.perform(an_operation(IDLE_CHECK), a_node("a", pool=pool))


def test_only_nodes_of_pools_without_a_cluster_are_shown_and_shown_whole() -> None:
    """Mutants: nodes of a cluster are shown as idle; what is shown is a part."""
    fleet = Fleet(configuration({"train": pool_document(target=1), "bare": pool_document(target=1, cluster="")}))
    for node in (a_node("a"), a_node("b", pool="bare"), a_node("c", pool="")):
        fleet.put_node(node.id, node)
    fleet.merge()
    assert work_of(fleet) == WorkSeen((WorkloadView("b", ()),), whole=True)
