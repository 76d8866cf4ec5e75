"""A certificate request and a site's authority → a certificate. Pure: the moment and the serial number are given."""

import ipaddress
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

from hostler.ports import IssuedCertificate, RefusedError

RSA_BITS, EC_BITS = 2048, 256
"""The weakest keys that get a certificate (NIST SP 800-57: 112 and 128 bits of security)."""
BACKDATED = timedelta(hours=1)
"""So far behind a BMC's clock may be when it first shows the certificate."""
SigningKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
MEND = "correct the authority's secret that bmc.json names"


class Authority(Struct, frozen=True):
    """The authority's certificate and key. Its representation shows neither."""

    certificate: x509.Certificate
    key: SigningKey

    def __repr__(self) -> str:
        return "Authority(…)"


def authority(certificate: bytes, key: bytes, passphrase: bytes | None) -> Authority:
    """The authority of these PEM texts. Raises RefusedError, which tells none of the key."""
    try:
        shown = x509.load_pem_x509_certificate(certificate)
        held = serialization.load_pem_private_key(key, passphrase)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise RefusedError(
            f"the authority's certificate or key cannot be read ({type(error).__name__}); {MEND}"
        ) from None
    if not isinstance(held, SigningKey):
        raise RefusedError(f"the authority's key is neither RSA, EC nor Ed25519; {MEND}")
    if _public(held.public_key()) != _public(shown.public_key()):
        raise RefusedError(f"the authority's key is not its certificate's; {MEND}")
    if not _signs(shown):
        raise RefusedError(f"the authority's certificate may sign no others (CA:TRUE is missing); {MEND}")
    return Authority(shown, held)


def read_request(raw: bytes, host: str) -> x509.CertificateSigningRequest:
    """The request of a BMC that was asked for one of this name. Raises RefusedError with what is wrong with it."""
    try:
        request = x509.load_pem_x509_csr(raw)
        sound = request.is_signature_valid
        names = [str(one.value) for one in request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        key = request.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm, InvalidSignature) as error:
        raise RefusedError(
            f"the BMC's certificate request cannot be read ({type(error).__name__}); ask for it by hand"
        ) from None
    if not sound:
        raise RefusedError(
            "the BMC's certificate request is not signed by the key in it; restart the BMC and try again"
        )
    if names != [common_name(host)]:
        told = ", ".join(name[:64] for name in names) or "nobody"
        raise RefusedError(
            f"the BMC asks for a certificate of {told!r} and was asked for {common_name(host)!r}: it may be another's "
            "request; look who answers there"
        )
    strong = (isinstance(key, rsa.RSAPublicKey) and key.key_size >= RSA_BITS) or (
        isinstance(key, ec.EllipticCurvePublicKey) and key.curve.key_size >= EC_BITS
    )
    if not strong:
        kind = f"{type(key).__name__.removesuffix('PublicKey').strip('_')} of {getattr(key, 'key_size', '?')} bits"
        raise RefusedError(f"the BMC made a weak key ({kind}); set RSA 2048 or EC P-256 and more in its settings")
    return request


def issued(
    by: Authority, request: x509.CertificateSigningRequest, host: str, period: tuple[datetime, datetime]
) -> x509.CertificateBuilder:
    """The certificate of the request's key for this host, ready to be given a number and signed.

    What the request asks for beside its key counts for nothing. Raises RefusedError where the authority's own period
    is over: no certificate outlives its authority's.
    """
    begins, ends = period
    until = min(ends, by.certificate.not_valid_after_utc)
    if until <= begins:
        raise RefusedError("the authority's own certificate has expired; renew it and write it into its secret")
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name(host))])
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(by.certificate.subject)
        .public_key(request.public_key())
        .not_valid_before(max(begins - BACKDATED, by.certificate.not_valid_before_utc))
        .not_valid_after(until)
        .add_extension(x509.SubjectAlternativeName([_alternative(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(by.key.public_key()), critical=False)
    )


def signed(by: Authority, builder: x509.CertificateBuilder, number: int) -> IssuedCertificate:
    """The certificate under this number."""
    digest = None if isinstance(by.key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    made = builder.serial_number(number).sign(by.key, digest)
    return IssuedCertificate(
        made.public_bytes(serialization.Encoding.PEM).decode(),
        made.fingerprint(hashes.SHA256()).hex(),
        made.not_valid_after_utc,
        made.issuer.rfc4514_string()[:200],
    )


def common_name(host: str) -> str:
    """The name by which a host is asked for: as much of it as a common name may have (RFC 5280: 64 characters)."""
    return host[:64]


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _signs(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def _public(key: object) -> bytes:
    encoding, form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    found: bytes = key.public_bytes(encoding, form)  # type: ignore[attr-defined]
    return found
