"""The loop's part for racks: whose bring-up is to be looked at, and what a driver's answer about an asset means."""

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from hostler.controller.agenda import OBSERVED_WITHIN, Agenda
from hostler.controller.reply_effect import WITHHELD, ReplyEffect
from hostler.controller.step_output import Send
from hostler.core.planning import rack_bring_up
from hostler.core.planning.rack_bring_up import failed, next_rack_step, seat_of
from hostler.core.policy import rack_faults
from hostler.core.policy.presuppositions import missing
from hostler.core.state import events as e
from hostler.core.state.assets import BMC_CERTIFICATE, Asset, Binding, Position
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Rest, Wait
from hostler.core.state.fleet import Fleet
from hostler.core.state.formats import writable
from hostler.core.state.model import Operation, Outcome, Waiting
from hostler.core.state.rack_runs import Rack
from hostler.core.state.racks import OFF
from hostler.core.state.scopes import RACK, Scope
from hostler.core.tables.operations import OPERATIONS
from hostler.core.tables.rack_recipe import BRING_UP

ROUNDS = 32
"""Steps forward one node or rack may take within one batch; more is a loop, and a bug."""

EASING = (
    e.HoldPlaced,
    e.HoldReleased,
    e.PauseSet,
    e.BrakeLatched,
    e.BrakeReleased,
    e.RestoreReleased,
    e.ConfigActivated,
    e.NodeAssigned,
    e.NodeReleased,
    e.ClockGap,
    e.FormatRaised,
    e.PlanEnded,
    e.RackStepDone,
    e.RackRunEnded,
)
"""Events after which every bring-up is asked again."""


class RackTurns:
    """Racks that are to be looked at in this batch, and why. `record` puts events into the batch, with their cause."""

    def __init__(self, agenda: Agenda, record: Callable[[Iterable[e.Event], str], None]) -> None:
        self.touched: dict[str, str] = {}
        self._agenda = agenda
        self._record = record

    def look_again(self, context: DecisionContext) -> list[Send]:
        """Have every rack looked at anew; what is under way on an asset is observed before it can expire."""
        self.touched.update(dict.fromkeys(context.fleet.racks, "clock"))
        found: list[Send] = []
        for operation in (one for rack in context.fleet.racks.values() for one in rack.operations):
            if operation.id not in context.live.unobserved:
                context.live.unobserved[operation.id] = context.now + OBSERVED_WITHIN
                found.append(send(context, "observe", operation))
        return found

    def noted(self, context: DecisionContext, event: e.Event, cause: str) -> list[Send]:
        """Note the racks that the event concerns; what it has a driver asked."""
        for rack in woken(context.fleet, event):
            self.touched.setdefault(rack, cause)
        if not isinstance(event, e.AssetOperationStarted):
            return []
        self._agenda.attempted(event.operation.id)
        return [send(context, "perform", event.operation)]

    def reply(self, context: DecisionContext, outcome: Outcome) -> None:
        """A driver has answered about an asset."""
        rack = of_asset(context.fleet, outcome.node)
        if rack is None:
            return
        known = outcome.result not in ("unknown", "busy")
        taken_over = known and context.live.observed(outcome.operation)
        if context.fleet.cell.restored is not None:
            return
        reply = of_reply(context, rack, outcome, taken_over=taken_over)
        if reply.observe or reply.resend:
            how = "observe" if reply.observe else "perform"
            self._agenda.return_to(how, outcome.operation, outcome.node, context.now)
        self._record(reply.events, f"operation:{outcome.operation}")
        if any(isinstance(event, e.AssetChanged) for event in reply.events):
            asset = context.fleet.assets[outcome.node]
            self._record(rack_faults.of_look(context, asset), f"asset:{asset.id}")
        self.touched.setdefault(rack.name, f"operation:{outcome.operation}")

    def due(self, context: DecisionContext, key: str) -> list[Send]:
        """The clock's turn of a rack (its scope's text) or of an asset: what is to be asked about it."""
        scope = Scope.of(key)
        if scope.kind == RACK and scope.name in context.fleet.racks:
            self.touched.setdefault(scope.name, "clock")
        rack, found = of_asset(context.fleet, key), list[Send]()
        for operation in rack.operations if rack is not None else ():
            how = self._agenda.due_for(operation.id, context.now) if operation.node == key else ""
            if how == "observe":
                found.append(send(context, "observe", operation))
            elif how == "perform" and rack is not None:
                self._record(sent_again(context, rack, operation), "clock")
        return found

    def forward(self, context: DecisionContext) -> None:
        """Ask for the next step of each rack that was touched until it waits or rests."""
        touched, self.touched = self.touched, {}
        for name, cause in touched.items():
            self._forward(context, name, cause)
            self.touched.pop(name, None)

    def _forward(self, context: DecisionContext, name: str, cause: str) -> None:
        for _ in range(ROUNDS):
            rack = context.fleet.racks[name]
            answer = writable(context, BRING_UP, next_rack_step(context, rack))
            if not isinstance(answer, Act):
                self._record(_told(rack, answer, context), cause)
                if answer.until is not None:
                    self._agenda.wake(Scope(RACK, name).text, answer.until, context.now)
                return
            self._record(answer.events, cause)
        raise AssertionError(f"rack {name} did not come to rest in {ROUNDS} steps")


