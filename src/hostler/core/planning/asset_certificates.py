"""Renews the certificates of rack assets' BMCs, as nodes' are, asked at each recorded look at the asset. Pure.

The certificate by which the BMC is known is recorded by the first renewal of its password, or by a person.
"""

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from hostler.core.planning import asset_renewals, bmc_logins
from hostler.core.planning.bmc_certificates import why_due
from hostler.core.state import events as e
from hostler.core.state.assets import BMC_CERTIFICATE, Asset
from hostler.core.state.bmc_certificate import CERTIFY, BmcCertificate, gives_up
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Wait
from hostler.core.state.operations import RenewBmcCertificate


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
    if stopped := tuple(asset_renewals.stops(context, asset, CERTIFY, approved=known.asked_by not in ("", "hostler"))):
        return Wait(CERTIFY, stopped, until=None)
    due = () if asked else (e.AssetCertificateDue(asset.id, "hostler", why),)
    return Act((*due, asset_renewals.started(context, asset, RenewBmcCertificate(policy.valid_s))))
