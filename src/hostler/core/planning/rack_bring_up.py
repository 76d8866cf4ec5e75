"""One safe step forward for a rack's bring-up, or what it waits for. Asked again and again until it has ended.

Each step is recorded when it stands, each act on an asset before it is sent: whoever takes over goes on where the
journal ends. A step that does not stand in its time ends the bring-up with a ticket that names the next command.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec.structs import replace

from hostler.core.conditions import rack_match
from hostler.core.conditions.rack_certificate import void_why
from hostler.core.conditions.rack_match import RackPlace
from hostler.core.planning import rack_firmware
from hostler.core.policy.blast_radius import blast_radius
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import blockers
from hostler.core.policy.holds_and_pauses import restored_at
from hostler.core.policy.presuppositions import sendable
from hostler.core.policy.rack_faults import is_own_hold, off_again
from hostler.core.state import events as e
from hostler.core.state.assets import Asset
from hostler.core.state.cases import DUE_DAY, Ticket
from hostler.core.state.configuration import Policy, scaled
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Rest, Wait, asked_again
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import ActClass, Blocker, Node, Operation, Phase, Verdict
from hostler.core.state.rack_runs import RACK_FAILED, WRITES_MOST, AssetAct, Rack, RackRun, RackStep
from hostler.core.state.racks import OFF
from hostler.core.state.scopes import RACK, Scope
from hostler.core.state.verbs.racks import RackCallOff
from hostler.core.state.verbs.remedies import ReleaseNode
from hostler.core.state.ways_out import by_act, observed
from hostler.core.tables.operations import OPERATIONS
from hostler.core.tables.rack_recipe import BRING_UP, RACK_STEPS

NOT_LIT = "it could not be powered on"
"""Why an asset that a person had said to be sound is off again."""


def steps_of(policy: Policy) -> tuple[RackStep, ...]:
    """The steps of a bring-up that begins now."""
    return tuple(
        RackStep(row.name, scaled(policy, row.deadline_s), row.stage, row.versions, row.writes, row.ends_when)
        for row in RACK_STEPS
    )


def next_rack_step(context: DecisionContext, rack: Rack) -> Answer:
    """Next step of the rack's bring-up: events to record, a wait, or rest."""
    if events := tuple(_by_itself(context, rack)):
        return Act(events)
    run = rack.run
    if run is None:
        return Rest(until=min((one.deadline for one in (*rack.settling, *rack.operations)), default=None))
    if (since := context.fleet.cell.restored) is not None:
        return Wait(BRING_UP, (restored_at(since),), until=None)
    if run.index >= len(run.steps):
        return Act(_done(context.fleet, rack, run))
    operation = next((one for one in rack.operations if one.plan == run.id), None)
    if operation is not None:
        return _outstanding(context, rack, run, operation)
    step = run.steps[run.index]
    limit = run.since + timedelta(seconds=step.deadline_s)
    if leaked := _leaked(context.fleet, run):
        return Act(failed(context, run, rack_match.not_yet_sound(leaked), leaked.id))
    answer = _stopped_or_on(context, rack, run, step)
    if isinstance(answer, Wait) and limit <= context.now:
        return Act(failed(context, run, _why_late(step, answer)))
    return asked_again(context.now, answer, limit, *(one.deadline for one in rack.settling))


def _by_itself(context: DecisionContext, rack: Rack) -> Iterator[e.Event]:
    """Events that are due whether the rack is being brought up or not."""
    for one in rack.settling:
        if one.deadline <= context.now:
            yield e.AssetOperationSettled(rack.name, one.node, one.id, "its settle time is over")
            yield from off_again(context, one)
    for late in rack.operations:
        if late.plan == "" and late.deadline <= context.now and not _is_looked_at(context, late):
            yield _given_up(context, rack, late)
            asset = context.fleet.assets.get(late.node)
            if late.kind == "power_on" and asset is not None and asset.state != OFF:
                yield e.AssetChanged(asset.id, OFF, f"{NOT_LIT}: no answer in time")
    if rack.certificate is not None and rack.certificate.holds and (why := void_why(context.fleet, rack.certificate)):
        yield e.RackCertificateVoided(rack.name, why[:500])


