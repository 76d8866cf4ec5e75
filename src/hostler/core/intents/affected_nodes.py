"""The nodes that an intent would disturb now: those it names, or those that wait for what it ends."""

from hostler.core.intents.ask import AnyAsk, Nodes, nodes_of
from hostler.core.planning.what_if import begins, waiting_for


def named(ask: AnyAsk) -> Nodes:
    """The nodes of the target."""
    return tuple(sorted(node.id for node in nodes_of(ask)))


def freed(ask: AnyAsk, kind: str, name: str) -> Nodes:
    """The nodes that wait for this and would begin something by themselves without it."""
    fleet = ask.context.fleet
    return tuple(i for i in waiting_for(fleet, kind, name) if begins(ask.context, fleet.nodes[i]))
