"""Gives a booted node's agent its token: sealed to a key that the agent made, and proved by the machine's TPM."""

import base64
import hashlib
import hmac
from typing import Protocol

import msgspec
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from msgspec import Struct

from hostler.server.boot import tpm_credential, tpm_quote
from hostler.server.boot.tpm_credential import TpmError
from hostler.server.tokens import Grant, Role

KEY_BITS = (2048, 4096)
MAX_PEM = 2_000
_OAEP = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)


class TpmClaim(Struct, frozen=True):
    """Keys that a TPM shows: endorsement key (PEM), attestation key (TPM2B_PUBLIC), and the former's certificate (DER).

    The last two are in base64; `certificate` is "" where the TPM holds none. `chain` are certificates of authorities
    between it and its maker's, in base64.
    """

    endorsement: str
    attestation: str
    certificate: str = ""
    chain: tuple[str, ...] = ()


class QuoteClaim(Struct, frozen=True):
    """A quote of the TPM's registers 0 to 7 (`tpm_quote.Quote`), each part in base64."""

    message: str
    signature: str
    values: str


class Claim(Struct, frozen=True):
    """The body of an enrolment: the agent's public key (PEM), and what its TPM shows.

    `proof` is the secret that the TPM opened, in hex, "" in the first of the two requests; `quote` comes with it, and
    its nonce is made of that secret (`nonce_of`).
    """

    key: str
    tpm: TpmClaim | None = None
    proof: str = ""
    quote: QuoteClaim | None = None


class InvalidClaimError(ValueError):
    """The body is no claim; the text says what of it is wrong."""


class Proven(Struct, frozen=True):
    """A claim as it was judged.

    `key` and `tpm` are SHA-256 of the agent's key and of the endorsement key. `challenge` is what the TPM has to open
    first, b"" where nothing is left to be proved; `pcrs` are the registers that it quoted; `fault` says why the claim
    is not believed, "" where it is.
    """

    seal_to: rsa.RSAPublicKey
    key: str
    tpm: str = ""
    challenge: bytes = b""
    pcrs: tuple[str, ...] = ()
    fault: str = ""


class AgentTokens(Protocol):
    """Maker of agents' tokens."""

    def renew(self, grant: Grant) -> str:
        """A new token for the grant; those of the same name and node are revoked. Raises InvalidGrantError."""
        ...


class AgentEnrolment:
    """Enrolments of one cell; `key` is the boot key, of which the TPMs' challenges are made."""

    def __init__(self, tokens: AgentTokens, key: bytes) -> None:
        self._tokens = tokens
        self._key = key

    def judge(self, body: bytes, boot: str, authorities: str) -> Proven:
        """Judge a claim for one boot; `authorities` are those of TPM makers, PEM. Raises InvalidClaimError."""
        try:
            claim = msgspec.json.decode(body, type=Claim)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidClaimError(f"the body is no enrolment: {error}") from error
        key = _public(claim.key)
        digest = hashlib.sha256(tpm_credential.spki(key)).hexdigest()
        if claim.tpm is None:
            fault = "its agent shows no TPM, and boot.agent.tpm_authorities asks for one" if authorities else ""
            return Proven(key, digest, fault=fault)
        try:
            return self._of_tpm(claim.tpm, claim, Proven(key, digest), (boot, authorities))
        except TpmError as error:
            return Proven(key, digest, fault=str(error))

    def _of_tpm(self, shown: TpmClaim, claim: Claim, proven: Proven, about: tuple[str, str]) -> Proven:
        boot, authorities = about
        endorsement = tpm_credential.endorsement_of(shown.endorsement[:MAX_PEM])
        public = _decoded(shown.attestation)
        name = tpm_credential.attestation_name(public)
        if authorities:
            chain = tuple(_decoded(one) for one in shown.chain[: tpm_credential.CHAIN_MAX])
            tpm_credential.check_certificate(_decoded(shown.certificate), endorsement, authorities, chain)
        told = f"tpm\0{boot}\0{proven.key}\0{endorsement.digest}\0{name.hex()}"
        secret = hmac.new(self._key, told.encode(), hashlib.sha256).digest()
        if not claim.proof:
            challenge = tpm_credential.credential(endorsement, name, secret)
            return msgspec.structs.replace(proven, tpm=endorsement.digest, challenge=challenge)
        if not hmac.compare_digest(claim.proof.encode(), secret.hex().encode()):
            raise TpmError("its TPM did not open what was sealed to it")
        pcrs = _quoted(claim.quote, public, nonce_of(secret)) if claim.quote is not None else ()
        return msgspec.structs.replace(proven, tpm=endorsement.digest, pcrs=pcrs)

    def token(self, node: str, proven: Proven) -> str:
        """A new token of the node's agent, as only the key of the claim opens it: base64."""
        token = self._tokens.renew(Grant(f"boot-{node}"[:64], Role.agent, node=node))
        return base64.b64encode(proven.seal_to.encrypt(token.encode(), _OAEP)).decode()


def nonce_of(secret: bytes) -> bytes:
    """The nonce of a quote: nobody but the TPM that opened this boot's secret knows it."""
    return hashlib.sha256(b"quote\0" + secret).digest()


def _quoted(claim: QuoteClaim, public: bytes, nonce: bytes) -> tuple[str, ...]:
    parts = (_decoded(one) for one in (claim.message, claim.signature, claim.values))
    return tpm_quote.quoted(tpm_quote.Quote(*parts), public, nonce)


def _public(pem: str) -> rsa.RSAPublicKey:
    try:
        key = serialization.load_pem_public_key(pem[:MAX_PEM].encode())
    except ValueError as error:
        raise InvalidClaimError("its key is no public key in PEM") from error
    if not isinstance(key, rsa.RSAPublicKey) or not KEY_BITS[0] <= key.key_size <= KEY_BITS[1]:
        raise InvalidClaimError(f"its key is no RSA key of {KEY_BITS[0]} to {KEY_BITS[1]} bits")
    return key


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise TpmError("what it shows of its TPM is no base64") from error
