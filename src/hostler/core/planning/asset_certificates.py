"""Renews the certificates of rack assets' BMCs, as nodes' are, asked at each recorded look at the asset. Pure.

The certificate by which the BMC is known is recorded by a person (`hostler asset rebind`).
"""

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from hostler.core.planning import bmc_logins
from hostler.core.planning.bmc_certificates import why_due
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import blockers
from hostler.core.policy.rack_faults import is_own_hold
from hostler.core.state import asset_operations
from hostler.core.state import events as e
from hostler.core.state.assets import BMC_CERTIFICATE, Asset
from hostler.core.state.bmc_certificate import CERTIFY, BmcCertificate, gives_up
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Wait
from hostler.core.state.model import ActClass, Blocker
from hostler.core.state.operations import RenewBmcCertificate
from hostler.core.tables.recipes import RECIPES


def of_look(context: DecisionContext, asset: Asset) -> Iterator[e.Event]:
    """The renewal that begins with the look that the asset has by now."""
    if isinstance(answer := renewal(context, asset), Act):
        yield from answer.events


def renewal(context: DecisionContext, asset: Asset) -> Act | Wait | datetime | None:
    """The renewal that begins now, what it waits for, when it is due, or None where there is none to be."""
    policy, known = context.fleet.policy.bmc_certificates, asset.bmc_certificate or BmcCertificate()
    asked, recorded = known.asked_at is not None, asset.binding(BMC_CERTIFICATE)
    reached = recorded and asset.binding("bmc") and asset.position.rack
    if not (asked or policy.renew_every_s) or not reached or gives_up(known):
        return None
    if asset.look is not None and asset.look.certificate is not None:
        known = replace(known, shown=asset.look.certificate)
    why = why_due(context.now, recorded, known, policy)
    if isinstance(why, datetime):
        return why
    if (again := bmc_logins.paused(context, known.failed_at, known.failures)) is not None:
        return again
    if stopped := tuple(_stops(context, asset, approved=known.asked_by not in ("", "hostler"))):
        return Wait(CERTIFY, stopped, until=None)
    due = () if asked else (e.AssetCertificateDue(asset.id, "hostler", why),)
    return Act((*due, _started(context, asset, policy.valid_s)))


def _stops(context: DecisionContext, asset: Asset, *, approved: bool) -> Iterator[Blocker]:
    rack = context.fleet.racks.get(asset.position.rack)
    for one in (*rack.operations, *rack.settling) if rack is not None else ():
        if one.node == asset.id:
            yield Blocker("operation", one.id, f"{one.kind} of {asset.id} is under way", "its outcome is known")
    request = DisruptionRequest(
        CERTIFY, ActClass.immediate, (), approved=approved, scope=asset.scopes[0], beside=asset.scopes
    )
    for found in blockers(context, request):
        hold = context.fleet.holds.get(found.name) if found.kind == "hold" else None
        if hold is None or not is_own_hold(hold):  # an ill asset's certificate expires all the same
            yield found


def _started(context: DecisionContext, asset: Asset, valid_s: float) -> e.Event:
    (step,) = RECIPES[CERTIFY].steps
    return asset_operations.begun(context, asset, "o", RenewBmcCertificate(valid_s), step.deadline_s)
