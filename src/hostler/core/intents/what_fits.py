"""Refuses requests that can never be carried out: no means on a node, or more nodes than budgets can ever hold at once.

Both say what would do instead, with the commands, before anything is cordoned.
"""

from hostler.core.intents.ask import AnyAsk, RefusalError
from hostler.core.policy.abilities import Answer, remedy_ability
from hostler.core.policy.blast_radius import domains_of
from hostler.core.policy.budget_ceilings import fitting, never_fits, reserve_helps
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.state.model import Node
from hostler.core.state.scopes import NODES, POOL, RACK

MEMBERS_SHOWN = 8
"""Nodes of a target that a refusal names with what each lacks."""
NAMES_SHOWN = 400
"""Characters of node ids in a command that a refusal names."""


def demand_room(ask: AnyAsk, request: DisruptionRequest) -> None:
    """Raise RefusalError where the request, whose nodes are admitted as one, could never begin."""
    if why := never_fits(ask.context, request):
        raise RefusalError(f"it can never begin: {why}; {_way_out(ask, request)}")


def demand_means(ask: AnyAsk, nodes: tuple[Node, ...], remedy: str) -> None:
    """Raise RefusalError where the remedy cannot be carried out on one of the nodes, whatever the time."""
    found = [(node, remedy_ability(ask.context, node, remedy)) for node in nodes]
    cannot = [(node, missing) for node, missing in found if missing.answer is Answer.cannot]
    if not cannot:
        return
    told = "; ".join(f"{node.id}: {missing.text}" for node, missing in cannot[:MEMBERS_SHOWN])
    told += f"; and {len(cannot) - MEMBERS_SHOWN} more" if len(cannot) > MEMBERS_SHOWN else ""
    where = f"{len(cannot)} of {len(nodes)} nodes: {told}" if len(nodes) > 1 else told
    can = [node for node, missing in found if missing.answer is not Answer.cannot]
    raise RefusalError(f"{ask.intent.verb} cannot be done on {where}{_instead(ask, cannot[0][0], can, remedy)}")


_STANDS_FOR = {"reboot": ("power_cycle", "power-cycle"), "power_cycle": ("reboot", "reboot")}
"""A restart by the other means, and its command."""


def _instead(ask: AnyAsk, node: Node, can: list[Node], remedy: str) -> str:
    """Requests that can be made now: the others of the target, or a restart by the other means."""
    names = " ".join(one.id for one in can)
    if can and len(names) <= NAMES_SHOWN:
        return f"; the others can be asked for alone: `hostler node {ask.intent.verb} {names} --reason …`"
    other, command = _STANDS_FOR.get(remedy, ("", ""))
    if not can and other and remedy_ability(ask.context, node, other).answer is Answer.can:
        return f"; what can be done instead: `hostler node {command} {node.id} --reason …`"
    return ""


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
