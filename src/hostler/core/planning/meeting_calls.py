"""Calls for company: whom a node that meetings blamed may have called from idle time to meet it at its check. Pure.

The nodes are of its SKU, in pools without a scheduler that check idle nodes: their agents meet at the end of that
check. They come by an idle check as any other, inside the same limits, and yield to whoever uses them.
"""

from datetime import datetime, timedelta

from hostler.core.conditions.meeting_blame import THOROUGH, blame_on
from hostler.core.state.configuration import Pool
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import CompanyCall
from hostler.core.state.model import Node, Operation
from hostler.core.state.operations import RunChecks
from hostler.core.state.pool_mode import Mode
from hostler.core.tables.operations import IDLE_CHECK

CALLED_MOST = 4
"""Nodes that are called at a time: two must pass with it, and one may be busy or bad."""
CALL_AGAIN_S = 1_500.0
"""Interval between calls for one node: an idle check and its meetings have ended by then."""


def checks_idle(fleet: Fleet, pool: str, configured: Pool | None) -> bool:
    """Whether the pool wants idle checks: its mode for them is act, by name. "*" speaks of remedies only."""
    for name, what, mode in fleet.cell.modes:
        if (name, what) == (pool, IDLE_CHECK):
            return mode == Mode.act.value
    return configured is not None and configured.modes.get(IDLE_CHECK) is Mode.act


def calling_pools(fleet: Fleet, node: Node) -> tuple[str, ...]:
    """The pools whose idle nodes may be called to meet the node."""
    able = ((name, pool) for name, pool in fleet.pools.items() if pool.sku == node.sku and not pool.cluster)
    return tuple(sorted(name for name, pool in able if checks_idle(fleet, name, pool)))


def blamed_check(node: Node) -> Operation | None:
    """The check by whose meetings a blamed node is to be answered, while it is under way."""
    check = node.operation
    if check is None or not isinstance(check.act, RunChecks) or check.act.profile not in THOROUGH:
        return None
    return check if blame_on(node) is not None else None


def is_call_due(context: DecisionContext, node: Node) -> bool:
    """Whether others are to be called now for the node, which asks whom to meet and has nobody."""
    check = blamed_check(node)
    if check is None or not calling_pools(context.fleet, node):
        return False
    called = context.live.of(node.id).called_others
    return called is None or called < check.started or context.now - called >= timedelta(seconds=CALL_AGAIN_S)


def is_called(context: DecisionContext, node: Node, tried: datetime | None) -> bool:
    """Whether a node that is still at its check has called this one, which has not been checked since."""
    call = context.live.of(node.id).call
    if call is None or (tried is not None and tried >= call.at):
        return False
    return is_current(context, call)


def is_current(context: DecisionContext, call: CompanyCall) -> bool:
    """Whether the check for which the call was made is under way still."""
    caller = context.fleet.nodes.get(call.by)
    check = blamed_check(caller) if caller is not None else None
    return check is not None and check.started <= call.at


def partners_wanted(fleet: Fleet, node: Node) -> str:
    """Say what brings a blamed node two others to pass with."""
    pools = calling_pools(fleet, node)
    if pools:
        return f"idle nodes of {', '.join(pools)} are called to meet it when it is checked again, or a person vouches"
    return (
        f"no pool of {node.sku or 'its SKU'} checks idle nodes by their agents (modes: idle_check: act), so nobody can "
        "be called: check two others at the same time, or vouch"
    )[:200]
