"""One ticket about the certificate of a rack asset's BMC: it expires soon, or could not be renewed."""

from collections.abc import Iterator
from datetime import timedelta

from hostler.core.conditions.own_conditions import who_renews
from hostler.core.policy import asset_bmc_cases
from hostler.core.policy.asset_bmc_cases import BmcTrouble
from hostler.core.state import events as e
from hostler.core.state.assets import BMC_CERTIFICATE, Asset
from hostler.core.state.bmc_certificate import gives_up
from hostler.core.state.decision_context import DecisionContext

CASE = "asset_certificate"
"""The kind of ticket."""


def of_look(context: DecisionContext, asset: Asset) -> Iterator[e.Event]:
    """Events that follow from the look that the asset has by now; a look that shows no certificate says nothing."""
    if (fault := _fault(context, asset)) is None:
        return iter(())
    action = f"give its BMC another certificate by the vendor's means, and name that in bmc.json (asset {asset.id})"
    if asset.binding(BMC_CERTIFICATE):
        action = f"correct what it says, then hostler asset renew-certificate {asset.id} --reason …"
    over = "its BMC shows a certificate that is good for longer"
    return asset_bmc_cases.told(context, asset, BmcTrouble("certificate", CASE, fault, action, over))


def _fault(context: DecisionContext, asset: Asset) -> str | None:
    """The fault of its certificate, "" for nothing, None where the look does not show one."""
    known, shown = asset.bmc_certificate, asset.look.certificate if asset.look is not None else None
    if known is not None and gives_up(known):
        return f"its BMC could not be given a certificate ({known.result.replace('_', ' ')}): {known.detail}"
    if shown is None or shown.expires_at is None:
        return None
    warn = timedelta(seconds=context.fleet.policy.bmc_certificates.warn_s)
    if shown.expires_at - warn > context.now:
        return ""
    word = "has expired" if shown.expires_at <= context.now else "expires"
    every_s = context.fleet.policy.bmc_certificates.renew_every_s
    whose = who_renews(every_s, recorded=bool(asset.binding(BMC_CERTIFICATE)))
    return f"the certificate of its BMC {word} on {shown.expires_at:%Y-%m-%d}; {whose}"
