"""BMCs' certificates: which one each is known by, when it expires, and what the last renewal came to."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from litestar import Router, get
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.planning import asset_certificates
from hostler.core.state.asset_operations import under_way
from hostler.core.state.assets import BMC_CERTIFICATE, Asset
from hostler.core.state.bmc_certificate import CERTIFY, SITES_OWN, BmcCertificate, gives_up
from hostler.core.state.configuration import Policy
from hostler.core.state.decisions import Wait
from hostler.core.state.model import Node
from hostler.server.app_state import AppState
from hostler.server.auth import SEE_CELL
from hostler.server.dependencies import TheAppState, Wanted
from hostler.server.paging import Page, listed


class CertificateRow(Struct, frozen=True):
    """The certificate of the BMC of one node, or of a rack's asset (`kind`).

    `state`: none, site (the site's own to renew), recorded, issued, renewing, due or failed.

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
    kind: str = "node"


@get("/bmc/certificates", guards=SEE_CELL)
async def list_bmc_certificates(app_state: TheAppState, wanted: Wanted) -> Page[CertificateRow]:
    """The certificates of all BMCs, of nodes and of racks' assets."""
    return listed(_rows(app_state), wanted)


def _rows(app_state: AppState) -> Iterator[tuple[str, CertificateRow]]:
    fleet = app_state.fleet
    for node in fleet.nodes.values():
        if node.binding("bmc"):
            known = node.bmc_certificate or BmcCertificate()
            busy = node.aside is not None and node.aside.kind == CERTIFY
            yield node.id, _row(node, known, fleet.policy_of(node), busy=busy)
    for asset in fleet.assets.values():
        if asset.binding("bmc"):
            yield asset.id, _of_asset(app_state, asset)


def _of_asset(app_state: AppState, asset: Asset) -> CertificateRow:
    fleet, known = app_state.fleet, asset.bmc_certificate or BmcCertificate()
    if asset.look is not None and asset.look.certificate is not None:
        known = replace(known, shown=asset.look.certificate)
    busy = under_way(fleet, asset, CERTIFY) is not None
    row = replace(_row(asset, known, fleet.policy, busy=busy), kind=asset.kind)
    waits = None if busy else asset_certificates.renewal(app_state.context(), asset)
    return replace(row, says="; ".join(b.text for b in waits.blockers)) if isinstance(waits, Wait) else row


def _row(named: Node | Asset, known: BmcCertificate, policy: Policy, *, busy: bool) -> CertificateRow:
    renew_every_s, recorded = policy.bmc_certificates.renew_every_s, named.binding(BMC_CERTIFICATE)
    due = known.renewed_at + timedelta(seconds=renew_every_s) if known.renewed_at and renew_every_s else None
    shown = known.shown
    state = "renewing" if busy else _state(recorded, known)
    return CertificateRow(
        named.id,
        named.binding("bmc"),
        state,
        recorded,
        shown.expires_at if shown is not None else None,
        shown.issuer if shown is not None else "",
        known.renewed_at,
        due,
        SITES_OWN if state == "site" else known.detail or known.why,
    )


def _state(recorded: str, known: BmcCertificate) -> str:
    if gives_up(known):
        return "failed"
    if known.asked_at is not None:
        return "due"
    if recorded and recorded == known.issued:
        return "issued"
    if recorded:
        return "recorded"
    return "site" if known.shown is not None else "none"


router = Router("/", route_handlers=[list_bmc_certificates], tags=["BMCs"])
