"""Many clusters as one hand and one eye: who is asked in which order, and what is told when."""

from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller import scheduler_views
from hostler.controller.inputs import NodeSeen, WorkSeen
from hostler.core.state.assets import Binding
from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import Assignment, Node, Operation, Outcome
from hostler.core.state.operations import IdleCheck
from hostler.core.tables.operations import IDLE_CHECK
from hostler.drivers.standalone.scheduler import StandaloneScheduler
from hostler.ports import SCHEDULED, ClusterView, RefusedError, WorkloadView, workloads_of
from hostler.runtime.merged_schedulers import LOOK_UP_TURNS, SchedulerDriver, SchedulerReader, by_cluster
from tests.acts import an_act
from tests.kit import NOW, a_node, after, configuration, pool_document


class Written:
    """A scheduler that does as it is told and writes it down; what it shows is set by the test."""

    def __init__(self, kind: str, cluster: str, log: list[str]) -> None:
        self.kind = kind
        self.kinds = SCHEDULED | {"confirm_join"} if kind == "kubernetes" else SCHEDULED
        self.cluster = cluster
        self.shown = ClusterView({}, {})
        self.says = "done"
        self._log = log

    def show(self, *views: WorkloadView, lost: str = "") -> None:
        self.shown = ClusterView({view.node: view for view in views}, {view.node: True for view in views}, lost)

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        self._log.append(f"{self.kind} {operation.kind} {','.join(workloads_of(operation))}".strip())
        return Outcome(operation.id, node.id, self.says)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        return Outcome(operation.id, node.id, self.says)

    async def revoke(self, operation: Operation, node: Node) -> None:
        self._log.append(f"{self.kind} revoke")

    def views(self) -> ClusterView:
        return self.shown

    async def watch(self) -> None:
        """Do nothing, with nothing to keep in touch with."""


