"""Faults of a rack's assets in service: a ticket, a hold on what depends on the asset, protection from a leak.

Level, not edge: each recorded look at an asset says what stands on it now. A ticket's and a hold's id follow from the
asset, so the same fault has one of each, and both end with the look that shows the asset well.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec.structs import replace

from hostler.core.conditions import rack_match
from hostler.core.conditions.lifecycle import stand
from hostler.core.diagnose.findings import stands
from hostler.core.state import asset_operations
from hostler.core.state import events as e
from hostler.core.state.assets import Asset, AssetKind
from hostler.core.state.bmc_certificate import CERTIFY
from hostler.core.state.bmc_login import RENEW
from hostler.core.state.cases import DUE_DAY, DUE_NOW, Ticket
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import OWNER, Evidence, Hold, HoldKind, Node, Operation, Phase
from hostler.core.state.operations import SwitchOff
from hostler.core.state.racks import IN_SERVICE, LEAKED, OFF, WET_WORD, RackManifest
from hostler.core.state.scopes import RACK, Scope
from hostler.core.tables.operations import OPERATIONS

FAULT = "rack_fault"
"""The kind of ticket about a shelf, coolant unit or switch tray in service."""
WET = frozenset({WET_WORD})
LEAK = "cooling.leak"
_JUDGED = (AssetKind.power_shelf, AssetKind.coolant_unit, AssetKind.switch_tray)
_OFF_S = 180.0


def of_look(context: DecisionContext, asset: Asset) -> Iterator[e.Event]:
    """Events that follow from the look that the asset has by now. An asset that nothing in service needs has none."""
    nodes = dependents(context.fleet, asset)
    wet = [(name, word) for name, word in asset.look.leaks if word in WET] if asset.look is not None else []
    if wet and asset.state == IN_SERVICE:
        yield e.AssetChanged(asset.id, LEAKED, ", ".join(f"{name} says {word}" for name, word in wet)[:500])
        asset = replace(asset, state=LEAKED)
    needed = asset.state in (LEAKED, OFF) or any(node.phase is Phase.production for node in nodes)
    if asset.kind in _JUDGED and needed:
        yield from _case(context, asset, _fault(context.fleet, asset, nodes))
    elif known := context.fleet.tickets.get(_ticket_id(asset)):
        yield from _over(context, asset, known, "nothing in service needs it")
    if wet and asset.look is not None:
        yield from _protect(context, asset, nodes, wet)


def dependents(fleet: Fleet, asset: Asset) -> list[Node]:
    """Nodes that the asset powers, cools or links: those of its rack, of the domains it names, and that name it."""
    scopes = {Scope(RACK, asset.position.rack), *asset.domains, Scope("cdu", asset.id), Scope("power", asset.id)}
    found = {name for scope in scopes if scope.name for name in fleet.index.members(scope.shared)}
    return [fleet.nodes[name] for name in sorted(found)]


def held_scopes(asset: Asset) -> tuple[Scope, ...]:
    """Scopes that are held while the asset is ill: the NVLink domains of a tray, else its rack."""
    linked = tuple(scope for scope in asset.domains if scope.kind == "nvlink")
    if asset.kind is AssetKind.switch_tray and linked:
        return linked
    return (Scope(RACK, asset.position.rack),) if asset.position.rack else ()


def is_own_hold(hold: Hold) -> bool:
    """Whether Hostler placed it for a fault of an asset."""
    return hold.owner == OWNER and hold.ticket.startswith("asset-")


def _fault(fleet: Fleet, asset: Asset, nodes: list[Node]) -> str:
    """The fault of the asset by its state and its last look, "" for none. A look that failed says nothing of it."""
    look, leaked = asset.look, rack_match.not_yet_sound(asset)
    if look is None or look.why:
        return "; ".join(filter(None, (leaked, f"{asset.id} cannot be read: {look.why}" if look is not None else "")))
    found = [leaked] if leaked else []
    found += [gap.text for gap in _gaps(fleet, asset, nodes)]
    found += [f"{asset.id} {name} says {word}" for name, word in look.leaks if word not in ("ok", "")]
    serial = asset.binding("serial")
    if serial and look.serial and look.serial != serial:
        found.insert(0, f"{asset.id} shows serial {look.serial}, registered is {serial}")
    return "; ".join(found[:4])


def _gaps(fleet: Fleet, asset: Asset, nodes: list[Node]) -> Iterator[rack_match.RackGap]:
    if asset.kind is AssetKind.power_shelf:
        skus = (fleet.configuration_of(node).skus.get(node.sku) for node in nodes)
        manifest = next((sku.rack for sku in skus if sku is not None and sku.rack is not None), RackManifest())
        yield from (gap for gap in rack_match.supply_gaps(asset, manifest) if gap.seen)
    else:
        yield from (gap for gap in rack_match.health_gaps(asset) if gap.seen)


def _case(context: DecisionContext, asset: Asset, fault: str) -> Iterator[e.Event]:
    known = context.fleet.tickets.get(_ticket_id(asset))
    if not fault:
        if known is not None:
            yield from _over(context, asset, known, "it shows itself well again")
        return
    if known is None:
        yield e.TicketOpened(_ticket(asset, fault, context.now))
    elif known.fault != fault[:500]:
        fresh = _ticket(asset, fault, context.now)
        yield e.TicketUpdated(_kept(known, fresh, context.now))
    if asset.look is not None and asset.look.why and asset.state == IN_SERVICE:
        return  # who cannot be read may be well: a person looks, and nothing is held
    for scope in held_scopes(asset):
        hold_id = _hold_id(asset, scope)
        if hold_id not in context.fleet.holds:
            why = f"{asset.id} is ill: {fault}"[:500]
            held = Hold(hold_id, scope, HoldKind.operator, OWNER, why, context.now, ticket=_ticket_id(asset))
            yield e.HoldPlaced(held)


def _kept(known: Ticket, fresh: Ticket, now: datetime) -> Ticket:
    """The ticket with what is known now; whoever has claimed it keeps it."""
    return Ticket(
        known.id,
        known.node,
        known.kind,
        fresh.summary,
        known.opened,
        fresh.hardware,
        fresh.component,
        fresh.fault,
        fresh.action,
        updated=now,
        owner=known.owner,
        due=fresh.due,
        files=known.files,
        claimed_by=known.claimed_by,
        claimed_at=known.claimed_at,
        claimed_until=known.claimed_until,
    )


def _over(context: DecisionContext, asset: Asset, known: Ticket, why: str) -> Iterator[e.Event]:
    for scope in held_scopes(asset):
        if (hold := context.fleet.holds.get(_hold_id(asset, scope))) is not None and hold.owner == OWNER:
            yield e.HoldReleased(hold.id, hold.scope, OWNER, why)
    yield e.TicketClosed(known.id, why, OWNER)


def _ticket(asset: Asset, fault: str, now: datetime) -> Ticket:
    look = asset.look
    is_wet = look is not None and any(word in WET for _, word in look.leaks)
    return Ticket(
        _ticket_id(asset),
        asset.id,
        FAULT,
        f"rack {asset.position.rack}, {asset.kind.replace('_', ' ')} {fault}"[:500],
        now,
        hardware=asset.binding("serial"),
        component=asset.kind,
        fault=fault[:500],
        action=_action(asset),
        owner="technician",
        due=DUE_NOW if is_wet or asset.kind is AssetKind.power_shelf else DUE_DAY,
    )


def _action(asset: Asset) -> str:
    look = f"hostler asset list --rack {asset.position.rack}"
    if asset.state in (LEAKED, OFF):
        return f"dry it and put it right; once it shows itself dry ({look}): hostler asset sound {asset.id} --reason …"
    return (
        f"put it right; it closes with the look that shows {asset.id} well ({look}), "
        "a swapped one after `hostler asset rebind`"
    )


def _protect(
    context: DecisionContext, asset: Asset, nodes: list[Node], wet: list[tuple[str, str]]
) -> Iterator[e.Event]:
    """A wet tray is switched off; what leaks elsewhere in the rack takes the power off every node that it cools."""
    if asset.kind is AssetKind.switch_tray:
        yield from _switch_off(context, asset)
        return
    look = asset.look
    assert look is not None, "only a look shows a leak"
    for name, word in wet:
        finding = stands(LEAK, f"{asset.id} {name} says {word}", f"{asset.id}/{name}")
        evidence = Evidence(look.at, f"asset {asset.id}", f"{asset.id} {name} says {word}", path="asset")
        for node in nodes:
            if node.phase is not Phase.retired and (event := stand(node, finding, evidence, node.boot_id)) is not None:
                yield event


def _switch_off(context: DecisionContext, asset: Asset) -> Iterator[e.Event]:
    """Protection asks no guard and waits for no act: what is under way on the tray is given up, and may land late."""
    rack = context.fleet.racks.get(asset.position.rack)
    busy = [one for one in (rack.operations if rack is not None else ()) if one.node == asset.id]
    protects = any(one.kind == "power_off" and not one.plan for one in busy)
    if asset.state == OFF or protects or not asset.position.rack:
        return
    for one in busy:
        if one.kind not in (RENEW, CERTIFY):
            settles = context.now + timedelta(seconds=OPERATIONS[one.kind].settle_s)
            why = "it leaks: it is switched off before anything else"
            place = (asset.position.rack, asset.id)
            yield e.AssetOperationFinished(*place, one.id, one.kind, "revoked", why, settle_until=settles)
    yield asset_operations.begun(context, asset, "leak", SwitchOff(), _OFF_S, disturbs=True)


def off_again(context: DecisionContext, late: Operation) -> Iterator[e.Event]:
    """The power-off behind an act that was given up and may have lit a tray since, which is to be dark."""
    asset = context.fleet.assets.get(late.node)
    if late.kind != "power_on" or asset is None or asset.state not in (LEAKED, OFF):
        return
    if asset_operations.under_way(context.fleet, asset, but=(RENEW, CERTIFY)) is None:
        yield asset_operations.begun(context, asset, "leak", SwitchOff(), _OFF_S, disturbs=True)


def _ticket_id(asset: Asset) -> str:
    return f"asset-{asset.id}"


def _hold_id(asset: Asset, scope: Scope) -> str:
    return f"h-{_ticket_id(asset)}-{scope}"[:100]
