"""An OpenID provider as a client sees it: discovery, the code flow with PKCE, and what its ID token says.

Sources: OpenID Connect Core 1.0 (3.1, code flow; 3.1.3.7, validation), Discovery 1.0, RFC 7636 (PKCE), RFC 9207.
Nothing that a provider sends is believed before its signature, issuer, audience, nonce and times are.
"""

import base64
import hashlib
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
import msgspec
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from msgspec import Struct

from hostler.logs.structured import logger
from hostler.ports import PortError, Secrets
from hostler.runtime.reachable_addresses import ReachableNetworks, connector
from hostler.server.sign_in_settings import SignedIn, SignInSettings

log = logger()

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Signatures by a key that only the provider has; "none" and those by a shared secret are not among them."""
KNOWN_S = 3_600.0
"""How long discovery and keys are believed before they are read again."""
KEYS_AGAIN_S = 10.0
"""Unknown keys make them be read again at most so often."""
LEEWAY_S = 60
MOST_BYTES = 256 * 1024
TIMEOUT_S = 10.0
GROUPS_MOST = 2_000


SUBJECT_MOST = 255
"""Characters of a subject (OpenID Connect Core 1.0, 2)."""
MAIL_MOST = 254


class SignInError(Exception):
    """A sign-in that came to nothing: why, for the person, without anything secret."""


class Metadata(Struct, frozen=True):
    """The part that is used of a provider's discovery document."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""


