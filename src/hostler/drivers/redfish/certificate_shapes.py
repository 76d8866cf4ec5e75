"""How BMCs take a certificate: three ways, found by what a BMC offers; sources and vendors: docs/redfish-vendors.md.

- `service`: CertificateService with GenerateCSR and ReplaceCertificate (DSP0266). The BMC makes the key.
- `ilo`: HttpsCert with GenerateCSR and ImportCertificate below the manager. The BMC makes the key, for minutes.
- `upload`: Supermicro's SmcSSLCert.Upload. Hostler makes the key; it is sent with the certificate.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from msgspec import Struct

from hostler.drivers.redfish.client import NotOfferedError, RedfishClient
from hostler.drivers.redfish.shown_certificate import LOOK
from hostler.drivers.redfish.tolerant_json import Document, child, document, link, strings, text
from hostler.drivers.redfish.wire import Manager
from hostler.ports import LoginRefusedError, RefusedError, UnreachableError

SERVICE, ILO, UPLOAD = "service", "ilo", "upload"
MADE_WITHIN_S, POLL_S = 180.0, 2.0
"""An iLO makes a key for minutes."""
SUBJECT = {"Country": "XX", "State": "none", "City": "none"}
"""Fields that some demand beside the name; the authority leaves them out. XX is no country's code (ISO 3166-1)."""
ORGANISATION, UNIT = "Hostler", "BMC"
_KEYS = {"TPM_ALG_ECDSA": {"KeyCurveId": "TPM_ECC_NIST_P384"}, "EC": {"KeyCurveId": "secp384r1"}}
_KEYS |= {"TPM_ALG_RSA": {"KeyBitLength": 2048}, "RSA": {"KeyBitLength": 2048}}  # type: ignore[dict-item]
"""Keys by the names that BMCs have for them, the one wanted most first (DMTF's schema; OpenBMC's own)."""


class CertificateRequest(Struct, frozen=True):
    """A request for a certificate, and how it is installed once it is issued."""

    way: str
    text: bytes
    install: Callable[[str], Awaitable[None]]


async def request(client: RedfishClient, manager: Manager, name: str) -> CertificateRequest:
    """Have a key and a request for a certificate of this name made, by the way that the BMC offers.

    Raises PortError; NotOfferedError where it offers none.
    """
    assert client.busy, "an actuation without `alone`"
    root = document(await client.get("/redfish/v1/"), "service root")
    if (service := link(root, "CertificateService")) and (
        actions := _pair(document(await client.get(service)), "CertificateService", "ReplaceCertificate")
    ):
        return await _by_service(client, manager, actions, name)
    if (found := await _ilo(client, manager)) is not None:
        return await _by_ilo(client, *found, name)
    update = link(root, "UpdateService")
    held = child(document(await client.get(update)), "Oem", "Supermicro") if update else {}
    if place := link(held, "SSLCert"):
        target = text(child(document(await client.get(place)), "Actions", "#SmcSSLCert.Upload"), "target")
        return await _by_upload(client, target or f"{place}/Actions/SmcSSLCert.Upload", name)
    raise NotOfferedError(
        f"{client.origin} offers no way to give it a certificate over Redfish: do it by the vendor's means, and record "
        "the new one with `hostler node rebind`"
    )


class _Actions(Struct, frozen=True):
    make: str
    install: str
    keys: tuple[str, ...]


def _pair(doc: Document, owner: str, install: str) -> _Actions | None:
    """The two actions of a resource, None where one is missing: a request that cannot be answered helps nobody."""
    actions = child(doc, "Actions")
    named = {key.lstrip("#"): child(actions, key) for key in actions}
    make = next((name for name in named if name.endswith(f"{owner}.GenerateCSR")), "")
    put = next((name for name in named if name.endswith(f"{owner}.{install}")), "")
    if not make or not put:
        return None
    place = link(doc).rstrip("/")
    made, taken = (text(named[one], "target") or f"{place}/Actions/{one}" for one in (make, put))
    return _Actions(made, taken, strings(named[make], "KeyPairAlgorithm@Redfish.AllowableValues"))


