"""Many schedulers as one hand and one eye: each node is asked of its own cluster's, and what they show is merged."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from hostler.controller.inputs import NodeSeen, WorkSeen
from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.state.operations import CordonUninvited, DeleteUninvited, Evict, IssueJoinToken
from hostler.core.tables.operations import ASIDE, IDLE_CHECK
from hostler.ports import (
    SCHEDULED,
    ClusterView,
    OperationDriver,
    RefusedError,
    Scheduler,
    WorkloadView,
    name_there,
    workloads_of,
)

Clusters = Mapping[str, tuple[Scheduler, ...]]
"""Each cluster's schedulers, the one that places jobs before the one whose pods carry it."""

LOOK_UP_TURNS = 10
"""After so many turns it is looked up anew which node is meant by a name: nodes are registered and bound anew."""


def by_cluster(schedulers: Iterable[Scheduler]) -> Clusters:
    """The schedulers of each cluster, in the order in which they were given."""
    found: dict[str, tuple[Scheduler, ...]] = {}
    for one in schedulers:
        found[one.cluster] = (*found.get(one.cluster, ()), one)
    return found


class SchedulerDriver:
    """The Hand for `SCHEDULED`: asks the schedulers of the node's own cluster, and `rest` where that has none here.

    To take a node away they are asked in their order, to give it back in the opposite one, so that nothing is placed
    on a node that the next one does not yet serve. `show` puts what a cluster's schedulers show of the node before the
    controller: that is told before a cordon counts as done, so that nobody who came before it is missed.
    """

    kinds = SCHEDULED | {IDLE_CHECK, "confirm_join"} | ASIDE

    def __init__(self, clusters: Clusters, rest: OperationDriver, show: Callable[[Node, str], None]) -> None:
        self._clusters = clusters
        self._rest = rest
        self._show = show

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Done where all have done it; what the first that has not says."""
        said = Outcome(operation.id, node.id, "done", attempt=operation.attempt)
        for driver, part in self._asked(operation, node):
            said = await driver.perform(part, node)
            if said.result != "done":
                return said
        return self._shown(operation, node, said)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Done where all show it; not_done where one does not and none is unknown."""
        said = [await driver.observe(part, node) for driver, part in self._asked(operation, node)]
        others = [one for one in said if one.result != "done"]
        unknown = [one for one in others if one.result != "not_done"]
        done = Outcome(operation.id, node.id, "done", attempt=operation.attempt)
        return self._shown(operation, node, (unknown or others or said or [done])[0])

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Call it off with each of them."""
        for driver, part in self._asked(operation, node):
            await driver.revoke(part, node)

    def _shown(self, operation: Operation, node: Node, said: Outcome) -> Outcome:
        if said.result == "done" and operation.aside:
            self._show(node, _cluster_left(operation))
        elif said.result == "done" and operation.kind == "cordon":
            self._show(node, node.assignment.cluster if node.assignment else "")
        return said

    def _asked(self, operation: Operation, node: Node) -> Iterator[tuple[OperationDriver, Operation]]:
        if operation.aside:
            yield from ((one, operation) for one in self._guarding(operation))
            return
        own = self._clusters.get(node.assignment.cluster, ()) if node.assignment else ()
        if operation.kind == "confirm_join":  # who admits no kubelets has joined the node already
            yield from ((one, operation) for one in own if operation.kind in one.kinds)
            return
        if operation.kind == IDLE_CHECK:  # of those that can only one is to do it
            own = tuple(one for one in own if IDLE_CHECK in one.kinds)[:1]
        if not own:
            yield self._rest, operation
        elif operation.kind == "evict":
            yield from _evictions(operation, node, own)
        elif operation.kind in ("uncordon", "join_cluster"):
            yield from ((one, operation) for one in reversed(own))
        else:
            yield from ((one, operation) for one in own)

    def _guarding(self, operation: Operation) -> tuple[Scheduler, ...]:
        """The schedulers of the cluster that the node has left, as far as they turn nodes away."""
        cluster = _cluster_left(operation)
        found = tuple(one for one in self._clusters.get(cluster, ()) if operation.kind in one.kinds)
        if not found:
            raise RefusedError(
                f"no scheduler of cluster {cluster} performs {operation.kind}: take the node off its list"
            )
        return found


def _cluster_left(operation: Operation) -> str:
    """The cluster that the node has left, or enters at its first boot, as an operation beside its plan names it."""
    aside = CordonUninvited | DeleteUninvited | IssueJoinToken
    return operation.act.cluster if isinstance(operation.act, aside) else ""


def _evictions(operation: Operation, node: Node, own: Sequence[Scheduler]) -> Iterator[tuple[Scheduler, Operation]]:
    """To each scheduler the workloads that are its own; what nobody lists is left to the last."""
    left = list(workloads_of(operation))
    for one in own[:-1]:
        view = one.views().nodes.get(name_there(node, one))
        listed = frozenset(work.id for work in view.workloads) if view else frozenset()
        if mine := [work for work in left if work in listed]:
            left = [work for work in left if work not in listed]
            yield one, replace(operation, act=Evict(tuple(mine)))
    if left:
        yield own[-1], replace(operation, act=Evict(tuple(left)))


class _Told(Struct):
    """The last told view of a cluster, by node, and what its schedulers had shown then.

    `ids` are the nodes that a scheduler's names mean, "" for none of ours; `names` is the way back. An override is told
    until it is over.
    """

    views: dict[str, WorkloadView] = {}
    ready: dict[str, bool] = {}
    boots: dict[str, str] = {}
    ids: dict[tuple[int, str], str] = {}
    names: dict[str, dict[tuple[int, str], None]] = {}
    shown: tuple[ClusterView, ...] = ()
    overridden: dict[str, None] = {}


class SchedulerReader:
    """Tells what the schedulers show: a whole cluster where the present does not know it, then what has changed.

    `fleet` and `present` give the cell's; after a start, a gap or a change of office the present knows nothing.
    """

    def __init__(self, clusters: Clusters, fleet: Callable[[], Fleet], live: Callable[[], LiveState]) -> None:
        self._clusters = clusters
        self._fleet = fleet
        self._live = live
        self._told = {cluster: _Told() for cluster in clusters}

    def news(self) -> list[WorkSeen | NodeSeen]:
        """News to be told now."""
        return [one for cluster in self._clusters for one in self._of(cluster)]

    def of_node(self, node: Node, cluster: str) -> list[WorkSeen | NodeSeen]:
        """View of one node by the cluster now, without a look at its others while the cluster is in touch."""
        own = self._clusters.get(cluster, ())
        views = [one.views() for one in own]
        if own and (not self._live().synced(cluster) or any(view.lost for view in views)):
            return list(self._of(cluster))
        named = [(name_there(node, one), view.nodes) for one, view in zip(own, views, strict=True)]
        found = [nodes[name] for name, nodes in named if name in nodes]
        if not own or not (found or node.id in self._told[cluster].views):
            return []
        told = _merged(found, node.id) if found else WorkloadView(node.id, (), listed=False)
        self._told[cluster].views[node.id] = told
        return [WorkSeen((told,), cluster=cluster)]

    def _of(self, cluster: str) -> Iterator[WorkSeen | NodeSeen]:
        live, own = self._live(), self._clusters[cluster]
        views = [one.views() for one in own]
        lost = next((f"{one.kind}: {view.lost}" for one, view in zip(own, views, strict=True) if view.lost), "")
        if lost:
            if live.clusters.get(cluster) != lost:
                yield WorkSeen((), cluster=cluster, lost=lost)
            return
        whole = not live.synced(cluster)
        told = self._told[cluster] = _Told() if whole else self._told[cluster]
        moved = self._moved(cluster, views, told)
        yield from self._works(cluster, views, moved, whole=whole)
        yield from self._nodes(cluster, views, moved)

    def _moved(self, cluster: str, views: Sequence[ClusterView], told: _Told) -> list[str]:
        """The nodes of which something else may be shown than was told."""
        found = dict.fromkeys(told.overridden)
        found.update(dict.fromkeys(self._looked_up_again(cluster, views, told)))
        before = told.shown or (ClusterView({}, {}),) * len(views)
        changed = [_changed(old, new) for old, new in zip(before, views, strict=True)]
        for i, (one, names) in enumerate(zip(self._clusters[cluster], changed, strict=True)):
            found.update(dict.fromkeys(self._node_of(told, i, one, name) for name in names))
        if any(changed) or not told.shown:
            told.shown = tuple(ClusterView(dict(v.nodes), dict(v.ready), v.lost, dict(v.boots)) for v in views)
        found.pop("", None)
        return sorted(found)

    def _looked_up_again(self, cluster: str, views: Sequence[ClusterView], told: _Told) -> Iterator[str]:
        """A part of the names each turn: one may mean another node by now, and a node belong to another cluster."""
        for key in list(islice(told.ids, -(-len(told.ids) // LOOK_UP_TURNS))):
            i, name = key
            yield (known := told.ids.pop(key))  # a name that is known again stands at the end
            del told.names[known][key]
            if name in views[i].nodes or name in views[i].boots:
                yield self._node_of(told, i, self._clusters[cluster][i], name)

    def _works(
        self, cluster: str, views: Sequence[ClusterView], moved: Iterable[str], *, whole: bool
    ) -> Iterator[WorkSeen]:
        """Work by node. A node that was listed and is no more runs nothing there.

        A member that was never listed stays unknown: its name may be another there than we believe.
        """
        told, news = self._told[cluster], list[WorkloadView]()
        for node_id in moved:
            found = [views[i].nodes[name] for i, name in sorted(told.names.get(node_id, ())) if name in views[i].nodes]
            before = told.views.get(node_id)
            if not found and before is None:
                continue
            named = _merged(found, node_id) if found else WorkloadView(node_id, (), listed=False)
            if named.overridden or _differs(before, named):
                news.append(named)
            if named.overridden:
                told.overridden[node_id] = None
            else:
                told.overridden.pop(node_id, None)
            told.views[node_id] = named
        if news or whole:
            yield WorkSeen(tuple(news), whole=whole, cluster=cluster)

    def _nodes(self, cluster: str, views: Sequence[ClusterView], moved: Iterable[str]) -> Iterator[NodeSeen]:
        """Whether the cluster's own members are ready, and the boot ids that it shows of them."""
        told = self._told[cluster]
        boots = list[NodeSeen]()
        for node_id in moved:
            names = sorted(told.names.get(node_id, ())) if self._speaks_for(cluster, node_id) else []
            ready = [views[i].ready[name] for i, name in names if name in views[i].ready]
            if ready and told.ready.get(node_id) is not all(ready):
                told.ready[node_id] = all(ready)
                yield NodeSeen(node_id, ready=all(ready))
            elif not ready:
                told.ready.pop(node_id, None)
            boot = next((views[i].boots[name] for i, name in reversed(names) if name in views[i].boots), None)
            if told.boots.get(node_id, "") != (boot or ""):
                boots.append(NodeSeen(node_id, boot_id=boot or ""))
            if boot is None:
                told.boots.pop(node_id, None)
            else:
                told.boots[node_id] = boot
        yield from boots

    def _node_of(self, told: _Told, index: int, one: Scheduler, name: str) -> str:
        """The id of the node that the scheduler calls so, "" for one that is none of ours."""
        known = told.ids.get((index, name))
        if known is None:
            known = told.ids[index, name] = _look_up(self._fleet(), one, name)
            told.names.setdefault(known, {})[index, name] = None
        return known

    def _speaks_for(self, cluster: str, node_id: str) -> bool:
        node = self._fleet().nodes.get(node_id)
        return node is not None and (node.assignment is None or node.assignment.cluster == cluster)


