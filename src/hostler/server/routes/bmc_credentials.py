"""BMCs' own passwords as far as they may be told: age, last proof, what waits, the certificate recorded."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from litestar import Router, get
from msgspec import Struct

from hostler.core.conditions.own_conditions import login_gives_up
from hostler.core.state.assets import BMC_CERTIFICATE
from hostler.core.state.bmc_login import RENEW, BmcLogin
from hostler.core.state.model import Node
from hostler.server.app_state import AppState
from hostler.server.auth import SEE_CELL
from hostler.server.dependencies import TheAppState, Wanted
from hostler.server.paging import Page, listed
from hostler.server.rows import row_of


class CredentialRow(Struct, frozen=True):
    """The login of one node's BMC. `state`: none, renewing, due, proved or failed; `says` why, in words.

    `renewed_at` is when its password was last proved, `due_at` when the next renewal begins by itself. `pending`: a new
    password was made and may be set. `tried` of `tries` wrong passwords were shown since one was right. `certificate`
    is the SHA-256 by which the BMC is known, "" where an authority or bmc.json says so.
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


@get("/bmc/credentials", guards=SEE_CELL)
async def list_credentials(app_state: TheAppState, wanted: Wanted) -> Page[CredentialRow]:
    """The logins of all nodes that have a BMC."""
    return listed(_rows(app_state), wanted)


def _rows(app_state: AppState) -> Iterator[tuple[str, CredentialRow]]:
    fleet = app_state.fleet
    for node in fleet.nodes.values():
        if node.binding("bmc"):
            yield node.id, _login_row(node, fleet.policy_of(node).bmc_credentials.renew_every_s)


def _login_row(node: Node, renew_every_s: float) -> CredentialRow:
    """Row of one login, with what may be told of it."""
    login = node.bmc_login or BmcLogin()
    due = login.renewed_at + timedelta(seconds=renew_every_s) if login.renewed_at and renew_every_s else None
    return row_of(
        CredentialRow,
        login,
        node=node.id,
        bmc=node.binding("bmc"),
        state=_state(node, login),
        due_at=due,
        certificate=node.binding(BMC_CERTIFICATE),
        says=login.detail or login.why,
    )


def _state(node: Node, login: BmcLogin) -> str:
    if node.aside is not None and node.aside.kind == RENEW:
        return "renewing"
    if login_gives_up(node):
        return "failed"
    if login.asked_at is not None:
        return "due"
    return "proved" if login.renewed_at is not None else "none"


router = Router("/", route_handlers=[list_credentials], tags=["BMCs"])