def woken(fleet: Fleet, event: e.Event) -> Iterable[str]:
    """The racks to look at after the event."""
    if fleet.racks.bare:
        return ()
    if isinstance(event, EASING):
        return [rack.name for rack in fleet.racks.values() if rack.run is not None or rack.settling]
    match event:
        case e.RackRunBegan(run=run):
            return (run.rack,)
        case e.AssetOperationStarted(rack=rack):
            return (rack,)
        case (
            e.AssetSeen(asset=asset)
            | e.AssetChanged(asset=asset)
            | e.AssetRebound(asset=asset)
            | e.AssetOperationFinished(asset=asset)
            | e.AssetOperationSettled(asset=asset)
        ):
            return _with_state(fleet, fleet.assets[asset].position.rack)
        case e.AssetRegistered(asset=Asset(position=Position(rack=rack))):
            return _with_state(fleet, rack)
        case (
            e.PhaseChanged(node=node)
            | e.BindingChanged(node=node)
            | e.NodeFieldChanged(node=node)
            | e.OperationFinished(node=node, kind="verify_firmware" | "collect_inventory")
        ):
            here = fleet.nodes.get(node)
            return _with_state(fleet, here.position.rack) if here is not None else ()
        case _:
            return ()


def _with_state(fleet: Fleet, rack: str) -> Iterable[str]:
    return (rack,) if rack in fleet.racks else ()


def of_asset(fleet: Fleet, asset_id: str) -> Rack | None:
    """The rack on whose asset something is under way."""
    asset = fleet.assets.get(asset_id)
    return fleet.racks.get(asset.position.rack) if asset is not None else None


def send(context: DecisionContext, how: str, operation: Operation) -> Send:
    """The question for a driver about the asset."""
    return Send(how, operation, seat_of(context.fleet.assets[operation.node], context.now))


def of_reply(context: DecisionContext, rack: Rack, outcome: Outcome, *, taken_over: bool = False) -> ReplyEffect:
    """A driver's answer. Unknown is observed, never repeated; not_done may be sent again where that is safe.

    `taken_over`: it was recorded by a controller that is gone, which may never have sent it: observed not to have
    happened, it is sent once more.
    """
    operation = next((one for one in rack.operations if one.id == outcome.operation), None)
    if operation is None or outcome.attempt != operation.attempt:
        return ReplyEffect(_late(context, rack, outcome))
    if outcome.result in ("unknown", "busy"):
        return ReplyEffect(observe=True)
    if outcome.result == WITHHELD:
        return ReplyEffect(_withheld(context, rack, operation, outcome.detail))
    repeatable = OPERATIONS[operation.kind].repeatable
    if outcome.result == "not_done" and (repeatable or (taken_over and operation.attempt == 1)):
        if operation.attempt > 1:
            return ReplyEffect(resend=True)
        return ReplyEffect(sent_again(context, rack, operation))
    result = outcome.result if outcome.result in ("done", "failed", "refused") else "failed"
    said = outcome.detail if outcome.result != "not_done" else f"observed not to have happened: {outcome.detail}"
    facts = outcome.facts
    finished = e.AssetOperationFinished(
        rack.name, operation.node, operation.id, operation.kind, result, said[:500], facts
    )
    run = rack.run
    if run is None or run.id != operation.plan:
        asset = context.fleet.assets[operation.node]
        told = (*_power_told(asset, operation, result, said), *_certified(context, asset, outcome))
        return ReplyEffect((finished, *told))
    if result == "done":
        return ReplyEffect((finished, e.RackActDone(rack.name, run.id, run.acted + 1)))
    why = f"{operation.kind} of {operation.node}: {said or result}"
    return ReplyEffect((finished, *failed(context, run, why, operation.node)))


