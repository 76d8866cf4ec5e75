"""Tells whether what an intent names is there: a refusal of what is not is answered otherwise than any other."""

from collections.abc import Callable
from typing import Any

from hostler.core.intents.bounds import concerns
from hostler.core.policy.blast_radius import resolve
from hostler.core.state.fleet import Fleet
from hostler.core.state.intent import Intent
from hostler.core.state.overlay_table import Table
from hostler.core.state.scopes import CLUSTER, DOMAINS, FLEET, NODES, POOL, RACK, SWITCH, Scope
from hostler.core.state.verbs.facts import Target

_BY_ID: dict[Target, Callable[[Fleet], Table[Any]]] = {
    Target.hold: lambda fleet: fleet.holds,
    Target.ticket: lambda fleet: fleet.tickets,
    Target.incident: lambda fleet: fleet.incidents,
    Target.approval: lambda fleet: fleet.approvals,
    Target.rollout: lambda fleet: fleet.rollouts,
    Target.fabric: lambda fleet: fleet.fabrics,
    Target.rma: lambda fleet: fleet.rma_cases,
    Target.golden: lambda fleet: fleet.goldens,
    Target.asset: lambda fleet: fleet.assets,
}
"""Kinds of target that have a table of their own. All others are nodes and places, but for windows."""


def is_there(fleet: Fleet, kind: Target, intent: Intent) -> bool:
    """Whether the intent's target, which its verb takes for one of this kind, is there for who asks.

    A window that concerns no node of a tenant is not there for that tenant.
    """
    if kind is Target.fleet or intent.target == FLEET:
        return True
    if kind in _BY_ID:
        return intent.target in _BY_ID[kind](fleet)
    if kind is Target.window:
        window = fleet.windows.get(intent.target)
        return window is not None and (not intent.bounds.tenant or concerns(fleet, window.scope, intent.bounds))
    names = intent.nodes if intent.target == NODES else (intent.target,)
    return all(_is_place(fleet, Scope.of(name)) for name in names)


def _is_place(fleet: Fleet, scope: Scope) -> bool:
    """Whether a node, an asset, or something that nodes share goes by this name."""
    configured = fleet.configuration.pools
    if scope.kind == POOL:
        return scope.name in configured
    if scope.kind == CLUSTER:
        return any(pool.cluster == scope.name for pool in configured.values())
    if scope.kind == SWITCH:
        return any(fabric.names_switch(scope.name) for fabric in fleet.fabrics.values())
    if scope.kind in DOMAINS:
        return bool(resolve(fleet, scope.text)) or _has_asset(fleet, scope)
    return fleet.resolve(scope.text) is not None or scope.text in fleet.assets


def _has_asset(fleet: Fleet, scope: Scope) -> bool:
    """Whether an asset is the domain, or stands in it."""
    here = scope.name if scope.kind == RACK else None
    return scope.name in fleet.assets or any(one.position.rack == here for one in fleet.assets.values())
