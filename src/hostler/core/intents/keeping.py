"""Keeping things as they are: cordons, holds, pauses, maintenance windows, and hands in the machine."""

from collections.abc import Callable
from datetime import datetime

from hostler.core.conditions import unanswered_checks
from hostler.core.intents.ask import Ask, Granted, RefusalError, hold_of, node_of, nodes_of, scope_of
from hostler.core.intents.bounds import is_theirs
from hostler.core.planning.plan_builder import Frame, freeze
from hostler.core.state import events as e
from hostler.core.state.live_state import OFF
from hostler.core.state.model import OWNER, ActClass, HoldKind, Node, Phase, Window, WorkClass
from hostler.core.tables.recipes import RECIPES


def cordon(ask: Ask) -> Granted:
    """Keep new work away."""
    nodes = nodes_of(ask)
    events = tuple(e.HoldPlaced(hold_of(ask, node.id, HoldKind.cordon)) for node in nodes)
    return f"no new work on {len(nodes)} node(s); running work finishes", events


def uncordon(ask: Ask) -> Granted:
    """Lift the cordons that people placed; of a tenant, those that this tenant placed."""
    nodes = nodes_of(ask)
    held = [h for node in nodes for h in ask.scene.fleet.holds_on([node.id]) if h.kind is HoldKind.cordon]
    if not held:
        raise RefusalError(f"no cordon of a person stands on {ask.intent.target}; see `hostler node get`")
    own = [h for h in held if is_theirs(ask.intent.bounds, h.tenant)]
    stays = [h for h in held if h not in own]
    others = ", ".join(f"{'another customer' if h.tenant else h.owner}'s on {h.scope}" for h in stays[:5])
    if not own:
        raise RefusalError(f"the cordon is not yours to lift: {others}; ask its owner or an operator")
    events = tuple(e.HoldReleased(h.id, h.scope, ask.intent.person, ask.intent.reason) for h in own)
    return f"{len(own)} cordon(s) lifted" + (f"; what stays is {others}" if others else ""), events


def place_hold(ask: Ask) -> Granted:
    """Leave this as it is."""
    hold = hold_of(ask, scope_of(ask), HoldKind.operator)
    return f"hold {hold.id} keeps {hold.scope} as it is", (e.HoldPlaced(hold),)


def release_hold(ask: Ask) -> Granted:
    """A hold ends."""
    hold = ask.scene.fleet.holds.get(ask.intent.target)
    if hold is None:
        raise RefusalError(f"no hold {ask.intent.target}; see `hostler hold list`")
    if hold.kind is HoldKind.physical_work:
        raise RefusalError("physical work is ended with end-work, by who started it or a shift lead")
    return f"hold on {hold.scope} released", (
        e.HoldReleased(hold.id, hold.scope, ask.intent.person, ask.intent.reason),
    )


def set_pause(paused: bool) -> Callable[[Ask], Granted]:
    """Nothing new is disturbed within the scope, or it goes on."""

    def grant(ask: Ask) -> Granted:
        scope = scope_of(ask)
        text = f"{scope} is {'paused: nothing new is disturbed' if paused else 'no longer paused'}"
        return text, (e.PauseSet(scope, paused, ask.intent.person, ask.intent.reason),)

    return grant


def schedule_window(ask: Ask) -> Granted:
    """Pending disruption of the scope happens inside this window."""
    try:
        starts = datetime.fromisoformat(ask.intent.args.get("starts", ""))
        ends = datetime.fromisoformat(ask.intent.args.get("ends", ""))
    except ValueError as error:
        raise RefusalError("give starts and ends as 2026-01-31T22:00:00+00:00") from error
    if starts.tzinfo is None or ends.tzinfo is None or not starts < ends or ends <= ask.scene.now:
        raise RefusalError("a window starts before it ends, ends in the future, and names its time zone")
    window = Window(f"w{ask.scene.fleet.cell.seq}", scope_of(ask), starts, ends, ask.intent.reason, ask.intent.person)
    return f"window {window.id} scheduled", (e.WindowScheduled(window),)