async def _by_service(client: RedfishClient, manager: Manager, actions: _Actions, name: str) -> CertificateRequest:
    held = await _https_certificates(client, manager)
    body = {**SUBJECT, "Organization": ORGANISATION, "OrganizationalUnit": UNIT, "CommonName": name}
    body |= {"CertificateCollection": {"@odata.id": held}}  # type: ignore[dict-item]
    listed = [{"KeyPairAlgorithm": one, **more} for one, more in _KEYS.items() if one in actions.keys]
    answer = await _first_taken(client, actions.make, [body | key for key in (*listed, {})])
    made = _pem(str(answer.get("CSRString", "")))
    members = await client.member_paths(held)
    if not members:
        raise RefusedError(f"{client.origin} lists no certificate of its web server at {held}; restart the BMC")

    async def install(certificate: str) -> None:
        body = {"CertificateType": "PEM", "CertificateString": certificate}
        places: tuple[object, ...] = ({"@odata.id": members[0]}, members[0])
        await _first_taken(client, actions.install, [body | {"CertificateUri": place} for place in places])

    return CertificateRequest(SERVICE, made, install)


async def _first_taken(client: RedfishClient, target: str, bodies: list[Mapping[str, object]]) -> Document:
    """The answer to the first of these bodies that is not refused: a key or form that one refuses another takes."""
    said: list[str] = []
    for body in bodies:
        try:
            answer = (await client.send("POST", target, body)).body
            return document(answer) if answer else {}
        except (LoginRefusedError, NotOfferedError):
            raise
        except RefusedError as error:
            said.append(str(error))
    raise RefusedError("; asked otherwise: ".join(dict.fromkeys(said)))


async def _https_certificates(client: RedfishClient, manager: Manager) -> str:
    """Path at which the certificates of the manager's web server are listed."""
    network = f"{manager.path}/NetworkProtocol"
    named = link(document(await client.get(manager.path)), "NetworkProtocol") or network
    try:
        shown = document(await client.get(named))
    except NotOfferedError:
        shown = {}
    return link(child(shown, "HTTPS"), "Certificates") or f"{network}/HTTPS/Certificates"


async def _ilo(client: RedfishClient, manager: Manager) -> tuple[str, _Actions] | None:
    place = f"{manager.path}/SecurityService/HttpsCert"
    try:
        actions = _pair(document(await client.get(place)), "HttpsCert", "ImportCertificate")
    except NotOfferedError:
        return None
    return (place, actions) if actions is not None else None


async def _by_ilo(client: RedfishClient, place: str, actions: _Actions, name: str) -> CertificateRequest:
    before = await _standing(client, place)
    body = {**SUBJECT, "OrgName": ORGANISATION, "OrgUnit": UNIT, "CommonName": name, "IncludeIP": True}
    await client.send("POST", actions.make, body)
    made, waited = await _standing(client, place), 0.0
    while made in ("", before):
        if waited >= MADE_WITHIN_S:
            raise UnreachableError(f"{client.origin} has made no certificate request within {MADE_WITHIN_S:g} s{LOOK}")
        await asyncio.sleep(POLL_S)
        waited += POLL_S
        made = await _standing(client, place)

    async def install(certificate: str) -> None:
        await client.send("POST", actions.install, {"Certificate": certificate})

    return CertificateRequest(ILO, _pem(made), install)


async def _standing(client: RedfishClient, place: str) -> str:
    value = document(await client.get(place)).get("CertificateSigningRequest")
    return value if isinstance(value, str) else ""


async def _by_upload(client: RedfishClient, target: str, name: str) -> CertificateRequest:
    """The key is made here, sent to the BMC over the connection whose certificate is pinned, and kept nowhere."""
    key = await asyncio.to_thread(rsa.generate_private_key, 65537, 2048)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    asked = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    form = serialization.PrivateFormat.TraditionalOpenSSL
    private = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())

    async def install(certificate: str) -> None:
        boundary = f"hostler-{secrets.token_hex(16)}"
        files = {"cert_file": ("cert.pem", certificate.encode()), "key_file": ("key.pem", private)}
        try:
            await client.send_form(target, _form(files, boundary), boundary)
        except RefusedError as error:  # a BMC may quote what it refuses
            answered = str(error).partition(": ")[0]
            raise RefusedError(f"{answered}; its words may quote the key and are not told; see its own log") from None

    return CertificateRequest(UPLOAD, asked.public_bytes(serialization.Encoding.PEM), install)


def _form(files: Mapping[str, tuple[str, bytes]], boundary: str) -> bytes:
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n".encode()
        + content
        + b"\r\n"
        for field, (name, content) in files.items()
    ]
    return b"".join(parts) + f"--{boundary}--\r\n".encode()


def _pem(made: str) -> bytes:
    """The request as PEM; some BMCs write its line ends out."""
    return made.replace("\\n", "\n").replace("\r", "").strip().encode() + b"\n"