class Two:
    """Slurm inside Kubernetes in cluster k1, and Kubernetes alone in k2."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.slurm = Written("slurm", "k1", self.log)
        self.kubernetes = Written("kubernetes", "k1", self.log)
        self.other = Written("kubernetes", "k2", self.log)
        self.clusters = by_cluster([self.slurm, self.kubernetes, self.other])
        self.driver = SchedulerDriver(
            self.clusters, StandaloneScheduler(lambda: None), lambda node, _cluster: self.log.append(f"shown {node.id}")
        )
        self.fleet = Fleet(configuration({"train": pool_document(target=2)}))
        for name in ("a", "b"):
            self.put(a_node(name))
        self.live = LiveState()
        self.reader = SchedulerReader(self.clusters, lambda: self.fleet, lambda: self.live)

    def put(self, node: Node) -> None:
        self.fleet.put_node(node.id, node)
        self.fleet.merge()

    def told(self) -> list[WorkSeen | NodeSeen]:
        """Returns the reports, taken over as the controller does."""
        news = self.reader.news()
        for one in news:
            if isinstance(one, WorkSeen):
                scheduler_views.see_work(DecisionContext(self.fleet, self.live, NOW), one)
        return news

    def seen(self) -> list[tuple[str, list[str], bool]]:
        return [(o.cluster, [v.node for v in o.views], o.whole) for o in self.told() if isinstance(o, WorkSeen)]


def operation(kind: str, **args: Any) -> Operation:
    return Operation("o1", an_act(kind, **args), "a", "p1", 0, NOW, after(minutes=1))


def work(name: str) -> Workload:
    return Workload(name, "acme", WorkClass.interruptible)


@pytest.mark.parametrize(
    ("kind", "order"),
    [
        ("cordon", ["slurm cordon", "kubernetes cordon", "shown a"]),
        ("leave_cluster", ["slurm leave_cluster", "kubernetes leave_cluster"]),
        ("uncordon", ["kubernetes uncordon", "slurm uncordon"]),
        ("join_cluster", ["kubernetes join_cluster", "slurm join_cluster"]),
        ("confirm_join", ["kubernetes confirm_join"]),
    ],
)
async def test_a_node_is_taken_away_from_the_inside_and_given_back_from_the_outside(
    kind: str, order: list[str]
) -> None:
    """Mutants: always in one order; a cordon counts as done before it is shown who came before it."""
    two = Two()
    assert (await two.driver.perform(operation(kind), a_node("a"))).result == "done"
    assert two.log == order


async def test_who_has_not_done_it_stops_the_rest_and_tells_what_is_seen() -> None:
    two = Two()
    two.slurm.says = "unknown"
    assert (await two.driver.perform(operation("cordon"), a_node("a"))).result == "unknown"
    assert two.log == ["slurm cordon"]
    two.kubernetes.says = "not_done"
    assert (await two.driver.observe(operation("cordon"), a_node("a"))).result == "unknown"
    two.slurm.says = "done"
    assert (await two.driver.observe(operation("cordon"), a_node("a"))).result == "not_done"


async def test_each_ends_the_work_that_is_its_own() -> None:
    """Mutant: all of them are told all of it."""
    two = Two()
    two.slurm.show(WorkloadView("a", (work("job 1"), work("job 2"))))
    await two.driver.perform(operation("evict", workloads=["job 1", "acme/pod:1"]), a_node("a"))
    assert two.log == ["slurm evict job 1", "kubernetes evict acme/pod:1"]


async def test_a_cluster_that_nobody_serves_is_refused_and_a_node_in_none_is_its_own() -> None:
    two = Two()
    stranger = replace(a_node("a"), assignment=Assignment("train", "acme", "k9", NOW))
    with pytest.raises(RefusedError, match="serves cluster k9"):
        await two.driver.perform(operation("cordon"), stranger)
    assert (await two.driver.perform(operation("cordon"), a_node("a", pool=""))).result == "done"
    assert two.log == ["shown a"]


def test_a_cluster_is_told_whole_once_and_then_what_changes() -> None:
    """Mutants: everything each time; a cluster is whole before all its schedulers are."""
    two = Two()
    two.slurm.show(lost="not listed yet")
    two.other.show()
    a, b = WorkloadView("a", (work("p1"),)), WorkloadView("b", ())
    two.kubernetes.show(a, b)
    assert two.seen() == [("k1", [], False), ("k2", [], True)]
    assert two.live.workloads(two.fleet.nodes["a"]) is None
    assert two.live.clusters["k1"] == "slurm: not listed yet"
    two.slurm.show(WorkloadView("a", (work("job 1"),)))
    assert two.seen() == [("k1", ["a", "b"], True)]
    assert two.live.workloads(two.fleet.nodes["a"]) == (work("job 1"), work("p1"))
    assert two.seen() == []
    two.kubernetes.show(WorkloadView("a", ()), b)
    assert two.seen() == [("k1", ["a"], False)]
    two.live.forget(NOW)
    assert two.seen() == [("k1", ["a", "b"], True), ("k2", [], True)]


def test_what_a_cordon_asks_to_see_is_told_of_that_node_alone_and_not_forgotten() -> None:
    """Mutants: all nodes are merged for each cordon; what was told so is not known to be told."""
    two = Two()
    two.slurm.show()
    two.kubernetes.show(WorkloadView("a", ()), WorkloadView("b", ()))
    a = two.fleet.nodes["a"]
    assert [one.whole for one in two.reader.of_node(a, "k1") if isinstance(one, WorkSeen)] == [True]
    two.live.clusters["k1"] = ""
    two.slurm.show(WorkloadView("a", (work("job 1"),)))
    two.kubernetes.show(WorkloadView("a", (work("p1"),)), WorkloadView("b", (work("p2"),)))
    (seen,) = two.reader.of_node(a, "k1")
    assert isinstance(seen, WorkSeen)
    assert [(v.node, [w.id for w in v.workloads]) for v in seen.views] == [("a", ["job 1", "p1"])]
    two.slurm.show()
    two.kubernetes.show(WorkloadView("a", ()), WorkloadView("b", (work("p2"),)))
    assert two.seen()[0] == ("k1", ["a", "b"], False)
    two.kubernetes.show(lost="gone")
    assert [one.lost for one in two.reader.of_node(a, "k1") if isinstance(one, WorkSeen)] == ["kubernetes: gone"]


def test_who_is_listed_no_more_runs_nothing_and_who_never_was_is_unknown() -> None:
    """Mutant: a member under another name than we believe is taken for idle."""
    two = Two()
    two.slurm.show()
    two.kubernetes.show(WorkloadView("a", (work("p1"),)))
    two.seen()
    assert two.live.workloads(two.fleet.nodes["b"]) is None
    two.kubernetes.show()
    assert two.seen() == [("k1", ["a"], False)]
    assert two.live.workloads(two.fleet.nodes["a"]) == ()


def test_names_are_bound_to_nodes_and_looked_up_anew() -> None:
    """Mutant: a name that was once unknown stays so."""
    two = Two()
    two.slurm.show()
    two.kubernetes.show(WorkloadView("box-7", (work("p1"),)))
    two.seen()
    node = two.fleet.nodes["a"]
    two.put(replace(node, bindings=(*node.bindings, Binding("kubernetes", "k1/box-7", NOW))))
    told = [news for _ in range(LOOK_UP_TURNS) for news in two.seen()]
    assert told == [("k1", ["a"], False)]
    assert two.live.workloads(two.fleet.nodes["a"]) == (work("p1"),)


def test_a_quiet_cluster_is_not_gone_through_node_by_node() -> None:
    """Mutants: every node is merged at each turn; a name that means another node now keeps the first one's work."""
    two = Two()
    two.slurm.show()
    two.kubernetes.show(WorkloadView("a", (work("p1"),)), WorkloadView("b", (work("p2"),)))
    two.seen()
    shown = two.kubernetes.shown
    told = two.reader._told["k1"]  # noqa: SLF001 - what is not done shows nowhere else
    told.ids.clear()
    two.kubernetes.shown = ClusterView({**shown.nodes, "b": WorkloadView("b", ())}, shown.ready)
    merged = two.reader._moved("k1", [two.slurm.shown, two.kubernetes.shown], told)  # noqa: SLF001
    assert merged == ["b"]