class OidcProvider:
    """One provider. `session` is whose connections are used."""

    def __init__(self, settings: SignInSettings, secrets: Secrets, session: aiohttp.ClientSession) -> None:
        self._settings = settings
        self._secrets = secrets
        self._session = session
        self._metadata: tuple[Metadata, float] | None = None
        self._keys: tuple[KeySet, float] | None = None

    async def address(self, state: str, nonce: str, verifier: str) -> str:
        """Address to which the person is sent to sign in. Raises SignInError."""
        metadata = await self._discovered()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": self._settings.redirect,
            "scope": " ".join(self._settings.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        joint = "&" if "?" in metadata.authorization_endpoint else "?"
        return f"{metadata.authorization_endpoint}{joint}{urlencode(query)}"

    async def claims(self, code: str, nonce: str, verifier: str) -> SignedIn:
        """The person who has signed in, for the code that they brought back. Raises SignInError."""
        metadata = await self._discovered()
        answer = await self._exchanged(metadata, code, verifier)
        said = await self._verified(metadata, _text(answer, "id_token"), nonce)
        if metadata.userinfo_endpoint and not _says_all(said, self._settings):
            bearer = {"Authorization": f"Bearer {_text(answer, 'access_token')}"}
            more = await self._asked("GET", metadata.userinfo_endpoint, headers=bearer)
            if more.get("sub") != said.get("sub"):
                raise SignInError("the provider's userinfo is about somebody else")
            said = {**more, **said, **_mail_claims(said, more)}
        return self._named(said, metadata.issuer)

    def _named(self, said: Mapping[str, Any], issuer: str) -> SignedIn:
        subject, mail = said.get("sub"), said.get("email")
        if not isinstance(subject, str) or not _is_line(subject, SUBJECT_MOST):
            raise SignInError("the provider names the person's subject (sub) by no text of up to 255 characters")
        verified = isinstance(mail, str) and is_verified(said)
        if self._settings.name_claim == "email" and mail and not verified:
            raise SignInError(
                "the provider does not say that this e-mail address is verified (email_verified: true)"
                "; have it send the claim, or name people by another one (name_claim in oidc.json)"
            )
        name = said.get(self._settings.name_claim) or subject
        others = isinstance(mail, str) and mail != name and _is_line(mail, MAIL_MOST)
        mails = (mail,) if verified and others else ()
        groups = said.get(self._settings.groups_claim, [])
        groups = [groups] if isinstance(groups, str) else groups
        if not isinstance(name, str) or not isinstance(groups, list) or len(groups) > GROUPS_MOST:
            raise SignInError(f"the provider names nobody under {self._settings.name_claim}, or no list of groups")
        return SignedIn(name, frozenset(one for one in groups if isinstance(one, str)), (f"{issuer}#{subject}", *mails))

    async def _discovered(self) -> Metadata:
        if self._metadata is not None and time.monotonic() - self._metadata[1] < KNOWN_S:
            return self._metadata[0]
        issuer = self._settings.issuer
        said = await self._asked("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        try:
            metadata = msgspec.convert(said, Metadata)
        except msgspec.ValidationError as error:
            raise SignInError(f"the provider's discovery document: {error}") from error
        if metadata.issuer != issuer:
            raise SignInError(f"the provider calls itself '{metadata.issuer[:100]}', and not {issuer}")
        if issuer.startswith("https://"):
            endpoints = (metadata.authorization_endpoint, metadata.token_endpoint, metadata.jwks_uri)
            if not all(url.startswith("https://") for url in endpoints):
                raise SignInError("the provider names an address that is not https://")
        self._metadata = (metadata, time.monotonic())
        return metadata

    async def _exchanged(self, metadata: Metadata, code: str, verifier: str) -> dict[str, Any]:
        try:
            secret = (await self._secrets.read(self._settings.secret)).fields.get("client_secret", "")
        except PortError as error:
            log.warning("sign_in_without_secret", reason=str(error))
            raise SignInError("the client's secret cannot be read here") from error
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._settings.redirect,
            "code_verifier": verifier,
        }
        signed = aiohttp.encode_basic_auth(quote(self._settings.client_id, safe=""), quote(secret, safe=""))
        return await self._asked("POST", metadata.token_endpoint, data=form, headers={"Authorization": signed})

    async def _verified(self, metadata: Metadata, token: str, nonce: str) -> dict[str, Any]:
        """The claims of an ID token that is the provider's, for us, for this sign-in, and of now."""
        try:
            decoded = jwt.decode(token, await self._key_set(metadata, anew=False), algorithms=ALGORITHMS)
        except (JoseError, ValueError):
            try:  # the provider may have changed its keys
                decoded = jwt.decode(token, await self._key_set(metadata, anew=True), algorithms=ALGORITHMS)
            except (JoseError, ValueError) as error:
                raise SignInError(f"the ID token's signature does not hold: {type(error).__name__}") from error
        demanded = jwt.JWTClaimsRegistry(
            leeway=LEEWAY_S,
            iss={"essential": True, "value": metadata.issuer},
            aud={"essential": True, "value": self._settings.client_id},
            exp={"essential": True},
            iat={"essential": True},
            sub={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            demanded.validate(decoded.claims)
        except JoseError as error:
            raise SignInError(f"the ID token is not for this sign-in: {error.description or error.error}") from error
        azp = decoded.claims.get("azp", self._settings.client_id)
        if azp != self._settings.client_id:
            raise SignInError("the ID token was issued to another client")
        return dict(decoded.claims)

    async def _key_set(self, metadata: Metadata, *, anew: bool) -> KeySet:
        age_s = time.monotonic() - self._keys[1] if self._keys is not None else KNOWN_S
        if self._keys is not None and age_s < (KEYS_AGAIN_S if anew else KNOWN_S):
            return self._keys[0]
        said = await self._asked("GET", metadata.jwks_uri)
        try:
            keys = KeySet.import_key_set(said)  # type: ignore[arg-type]
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise SignInError("the provider shows no keys that can be read") from error
        self._keys = (keys, time.monotonic())
        return keys

    def _session_for(self, url: str) -> AbstractAsyncContextManager[aiohttp.ClientSession]:
        """The session for an address: oidc.json names the issuer's host, the provider all the others."""
        if _origin(url) == _origin(self._settings.issuer):
            return nullcontext(self._session)
        return _elsewhere(self._settings.networks)

    async def _asked(self, method: str, url: str, **more: Any) -> dict[str, Any]:
        """The JSON object at an address of the provider's. Raises SignInError."""
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        try:
            async with (
                self._session_for(url) as session,
                session.request(method, url, timeout=timeout, allow_redirects=False, **more) as answer,
            ):
                body = await answer.content.read(MOST_BYTES + 1)
                while len(body) <= MOST_BYTES and (part := await answer.content.read(MOST_BYTES)):
                    body += part
                status = answer.status
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            log.warning("sign_in_provider_unreachable", url=url, reason=type(error).__name__)
            raise SignInError("the provider cannot be reached") from error
        if status != 200 or len(body) > MOST_BYTES:
            log.warning("sign_in_provider_refuses", url=url, status=status)
            raise SignInError(f"the provider answered {status}" if status != 200 else "the provider says too much")
        try:
            found = msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise SignInError("the provider's answer is no JSON") from error
        if not isinstance(found, dict):
            raise SignInError("the provider's answer is no JSON object")
        return found


@asynccontextmanager
async def _elsewhere(networks: tuple[str, ...]) -> AsyncIterator[aiohttp.ClientSession]:
    """A session for addresses that the provider names on other hosts than its own: they are its word alone."""
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(connector=connector(ReachableNetworks(networks)), cookie_jar=jar) as session:
        yield session


def _origin(url: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname or "", parts.port
    except ValueError:
        return "", "", None


def _is_line(text: str, most: int) -> bool:
    return 0 < len(text) <= most and text.isprintable()


def is_verified(said: Mapping[str, Any]) -> bool:
    """Whether the provider says that the mail address is verified; what it does not say is not so.

    A boolean by OpenID Connect Core 1.0 (5.1). Amazon Cognito's userinfo and Sign in with Apple send the text "true".
    """
    told = said.get("email_verified")
    return told is True or told == "true"


def _says_all(said: Mapping[str, Any], settings: SignInSettings) -> bool:
    """Whether the ID token has the groups, and whatever names the person: the rest is asked for at userinfo."""
    has_mail = settings.name_claim != "email" or ("email" in said and "email_verified" in said)
    return settings.groups_claim in said and settings.name_claim in said and has_mail


def _mail_claims(said: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """The mail address and whether it is verified, both of one document: one's word is not about another's address."""
    one = said if "email_verified" in said or (said.get("email") not in (None, more.get("email"))) else more
    return {name: one.get(name) for name in ("email", "email_verified")}


def _text(answer: Mapping[str, Any], name: str) -> str:
    found = answer.get(name)
    if not isinstance(found, str) or not found:
        raise SignInError(f"the provider's answer has no {name}")
    return found


class SignIn(Struct, frozen=True):
    """Sign-in through a provider: the rules of who may do what, and the provider."""

    settings: SignInSettings
    provider: OidcProvider
