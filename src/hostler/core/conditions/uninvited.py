"""Clusters that list a node against its journal: one that it has left, or one it entered at its boot, open to work."""

from hostler.core.diagnose import Finding
from hostler.core.diagnose.findings import over, stands
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node

UNINVITED = "node.uninvited"


def entered_at_boot(fleet: Fleet, node: Node) -> str:
    """The cluster that the node enters by its boot and is not delivered in: it stays cordoned there; "" for none."""
    if node.assignment is not None or node.boot is None:
        return ""
    boots = fleet.configuration_of(node).boot
    return boots.cluster if boots is not None else ""


def listed_against_journal(context: DecisionContext, node: Node) -> str:
    """The cluster from which something is to be taken back, "" for none. What is not heard is not known.

    By its boot a node is a guest of that cluster: its Node may stand there, and must not be open to work.
    """
    here = context.live.nodes.get(node.id)
    if here is None:
        return ""
    boots, left = entered_at_boot(context.fleet, node), node.left_cluster
    if left and left != boots and left in here.listed and not _is_member(node, left):
        return left
    return boots if boots and (boots in here.open or boots in here.lifted) else ""


def uninvited(context: DecisionContext, node: Node, stood: bool) -> Finding | None:
    """The condition that begins or ends, None where it is as it was, or nothing is known of the clusters concerned."""
    guarded = (node.left_cluster, entered_at_boot(context.fleet, node))
    if not (any(guarded) or stood) or not all(context.live.synced(cluster) for cluster in guarded if cluster):
        return None
    where = listed_against_journal(context, node)
    if bool(where) == stood:
        return None
    if stood:
        why = "the cluster no longer lists the node, shows it cordoned before its delivery, or the node serves it again"
        return over(UNINVITED, why)
    text = f"the node has left cluster {where}, and its kubelet has registered it there again"
    if where == entered_at_boot(context.fleet, node):
        text = f"cluster {where}, which the node enters at its boot, shows it open to work before it is delivered there"
    return stands(UNINVITED, text, facts={"cluster": where})


def _is_member(node: Node, cluster: str) -> bool:
    return node.assignment is not None and node.assignment.cluster == cluster
