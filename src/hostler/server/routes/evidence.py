"""The evidence of a node for its vendor: bounded, without secrets and without names of customers."""

import asyncio
from collections.abc import Callable
from datetime import datetime

from litestar import Router, get
from litestar.params import FromPath
from msgspec import Struct

from hostler.core.report.evidence_bundle import EvidenceBundle, evidence_bundle
from hostler.ports import JournalError
from hostler.server import evidence_reading
from hostler.server.auth import SEE_CELL
from hostler.server.dependencies import TheAppState, Who
from hostler.server.problems import refuse, unknown


class BundleView(Struct, frozen=True):
    """A bundle that was kept, or could not be (`digest` ""): its size in bytes, and what is not in it, and why."""

    id: str
    at: datetime
    digest: str
    size: int
    files: int
    missing: tuple[str, ...]
    tickets: tuple[str, ...]
    cases: tuple[str, ...]


class BundleList(Struct, frozen=True):
    """The bundles of one node, the newest first."""

    items: list[BundleView]


class KeptContent(Struct, frozen=True):
    """Bytes that are kept of a node, as base64: a bundle's zip or a certificate's JSON."""

    node: str
    digest: str
    content: bytes


@get("/nodes/{node_id:str}/evidence", guards=SEE_CELL)
async def node_evidence(app_state: TheAppState, who: Who, node_id: FromPath[str]) -> EvidenceBundle:
    """Files for a vendor's case: timeline, log, checks, parts, firmware, sensors, and the case's own fields."""
    node, journal = app_state.node(who, node_id), app_state.cell.journal
    known = await asyncio.to_thread(evidence_reading.known, app_state.fleet, node, journal, app_state.now())
    return await asyncio.to_thread(evidence_bundle, known)


@get("/nodes/{node_id:str}/bundles", guards=SEE_CELL)
async def node_bundles(app_state: TheAppState, who: Who, node_id: FromPath[str]) -> BundleList:
    """Bundles of evidence that were kept of a node by themselves, the newest first; what is not in them is said."""
    found = app_state.node(who, node_id).bundles
    return BundleList(
        [
            BundleView(
                one.digest[:12] or "-", one.at, one.digest, one.size, one.files, one.missing, one.tickets, one.cases
            )
            for one in reversed(found)
        ]
    )


@get("/nodes/{node_id:str}/bundles/{digest:str}", guards=SEE_CELL)
async def node_bundle(app_state: TheAppState, who: Who, node_id: FromPath[str], digest: FromPath[str]) -> KeptContent:
    """The zip of a bundle, by its SHA-256 or the first 12 digits of it, as base64."""
    node, bundles = app_state.node(who, node_id), app_state.outside.bundles
    named = next((one for one in node.bundles if one.digest and digest in (one.digest, one.digest[:12])), None)
    if named is None:
        raise unknown("bundle", digest)
    if bundles is None:
        raise refuse(501, "unsupported", "this server keeps no bundles", "run it with --data")
    data = await _read("bundle", bundles.get, named.digest)
    if data is None:
        what = f"bundle {named.digest[:12]} of {node.id} is not here: its time was over, or another controller keeps it"
        raise refuse(410, "gone", what, "ask the other controllers, or put the evidence together anew")
    return KeptContent(node.id, named.digest, data)


async def _read(what: str, get_bytes: Callable[..., bytes | None], *names: str) -> bytes | None:
    """The bytes that a folder keeps, off the loop; None where it has none. Raises ProblemError where they changed."""
    try:
        return await asyncio.to_thread(get_bytes, *names)
    except JournalError as error:
        raise refuse(500, "damaged", str(error), f"take the {what} from a copy of that folder") from error


class CertificateView(Struct, frozen=True):
    """A certificate of sanitising: whose data was erased ("" for nobody's), of how many drives."""

    id: str
    at: datetime
    digest: str
    tenant: str
    drives: int


class CertificateList(Struct, frozen=True):
    """The last certificates of one node, the newest first; its history names all."""

    items: list[CertificateView]


@get("/nodes/{node_id:str}/certificates", guards=SEE_CELL)
async def node_certificates(app_state: TheAppState, who: Who, node_id: FromPath[str]) -> CertificateList:
    """Certificates that the node was sanitised, the newest first."""
    found = app_state.node(who, node_id).certificates
    return CertificateList(
        [CertificateView(one.digest[:12], one.at, one.digest, one.tenant, one.drives) for one in reversed(found)]
    )


@get("/nodes/{node_id:str}/certificates/{digest:str}", guards=SEE_CELL)
async def node_certificate(
    app_state: TheAppState, who: Who, node_id: FromPath[str], digest: FromPath[str]
) -> KeptContent:
    """A certificate as it was written, by its SHA-256 (any of the node's) or the first 12 digits of a listed one."""
    node, kept = app_state.node(who, node_id), app_state.outside.certificates
    listed = next((one.digest for one in node.certificates if digest in (one.digest, one.digest[:12])), "")
    whole = listed or digest
    if kept is None and not listed:
        raise unknown("certificate", digest)
    if kept is None:
        raise refuse(501, "unsupported", "this server keeps no certificates", "run it with --data")
    data = await _read("certificate", kept.get, node.id, whole)
    if data is None:
        raise unknown("certificate", digest)
    return KeptContent(node.id, whole, data)


router = Router(
    path="/",
    route_handlers=[node_evidence, node_bundles, node_bundle, node_certificates, node_certificate],
    tags=["nodes"],
)
