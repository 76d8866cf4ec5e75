"""The certificate that a BMC shows: its fingerprint, when it expires and who issued it. Nothing is trusted by it."""

import asyncio
import hashlib
import ssl
from datetime import datetime
from urllib.parse import urlsplit

from cryptography import x509

from hostler.core.state.bmc_certificate import ShownCertificate
from hostler.drivers.redfish.tolerant_json import printable
from hostler.ports import RefusedError, UnreachableError
from hostler.runtime.reachable_addresses import connected, site

LOOK = "; check that the BMC has power and answers there from this host"
"""Advice where nothing answers."""


def certificate_of(der: bytes) -> ShownCertificate:
    """Read what may be told of a certificate; of one that cannot be read no more than its fingerprint."""
    digest = hashlib.sha256(der).hexdigest()
    try:
        read = x509.load_der_x509_certificate(der)
        ends: datetime | None = read.not_valid_after_utc
        issuer = read.issuer.rfc4514_string()
    except (ValueError, x509.InvalidVersion):
        ends, issuer = None, ""
    return ShownCertificate(digest, ends, printable(issuer, 200))


async def shown_certificate(origin: str, timeout_s: float) -> ShownCertificate:
    """The certificate that is shown there; nothing is sent but the handshake.

    Raises UnreachableError, and RefusedError for plain HTTP, which shows none.
    """
    parts = urlsplit(origin)
    if parts.scheme != "https":
        raise RefusedError(f"{origin} is plain HTTP and shows no certificate to pin; give https://…")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(timeout_s):
            host = parts.hostname or ""
            reached = await connected(host, parts.port or 443, site(origin))
            _, writer = await asyncio.open_connection(sock=reached, ssl=context, server_hostname=host)
    except (OSError, TimeoutError) as error:
        raise UnreachableError(
            f"{origin} shows no certificate: {f'{type(error).__name__} {error}'.strip()}{LOOK}"
        ) from error
    try:
        return certificate_of(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
    finally:
        writer.close()