def test_a_name_that_means_another_node_takes_its_work_along() -> None:
    """Mutant: the node that is no longer meant keeps it."""
    two = Two()
    two.slurm.show()
    two.kubernetes.show(WorkloadView("a", (work("p1"),)))
    two.seen()
    b = two.fleet.nodes["b"]
    two.put(replace(b, bindings=(*b.bindings, Binding("kubernetes", "k1/a", NOW))))
    told = [node for _ in range(2 * LOOK_UP_TURNS) for _, nodes, _ in two.seen() for node in nodes]
    assert sorted(told) == ["a", "b"]
    assert two.live.workloads(two.fleet.nodes["b"]) == (work("p1"),)
    assert two.live.workloads(two.fleet.nodes["a"]) == ()


def test_another_clusters_node_of_the_same_name_says_nothing_of_ours() -> None:
    """Mutants: what one cluster tells counts for all; its readiness does."""
    two = Two()
    two.slurm.show()
    two.kubernetes.show(WorkloadView("a", ()))
    two.other.show(WorkloadView("a", (work("p9"),)))
    news = two.told()
    assert two.live.workloads(two.fleet.nodes["a"]) == ()
    assert [one.node for one in news if isinstance(one, NodeSeen)] == ["a"]


def test_an_override_is_told_until_it_is_over() -> None:
    """An override counts only once it is recorded; a look at the wrong moment must not lose it."""
    two = Two()
    two.slurm.show()
    two.kubernetes.show(WorkloadView("a", (), cordoned=False, overridden="ann"))
    assert two.seen() == [("k1", ["a"], True), ("k2", [], True)]
    assert two.seen() == [("k1", ["a"], False)]


async def test_an_idle_check_is_asked_of_the_one_scheduler_that_offers_it_and_refused_where_none_does() -> None:
    """Mutants: each scheduler of a cluster checks the node; a check that nobody made counts as done."""
    node, asked = a_node("a"), list[str]()

    class Checker:
        cluster, kind = "k1", "kubernetes"

        def __init__(self, name: str, *offers: str) -> None:
            self.kinds = SCHEDULED | frozenset(offers)
            self.name = name

        async def perform(self, operation: Operation, node: Node) -> Outcome:
            asked.append(self.name)
            return Outcome(operation.id, node.id, "unknown")

    own: Any = (Checker("slurm"), Checker("one", IDLE_CHECK), Checker("two", IDLE_CHECK))
    check = Operation("a-idle-1", IdleCheck(), "a", "", 0, NOW, after(minutes=20))
    driver = SchedulerDriver({"k1": own}, StandaloneScheduler(lambda: None), lambda _node, _cluster: None)
    assert (await driver.perform(check, node)).result == "unknown"
    assert asked == ["one"]
    for clusters in ({"k1": own[:1]}, {}):
        with pytest.raises(RefusedError, match="can check idle nodes"):
            await SchedulerDriver(clusters, StandaloneScheduler(lambda: None), lambda _node, _cluster: None).perform(
                check, node
            )
