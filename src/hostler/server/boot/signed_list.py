"""The signed list of the image folder: the files that a site's image builder vouches for, by their sha256.

It is what `sha256sum` prints, with a detached Ed25519 signature beside it (`openssl pkeyutl -sign -rawin`). Who may
change the configuration, or the folder, has no key, and so boots nothing that the builder has not signed.
"""

import re
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from msgspec import Struct

LIST, SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"
LIST_MOST, SIGNERS_MOST = 1024 * 1024, 16
_LINE = re.compile(r"([0-9a-f]{64}) [ *](?:\./)?(\S(?:.*\S)?)")
_PEM = re.compile(rb"-----BEGIN PUBLIC KEY-----.+?-----END PUBLIC KEY-----", re.DOTALL)


class SignedListError(Exception):
    """The list, its signature or the keys of its signers are not usable; says why."""


class Signers(Struct, frozen=True):
    """Keys of those who may sign the list."""

    keys: tuple[Ed25519PublicKey, ...]

    def read(self, folder: Path) -> dict[str, str]:
        """Path → sha256 of each file on the list. Raises SignedListError."""
        text, signature = _bytes(folder / LIST), _bytes(folder / SIGNATURE)
        if not any(_signed(key, signature, text) for key in self.keys):
            raise SignedListError(f"{SIGNATURE} is no signature of {LIST} by a key of --boot-signers")
        found: dict[str, str] = {}
        for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), 1):
            known = _LINE.fullmatch(line)
            if known is None:
                raise SignedListError(f"line {number} of {LIST} is not what sha256sum prints")
            if found.setdefault(known[2], known[1]) != known[1]:
                raise SignedListError(f"{LIST} has two sums of {known[2][:100]}")
        return found


def signers_of(path: Path) -> Signers:
    """The public keys in a PEM file. Raises SignedListError."""
    pieces = _PEM.findall(_bytes(path))
    if not 0 < len(pieces) <= SIGNERS_MOST:
        raise SignedListError(f"{path.name} holds {len(pieces)} public keys, and 1 to {SIGNERS_MOST} are taken")
    return Signers(tuple(_key(piece, path.name) for piece in pieces))


def _key(piece: bytes, name: str) -> Ed25519PublicKey:
    try:
        key = load_pem_public_key(piece)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SignedListError(f"a public key of {name} cannot be read") from error
    if not isinstance(key, Ed25519PublicKey):
        raise SignedListError(f"a public key of {name} is not of Ed25519")
    return key


def _signed(key: Ed25519PublicKey, signature: bytes, text: bytes) -> bool:
    try:
        key.verify(signature, text)
    except InvalidSignature:
        return False
    return True


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            found = file.read(LIST_MOST + 1)
    except OSError as error:
        raise SignedListError(f"{path.name} cannot be read: {error.strerror}") from error
    if len(found) > LIST_MOST:
        raise SignedListError(f"{path.name} is larger than {LIST_MOST // 1024} KiB")
    return found
