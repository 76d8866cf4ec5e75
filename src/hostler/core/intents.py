"""What people ask for: a table from verb to the events that grant it, or the reason and the way out.

A wish about a node becomes a condition with the person's name; the same guards, plans and records apply to it as to
any fault. Every intent is recorded, granted or not, unless it is a dry run; a repeated key gets the first answer.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from hostler.core import events as e
from hostler.core import registration
from hostler.core.configuration import Configuration
from hostler.core.ending import change_phase, tickets
from hostler.core.errors import InvalidInputError
from hostler.core.freeze import Frame, freeze
from hostler.core.model import (
    FLEET,
    ActClass,
    Binding,
    Condition,
    Evidence,
    Hold,
    HoldKind,
    Intent,
    Mode,
    Node,
    Phase,
    Severity,
    Window,
    WorkClass,
)
from hostler.core.operations import OPERATIONS
from hostler.core.phases import edge
from hostler.core.policy.disturb import Act as Disturbance
from hostler.core.policy.disturb import may_disturb
from hostler.core.policy.guards import Request, blockers
from hostler.core.policy.radius import blast_radius
from hostler.core.policy.response import need_of
from hostler.core.present import OFF
from hostler.core.recipes import RECIPES
from hostler.core.scene import Scene

REASON_MAX = 500
NODES_MAX = 4096


class Answered(Struct, frozen=True):
    """The answer to an intent, with the events that make it so."""

    granted: bool
    text: str
    events: tuple[e.Event, ...] = ()
    detail: dict[str, str] = {}


class RefusalError(Exception):
    """Why an intent is not granted, and what to do instead."""


class Ask(Struct, frozen=True):
    """An intent with everything that decides it."""

    scene: Scene
    intent: Intent
    configuration: Configuration | None = None
    documents: dict[str, str] = {}


Granted = tuple[str, tuple[e.Event, ...]]


def answer(ask: Ask) -> Answered:
    """The recorded answer to an intent. Never raises on what was asked."""
    intent = ask.intent
    earlier = ask.scene.fleet.answers.get(intent.key) if intent.key else None
    if earlier is not None:
        return Answered(earlier.granted, earlier.answer, detail={"intent": earlier.intent, "repeated": "yes"})
    try:
        _check(intent)
        if intent.dry_run and intent.verb in WISHES:
            return _preview(ask)
        text, events = VERBS[intent.verb](ask)
    except (RefusalError, InvalidInputError) as refused:
        recorded = e.IntentRecorded(_slim(intent), granted=False, answer=str(refused)[:2000])
        return Answered(False, str(refused), () if intent.dry_run else (recorded,), {"intent": intent.id})
    if intent.dry_run:
        return Answered(True, f"would be granted: {text}", detail={"events": str(len(events))})
    recorded = e.IntentRecorded(_slim(intent), granted=True, answer=text)
    return Answered(True, text, (recorded, *events), {"intent": intent.id})


def _check(intent: Intent) -> None:
    if intent.verb not in VERBS:
        raise RefusalError(f"no verb '{intent.verb}'; there are {', '.join(sorted(VERBS))}")
    if not intent.person:
        raise RefusalError("an intent carries the name of the person who asks")
    if not intent.reason.strip() or len(intent.reason) > REASON_MAX:
        raise RefusalError(f"give a reason of 1 to {REASON_MAX} characters: it is shown wherever this act is")
    if len(intent.key) > 128:
        raise RefusalError("an idempotency key has at most 128 characters")


def _slim(intent: Intent) -> Intent:
    """The intent without bulky documents: what they did stands in the events that follow."""
    return replace(intent, args={k: v for k, v in intent.args.items() if len(v) <= 256})


def _node(ask: Ask) -> Node:
    node = ask.scene.fleet.resolve(ask.intent.target)
    if node is None:
        gone = ask.intent.target in ask.scene.fleet.retired
        why = "is retired; its history remains" if gone else "is not known; see `hostler node list`"
        raise RefusalError(f"node {ask.intent.target} {why}")
    return node


def _nodes(ask: Ask) -> tuple[Node, ...]:
    """The nodes of the target: one node, or all in production that an act on a rack, pool, domain or asset disturbs."""
    fleet, target = ask.scene.fleet, ask.intent.target
    if ":" not in target and target not in fleet.assets:
        return (_node(ask),)
    found = [fleet.nodes[i] for i in blast_radius(fleet, target).nodes]
    nodes = tuple(node for node in found if node.phase is Phase.production)
    if not 0 < len(nodes) <= NODES_MAX:
        raise RefusalError(f"{target} has {len(nodes)} nodes in production; name one with 1 to {NODES_MAX}")
    return nodes


class Wish(Struct, frozen=True):
    """A remedy that a person may ask for: the condition it becomes and the remedy that answers it."""

    condition: str
    remedy: str
    clears: str = "remedy"


WISHES: dict[str, Wish] = {
    "drain": Wish("operator.drain", "drain"),
    "reset-gpu": Wish("operator.gpu_reset", "gpu_reset"),
    "reboot": Wish("operator.reboot", "reboot"),
    "power-cycle": Wish("operator.power_cycle", "power_cycle"),
    "power-off": Wish("operator.power_off", "power_off"),
    "update-firmware": Wish("operator.firmware_update", "firmware_update"),
    "return-for-maintenance": Wish("operator.maintenance", "triage", "operator"),
    "request-replacement": Wish("operator.replacement", "triage"),
    "release-node": Wish("operator.release", "release"),
}


def _wish(ask: Ask) -> Granted:
    wish = WISHES[ask.intent.verb]
    nodes = _nodes(ask)
    events: list[e.Event] = []
    for node in nodes:
        if wish.remedy == "power_off" and node.phase is Phase.production:
            raise RefusalError(f"{node.id} is in production: return it for maintenance first")
        if wish.remedy != "power_off" and node.phase is not Phase.production:
            raise RefusalError(f"{node.id} stands at {node.phase}; {ask.intent.verb} is for nodes in production")
        if wish.remedy == "drain":
            events.append(e.HoldPlaced(_hold(ask, node.id, HoldKind.cordon)))
        events.append(e.ConditionRaised(_wished(ask, node, wish, len(nodes))))
    return f"{ask.intent.verb} is asked for on {len(nodes)} node{'s' if len(nodes) > 1 else ''}", tuple(events)


def _wished(ask: Ask, node: Node, wish: Wish, count: int) -> Condition:
    intent = ask.intent
    now = "immediate" if intent.args.get("now") == "true" else "pending"
    return Condition(
        id=f"{node.id}/{wish.condition}",
        type=wish.condition,
        node=node.id,
        severity=Severity.warning,
        since=ask.scene.now,
        last_seen=ask.scene.now,
        clears=wish.clears,
        owner=intent.person,
        evidence=(Evidence(ask.scene.now, intent.person, intent.reason),),
        remedy=wish.remedy,
        timing=now,
        group=intent.id if count > 1 else "",
    )


def _preview(ask: Ask) -> Answered:
    """What would happen: the plan, whom it disturbs, and what it would wait for. Records nothing."""
    wish = WISHES[ask.intent.verb]
    nodes = _nodes(ask)
    _wish(ask)
    wishing = tuple(replace(n, conditions=(_wished(ask, n, wish, len(nodes)),)) for n in nodes)
    need = need_of(ask.scene.fleet.policy, wishing[0], ask.scene.now)
    if need is None:
        raise RefusalError(f"{nodes[0].id} would not be touched: its phase or profile does not allow it")
    frame = Frame(need.act_class, need.causes, need.rule, need.part, need.remedy)
    plan = freeze(ask.scene, wishing[0], RECIPES[need.remedy], frame)
    request = Request(need.remedy, need.act_class, wishing, approved=True)
    waits = [b.text for b in blockers(ask.scene, request)]
    for node in wishing:
        consents = may_disturb(node, ask.scene.present, Disturbance(need.act_class), None)
        if isinstance(consents, tuple):
            waits.extend(c.blocker.text for c in consents if c.blocker)
        else:
            waits.append(consents.text)
    detail = {
        "plan": " → ".join(step.operation for step in plan.steps),
        "nodes": ",".join(n.id for n in nodes),
        "gpus": str(sum(blast_radius(ask.scene.fleet, n.id).gpus for n in nodes)),
        "waits_for": "; ".join(waits[:20]),
    }
    return Answered(True, f"would {need.remedy} {len(nodes)} node(s)", detail=detail)


def _hold(ask: Ask, scope: str, kind: HoldKind, ticket: str = "") -> Hold:
    """A hold of the person who asks; work with hands in the machine ends by a person, never by the clock."""
    hours = "" if kind is HoldKind.physical_work else ask.intent.args.get("hours", "")
    until = ask.scene.now + timedelta(hours=_number(hours, 24 * 365)) if hours else None
    identity = f"h{ask.scene.fleet.cell.seq}-{kind.value}-{scope}"[:100]
    return Hold(identity, scope, kind, ask.intent.person, ask.intent.reason, ask.scene.now, until, ticket)


def _number(text: str, most: float) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise RefusalError(f"'{text[:40]}' is no number") from error
    if not 0 < value <= most:
        raise RefusalError(f"{text} is outside 0 to {most:g}")
    return value


def _scope(ask: Ask) -> str:
    """A hold's, pause's or window's scope: FLEET, rack:, pool:, cluster: or a node's id."""
    target = ask.intent.target
    if target == FLEET or target.partition(":")[0] in ("rack", "pool", "cluster", "nvlink", "power", "leaf"):
        return target
    return _node(ask).id


def _cordon(ask: Ask) -> Granted:
    nodes = _nodes(ask)
    events = tuple(e.HoldPlaced(_hold(ask, node.id, HoldKind.cordon)) for node in nodes)
    return f"no new work on {len(nodes)} node(s); running work finishes", events


def _uncordon(ask: Ask) -> Granted:
    nodes = _nodes(ask)
    events: list[e.Event] = []
    for node in nodes:
        held = [h for h in ask.scene.fleet.holds_on([node.id]) if h.kind is HoldKind.cordon]
        events.extend(e.HoldReleased(h.id, h.scope, ask.intent.person, ask.intent.reason) for h in held)
    if not events:
        raise RefusalError(f"no cordon of a person stands on {ask.intent.target}; see `hostler node get`")
    return f"{len(events)} cordon(s) lifted", tuple(events)


def _place_hold(ask: Ask) -> Granted:
    hold = _hold(ask, _scope(ask), HoldKind.operator)
    return f"hold {hold.id} keeps {hold.scope} as it is", (e.HoldPlaced(hold),)


def _release(ask: Ask) -> Granted:
    hold = ask.scene.fleet.holds.get(ask.intent.target)
    if hold is None:
        raise RefusalError(f"no hold {ask.intent.target}; see `hostler hold list`")
    if hold.kind is HoldKind.physical_work:
        raise RefusalError("physical work is ended with end-work, by who started it or a shift lead")
    return f"hold on {hold.scope} released", (
        e.HoldReleased(hold.id, hold.scope, ask.intent.person, ask.intent.reason),
    )


def _pause(paused: bool) -> Callable[[Ask], Granted]:
    def grant(ask: Ask) -> Granted:
        scope = _scope(ask)
        text = f"{scope} is {'paused: nothing new is disturbed' if paused else 'no longer paused'}"
        return text, (e.PauseSet(scope, paused, ask.intent.person, ask.intent.reason),)

    return grant


def _mode(ask: Ask) -> Granted:
    pool = ask.intent.target.removeprefix("pool:")
    if pool not in ask.scene.fleet.configuration.pools:
        raise RefusalError(f"no pool '{pool}'; there are {', '.join(sorted(ask.scene.fleet.configuration.pools))}")
    remedy, wanted = ask.intent.args.get("remedy", "*"), ask.intent.args.get("mode", "")
    if wanted not in set(Mode):
        raise RefusalError(f"no mode '{wanted}'; write {', '.join(Mode)}")
    if remedy != "*" and remedy not in RECIPES:
        raise RefusalError(f"no remedy '{remedy}'; write one of {', '.join(sorted(RECIPES))}, or '*'")
    return f"pool {pool}: {remedy} stands at {wanted}", (e.ModeSet(pool, remedy, Mode(wanted), ask.intent.person),)


def _release_brake(ask: Ask) -> Granted:
    if not ask.scene.fleet.cell.brake:
        raise RefusalError("the storm brake is not latched")
    return "the storm brake is released", (e.BrakeReleased(ask.intent.person, ask.intent.reason),)


def _approve(ask: Ask) -> Granted:
    node = _node(ask)
    if node.plan is None or node.plan.state != "proposed":
        raise RefusalError(f"{node.id} has no proposed plan")
    return f"{node.plan.name} approved", (e.PlanApproved(node.id, node.plan.id, ask.intent.person),)


def _reject(ask: Ask) -> Granted:
    node = _node(ask)
    if node.plan is None or node.plan.state != "proposed":
        raise RefusalError(f"{node.id} has no proposed plan")
    hold = _hold(ask, node.id, HoldKind.operator)
    ended = e.PlanEnded(node.id, node.plan.id, "cancelled", f"rejected by {ask.intent.person}")
    return f"rejected; hold {hold.id} keeps the node as it is", (e.HoldPlaced(hold), ended)


def _certify(ask: Ask) -> Granted:
    node = _node(ask)
    moved = _move(ask, node, Phase.onboard, Phase.seatrial, f"certified by {ask.intent.person}")
    return f"{node.id} certified", (e.NodeCertified(node.id, ask.intent.person), *moved)


def _move(ask: Ask, node: Node, before: Phase, after: Phase, why: str) -> tuple[e.Event, ...]:
    if node.phase is not before or edge(before, after) is None:
        raise RefusalError(f"{node.id} stands at {node.phase}, this is for nodes at {before}")
    ended: tuple[e.Event, ...] = ()
    if node.operation is not None:
        raise RefusalError(f"{node.id}: {node.operation.kind} is under way; wait for it, or hold the node")
    if node.plan is not None:
        ended = (e.PlanEnded(node.id, node.plan.id, "cancelled", why),)
    return (*ended, *change_phase(ask.scene, node, after, why))


def _moving(before: Phase, after: Phase) -> Callable[[Ask], Granted]:
    def grant(ask: Ask) -> Granted:
        node = _node(ask)
        why = f"{ask.intent.person}: {ask.intent.reason}"
        return f"{node.id} goes to {after}", _move(ask, node, before, after, why)

    return grant


def _rma_return(ask: Ask) -> Granted:
    """The vendor has sent it back: its faults are theirs to have mended, and it begins again at onboard."""
    node = _node(ask)
    moved = _move(ask, node, Phase.rma, Phase.onboard, f"returned by the vendor ({ask.intent.person})")
    cleared = [e.ConditionCleared(node.id, c.id, ask.intent.person, "repaired") for c in node.conditions]
    closed = [
        e.TicketClosed(t.id, ask.intent.reason, ask.intent.person)
        for t in tickets(ask.scene.fleet, node.id)
        if t.kind in ("rma", "stuck")
    ]
    return f"{node.id} is back from the vendor", (*moved, *cleared, *closed)


_REBINDABLE = ("hostname", "serial", "bmc", "mac", "kubernetes", "slurm")


def _rebind(ask: Ask) -> Granted:
    """The outside has a new name for the node: a replaced BMC, a renamed host."""
    node = _node(ask)
    kind, value = ask.intent.args.get("kind", ""), ask.intent.args.get("value", "")
    if kind not in _REBINDABLE or not 0 < len(value) <= 256:
        raise RefusalError(f"give kind (one of {', '.join(_REBINDABLE)}) and value")
    if holders := [i for i in ask.scene.fleet.index.members(f"{kind}:{value}") if i != node.id]:
        raise RefusalError(f"{kind} {value} is bound to {holders[0]}: rebind or retire that one first")
    if node.operation is not None and OPERATIONS[node.operation.kind].port == "bmc":
        raise RefusalError(f"{node.id}: {node.operation.kind} is under way; wait for it")
    return f"{node.id} is now {kind} {value}", (e.BindingChanged(node.id, Binding(kind, value, ask.scene.now)),)


def _retire(ask: Ask) -> Granted:
    node = _node(ask)
    if node.phase is Phase.production:
        raise RefusalError(f"{node.id} is in production: return it for maintenance first")
    moved = _move(ask, node, node.phase, Phase.retired, ask.intent.reason)
    closed = [e.TicketClosed(t.id, "retired", ask.intent.person) for t in tickets(ask.scene.fleet, node.id)]
    lifted = [e.HoldReleased(h.id, h.scope, ask.intent.person, "retired") for h in ask.scene.fleet.holds_on([node.id])]
    return f"{node.id} retired", (*moved, *closed, *lifted)


def _start_work(ask: Ask) -> Granted:
    """Hands in the machine: drained and dark, the right one, and nothing will power it until the work is ended."""
    node = _node(ask)
    work = ask.scene.present.workloads(node.id) if node.assignment else ()
    if work is None or any(w.work_class is not WorkClass.infrastructure for w in work):
        raise RefusalError(f"{node.id} is not drained: return it for maintenance first")
    if node.phase is Phase.production and node.assignment is not None:
        raise RefusalError(f"{node.id} serves pool {node.pool}: return it for maintenance first")
    if node.operation is not None or node.settling:
        raise RefusalError(f"{node.id}: an operation is under way or may still land; wait for it")
    if ask.scene.present.of(node.id).power != OFF:
        raise RefusalError(f"{node.id} is not seen powered off: `hostler node power-off {node.id}` first")
    scanned, ticket = ask.intent.args.get("serial", ""), ask.scene.fleet.tickets.get(ask.intent.args.get("ticket", ""))
    expected = {node.binding("serial"), ticket.hardware if ticket and ticket.node == node.id else ""} - {""}
    if scanned not in expected:
        raise RefusalError(f"scanned serial '{scanned}' is not {' or '.join(sorted(expected))}: wrong machine")
    hold = _hold(ask, node.id, HoldKind.physical_work, ticket.id if ticket else "")
    events: list[e.Event] = [e.HoldPlaced(hold)]
    if node.plan is None:
        events.append(e.PlanRecorded(freeze(ask.scene, node, RECIPES["locate"], Frame(ActClass.easing))))
    return f"{node.id} stays dark until end-work", tuple(events)


def _end_work(ask: Ask) -> Granted:
    node = _node(ask)
    holds = [h for h in ask.scene.fleet.holds_on([node.id]) if h.kind is HoldKind.physical_work]
    if not holds:
        raise RefusalError(f"nobody works on {node.id}")
    lead = ask.intent.args.get("shift_lead") == "true"
    if holds[0].owner != ask.intent.person and not lead:
        raise RefusalError(f"{holds[0].owner} works on {node.id}: only they or a shift lead end it")
    events: list[e.Event] = [e.HoldReleased(h.id, h.scope, ask.intent.person, ask.intent.reason) for h in holds]
    events.extend(
        e.ConditionCleared(node.id, c.id, ask.intent.person, "the work is done")
        for c in node.conditions
        if c.type == "operator.maintenance"
    )
    if node.plan is None:
        events.append(e.PlanRecorded(freeze(ask.scene, node, RECIPES["unlocate"], Frame(ActClass.easing))))
    return f"work on {node.id} is ended", tuple(events)


def _clear(ask: Ask) -> Granted:
    node = _node(ask)
    kind = ask.intent.args.get("condition", "")
    found = [c for c in node.conditions if kind in (c.id, c.type)]
    if not found:
        have = ", ".join(c.type for c in node.conditions) or "none"
        raise RefusalError(f"{node.id} has no condition '{kind}'; it has {have}")
    events = tuple(e.ConditionCleared(node.id, c.id, ask.intent.person, ask.intent.reason) for c in found)
    return f"{len(events)} condition(s) cleared", events


def _close_ticket(ask: Ask) -> Granted:
    ticket = ask.scene.fleet.tickets.get(ask.intent.target)
    if ticket is None:
        raise RefusalError(f"no open ticket {ask.intent.target}; see `hostler ticket list`")
    return f"ticket {ticket.id} closed", (e.TicketClosed(ticket.id, ask.intent.reason, ask.intent.person),)


def _schedule(ask: Ask) -> Granted:
    try:
        starts = datetime.fromisoformat(ask.intent.args.get("starts", ""))
        ends = datetime.fromisoformat(ask.intent.args.get("ends", ""))
    except ValueError as error:
        raise RefusalError("give starts and ends as 2026-01-31T22:00:00+00:00") from error
    if starts.tzinfo is None or ends.tzinfo is None or not starts < ends or ends <= ask.scene.now:
        raise RefusalError("a window starts before it ends, ends in the future, and names its time zone")
    window = Window(f"w{ask.scene.fleet.cell.seq}", _scope(ask), starts, ends, ask.intent.reason, ask.intent.person)
    return f"window {window.id} scheduled", (e.WindowScheduled(window),)


def _cancel_window(ask: Ask) -> Granted:
    if ask.intent.target not in ask.scene.fleet.windows:
        raise RefusalError(f"no maintenance window {ask.intent.target}")
    return "window cancelled", (e.WindowEnded(ask.intent.target, ask.intent.person),)


def _activate(ask: Ask) -> Granted:
    fresh = ask.configuration
    if fresh is None:
        raise RefusalError("no checked configuration came with it")
    if fresh.sha256 == ask.scene.fleet.configuration.sha256:
        return f"configuration {fresh.sha256[:12]} is active already", ()
    used = {ask.scene.fleet.nodes[i].pool for i in ask.scene.fleet.nodes} - {""}
    if lost := sorted(used - set(fresh.pools)):
        raise RefusalError(f"pools {', '.join(lost)} have members but are not in it: release their nodes first")
    event = e.ConfigActivated(fresh, ask.documents, ask.intent.person)
    return f"configuration {fresh.sha256[:12]} is active", (event,)


def _register(adopt: bool) -> Callable[[Ask], Granted]:
    def grant(ask: Ask) -> Granted:
        specs = registration.read(ask.intent.args.get("nodes", ""))
        events = registration.register(ask.scene.fleet, specs, adopt, ask.scene.now)
        return f"{len(events)} node(s) {'adopted' if adopt else 'registered'}", events

    return grant


def _register_assets(ask: Ask) -> Granted:
    specs = registration.read_assets(ask.intent.args.get("assets", ""))
    events = registration.register_assets(ask.scene.fleet, specs)
    return f"{len(events)} asset(s) registered", events


VERBS: dict[str, Callable[[Ask], Granted]] = {
    **dict.fromkeys(WISHES, _wish),
    "register": _register(adopt=False),
    "adopt": _register(adopt=True),
    "register-assets": _register_assets,
    "activate": _activate,
    "cordon": _cordon,
    "uncordon": _uncordon,
    "hold": _place_hold,
    "release": _release,
    "pause": _pause(paused=True),
    "resume": _pause(paused=False),
    "mode": _mode,
    "release-brake": _release_brake,
    "approve": _approve,
    "reject": _reject,
    "certify": _certify,
    "start-work": _start_work,
    "end-work": _end_work,
    "rma-return": _rma_return,
    "debug": _moving(Phase.triage, Phase.debug),
    "onboard": _moving(Phase.debug, Phase.onboard),
    "zap-again": _moving(Phase.zap_fail, Phase.zap),
    "triage": _moving(Phase.zap_fail, Phase.triage),
    "retire": _retire,
    "rebind": _rebind,
    "clear-condition": _clear,
    "close-ticket": _close_ticket,
    "schedule-maintenance": _schedule,
    "cancel-maintenance": _cancel_window,
}
"""Every verb that an intent may carry."""