def cancel_window(ask: Ask) -> Granted:
    """A maintenance window is called off."""
    if ask.intent.target not in ask.scene.fleet.windows:
        raise RefusalError(f"no maintenance window {ask.intent.target}")
    return "window cancelled", (e.WindowEnded(ask.intent.target, ask.intent.person),)


def start_work(ask: Ask) -> Granted:
    """Hands in the machine: drained and dark, the right one, and nothing will power it until the work is ended."""
    node = node_of(ask)
    scanned, ticket = ask.intent.args.get("serial", ""), ask.scene.fleet.tickets.get(ask.intent.args.get("ticket", ""))
    expected = {node.binding("serial"), ticket.hardware if ticket and ticket.node == node.id else ""} - {""}
    if scanned not in expected:
        raise RefusalError(f"scanned serial '{scanned}' is not {' or '.join(sorted(expected))}: wrong machine")
    held = (h for h in ask.scene.fleet.holds_on([node.id]) if h.kind is HoldKind.physical_work)
    if any(h.owner == ask.intent.person for h in held):
        return f"{node.id} stays dark until end-work: you work on it already", ()
    work = ask.scene.present.workloads(node) if node.assignment else ()
    if work is None or any(w.work_class is not WorkClass.infrastructure for w in work):
        raise RefusalError(f"{node.id} is not drained: return it for maintenance first")
    if node.phase is Phase.production and node.assignment is not None:
        raise RefusalError(f"{node.id} serves pool {node.pool}: return it for maintenance first")
    if node.operation is not None or node.settling:
        raise RefusalError(f"{node.id}: an operation is under way or may still land; wait for it")
    if ask.scene.present.of(node.id).power != OFF:
        raise RefusalError(f"{node.id} is not seen powered off: `hostler node power-off {node.id}` first")
    hold = hold_of(ask, node.id, HoldKind.physical_work, ticket.id if ticket else "")
    events: list[e.Event] = [e.HoldPlaced(hold), *_no_longer_kept_dark(ask, node)]
    if node.plan is None:
        events.append(e.PlanRecorded(freeze(ask.scene, node, RECIPES["locate"], Frame(ActClass.easing))))
    return f"{node.id} stays dark until end-work", tuple(events)


def _no_longer_kept_dark(ask: Ask, node: Node) -> list[e.Event]:
    """What persons had it powered off for has begun: the work keeps it dark from now on."""
    dark = [h for h in ask.scene.fleet.holds_on([node.id]) if h.kind is HoldKind.power and h.owner != OWNER]
    return [e.HoldReleased(h.id, h.scope, ask.intent.person, "work on it has begun") for h in dark]


def end_work(ask: Ask) -> Granted:
    """The hands are out of the machine: their holds end; with the last of them what it was taken out for is done."""
    node = node_of(ask)
    holds = [h for h in ask.scene.fleet.holds_on([node.id]) if h.kind is HoldKind.physical_work]
    if not holds:
        raise RefusalError(f"nobody works on {node.id}")
    lead = ask.intent.args.get("shift_lead") == "true"
    stays = [] if lead else [h.owner for h in holds if h.owner != ask.intent.person]
    if len(stays) == len(holds):
        raise RefusalError(f"{stays[0]} works on {node.id}: only they or a shift lead end it")
    own = [h for h in holds if h.owner not in stays]
    events: list[e.Event] = [e.HoldReleased(h.id, h.scope, ask.intent.person, ask.intent.reason) for h in own]
    if stays:
        return f"your work on {node.id} is ended; it stays dark, for {stays[0]} works on it still", tuple(events)
    events.extend(
        e.ConditionCleared(node.id, c.id, ask.intent.person, "the work is done")
        for c in node.conditions
        if c.type == "operator.maintenance"
    )
    events.extend(unanswered_checks.asked_anew(ask.scene.fleet, node, ask.intent.person))
    if node.plan is None:
        events.append(e.PlanRecorded(freeze(ask.scene, node, RECIPES["unlocate"], Frame(ActClass.easing))))
    return f"work on {node.id} is ended", tuple(events)
