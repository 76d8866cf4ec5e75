"""Re-cablings of a network that are planned for a window, moved, and called off."""

from datetime import datetime, timedelta

from hostler.core.intents.ask import AnyAsk, Ask, Granted, Handler, Handlers, RefusalError
from hostler.core.intents.fabrics import fabric_of, prepared
from hostler.core.report.fabric_sentences import window
from hostler.core.state import events as e
from hostler.core.state.fabrics import DesignVersion, Fabric, Recabling
from hostler.core.state.verbs.fabrics import CancelRecabling, MoveRecabling, PlanRecabling

WINDOW_MOST = timedelta(days=31)
AHEAD_MOST = timedelta(days=366)


def plan(ask: Ask[PlanRecabling]) -> Granted:
    """The network is compared with both designs within the window, and with the new one after it."""
    fabric, act, ready = fabric_of(ask), ask.act, prepared(ask.act.fabric)
    if ready.spec.name != fabric.name:
        raise RefusalError(f"the design is of network {ready.spec.name}, not of {fabric.name}")
    if ready.spec.replaces and not fabric.digest.startswith(ready.spec.replaces):
        raise RefusalError(f"network {fabric.name} has design {fabric.digest[:12]} by now: look at the plan again")
    if ready.digest == fabric.digest:
        raise RefusalError(f"network {fabric.name} has this design already")
    if (work := fabric.recabling) is not None:
        until = "is not done everywhere" if work.before else f"is planned {window(work.starts, work.ends)}"
        raise RefusalError(f"a re-cabling of network {fabric.name} {until}: move it, or cancel it first")
    _demand_window(ask, act.starts, act.ends)
    recabling = Recabling(
        version=DesignVersion(ready.digest, ask.context.now, ask.intent.person, ask.intent.reason),
        starts=act.starts,
        ends=act.ends,
        design=ready.text,
        models=dict(ready.spec.models),
        hosts=ready.hosts,
        switches=ready.switches,
        cables=ready.cables,
    )
    text = f"network {fabric.name} is to be cabled by design {ready.digest[:12]} {window(act.starts, act.ends)}"
    return text, (e.RecablingPlanned(fabric.name, recabling),)


def move(ask: Ask[MoveRecabling]) -> Granted:
    """The window is another. One that is over stays over."""
    fabric, act = fabric_of(ask), ask.act
    if _planned(fabric).before:
        raise RefusalError("its window is over and the new design holds: roll the design back, or cancel the rest")
    _demand_window(ask, act.starts, act.ends)
    moved = e.RecablingMoved(fabric.name, act.starts, act.ends, ask.intent.person, ask.intent.reason)
    return f"network {fabric.name} is to be re-cabled {window(act.starts, act.ends)}", (moved,)


def cancel(ask: Ask[CancelRecabling]) -> Granted:
    """The design in force holds on; what was re-cabled already differs from it and is told."""
    fabric, intent = fabric_of(ask), ask.intent
    over = bool(_planned(fabric).before)
    said = "what is late is told as any difference" if over else f"design {fabric.digest[:12]} holds on"
    return f"the re-cabling of network {fabric.name} is called off: {said}", (
        e.RecablingEnded(fabric.name, intent.person, f"called off: {intent.reason}"),
        e.FabricValidationAsked(fabric.name, intent.person, "its re-cabling is called off"),
    )


def _planned(fabric: Fabric) -> Recabling:
    if fabric.recabling is None:
        raise RefusalError(f"no re-cabling of network {fabric.name} is planned")
    return fabric.recabling


def _demand_window(ask: AnyAsk, starts: datetime, ends: datetime) -> None:
    now = ask.context.now
    if ends <= starts or ends <= now:
        raise RefusalError("the window ends before it begins, or is over: write --starts before --ends, in the future")
    if ends - starts > WINDOW_MOST or starts - now > AHEAD_MOST:
        raise RefusalError(f"a window is {WINDOW_MOST.days} days at most and begins within {AHEAD_MOST.days} days")


HANDLERS: Handlers = {
    PlanRecabling: Handler(plan),
    MoveRecabling: Handler(move),
    CancelRecabling: Handler(cancel),
}
