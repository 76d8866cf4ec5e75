"""How many nodes an intent would disturb now: a table from verb to those nodes. What is not in it disturbs nobody."""

from collections.abc import Callable

from hostler.core.intents.ask import Ask, nodes_of
from hostler.core.intents.consenting import together
from hostler.core.intents.wishes import WISHES
from hostler.core.planning.domain_plans import scope_of
from hostler.core.planning.what_if import ailing, begins, changed, disturbed, supposing, waiting_for
from hostler.core.policy.guards import scopes
from hostler.core.state.model import FLEET, HoldKind, Node

Nodes = tuple[str, ...]


def disturbed_by(ask: Ask) -> Nodes:
    """The nodes that the intent would disturb, or let be disturbed, as things stand now."""
    found = DISTURBS.get(ask.intent.verb)
    return found(ask) if found is not None else ()


def _named(ask: Ask) -> Nodes:
    return tuple(sorted(node.id for node in nodes_of(ask)))


def _freed(ask: Ask, kind: str, name: str) -> Nodes:
    """Who waits for this and would begin something by itself without it."""
    fleet = ask.scene.fleet
    return tuple(i for i in waiting_for(fleet, kind, name) if begins(ask.scene, fleet.nodes[i]))


def _resumed(ask: Ask) -> Nodes:
    return _freed(ask, "pause", ask.intent.target)


def _unbraked(ask: Ask) -> Nodes:
    return _freed(ask, "brake", "storm")


def _unheld(ask: Ask) -> Nodes:
    hold = ask.scene.fleet.holds.get(ask.intent.target)
    if hold is None or hold.kind in (HoldKind.cordon, HoldKind.physical_work):
        return ()
    return _freed(ask, "hold", hold.id)


def _incident(ask: Ask) -> Nodes:
    return _freed(ask, "incident", ask.intent.target)


def _window(ask: Ask) -> Nodes:
    """Who waits for a window of this scope: one that opens now, or the last one that is called off, lets them begin."""
    window = ask.scene.fleet.windows.get(ask.intent.target)
    scope = window.scope if window is not None else ask.intent.target
    return tuple(n.id for n in _waiting(ask, "window") if scope in scopes(ask.scene, n) or scope == FLEET)


def _waiting(ask: Ask, kind: str) -> list[Node]:
    fleet = ask.scene.fleet
    nodes = (fleet.nodes[i] for i in fleet.index.members("waiting"))
    waiting = (n for n in nodes if n.waiting and any(b.kind == kind for b in n.waiting.blockers))
    return [n for n in waiting if begins(ask.scene, n)]


def _accepted(ask: Ask) -> Nodes:
    cluster, name = ask.intent.target.removeprefix("cluster:"), ask.intent.args.get("remediator", "")
    return _freed(ask, "remediator", f"{cluster}/{name}")


def _mode(ask: Ask) -> Nodes:
    """The ailing nodes of the pool on which something would begin under the new mode."""
    scene, args = ask.scene, ask.intent.args
    pool, remedy = ask.intent.target.removeprefix("pool:"), args.get("remedy", "*")
    kept = tuple(m for m in scene.fleet.cell.modes if m[:2] != (pool, remedy))
    after = supposing(scene, modes=(*kept, (pool, remedy, args.get("mode", ""))))
    return changed(scene, after, [n for n in ailing(scene.fleet) if n.pool == pool])


def _restored(ask: Ask) -> Nodes:
    return _freed(ask, "restored", "journal")


def _activated(ask: Ask) -> Nodes:
    return disturbed(ask.scene, ask.configuration) if ask.configuration is not None else ()


def _approved(ask: Ask) -> Nodes:
    """Saying yes to a domain act is saying so for all of it."""
    node = ask.scene.fleet.resolve(ask.intent.target)
    plan = node.plan if node is not None else None
    if node is None or plan is None or plan.state != "proposed" or not scope_of(plan.group):
        return ()
    return tuple(n.id for n in together(ask, node))


def _consented(ask: Ask) -> Nodes:
    ticket = ask.scene.fleet.tickets.get(ask.intent.target)
    return (ticket.node,) if ticket is not None else ()


DISTURBS: dict[str, Callable[[Ask], Nodes]] = {
    **dict.fromkeys((verb for verb in WISHES if verb != "power-off"), _named),
    "cordon": _named,
    "resume": _resumed,
    "release-brake": _unbraked,
    "release": _unheld,
    "close-incident": _incident,
    "treat-individually": _incident,
    "schedule-maintenance": _window,
    "cancel-maintenance": _window,
    "mode": _mode,
    "release-restore": _restored,
    "accept-remediator": _accepted,
    "activate": _activated,
    "consent": _consented,
    "approve": _approved,
}
"""Verb → the nodes it would disturb. Easing and protective verbs are not here, and never need a second person; nor are
those about one node that serves nobody.
"""