def _power_told(asset: Asset, operation: Operation, result: str, said: str) -> tuple[e.Event, ...]:
    """The asset's state, where the act of power beside a bring-up has changed it or came to nothing."""
    dark = result == "done" if operation.kind == "power_off" else operation.kind == "power_on" and result != "done"
    if not dark or asset.state == OFF:
        return ()
    why = "protective power-off" if operation.kind == "power_off" else rack_bring_up.NOT_LIT
    return (e.AssetChanged(asset.id, OFF, f"{why}: {said}"[:500] if said and operation.kind == "power_on" else why),)


def _certified(context: DecisionContext, asset: Asset, outcome: Outcome) -> tuple[e.Event, ...]:
    """The certificate by which the asset's BMC is known from now on, where a renewal has proved one."""
    certificate = str(outcome.facts.get("certificate", "")) if outcome.result == "done" else ""
    if not certificate or certificate == asset.binding(BMC_CERTIFICATE):
        return ()
    return (e.AssetRebound(asset.id, Binding(BMC_CERTIFICATE, certificate, context.now)),)


def sent_again(context: DecisionContext, rack: Rack, operation: Operation) -> tuple[e.Event, ...]:
    """The same operation, sent once more; its end where what it presupposes is gone meanwhile."""
    if found := missing(context.fleet, operation, context.now):
        return _withheld(context, rack, operation, found[0].text)
    once_more = replace(operation, started=context.now, attempt=operation.attempt + 1)
    return (e.AssetOperationStarted(rack.name, once_more),)


def _withheld(context: DecisionContext, rack: Rack, operation: Operation, why: str) -> tuple[e.Event, ...]:
    """The end of an act that was not sent: a bring-up asks for it again once that stands, a person does."""
    said, asset = f"not sent: {why}"[:500], context.fleet.assets[operation.node]
    ended = e.AssetOperationFinished(rack.name, operation.node, operation.id, operation.kind, "refused", said)
    return (ended,) if operation.plan else (ended, *_power_told(asset, operation, "refused", said))


def _late(context: DecisionContext, rack: Rack, outcome: Outcome) -> tuple[e.Event, ...]:
    """An operation that was given up has been answered after all: nothing of it lands later."""
    known = next((one for one in rack.settling if (one.id, one.attempt) == (outcome.operation, outcome.attempt)), None)
    if known is None or outcome.result not in ("done", "failed", "refused"):
        return ()
    settled = e.AssetOperationSettled(rack.name, known.node, known.id, f"answered late: {outcome.result}")
    return (settled, *rack_faults.off_again(context, known))


def _told(rack: Rack, answer: Wait | Rest, context: DecisionContext) -> tuple[e.Event, ...]:
    """The changed reason for waiting, where it has changed."""
    run = rack.run
    if run is None:
        return ()
    known = run.waiting
    if isinstance(answer, Rest) or not answer.blockers:
        return (e.RackWaitChanged(rack.name, None),) if known is not None else ()
    same = known is not None and known.what == answer.what
    if same and known is not None and [b.text for b in known.blockers] == [b.text for b in answer.blockers]:
        return ()
    since = known.since if same and known is not None else context.now
    return (e.RackWaitChanged(rack.name, Waiting(answer.what, since, answer.blockers)),)
