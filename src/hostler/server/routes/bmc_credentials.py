"""BMCs' own passwords as far as they may be told: age, last proof, what waits, the certificate recorded."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from litestar import Router, get
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.planning import asset_logins, dpu_logins
from hostler.core.state.asset_operations import under_way
from hostler.core.state.assets import BMC_CERTIFICATE, Asset
from hostler.core.state.bmc_login import RENEW, BmcLogin, gives_up
from hostler.core.state.configuration import Policy
from hostler.core.state.decisions import Wait
from hostler.core.state.dpu_login import login_at
from hostler.core.state.dpus import bmcs_of, serials_of
from hostler.core.state.model import Node
from hostler.core.state.operations import RenewDpuLogin
from hostler.server.app_state import AppState
from hostler.server.auth import SEE_CELL
from hostler.server.dependencies import TheAppState, Wanted
from hostler.server.paging import Page, listed
from hostler.server.rows import row_of


class CredentialRow(Struct, frozen=True):
    """The login of the BMC of one node, of one of its DPUs or of a rack's asset (`kind`).

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
    """The logins of all BMCs, of nodes and their DPUs and of racks' assets."""
    return listed(_rows(app_state), wanted)


def _rows(app_state: AppState) -> Iterator[tuple[str, CredentialRow]]:
    fleet = app_state.fleet
    for node in fleet.nodes.values():
        if node.binding("bmc"):
            busy = node.aside is not None and node.aside.kind == RENEW
            yield node.id, _own(node, fleet.policy_of(node), busy=busy)
        yield from ((f"{node.id} {bmc}", _of_dpu(app_state, node, bmc)) for bmc in bmcs_of(node))
    for asset in fleet.assets.values():
        if asset.binding("bmc"):
            yield asset.id, _of_asset(app_state, asset)


def _of_asset(app_state: AppState, asset: Asset) -> CredentialRow:
    busy = under_way(app_state.fleet, asset, RENEW) is not None
    row = replace(_own(asset, app_state.fleet.policy, busy=busy), kind=asset.kind)
    return row if busy else _waiting(row, asset_logins.renewal(app_state.context(), asset))


def _of_dpu(app_state: AppState, node: Node, bmc: str) -> CredentialRow:
    """Row of a DPU's BMC; without a card's serial number from its node's agent it says so."""
    known, act = login_at(node.dpu_logins, bmc), node.aside.act if node.aside is not None else None
    busy = isinstance(act, RenewDpuLogin) and act.bmc == bmc
    shown = _Shown(node.id, bmc, known.login, known.certificate)
    row = replace(_row(shown, app_state.fleet.policy_of(node), busy=busy), kind="dpu")
    if not serials_of(node):
        return replace(row, says="its node's agent shows no DPU with a serial number, by which its BMC would be known")
    if known.others:
        return replace(row, state="none")
    if not known.gives_up(serials_of(node)) and row.state == "failed":
        row = replace(row, state="due")
    return row if busy else _waiting(row, dpu_logins.of_bmc(app_state.context(), node, bmc))


def _waiting(row: CredentialRow, answer: object) -> CredentialRow:
    return replace(row, says="; ".join(b.text for b in answer.blockers)) if isinstance(answer, Wait) else row


class _Shown(NamedTuple):
    """Login of the BMC at this address, with the certificate recorded."""

    node: str
    bmc: str
    login: BmcLogin
    certificate: str


def _own(named: Node | Asset, policy: Policy, *, busy: bool) -> CredentialRow:
    login, certificate = named.bmc_login or BmcLogin(), named.binding(BMC_CERTIFICATE)
    return _row(_Shown(named.id, named.binding("bmc"), login, certificate), policy, busy=busy)


def _row(shown: _Shown, policy: Policy, *, busy: bool) -> CredentialRow:
    """Row of one login, with what may be told of it."""
    login, renew_every_s = shown.login, policy.bmc_credentials.renew_every_s
    due = login.renewed_at + timedelta(seconds=renew_every_s) if login.renewed_at and renew_every_s else None
    return row_of(
        CredentialRow,
        login,
        node=shown.node,
        bmc=shown.bmc,
        state="renewing" if busy else _state(login),
        due_at=due,
        certificate=shown.certificate,
        says=login.detail or login.why,
    )


def _state(login: BmcLogin) -> str:
    if gives_up(login):
        return "failed"
    if login.asked_at is not None:
        return "due"
    return "proved" if login.renewed_at is not None else "none"


router = Router("/", route_handlers=[list_credentials], tags=["BMCs"])
