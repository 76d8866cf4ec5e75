"""First step of a registered node: its bring-up begins, or it is adopted into service once its inventory is seen."""

from hostler.core.planning.outcomes import change_phase
from hostler.core.planning.without_bmc import unpowered
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import blockers
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait
from hostler.core.state.model import ActClass, Blocker, Node, Phase
from hostler.core.state.scopes import FLEET
from hostler.core.state.verbs.nodes import Adopt
from hostler.core.state.ways_out import by_act, observed
from hostler.core.tables.phases import PHASES


def enrol(context: DecisionContext, node: Node) -> Answer:
    """Begin the bring-up of a registered node, or take an adopted one into service; else why it waits."""
    if node.adopted:
        if node.inventory_at is not None:
            return Act(change_phase(context, node, Phase.production, "adopted, its inventory seen"))
        text = "the node's inventory has not been seen yet"
        return Wait(
            "adopt",
            (Blocker("observation", "inventory", text, observed("its agent or BMC reports the inventory", "agent")),),
            until=None,
        )
    if node.provisioner == "none":
        text = "the node has no provisioner, so Hostler does not power it on"
        return Wait(
            "bring_up",
            (
                Blocker(
                    "person", "operator", text, by_act(Adopt(), FLEET, "a person adopts it, or gives it a provisioner")
                ),
            ),
            until=None,
        )
    request = DisruptionRequest(PHASES[Phase.initializing].recipe, ActClass.bring_up, (node,))
    found = blockers(context, request) or unpowered(context, node)
    if found:
        return Wait("bring_up", found, until=None)
    return Act(change_phase(context, node, Phase.initializing, "bring-up begins"))