def _changed(before: ClusterView, now: ClusterView) -> list[str]:
    """The names of which something else is shown; what has not changed is the same object as before."""
    sides: tuple[tuple[Mapping[str, object], Mapping[str, object]], ...]
    sides = (before.nodes, now.nodes), (before.ready, now.ready), (before.boots, now.boots)
    found: list[str] = []
    for old, new in sides:
        other = [name for name, shown in new.items() if old.get(name) is not shown]
        if len(old) + sum(name not in old for name in other) != len(new):
            found += [name for name in old if name not in new]
        found += other
    return found


def _look_up(fleet: Fleet, one: Scheduler, name: str) -> str:
    for bound in (f"{one.kind}:{one.cluster}/{name}", f"{one.kind}:{name}"):
        if (found := next(iter(fleet.index.members(bound)), None)) is not None:
            return found
    node = fleet.nodes.get(name)
    return name if node is not None and name_there(node, one) == name else ""


def _differs(before: WorkloadView | None, now: WorkloadView) -> bool:
    return before is not now and before != now


def _merged(views: Iterable[WorkloadView], node_id: str) -> WorkloadView:
    """The view of a node by its schedulers, one at least; what one alone shows by this name stays the same object."""
    view = reduce(_both, views)
    return view if view.node == node_id else replace(view, node=node_id)


def _both(one: WorkloadView, other: WorkloadView) -> WorkloadView:
    """Merged view of a node by two schedulers of one cluster: it is cordoned where both say so."""
    said = [view.cordoned for view in (one, other) if view.cordoned is not None]
    return WorkloadView(
        one.node,
        (*one.workloads, *other.workloads),
        one.cordoned_by_other or other.cordoned_by_other,
        all(said) if said else None,
        one.listed or other.listed,
        one.overridden or other.overridden,
    )
