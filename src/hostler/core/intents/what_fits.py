"""Refuses requests for more nodes than budgets can ever hold at once, and says what would fit, with the commands."""

from hostler.core.intents.ask import AnyAsk, RefusalError
from hostler.core.policy.blast_radius import domains_of
from hostler.core.policy.budget_ceilings import fitting, never_fits, reserve_helps
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.state.scopes import NODES, POOL, RACK

NAMES_SHOWN = 400
"""Characters of node ids in a command that a refusal names."""


def demand_room(ask: AnyAsk, request: DisruptionRequest) -> None:
    """Raise RefusalError where the request, whose nodes are admitted as one, could never begin."""
    if why := never_fits(ask.context, request):
        raise RefusalError(f"it can never begin: {why}; {_way_out(ask, request)}")


def _way_out(ask: AnyAsk, request: DisruptionRequest) -> str:
    """Nodes that would fit, with the commands that ask for them."""
    raised = "raise the budget (hostler policy activate)"
    if reserve_helps(ask.context, request):
        raised = f"ask with --now, which may use the pool's reserve, or {raised}"
    fits = fitting(ask.context, request)
    if len(request.nodes) == 1 or not fits:
        return f"to let it begin, {raised}"
    command, names = f"hostler node {ask.intent.verb}", " ".join(node.id for node in fits)
    each = f"{command} --selector {_selector(ask)} --at-most {len(request.nodes)} --reason …"
    if ask.intent.target == NODES:
        each = f"{command} NODE… --reason …, without --as-one"
    few = f"`{command} {names} --reason …`, or " if len(names) <= NAMES_SHOWN else ""
    return (
        f"{len(fits)} at a time would fit: {few}have each asked for by itself, and as many begin as fit: "
        f"`{each}`; or {raised}"
    )


def _selector(ask: AnyAsk) -> str:
    """The selector that finds the nodes of the target."""
    scope = next(iter(domains_of(ask.context.fleet, ask.intent.target)), ask.intent.scope)
    named = scope.kind in (POOL, RACK)
    return f"{scope.kind}={scope.name},phase=production" if named else f"domain={scope},phase=production"
