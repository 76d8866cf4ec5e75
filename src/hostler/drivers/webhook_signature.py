"""The signature of Standard Webhooks, under which Hostler speaks to a site's own services."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping

from hostler.ports import UnreachableError

KEY_LEAST = 24
"""Bytes of a key, as Standard Webhooks 1.0.0 asks."""


def signed_headers(key: bytes, identity: str, moment_s: int, body: bytes) -> dict[str, str]:
    """Headers that sign a body over its id and moment, so that nobody can send it again later as new."""
    return {
        "User-Agent": "Hostler",
        "webhook-id": identity,
        "webhook-timestamp": str(moment_s),
        "webhook-signature": f"v1,{sign(key, identity, moment_s, body)}",
    }


def sign(key: bytes, identity: str, moment_s: int, body: bytes) -> str:
    """The signature of Standard Webhooks: HMAC-SHA256 over "ID.TIMESTAMP.BODY", in base64."""
    signed = f"{identity}.{moment_s}.".encode() + body
    return base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def signing_key(fields: Mapping[str, str]) -> bytes:
    """The field `key`: "whsec_BASE64", or text that is long enough. Raises UnreachableError: a person mends it."""
    text = fields.get("key", "")
    if not text or not text.isprintable():
        raise UnreachableError("the secret has no field key, or it is not one line of text; write it there")
    try:
        key = (
            base64.b64decode(text.removeprefix("whsec_"), validate=True) if text.startswith("whsec_") else text.encode()
        )
    except binascii.Error as error:
        raise UnreachableError(
            "the secret's field key is no base64 behind whsec_; copy the key again from the receiver"
        ) from error
    if len(key) < KEY_LEAST:
        raise UnreachableError(
            f"the secret's field key is shorter than {KEY_LEAST} bytes; make a new key of at least that length"
        )
    return key
