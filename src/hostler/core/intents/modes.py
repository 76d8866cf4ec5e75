"""How far Hostler acts by itself: modes of pools, and the storm brake."""

from hostler.core.intents.affected_nodes import freed
from hostler.core.intents.ask import Ask, Granted, Handler, Handlers, Nodes, RefusalError
from hostler.core.planning.what_if import ailing, changed, supposing
from hostler.core.state import events as e
from hostler.core.state.pool_mode import Mode
from hostler.core.state.remediators import blockers
from hostler.core.state.scopes import POOL
from hostler.core.state.verbs.modes import ReleaseBrake, SetMode
from hostler.core.tables.operations import IDLE_CHECK
from hostler.core.tables.recipes import RECIPES


def set_mode(ask: Ask[SetMode]) -> Granted:
    """How far a pool lets a remedy go by itself."""
    pool = ask.intent.scope.named(POOL)
    if pool not in ask.context.fleet.configuration.pools:
        raise RefusalError(f"no pool '{pool or ask.intent.target}'; see `hostler pool list`")
    remedy, wanted = ask.act.remedy, ask.act.mode
    if remedy not in ("*", IDLE_CHECK) and remedy not in RECIPES:
        raise RefusalError(f"no remedy '{remedy}'; write one of {', '.join(sorted(RECIPES))}, '{IDLE_CHECK}', or '*'")
    beside = blockers(ask.context.fleet, {pool}) if wanted is Mode.act and remedy != IDLE_CHECK else []
    if beside:
        raise RefusalError(f"pool {pool} may not act: {beside[0].text}; wait until {beside[0].ends_when}")
    return f"pool {pool}: mode of {remedy} is {wanted}", (e.ModeSet(pool, remedy, wanted, ask.intent.person),)


def release_brake(ask: Ask[ReleaseBrake]) -> Granted:
    """Disruption may go on after a storm."""
    if not ask.context.fleet.cell.brake:
        raise RefusalError("the storm brake is not latched, so there is nothing to release")
    return "the storm brake is released", (e.BrakeReleased(ask.intent.person, ask.intent.reason),)


def _under_new_mode(ask: Ask[SetMode]) -> Nodes:
    """The ailing nodes of the pool on which something would begin under the new mode."""
    context, act = ask.context, ask.act
    pool = ask.intent.scope.named(POOL)
    kept = tuple(m for m in context.fleet.cell.modes if m[:2] != (pool, act.remedy))
    after = supposing(context, modes=(*kept, (pool, act.remedy, act.mode.value)))
    return changed(context, after, [n for n in ailing(context.fleet) if n.pool == pool])


def _unbraked(ask: Ask[ReleaseBrake]) -> Nodes:
    return freed(ask, "brake", "storm")


HANDLERS: Handlers = {
    SetMode: Handler(set_mode, _under_new_mode),
    ReleaseBrake: Handler(release_brake, _unbraked),
}
