"""BMCs' own passwords as far as they may be told: age, last proof, what waits, the certificate recorded."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from litestar import Router, get
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.planning import asset_logins
from hostler.core.state.asset_operations import under_way
from hostler.core.state.assets import BMC_CERTIFICATE, Asset
from hostler.core.state.bmc_login import RENEW, BmcLogin, gives_up
from hostler.core.state.configuration import Policy
from hostler.core.state.decisions import Wait
from hostler.core.state.model import Node
from hostler.server.app_state import AppState
from hostler.server.auth import SEE_CELL
from hostler.server.dependencies import TheAppState, Wanted
from hostler.server.paging import Page, listed
from hostler.server.rows import row_of


class CredentialRow(Struct, frozen=True):
    """The login of the BMC of one node, or of a rack's asset (`kind`).

    `state`: none, renewing, due, proved or failed; `says` why, in words. `renewed_at` is when its password was last
    proved, `due_at` when the next renewal begins by itself. `pending`: a new password was made and may be set. `tried`
    of `tries` wrong passwords were shown since one was right. `certificate` is the SHA-256 by which the BMC is known,
    "" where an authority or bmc.json says so.
    """

    node: str
    bmc: str
    state: str
    username: str = ""
    renewed_at: datetime | None = None
    due_at: datetime | None = None
    pending: bool = False
    tried: int = 0
    tries: int = 0
    certificate: str = ""
    says: str = ""
    kind: str = "node"


@get("/bmc/credentials", guards=SEE_CELL)
async def list_credentials(app_state: TheAppState, wanted: Wanted) -> Page[CredentialRow]:
    """The logins of all BMCs, of nodes and of racks' assets."""
    return listed(_rows(app_state), wanted)


def _rows(app_state: AppState) -> Iterator[tuple[str, CredentialRow]]:
    fleet = app_state.fleet
    for node in fleet.nodes.values():
        if node.binding("bmc"):
            busy = node.aside is not None and node.aside.kind == RENEW
            yield node.id, _row(node, fleet.policy_of(node), busy=busy)
    for asset in fleet.assets.values():
        if asset.binding("bmc"):
            yield asset.id, _of_asset(app_state, asset)


def _of_asset(app_state: AppState, asset: Asset) -> CredentialRow:
    busy = under_way(app_state.fleet, asset, RENEW) is not None
    row = replace(_row(asset, app_state.fleet.policy, busy=busy), kind=asset.kind)
    waits = None if busy else asset_logins.renewal(app_state.context(), asset)
    return replace(row, says="; ".join(b.text for b in waits.blockers)) if isinstance(waits, Wait) else row


def _row(named: Node | Asset, policy: Policy, *, busy: bool) -> CredentialRow:
    """Row of one login, with what may be told of it."""
    login, renew_every_s = named.bmc_login or BmcLogin(), policy.bmc_credentials.renew_every_s
    due = login.renewed_at + timedelta(seconds=renew_every_s) if login.renewed_at and renew_every_s else None
    return row_of(
        CredentialRow,
        login,
        node=named.id,
        bmc=named.binding("bmc"),
        state="renewing" if busy else _state(login),
        due_at=due,
        certificate=named.binding(BMC_CERTIFICATE),
        says=login.detail or login.why,
    )


def _state(login: BmcLogin) -> str:
    if gives_up(login):
        return "failed"
    if login.asked_at is not None:
        return "due"
    return "proved" if login.renewed_at is not None else "none"


router = Router("/", route_handlers=[list_credentials], tags=["BMCs"])
