"""Cordons, holds and pauses: what keeps things as they are."""

from collections.abc import Callable, Iterator

from hostler.core.intents import call_off
from hostler.core.intents.affected_nodes import freed
from hostler.core.intents.ask import (
    AnyAsk,
    Ask,
    Granted,
    Handler,
    Handlers,
    Nodes,
    RefusalError,
    hold_of,
    nodes_of,
    scope_of,
    workplace_of,
)
from hostler.core.intents.bounds import is_theirs
from hostler.core.policy.budgets import allowance, unavailable
from hostler.core.policy.holds_and_pauses import scopes
from hostler.core.state import events as e
from hostler.core.state.health import is_serving
from hostler.core.state.model import ActClass, HoldKind, Node
from hostler.core.state.verbs.command_line import command_of
from hostler.core.state.verbs.holds import Cordon, Pause, PlaceHold, ReleaseHold, Resume, Uncordon


def cordon(ask: Ask[Cordon]) -> Granted:
    """Keep new work away."""
    nodes = nodes_of(ask)
    events = tuple(e.HoldPlaced(hold_of(ask, node.scope, HoldKind.cordon, ask.act.hours)) for node in nodes)
    told = (f"a cordon is asked for on {len(nodes)} node(s); running work finishes", *_costs(ask, nodes))
    return "; ".join((*told, *_stay_open(ask, nodes))), events


def _costs(ask: AnyAsk, nodes: tuple[Node, ...]) -> Iterator[str]:
    """Costs to the pools of a cordon of these nodes: said, and no reason to refuse it, as nobody's work ends."""
    for name in sorted({node.pool for node in nodes if node.pool}):
        pool = ask.context.fleet.pools.get(name)
        if pool is None:
            continue
        taken = sum(is_serving(node) for node in nodes if node.pool == name)
        out, limit = unavailable(ask.context, pool) + taken, allowance(pool.budget, pool.target, ActClass.pending)
        over = ": remedies there wait until nodes are back" if out > limit else ""
        yield f"pool {name} then has {out} of {pool.target} unavailable, its budget is {limit}{over}"


def _stay_open(ask: AnyAsk, nodes: tuple[Node, ...]) -> Iterator[str]:
    """Nodes whose cordon is not laid before a hold is released: somebody opened them in their cluster."""
    for node in nodes:
        holds = ask.context.fleet.holds_on(scopes(ask.context.fleet, node))
        if over := [hold for hold in holds if hold.kind is HoldKind.override]:
            way_out = f"`{command_of(ReleaseHold(), over[0].id)}`"
            why = "" if ask.intent.bounds.tenant else f" {over[0].reason}"
            yield f"{node.id} stays open, {ask.called(over[0].owner)}{why or ' has opened it'}: {way_out}"


def uncordon(ask: Ask[Uncordon]) -> Granted:
    """Lift the cordons that people placed; of a tenant, those that this tenant placed."""
    nodes = nodes_of(ask)
    held = [h for node in nodes for h in ask.context.fleet.holds_of(node.id) if h.kind is HoldKind.cordon]
    if not held:
        target = ask.intent.target
        raise RefusalError(
            f"no person has cordoned {target}; see `hostler node get {target}`{call_off.hint(ask, target)}"
        )
    own = [h for h in held if is_theirs(ask.intent.bounds, h.tenant)]
    stays = [h for h in held if h not in own]
    others = ", ".join(f"{'another customer' if h.tenant else ask.called(h.owner)}'s on {h.scope}" for h in stays[:5])
    if not own:
        raise RefusalError(f"the cordon is not yours to lift: {others}; ask its owner or an operator")
    events = tuple(e.HoldReleased(h.id, h.scope, ask.intent.person, ask.intent.reason) for h in own)
    return f"{len(own)} cordon(s) lifted" + (f"; these stay: {others}" if others else ""), events


def place_hold(ask: Ask[PlaceHold]) -> Granted:
    """Leave this as it is."""
    hold = hold_of(ask, workplace_of(ask), HoldKind.operator, ask.act.hours)
    return f"hold {hold.id} placed on {hold.scope}", (e.HoldPlaced(hold),)


def release_hold(ask: Ask[ReleaseHold]) -> Granted:
    """A hold ends."""
    hold = ask.context.fleet.holds.get(ask.intent.target)
    if hold is None:
        raise RefusalError(f"no hold {ask.intent.target}; see `hostler hold list`")
    if hold.kind is HoldKind.physical_work:
        raise RefusalError(
            "the hold ends with the physical work: who started it, or a shift lead, runs "
            f"`hostler node end-work {hold.scope} --reason …`"
        )
    return f"hold on {hold.scope} released", (
        e.HoldReleased(hold.id, hold.scope, ask.intent.person, ask.intent.reason),
    )


def set_pause(paused: bool) -> Callable[[AnyAsk], Granted]:
    """Pause or resume new disruptions within the scope."""

    def grant(ask: AnyAsk) -> Granted:
        scope = scope_of(ask)
        text = f"disruption is {'paused' if paused else 'no longer paused'} for {scope}"
        return text, (e.PauseSet(scope, paused, ask.intent.person, ask.intent.reason),)

    return grant


def _resumed(ask: Ask[Resume]) -> Nodes:
    return freed(ask, "pause", ask.intent.target)


def _unheld(ask: Ask[ReleaseHold]) -> Nodes:
    hold = ask.context.fleet.holds.get(ask.intent.target)
    if hold is None or hold.kind in (HoldKind.cordon, HoldKind.physical_work):
        return ()
    return freed(ask, "hold", hold.id)


HANDLERS: Handlers = {
    Cordon: Handler(cordon),
    Uncordon: Handler(uncordon),
    PlaceHold: Handler(place_hold),
    ReleaseHold: Handler(release_hold, _unheld),
    Pause: Handler(set_pause(paused=True)),
    Resume: Handler(set_pause(paused=False), _resumed),
}
