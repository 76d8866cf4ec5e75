"""BMCs' certificates: which one each is known by, when it expires, and what the last renewal came to."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from litestar import Router, get
from msgspec import Struct

from hostler.core.conditions.own_conditions import certificate_gives_up
from hostler.core.state.assets import BMC_CERTIFICATE
from hostler.core.state.bmc_certificate import CERTIFY, BmcCertificate
from hostler.core.state.model import Node
from hostler.server.app_state import AppState
from hostler.server.auth import SEE_CELL
from hostler.server.dependencies import TheAppState, Wanted
from hostler.server.paging import Page, listed


class CertificateRow(Struct, frozen=True):
    """The certificate of one node's BMC. `state`: none, recorded, issued, renewing, due or failed.

    `says` why, in words. `certificate` is the SHA-256 that is recorded, `expires_at` and `issuer` are of the one shown
    last. `renewed_at` is when one of the site's authority was last proved, `due_at` when the next is due by age.
    """

    node: str
    bmc: str
    state: str
    certificate: str = ""
    expires_at: datetime | None = None
    issuer: str = ""
    renewed_at: datetime | None = None
    due_at: datetime | None = None
    says: str = ""


@get("/bmc/certificates", guards=SEE_CELL)
async def list_bmc_certificates(app_state: TheAppState, wanted: Wanted) -> Page[CertificateRow]:
    """The certificates of all nodes' BMCs."""
    return listed(_rows(app_state), wanted)


def _rows(app_state: AppState) -> Iterator[tuple[str, CertificateRow]]:
    fleet = app_state.fleet
    for node in fleet.nodes.values():
        if node.binding("bmc"):
            yield node.id, _row(node, fleet.policy_of(node).bmc_certificates.renew_every_s)


def _row(node: Node, renew_every_s: float) -> CertificateRow:
    known = node.bmc_certificate or BmcCertificate()
    due = known.renewed_at + timedelta(seconds=renew_every_s) if known.renewed_at and renew_every_s else None
    shown = known.shown
    return CertificateRow(
        node.id,
        node.binding("bmc"),
        _state(node, known),
        node.binding(BMC_CERTIFICATE),
        shown.expires_at if shown is not None else None,
        shown.issuer if shown is not None else "",
        known.renewed_at,
        due,
        known.detail or known.why,
    )


def _state(node: Node, known: BmcCertificate) -> str:
    recorded = node.binding(BMC_CERTIFICATE)
    if node.aside is not None and node.aside.kind == CERTIFY:
        return "renewing"
    if certificate_gives_up(node):
        return "failed"
    if known.asked_at is not None:
        return "due"
    if recorded and recorded == known.issued:
        return "issued"
    return "recorded" if recorded else "none"


router = Router("/", route_handlers=[list_bmc_certificates], tags=["BMCs"])
