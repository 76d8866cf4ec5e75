"""Asks a TPM to prove that it is the one with a certain endorsement key, and that a signing key lives in it.

TPM 2.0 Library, part 1: "Credential Protection" (24), KDFa (11.4.10.2), KDFe (11.4.10.3) and the secret that is shared
with an ECC key (C.6.1); part 2: TPMT_PUBLIC (12.2.4). The blob is in the form of tpm2-tools (`tpm2_makecredential`),
which opens it with `tpm2_activatecredential`.
"""

import hashlib
import hmac
import secrets
import struct

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.decrepit.ciphers.modes import CFB
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from msgspec import Struct

SECRET_BYTES = 32
_MAGIC, _VERSION = 0xBADCC0DE, 1
_SHA256 = 0x000B
_FIXED_TPM, _FIXED_PARENT, _ORIGIN, _RESTRICTED, _DECRYPT, _SIGN = (1 << n for n in (1, 4, 5, 16, 17, 18))
_MUST = _FIXED_TPM | _FIXED_PARENT | _ORIGIN | _RESTRICTED | _SIGN
_EK_BITS = 2048
_COORDINATE = 32
CHAIN_MAX = 8
"""Certificates between a TPM's and its maker's authority."""
EndorsementKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey


class TpmError(ValueError):
    """Evidence that is no TPM's; the text says which part of it."""


class Endorsement(Struct, frozen=True):
    """The endorsement key of a TPM; `digest` is the SHA-256 of its public part (SubjectPublicKeyInfo), in hex."""

    key: EndorsementKey
    digest: str


def endorsement_of(pem: str) -> Endorsement:
    """Read the public part of an endorsement key. Raises TpmError."""
    try:
        key = serialization.load_pem_public_key(pem.encode())
    except ValueError as error:
        raise TpmError("its endorsement key is no public key in PEM") from error
    is_rsa = isinstance(key, rsa.RSAPublicKey) and key.key_size == _EK_BITS
    is_ecc = isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1)
    if not isinstance(key, EndorsementKey) or not (is_rsa or is_ecc):
        raise TpmError(f"its endorsement key is neither an RSA key of {_EK_BITS} bits nor one on the curve NIST P-256")
    return Endorsement(key, hashlib.sha256(spki(key)).hexdigest())


def spki(key: EndorsementKey) -> bytes:
    """The public key as SubjectPublicKeyInfo, DER."""
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def attestation_name(public: bytes) -> bytes:
    """The name of an attestation key, by its TPM2B_PUBLIC. Raises TpmError for a key that may leave its TPM."""
    if len(public) < 10 or struct.unpack(">H", public[:2])[0] != len(public) - 2:
        raise TpmError("its attestation key is no TPM2B_PUBLIC")
    body = public[2:]
    _, algorithm, attributes = struct.unpack(">HHI", body[:8])
    if algorithm != _SHA256:
        raise TpmError("its attestation key is not named by SHA-256")
    if attributes & _MUST != _MUST or attributes & _DECRYPT:
        raise TpmError("its attestation key is not restricted to signing inside one TPM")
    return struct.pack(">H", _SHA256) + hashlib.sha256(body).digest()


def credential(to: Endorsement, name: bytes, secret: bytes) -> bytes:
    """The secret in a form that only the TPM with this endorsement key opens, and only beside the key of this name."""
    seed, sealed_seed = _shared(to.key)
    cipher = Cipher(AES(_kdfa(seed, b"STORAGE", name, 128)), CFB(bytes(16))).encryptor()
    identity = cipher.update(_sized(secret)) + cipher.finalize()
    integrity = hmac.new(_kdfa(seed, b"INTEGRITY", b"", 256), identity + name, hashlib.sha256).digest()
    return struct.pack(">II", _MAGIC, _VERSION) + _sized(_sized(integrity) + identity) + _sized(sealed_seed)


def _shared(key: EndorsementKey) -> tuple[bytes, bytes]:
    """A seed, and the form of it that the TPM with this key alone understands."""
    if isinstance(key, rsa.RSAPublicKey):
        seed = secrets.token_bytes(SECRET_BYTES)
        return seed, key.encrypt(seed, padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), b"IDENTITY\0"))
    own = ec.generate_private_key(key.curve)
    ours, theirs = _point(own.public_key()), _point(key)
    told = struct.pack(">I", 1) + own.exchange(ec.ECDH(), key) + b"IDENTITY\0" + ours[0] + theirs[0]
    return hashlib.sha256(told).digest(), _sized(ours[0]) + _sized(ours[1])


def _point(key: ec.EllipticCurvePublicKey) -> tuple[bytes, bytes]:
    numbers = key.public_numbers()
    return numbers.x.to_bytes(_COORDINATE, "big"), numbers.y.to_bytes(_COORDINATE, "big")


def check_certificate(der: bytes, key: Endorsement, authorities: str, chain: tuple[bytes, ...] = ()) -> None:
    """Hold the endorsement key's certificate against the makers' authorities (PEM). Raises TpmError.

    `chain` are certificates (DER) of authorities between them, as the TPM has them: each counts as far as it is signed.
    """
    try:
        certificate = x509.load_der_x509_certificate(der)
        between = [x509.load_der_x509_certificate(one) for one in chain[:CHAIN_MAX]]
        known = x509.load_pem_x509_certificates(authorities.encode())
        shown = certificate.public_key()
    except ValueError as error:
        raise TpmError("it shows no certificate of its endorsement key") from error
    if not isinstance(shown, EndorsementKey) or hashlib.sha256(spki(shown)).hexdigest() != key.digest:
        raise TpmError("its certificate is of another endorsement key")
    if not _leads_to(certificate, known, between):
        raise TpmError("its endorsement key's certificate is of none of the authorities in boot.agent.tpm_authorities")


def _leads_to(certificate: x509.Certificate, known: list[x509.Certificate], between: list[x509.Certificate]) -> bool:
    """Whether one of the known authorities has issued it, or an authority between that such a way leads to."""
    reached, left = [certificate], [one for one in between if _may_issue(one)]
    while reached:
        one = reached.pop()
        if any(_issued(one, authority) for authority in known):
            return True
        reached += [authority for authority in left if _issued(one, authority)]
        left = [authority for authority in left if authority not in reached]
    return False


def _may_issue(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        return False


def _issued(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _sized(body: bytes) -> bytes:
    return struct.pack(">H", len(body)) + body


def _kdfa(key: bytes, label: bytes, context: bytes, bits: int) -> bytes:
    """KDFa with SHA-256, for at most 256 bits."""
    told = struct.pack(">I", 1) + label + b"\0" + context + struct.pack(">I", bits)
    return hmac.new(key, told, hashlib.sha256).digest()[: bits // 8]