def _stopped_or_on(context: DecisionContext, rack: Rack, run: RackRun, step: RackStep) -> Answer:
    place = rack_match.place_of(context.fleet, run.rack, context.fleet.configuration.skus.get(run.sku))
    if place is None:
        text = f"SKU {run.sku} has no rack manifest any more"
        configured = observed("the configuration has one again", "hostler")
        called_off = by_act(RackCallOff(), Scope(RACK, run.rack).text, "a person calls the bring-up off")
        return Wait(step.name, (Blocker("rack", run.sku, text, (configured, called_off)),), until=None)
    if step.writes is not None:
        return _write(context, rack, run, place)
    return _stand(context, run, step, place)


def _stand(context: DecisionContext, run: RackRun, step: RackStep, place: RackPlace) -> Answer:
    verdict = rack_match.judged(place, step.stage, context.now, versions=step.versions)
    if verdict.verdict is Verdict.passed:
        return Act((e.RackStepDone(run.rack, run.id, step.name, run.index + 1),))
    found = rack_match.gaps(place, step.stage, context.now)
    shown = [gap for gap in found if step.versions or not gap.firmware]
    waits = tuple(
        Blocker("rack", gap.about or step.stage, gap.text, observed(step.ends_when, "bmc")) for gap in shown[:8]
    )
    looks = [asset.look.at + rack_match.STALE for asset in place.assets if asset.look is not None]
    return Wait(step.name, waits, until=min((at for at in looks if at > context.now), default=None))


def _write(context: DecisionContext, rack: Rack, run: RackRun, place: RackPlace) -> Answer:
    step = run.steps[run.index]
    assert step.writes is not None, "only a step that writes is asked"
    if run.acts is None:
        policy, laid = context.fleet.policy, rack_firmware.acts_of(place, step.writes)
        acts = tuple(replace(act, deadline_s=scaled(policy, act.deadline_s)) for act in laid)
        return Act((e.RackActsLaid(run.rack, run.id, acts[:WRITES_MOST]),))
    if run.acted >= len(run.acts):
        return Act((e.RackStepDone(run.rack, run.id, step.name, run.index + 1),))
    act = run.acts[run.acted]
    asset = context.fleet.assets.get(act.asset)
    if asset is None:
        return Act((e.RackActDone(run.rack, run.id, run.acted + 1),))
    if found := tuple(_stops(context, rack, place, asset)):
        return Wait(step.name, found, until=None)
    begun = Act((e.AssetOperationStarted(run.rack, _operation(context, run, act)),))
    return sendable(context, step.name, begun)


def _operation(context: DecisionContext, run: RackRun, act: AssetAct) -> Operation:
    return Operation(
        id=f"{act.asset}-o{context.fleet.cell.seq}",
        act=act.act,
        node=act.asset,
        plan=run.id,
        step=run.index,
        started=context.now,
        deadline=context.now + timedelta(seconds=act.deadline_s),
    )


def _stops(context: DecisionContext, rack: Rack, place: RackPlace, asset: Asset) -> Iterator[Blocker]:
    """Blockers of an act on an asset by others: guards, work that depends on it, what is under way beside it."""
    radius = (context.fleet.nodes[i] for i in blast_radius(context.fleet, asset.id).nodes)
    nodes = tuple({node.id: node for node in (*place.nodes, *radius)}.values())
    request = DisruptionRequest(BRING_UP, ActClass.bring_up, nodes, scope=Scope(RACK, rack.name), beside=asset.scopes)
    for found in blockers(context, request):
        hold = context.fleet.holds.get(found.name) if found.kind == "hold" else None
        if hold is None or not is_own_hold(hold):  # the bring-up is what puts the asset right
            yield found
    for node in nodes:
        if node.assignment is not None or (node.phase is Phase.production and context.live.workloads(node)):
            whose = f"serves pool {node.pool}" if node.pool else "runs work"
            released = by_act(ReleaseNode(), node.id, "it is released")
            yield Blocker("work", node.id, f"{node.id} {whose}, and depends on {asset.id}", released)
    for busy in rack.operations:
        if busy.node == asset.id:
            text = f"{busy.kind} of {asset.id} is under way beside the bring-up"
            yield Blocker("operation", busy.id, text, observed("its outcome is known", "hostler"))


