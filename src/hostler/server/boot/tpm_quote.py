"""Reads a TPM's quote of its registers (PCRs) 0 to 7: signed by its attestation key, over what the controller asked.

TPM 2.0 Library, part 2: TPMS_ATTEST (10.12.12), TPMS_QUOTE_INFO (10.12.4), TPML_PCR_SELECTION (10.9.7), TPMT_PUBLIC for
RSA (12.2.3.5).
"""

import hashlib
import hmac
import struct

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from msgspec import Struct

from hostler.core.state.boot import PCRS
from hostler.server.boot.tpm_credential import TpmError

_GENERATED, _ATTEST_QUOTE = 0xFF544347, 0x8018
_RSA, _SHA256, _RSASSA, _NULL = 0x0001, 0x000B, 0x0014, 0x0010
_VALUE = 32
_SELECTED = struct.pack(">IHB3s", 1, _SHA256, 3, bytes([(1 << PCRS) - 1, 0, 0]))
_CLOCK_AND_FIRMWARE = 17 + 8


class Quote(Struct, frozen=True):
    """Quote of a TPM: TPMS_ATTEST, its signature (RSASSA, SHA-256), and the values of its registers, one by one."""

    message: bytes
    signature: bytes
    values: bytes


def quoted(quote: Quote, public: bytes, nonce: bytes) -> tuple[str, ...]:
    """Values of the registers, in hex, by a quote of the key with this TPM2B_PUBLIC for this nonce. Raises TpmError."""
    try:
        _attestation_key(public).verify(quote.signature, quote.message, padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature as error:
        raise TpmError("its quote is not signed by its attestation key") from error
    try:
        extra, digest = _attested(quote.message)
    except struct.error as error:
        raise TpmError("its quote ends too early") from error
    if not hmac.compare_digest(extra, nonce):
        raise TpmError("its quote is not for this enrolment: it carries another nonce")
    values = quote.values
    if len(values) != PCRS * _VALUE or not hmac.compare_digest(hashlib.sha256(values).digest(), digest):
        raise TpmError(f"its values of PCRs 0 to {PCRS - 1} are not those that its TPM quoted")
    return tuple(values[n : n + _VALUE].hex() for n in range(0, len(values), _VALUE))


def _attested(message: bytes) -> tuple[bytes, bytes]:
    """The nonce and the digest of the registers of a TPMS_ATTEST. Raises TpmError, struct.error."""
    magic, kind = struct.unpack_from(">IH", message)
    if (magic, kind) != (_GENERATED, _ATTEST_QUOTE):
        raise TpmError("its quote is no quote that a TPM made")
    _signer, at = _sized(message, 6)
    nonce, at = _sized(message, at)
    at += _CLOCK_AND_FIRMWARE
    if message[at : at + len(_SELECTED)] != _SELECTED:
        raise TpmError(f"its quote is not over PCRs 0 to {PCRS - 1} of the SHA-256 bank")
    digest, at = _sized(message, at + len(_SELECTED))
    if at != len(message):
        raise TpmError("its quote has something behind its end")
    return nonce, digest


def _attestation_key(public: bytes) -> rsa.RSAPublicKey:
    """The key of a TPM2B_PUBLIC that signs by RSASSA with SHA-256. Raises TpmError."""
    try:
        (kind,) = struct.unpack_from(">H", public, 2)
        _policy, at = _sized(public, 10)
        symmetric, scheme, digest, _bits, exponent = struct.unpack_from(">HHHHI", public, at)
        modulus, _at = _sized(public, at + 12)
        if (kind, symmetric, scheme, digest) != (_RSA, _NULL, _RSASSA, _SHA256):
            raise TpmError("its attestation key does not sign by RSASSA with SHA-256")
        return rsa.RSAPublicNumbers(exponent or 65_537, int.from_bytes(modulus, "big")).public_key()
    except (struct.error, ValueError) as error:
        if isinstance(error, TpmError):
            raise
        raise TpmError("its attestation key is no RSA key") from error


def _sized(body: bytes, at: int) -> tuple[bytes, int]:
    """A field behind its size, and where the next one begins. Raises struct.error where it is cut short."""
    (size,) = struct.unpack_from(">H", body, at)
    (field,) = struct.unpack_from(f"{size}s", body, at + 2)
    return field, at + 2 + size
