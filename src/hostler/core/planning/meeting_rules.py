"""Rules of meetings between nodes under check: where a port is in its network, and what keeps a node away. Pure.

A meeting loads links that others' work uses too, and disturbs nobody else: under one leaf it loads the members' own
links alone. So it asks less than a disruption does: never a node where customers work, or might; nothing while a person
has paused the cell or has the hands in the node; and nothing between leaves outside the windows of the node's scopes.
"""

from hostler.core.planning.cabling import fabrics_of
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.holds_and_pauses import paused, restored, worked_on
from hostler.core.policy.maintenance_windows import outside_window
from hostler.core.policy.workload_consent import unknown_work
from hostler.core.state.customer_workloads import WorkClass
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fabrics import LinkCondition
from hostler.core.state.model import ActClass, Node

MEETING = "meeting"
_ASKED = (restored, paused, worked_on)
_ASTRAY = frozenset({LinkCondition.missing, LinkCondition.elsewhere})


def place_of(context: DecisionContext, node: Node, via: str) -> tuple[str, str]:
    """The network and the leaf at which its design has this port of the node, as the last validation found it.

    ("", "") where no design has it. A cable that lies elsewhere leads to a leaf of its own, at which nobody else is.
    """
    for fabric, name in fabrics_of(context.fleet, node):
        seen = context.live.fabrics.get(fabric.name)
        for link in seen.links.of(name) if seen is not None and seen.good is not None else ():
            if link.a == f"{name}:{via}":
                leaf = link.z.rpartition(":")[0]
                return fabric.name, f"{leaf}?{name}" if link.condition in _ASTRAY else leaf
    return "", ""


def keeps_apart(context: DecisionContext, node: Node) -> str:
    """Why the node meets nobody now, "" where it may: customers' work, a pause, somebody's hands, a copied journal."""
    works = context.live.workloads(node)
    if works is None and node.assignment is not None and node.assignment.cluster:
        return unknown_work(node, context.live).text
    for work in works or ():
        if work.work_class is not WorkClass.infrastructure and not work.check:
            return f"{work.job or work.id} of {work.tenant or 'a customer'} runs on the node"
    request = DisruptionRequest(MEETING, ActClass.idle_check, (node,))
    return next((found.text for guard in _ASKED for found in guard(context, request)), "")


def keeps_in_leaf(context: DecisionContext, node: Node) -> str:
    """Why the node may not load links between leaves now, "" where it may: its scopes have windows, none is open."""
    request = DisruptionRequest(MEETING, ActClass.pending, (node,))
    return next((found.text for found in outside_window(context, request)), "")
