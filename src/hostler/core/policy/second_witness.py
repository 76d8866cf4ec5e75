"""Second witnesses: absence alone convicts nobody, nor does a kernel log that a tenant can write."""

from hostler.core.policy.corroboration import doubted
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.live_state import OFF, LiveState
from hostler.core.state.model import Blocker, Node


def unconfirmed(context: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    """Absence alone convicts nobody, nor does a kernel log that a tenant can write: somebody else must say so too."""
    doubts = [b for node in request.nodes for b in doubted(context.fleet, node, request.causes)]
    if not request.confirm or doubts:
        return doubts
    silent = [node for node in request.nodes if not has_second_witness(context.live, node)]
    return [
        Blocker(
            "confirmation",
            node.id,
            "only one path to the node is silent; neither its scheduler nor its BMC says that it is down",
            "a second independent path fails too, or the node is heard again",
        )
        for node in silent
    ]


def has_second_witness(live: LiveState, node: Node) -> bool:
    """The scheduler calls the node not ready, or its BMC says that it is off."""
    seen = live.of(node.id)
    return seen.ready is False or seen.power == OFF
