"""Views of the schedulers: the work that they show becomes live state, and a lifted cordon a hold."""

from collections.abc import Iterator
from datetime import datetime

from hostler.controller.inputs import WorkSeen
from hostler.core.conditions.uninvited import UNINVITED, entered_at_boot
from hostler.core.planning import idle_checks
from hostler.core.state import events as e
from hostler.core.state.customer_workloads import WorkClass
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import LiveNode
from hostler.core.state.model import OWNER, Hold, HoldKind, Node
from hostler.ports import WorkloadView


def see_work(context: DecisionContext, seen: WorkSeen) -> list[str]:
    """Take over what a cluster's schedulers show; the nodes to look at, because of their work or their idle check."""
    live, now = context.live, context.now
    touched = [view.node for view in seen.views if _see(live.entry(view.node), seen.cluster, view, now)]
    if seen.whole or seen.lost:
        live.clusters[seen.cluster] = seen.lost
    if seen.lost:
        live.whole_since.pop(seen.cluster, None)
        for here in live.nodes.values():
            if seen.cluster in here.workloads:
                here.idle_since = None
                here.ready = None  # what a scheduler believed when it was last heard is no witness
        touched += _unwatched_checks(context.fleet, seen.cluster)
    elif seen.whole:
        live.whole_since.setdefault(seen.cluster, now)
    return touched


def _unwatched_checks(fleet: Fleet, cluster: str) -> list[str]:
    """The nodes of a cluster whose idle check is under way: nobody sees any longer whether a customer comes."""
    busy = [fleet.nodes[i] for i in fleet.index.members("operating")]
    checked = [one for one in busy if idle_checks.running(one) is not None]
    return [one.id for one in checked if one.assignment is not None and one.assignment.cluster == cluster]


def _see(here: LiveNode, cluster: str, view: WorkloadView, now: datetime) -> bool:
    """Whether it shows anything new. Who shows that our cordon was lifted does not lag behind it."""
    is_open = view.cordoned is False and not view.overridden
    before = (here.workloads.get(cluster), here.cordoned_by_other, cluster in here.open, here.idle_since is not None)
    is_news = (cluster in here.listed) is not view.listed or (cluster in here.lifted) is not bool(view.overridden)
    if view.listed:
        here.listed[cluster] = None
    else:
        unlist(here, cluster)
    here.workloads[cluster] = view.workloads
    here.cordoned_by_other = view.cordoned_by_other
    if is_open:
        here.open[cluster] = None
    else:
        here.open.pop(cluster, None)
    if view.overridden:
        here.lifted[cluster] = None
    else:
        here.lifted.pop(cluster, None)
    idle = all(w.work_class is WorkClass.infrastructure for told in here.workloads.values() for w in told)
    here.idle_since = (here.idle_since or now) if idle else None
    return is_news or before != (view.workloads, view.cordoned_by_other, is_open, idle)


def unlist(here: LiveNode, cluster: str) -> None:
    """Forget what a cluster believed of a node that it lists no more: it is no witness."""
    here.listed.pop(cluster, None)
    if not here.listed:
        here.ready = None


def of_override(fleet: Fleet, seen: WorkSeen, now: datetime) -> Iterator[e.HoldPlaced]:
    """A person lifted our cordon by the scheduler's own means: that is recorded as a hold, not fought."""
    for view in seen.views:
        node = fleet.nodes.get(view.node) if view.overridden else None
        if node is None or not _is_kept_shut_in(fleet, node, seen.cluster):
            continue
        if any(one.kind in ("cordon", "uncordon", "cordon_uninvited") for one in node.under_way):
            continue  # what is shown may be from before it
        if not any(h.kind is HoldKind.override for h in fleet.holds_of(node.id)):
            reason = f"lifted our cordon in cluster {seen.cluster}"
            identity = f"h{fleet.cell.seq}-{node.id}"
            yield e.HoldPlaced(Hold(identity, node.scope, HoldKind.override, view.overridden, reason, now))


def _is_kept_shut_in(fleet: Fleet, node: Node, cluster: str) -> bool:
    """Whether our cordon is to stand there: by its plan, after it has left, or before it is delivered.

    Of a guest it is told once: who releases the hold has it cordoned again, and the condition stands until then.
    """
    if node.assignment is not None and node.assignment.cluster == cluster:
        return OWNER in node.cordons
    if cluster == entered_at_boot(fleet, node):
        return all(one.type != UNINVITED for one in node.conditions)
    return cluster == node.left_cluster
