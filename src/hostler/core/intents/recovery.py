"""Intents with which people vouch: a restored journal may act, the clock is right."""

from hostler.core.intents.affected_nodes import freed
from hostler.core.intents.ask import AnyAsk, Ask, Granted, Handler, Handlers, Nodes, RefusalError
from hostler.core.state import events as e
from hostler.core.state.scopes import FLEET
from hostler.core.state.verbs.recovery import ConfirmClock, ReleaseRestore

NAMED = 20
"""Nodes named in a refusal."""


def release_restore(ask: Ask[ReleaseRestore]) -> Granted:
    """The restored cell acts again, in its recorded modes; nodes that nobody has heard need a word of their own."""
    context, intent = ask.context, ask.intent
    fleet = context.fleet
    if intent.target != FLEET:
        raise RefusalError("a restored journal is released for the whole cell; give fleet as the target")
    if fleet.cell.restored is None:
        raise RefusalError("no restored journal waits for a release")
    unheard = len(fleet.nodes) - fleet.index.count("compared")
    said = ask.act.unheard
    if (unheard or said is not None) and said != unheard:
        raise RefusalError(_unheard(ask, unheard))
    events: tuple[e.Event, ...] = (e.RestoreReleased(intent.person, intent.reason, unheard),)
    if fleet.cell.doubt is not None:
        events = (*events, e.ClockConfirmed(intent.person, "confirmed with the release of the restored journal"))
    return (
        f"the restored journal is released; {fleet.index.count('differing')} nodes differed from the restored journal",
        events,
    )


def _unheard(ask: AnyAsk, unheard: int) -> str:
    fleet = ask.context.fleet
    names: list[str] = []
    for node_id in fleet.nodes:
        if fleet.nodes[node_id].compared is None:
            names.append(node_id)
        if len(names) == NAMED:
            break
    listed = f": {', '.join(names)}{' …' if unheard > len(names) else ''}" if names else ""
    instead = f"wait for them, or accept it with --unheard {unheard}" if unheard else "leave --unheard out"
    return f"{unheard} of {len(fleet.nodes)} nodes have not been heard since the restore{listed}; {instead}"


def confirm_clock(ask: Ask[ConfirmClock]) -> Granted:
    """The clock as it stands is right; what counts days counts on."""
    doubt = ask.context.fleet.cell.doubt
    if doubt is None:
        raise RefusalError("the clock is not in doubt, so there is nothing to confirm")
    return f"the clock is confirmed; it was in doubt since {doubt.since:%Y-%m-%d %H:%M} UTC: {doubt.text}", (
        e.ClockConfirmed(ask.intent.person, ask.intent.reason),
    )


def _restored(ask: Ask[ReleaseRestore]) -> Nodes:
    return freed(ask, "restored", "journal")


HANDLERS: Handlers = {ReleaseRestore: Handler(release_restore, _restored), ConfirmClock: Handler(confirm_clock)}
