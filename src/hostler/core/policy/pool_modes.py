"""Modes of pools: whether a remedy is only observed, proposed to a person, or done."""

from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import Blocker, Node, Phase
from hostler.core.state.pool_mode import Mode
from hostler.core.state.scopes import POOL
from hostler.core.state.verbs.modes import SetMode
from hostler.core.state.ways_out import by_act, observed


def mode_of(context: DecisionContext, node: Node, remedy: str) -> Mode:
    """The mode of the node's pool × remedy: what was set by intent, else the pool's document, else observe.

    Nodes outside every pool (spares, bring-up) act: there is no customer to ask. An adopted spare is only observed:
    nobody has said yet that it may be touched.
    """
    pool = node.pool
    if not pool:
        return Mode.observe if node.adopted and node.phase is Phase.production else Mode.act
    recorded = {(p, r): m for p, r, m in context.fleet.cell.modes}
    configured = context.fleet.pool_of(node)
    documents = configured.modes if configured else {}
    for found in (
        recorded.get((pool, remedy)),
        recorded.get((pool, "*")),
        documents.get(remedy),
        documents.get("*"),
    ):
        if found is not None:
            return Mode(found)
    return Mode.observe


def only_observed(context: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    """Observe blocks here; propose lets the plan be recorded, and it waits as proposed for a person's yes."""
    if request.approved:
        return []
    only = {node.pool for node in request.nodes if mode_of(context, node, request.remedy) is Mode.observe}
    return [
        Blocker(
            "mode",
            f"{pool}:{request.remedy}",
            f"{f'pool {pool}' if pool else 'an adopted spare'} is in mode observe for {request.remedy}: "
            "the remedy is shown and not started",
            by_act(
                SetMode(Mode.propose, request.remedy),
                f"{POOL}:{pool}",
                "its mode is set to propose, or in its place act",
            )
            if pool
            else observed("a pool in mode act takes it", "hostler"),
        )
        for pool in sorted(only)
    ]
