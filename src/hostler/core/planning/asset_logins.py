"""Renews the passwords of rack assets' BMCs, as nodes' are, asked at each recorded look at the asset. Pure."""

from collections.abc import Iterator
from datetime import datetime

from hostler.core.planning import asset_renewals, bmc_logins
from hostler.core.state import events as e
from hostler.core.state.assets import Asset
from hostler.core.state.bmc_login import RENEW, gives_up
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Wait
from hostler.core.state.operations import RenewBmcLogin


def of_look(context: DecisionContext, asset: Asset) -> Iterator[e.Event]:
    """The renewal that begins with the look that the asset has by now."""
    if isinstance(answer := renewal(context, asset), Act):
        yield from answer.events


def renewal(context: DecisionContext, asset: Asset) -> Act | Wait | datetime | None:
    """The renewal that begins now, what it waits for, when it is due, or None where there is none to be."""
    every_s, login = context.fleet.policy.bmc_credentials.renew_every_s, asset.bmc_login
    asked = login is not None and login.asked_at is not None
    if not (asked or every_s) or not (asset.binding("bmc") and asset.position.rack) or gives_up(login):
        return None
    refused = asset.look is not None and asset.look.login_refused
    why = bmc_logins.why_due(context.now, login, every_s, refused=refused)
    if isinstance(why, datetime):
        return why
    if login is not None and (again := bmc_logins.paused(context, login.failed_at, login.failures)) is not None:
        return again
    by_person = login is not None and login.asked_by not in ("", "hostler")
    if stopped := tuple(asset_renewals.stops(context, asset, RENEW, approved=by_person)):
        return Wait(RENEW, stopped, until=None)
    due = () if asked else (e.AssetLoginDue(asset.id, "hostler", why),)
    act = RenewBmcLogin(anew=login is not None and login.anew)
    return Act((*due, asset_renewals.started(context, asset, act)))
