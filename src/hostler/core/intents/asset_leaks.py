"""A person says that an asset which leaked is sound again: ticket, hold and conditions end, a dark tray is powered on.

The person's word is needed and is not enough: while the asset's own detectors tell a leak, or nothing, it is refused.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from hostler.core.conditions import rack_match
from hostler.core.intents.ask import Ask, Granted, Handler, Handlers, RefusalError
from hostler.core.intents.racks import asset_of
from hostler.core.policy import rack_faults
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.holds_and_pauses import restored, worked_on
from hostler.core.policy.presuppositions import vanished, wet
from hostler.core.state import asset_operations
from hostler.core.state import events as e
from hostler.core.state.assets import Asset
from hostler.core.state.counting import counted
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import ActClass
from hostler.core.state.operations import PowerOn
from hostler.core.state.racks import IN_SERVICE, OFF
from hostler.core.state.verbs.racks import AssetSound

_ON_S = 300.0


def sound(ask: Ask[AssetSound]) -> Granted:
    """The asset is in service again. Raises RefusalError while its last look does not show it dry."""
    context, asset = ask.context, asset_of(ask)
    if not rack_match.not_yet_sound(asset):
        raise RefusalError(f"{asset.id} is {asset.state.replace('_', ' ')}; nothing says that it leaked")
    if stopped := next(_wet(context, asset), ""):
        raise RefusalError(stopped)
    well = replace(asset, state=IN_SERVICE)
    nodes = rack_faults.dependents(context.fleet, asset)
    cleared = tuple(
        e.ConditionCleared(node.id, c.id, ask.intent.person, ask.intent.reason)
        for node in nodes
        for c in node.conditions
        if c.type == rack_faults.LEAK and c.part.startswith(f"{asset.id}/")
    )
    said = f"{ask.intent.person} says that it is sound: {ask.intent.reason}"
    changed = e.AssetChanged(asset.id, IN_SERVICE, said[:500])
    lit = (_powered_on(context, asset),) if asset.state == OFF else ()
    told = [f"{asset.id} is in service again"]
    told += [f"it is powered on (hostler asset list --rack {asset.position.rack})"] if lit else []
    if cleared:
        dark = counted(len({one.node for one in cleared}), "node")
        told.append(f"its leak is over on {dark}; what was powered off stays so until a person powers it on")
    return "; ".join(told), (changed, *cleared, *lit, *rack_faults.of_look(context, well))


def _wet(context: DecisionContext, asset: Asset) -> Iterator[str]:
    """Refusals: what the detectors say, what is not known, and who has the hands in the rack."""
    again = f"look with `hostler asset list --rack {asset.position.rack} -o wide`, then say so again"
    look = asset.look
    if gap := next(rack_match.unread(asset, context.now), None):
        yield f"nobody knows whether it is dry: {gap.text}; {again}"
    if look is None or not look.leaks:
        yield f"{asset.id} lists no leak detector, so that nothing shows it dry; {again}"
        return
    if ill := ", ".join(f"{name} says {word or 'nothing'}" for name, word in look.leaks if word != "ok"):
        yield f"{asset.id} still tells a leak: {ill}; dry it; {again}"
    if told := next(vanished(asset), None):
        yield f"{told}; {again}"
    if busy := asset_operations.under_way(context.fleet, asset):
        shown = f"hostler rack get {asset.position.rack}"
        yield f"{busy.kind} of {asset.id} is under way; say so once it has ended ({shown})"
    beside = wet(context.fleet, replace(asset, state=IN_SERVICE), context.now, bring_up=False)
    for found in beside if asset.state == OFF else ():
        yield f"{asset.id} is not powered on: {found.text}; {again}"
    request = DisruptionRequest("power_on", ActClass.bring_up, (), scope=asset.scopes[0], beside=asset.scopes)
    for blocker in (*restored(context, request), *worked_on(context, request)):
        yield f"{blocker.text}; it goes on when {blocker.ends_when}"


def _powered_on(context: DecisionContext, asset: Asset) -> e.Event:
    """Easing, so no budget is asked; if it comes to nothing the asset is off again (`controller.rack_turns`)."""
    return asset_operations.begun(context, asset, "sound", PowerOn(), _ON_S)


HANDLERS: Handlers = {AssetSound: Handler(sound)}
