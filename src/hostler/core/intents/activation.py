"""A whole checked configuration takes the place of the one before: at once where little acts, else slice by slice."""

from msgspec.structs import replace

from hostler.core.intents.ask import Ask, Granted, Handler, Handlers, Nodes, RefusalError
from hostler.core.planning.rollouts import RolloutOrder, begin
from hostler.core.planning.what_if import acting, decides_otherwise, disturbed, pool_changes, supposing
from hostler.core.state import events as e
from hostler.core.state.change_control import Rollout
from hostler.core.state.configuration import Configuration, PolicySource
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.durations import duration
from hostler.core.state.remediators import begins_to_act, blockers
from hostler.core.state.verbs.activation import Activate, StopRollout

CHANGES_SHOWN = 50


def activate(ask: Ask[Activate]) -> Granted:
    """The configuration is in force, or its rollout has begun."""
    fresh = replace(_checked(ask), source=_source(ask.act))
    fleet = ask.context.fleet
    if fresh.sha256 == fleet.configuration.sha256:
        return f"configuration {fresh.sha256[:12]} is active already", ()
    if rolls_out(ask.context, fresh) and not ask.act.at_once:
        order = RolloutOrder(fresh, ask.documents, ask.intent.person, ask.intent.reason, ask.approved_by)
        started = begin(ask.context, order)
        return f"configuration {fresh.sha256[:12]}: {_planned(started.rollout)}", (started,)
    return f"configuration {fresh.sha256[:12]} is active", (e.ConfigActivated(fresh, ask.documents, ask.intent.person),)


def _source(act: Activate) -> PolicySource | None:
    return PolicySource(act.commit, act.ref, act.origin) if act.commit else None


def _checked(ask: Ask[Activate]) -> Configuration:
    fresh, fleet = ask.configuration, ask.context.fleet
    if fresh is None:
        raise RefusalError("the request carries no checked configuration; use `hostler policy activate`")
    if (running := fleet.rollout) is not None:
        raise RefusalError(
            f"rollout {running.id} of configuration {running.sha256[:12]} is under way: let it end, or stop it first "
            f"(hostler rollout stop {running.id} --reason …)"
        )
    used = {fleet.nodes[i].pool for i in fleet.nodes} - {""}
    if lost := sorted(used - set(fresh.pools)):
        raise RefusalError(
            f"pools {', '.join(lost)} have members but are missing from the configuration; release their nodes first"
        )
    waiting = blockers(supposing(ask.context, fresh).fleet, begins_to_act(fleet.configuration, fresh))
    if waiting:
        raise RefusalError(f"pools would begin to act: {waiting[0].text}; wait until {waiting[0].ends_when}")
    return fresh


def rolls_out(context: DecisionContext, fresh: Configuration) -> bool:
    """Whether it decides otherwise about single nodes, and more nodes act than one person's word may disturb."""
    active = context.fleet.configuration
    if not decides_otherwise(active, fresh):
        return False
    return acting(context.fleet, active, fresh) > context.fleet.policy.reach.nodes


def _planned(rollout: Rollout) -> str:
    few = len(rollout.slices[0].nodes) or rollout.slices[0].size
    return (
        f"rollout {rollout.id} begins with {few} nodes of "
        f"{f'pool {rollout.slices[0].pool}' if rollout.slices[0].pool else 'no pool'}; {len(rollout.slices)} slices, "
        f"each watched for {duration(rollout.soak_s)}"
    )


def effect(ask: Ask[Activate]) -> dict[str, str]:
    """Effect that activating it would have, for a dry run."""
    fresh, fleet = ask.configuration, ask.context.fleet
    if fresh is None:
        return {}
    nodes = disturbed(ask.context, fresh)
    return {
        "nodes": ",".join(nodes[:1000]),
        "disturbs": str(len(nodes)),
        "pools": "; ".join(pool_changes(fleet.configuration, fresh)[:CHANGES_SHOWN]),
        "rollout": "yes" if rolls_out(ask.context, fresh) else "no",
    }


def stop_rollout(ask: Ask[StopRollout]) -> Granted:
    """The configuration before is in force everywhere again."""
    running = ask.context.fleet.rollout
    if running is None or ask.intent.target not in (running.id, "fleet"):
        raise RefusalError(f"no rollout {ask.intent.target} is under way; see `hostler rollout list`")
    why = f"stopped by a person: {ask.intent.reason}"
    text = f"rollout {running.id} is stopped; configuration {running.before[:12]} decides everywhere again"
    return text, (e.RolloutStopped(running.id, why, ask.intent.person),)


def _disturbed(ask: Ask[Activate]) -> Nodes:
    return disturbed(ask.context, ask.configuration) if ask.configuration is not None else ()


HANDLERS: Handlers = {Activate: Handler(activate, _disturbed), StopRollout: Handler(stop_rollout)}
