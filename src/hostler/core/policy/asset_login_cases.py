"""One ticket about the password of a rack asset's BMC, which could not be renewed and is not tried any more."""

from collections.abc import Iterator

from hostler.core.policy import asset_bmc_cases
from hostler.core.policy.asset_bmc_cases import BmcTrouble
from hostler.core.state import events as e
from hostler.core.state.assets import Asset
from hostler.core.state.bmc_login import gives_up
from hostler.core.state.decision_context import DecisionContext

CASE = "asset_login"
"""The kind of ticket."""


def of_look(context: DecisionContext, asset: Asset) -> Iterator[e.Event]:
    """Events that follow from what the renewals of its password have come to by this look."""
    login, fault = asset.bmc_login, ""
    if login is not None and gives_up(login):
        fault = f"the password of its BMC could not be renewed ({login.result.replace('_', ' ')}): {login.detail}"
    action = f"correct what it says, then hostler asset renew-login {asset.id} --reason …"
    over = "the password of its BMC was renewed, or a person has asked for it again"
    return asset_bmc_cases.told(context, asset, BmcTrouble("login", CASE, fault, action, over))