def _leaked(fleet: Fleet, run: RackRun) -> Asset | None:
    """The asset that has leaked since the rack's detectors were dry: what the rest of the bring-up rests on is gone."""
    dry = next((i for i, step in enumerate(run.steps) if step.stage == rack_match.LEAK_DETECTORS), len(run.steps))
    if run.index <= dry:
        return None  # that step waits for it
    return next((asset for asset in fleet.assets_of(run.rack) if rack_match.not_yet_sound(asset)), None)


def _outstanding(context: DecisionContext, rack: Rack, run: RackRun, operation: Operation) -> Answer:
    first = context.live.unobserved.get(operation.id)
    if first is not None and context.now < first:
        text = f"{operation.kind} of {operation.node} was under way while no controller was active; it is looked at"
        blocker = Blocker("operation", operation.id, text, observed("its outcome is known", "hostler"))
        return Wait(run.steps[run.index].name, (blocker,), until=first)
    if operation.deadline <= context.now:
        gone = _given_up(context, rack, operation)
        why = f"{operation.kind} of {operation.node} did not finish in time"
        return Act((gone, *failed(context, run, why, operation.node)))
    text = f"{operation.kind} of {operation.node} was asked for at {operation.started:%H:%M:%S} and is not answered"
    blocker = Blocker("operation", operation.id, text, observed("its outcome is known", "hostler"))
    return Wait(run.steps[run.index].name, (blocker,), until=operation.deadline)


def _is_looked_at(context: DecisionContext, operation: Operation) -> bool:
    first = context.live.unobserved.get(operation.id)
    return first is not None and context.now < first


def _given_up(context: DecisionContext, rack: Rack, operation: Operation) -> e.AssetOperationFinished:
    row = OPERATIONS[operation.kind]
    until = context.now + timedelta(seconds=row.settle_s) if row.settle_s else None
    return e.AssetOperationFinished(
        rack.name, operation.node, operation.id, operation.kind, "timed_out", settle_until=until
    )


def _why_late(step: RackStep, answer: Wait) -> str:
    return f"{step.name.replace('_', ' ')} did not stand in time: {'; '.join(b.text for b in answer.blockers[:4])}"


def failed(context: DecisionContext, run: RackRun, why: str, about: str = "") -> tuple[e.Event, ...]:
    """The bring-up ends, and a ticket says what is to be done and by which command it goes on."""
    step = run.steps[run.index]
    asset = context.fleet.assets.get(about or _blamed(run))
    ticket = Ticket(
        f"rack-{run.rack}-t{context.fleet.cell.seq}",
        Scope(RACK, run.rack).text,
        RACK_FAILED,
        f"rack {run.rack}: bring-up failed at {step.name.replace('_', ' ')}: {why}"[:500],
        context.now,
        hardware=asset.binding("serial") if asset is not None else "",
        component=asset.id if asset is not None else step.stage or step.name,
        fault=why[:500],
        action=f"put that right, look with `hostler asset list --rack {run.rack}`, then go on: {again(run)}",
        owner="technician",
        due=DUE_DAY,
    )
    known = (t for t in context.fleet.tickets_about(ticket.node) if t.kind == RACK_FAILED)
    closed = tuple(e.TicketClosed(t.id, f"followed by {ticket.id}", "hostler") for t in known)
    ended = e.RackRunEnded(run.rack, run.id, "failed", step.name, why[:500])
    return (ended, *closed, e.TicketOpened(ticket))


def again(run: RackRun) -> str:
    """The command that begins the bring-up again."""
    return f"`hostler rack bring-up {run.rack} --sku {run.sku} --reason …`"


def _blamed(run: RackRun) -> str:
    return run.waiting.blockers[0].name if run.waiting is not None and run.waiting.blockers else ""


def _done(fleet: Fleet, rack: Rack, run: RackRun) -> tuple[e.Event, ...]:
    closed = [t for t in fleet.tickets_about(Scope(RACK, rack.name).text) if t.kind == RACK_FAILED]
    said = f"bring-up {run.id} is done"
    last = run.steps[-1].name if run.steps else ""
    ended = e.RackRunEnded(rack.name, run.id, "done", last)
    return (ended, *(e.TicketClosed(t.id, said, "hostler") for t in closed))


def seat_of(asset: Asset, now: datetime) -> Node:
    """The asset as drivers are shown a machine: by its names, and nothing else of a node."""
    return Node(asset.id, asset.position, "", Phase.registered, now, now, bindings=asset.bindings)
