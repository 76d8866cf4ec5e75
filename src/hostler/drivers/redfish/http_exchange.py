"""One HTTP request to one BMC: bounded in time and size, its certificate checked, its failures named."""

import base64
import binascii
import ssl
from collections.abc import Awaitable, Callable
from functools import lru_cache
from http import HTTPStatus
from typing import Literal
from urllib.parse import urlsplit

import aiohttp
from msgspec import Struct
from yarl import URL

from hostler.core.state.durations import duration
from hostler.core.state.model import Node
from hostler.drivers.bounded_body import read_body
from hostler.drivers.redfish.multipart import Upload
from hostler.drivers.redfish.shown_certificate import LOOK
from hostler.logs import traces
from hostler.ports import CertificateChangedError, LoginRefusedError, RefusedError, Secrets, UnreachableError

SYSTEM = "system"
"""The authorities that the system trusts, as an access names them."""
MAX_ANSWER_BYTES = 8 * 1024 * 1024
UPLOAD_BYTES_PER_S = 10_000.0
"""A BMC may take a pushed image as slowly as this (libredfish allows for the same)."""


class Access(Struct, frozen=True):
    """How one BMC is entered.

    Its certificate is verified against the session's trust store, or against `ca`, a PEM file ("system": the system's
    store). `fingerprint` (SHA-256, hex, colons allowed) trusts exactly one certificate instead, which suits the
    self-signed ones BMCs ship with. `insecure` trusts any certificate: whoever sits on the wire can then answer in the
    BMC's place. `secret` names where username and password are kept, in their place. `keep` False is for BMCs that
    choke on connections that stay open between looks.

    `factory` names where the login is kept that its vendor gave it; with one, the BMC has a password of its own under
    `secret`, which Hostler renews, and what the BMC refused is not shown to it again. `pin`: it is known by the one
    certificate that is recorded for its node, on "first_contact" or at "admission". `authority` names where the
    certificate and key of the site's authority are kept, which then issues a certificate to it.
    """

    username: str = ""
    password: str = ""
    fingerprint: str = ""
    insecure: bool = False
    timeout_s: float = 30.0
    keep: bool = True
    ca: str = ""
    secret: str = ""
    factory: str = ""
    pin: Literal["", "first_contact", "admission"] = ""
    authority: str = ""

    def __repr__(self) -> str:
        return f"Access({self.username!r}, password=…, fingerprint={self.fingerprint!r}, insecure={self.insecure})"


class HttpResponse(Struct, frozen=True):
    """A complete HTTP answer; header names are in lower case."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = {}


Body = bytes | Upload | None
Exchange = Callable[[str, str, Body, dict[str, str]], Awaitable[HttpResponse]]
"""(method, path, body, headers) → the whole answer, whatever its status. Sends once, never follows a redirect.

Raises UnreachableError where no complete answer came, ExcessError for one that is too long, RefusedError where the BMC
could not be trusted.
"""


class BmcAddress(Struct, frozen=True):
    """Address of a BMC ("https://host:port") and of one of its systems: id, path, or "" for the only one."""

    origin: str
    system: str = ""

    @property
    def host(self) -> str:
        """Host name or address, without the port."""
        return urlsplit(self.origin).hostname or ""


def parse_address(binding: str) -> BmcAddress:
    """A node's `bmc` binding: "https://host[:port]", with "#system-id" or "/redfish/v1/Systems/<id>" where needed.

    Raises RefusedError for anything else, a password in it included.
    """
    try:
        parts = urlsplit(binding)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    path = parts.path.rstrip("/")
    if parts.scheme not in {"http", "https"} or not host or parts.username is not None or parts.query:
        raise RefusedError(
            f"the bmc binding {_without_secret(binding)!r} is not an address; write https://host:port, "
            "with #system-id or /redfish/v1/Systems/<id> behind it where the BMC serves several systems"
        )
    if path not in {"", "/redfish/v1"} and not path.startswith("/redfish/v1/Systems/"):
        raise RefusedError(f"the bmc binding's path {path!r} is not a system; write /redfish/v1/Systems/<id> or none")
    where = f"[{host}]" if ":" in host else host
    origin = f"{parts.scheme}://{where}" + (f":{port}" if port else "")
    return BmcAddress(origin, parts.fragment or (path if "/Systems/" in path else ""))


def bmc_address(node: Node) -> BmcAddress:
    """The address of the node's own BMC. Raises RefusedError where none is recorded, or it is no address."""
    binding = node.binding("bmc")
    if not binding:
        raise RefusedError(f"node {node.id} has no bmc binding; record its BMC's address first")
    return parse_address(binding)


class HttpExchange:
    """An Exchange over an aiohttp session, which keeps the connections and, for `ssl=True`, the trust store.

    `entered_as` is the account by which the last request entered, "" where nobody is known yet.
    """

    def __init__(
        self, session: aiohttp.ClientSession, origin: str, access: Access, secrets: Secrets | None = None
    ) -> None:
        self._session = session
        self._origin = origin
        self._access = access
        self._secrets = secrets
        self._ssl = _trust(access)
        self._refused: dict[str, str] = {}
        self.entered_as = access.username
        self._headers = {"Accept": "application/json", "Accept-Encoding": "identity", "OData-Version": "4.0"}

    async def __call__(self, method: str, path: str, body: Body, headers: dict[str, str]) -> HttpResponse:
        if self._access.factory:
            return await self._shown_once(method, path, body, headers)
        answer = await self._send(method, path, body, headers | await self._login(anew=False))
        if answer.status == 401 and method == "GET" and self._access.secret:
            return await self._send(method, path, body, headers | await self._login(anew=True))
        return answer

    async def _shown_once(self, method: str, path: str, body: Body, headers: dict[str, str]) -> HttpResponse:
        """Send with a password that the BMC has not refused: a second try brings the account nearer to its lock-out."""
        login = await self._login(anew=False)
        if login == self._refused:
            login = await self._login(anew=True)
        if login == self._refused:
            raise LoginRefusedError(
                f"{self._origin} refused the password that is kept for it; it is not shown again, lest the account be "
                "locked: see `hostler bmc credentials status`"
            )
        answer = await self._send(method, path, body, headers | login)
        if answer.status == 401:
            self._refused = login
        return answer

    @property
    def refused(self) -> str:
        """The password that was turned away last, "" for none."""
        header = self._refused.get("Authorization", "")
        return base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")[2] if header else ""

    async def _login(self, *, anew: bool) -> dict[str, str]:
        """The header that enters the BMC, {} where there is none. Raises PortError where its secret cannot be had."""
        username, password = self._access.username, self._access.password
        if self._access.secret:
            if self._secrets is None:
                raise RefusedError(
                    f"{self._origin} is named with a secret in bmc.json, and no backend of secrets is set up"
                    "; name one in secrets.json"
                )
            fields = (await self._secrets.read(self._access.secret, anew=anew)).fields
            username, password = fields.get("username", ""), fields.get("password", "")
            if self._access.factory and not password:
                raise LoginRefusedError(
                    f"secret {self._access.secret} holds no password yet: none was set on the BMC"
                    "; run `hostler bmc credentials rotate NODE` (of an asset `hostler asset renew-login ASSET`)"
                )
            if self._access.factory and fields.get("tried"):
                raise LoginRefusedError(
                    f"the password kept for {self._origin} was refused, or is being renewed; it is not shown again, "
                    "lest the account be locked: see `hostler bmc credentials status`"
                )
            if not username:
                raise RefusedError(f"secret {self._access.secret} has no field username; give it username and password")
            self.entered_as = username
        if not username:
            return {}
        return {"Authorization": "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()}

    async def _send(self, method: str, path: str, body: Body, headers: dict[str, str]) -> HttpResponse:
        """Send as a span of the running operation's trace; polls, which have none, are not traced."""
        host = urlsplit(self._origin).hostname or ""
        told = {"http.request.method": method, "url.path": path.partition("?")[0], "server.address": host}
        with traces.child(f"BMC {method}", told, leaves=True) as span:
            answer = await self._exchange(method, path, body, headers)
            traces.tell(span, "http.response.status_code", answer.status)
            if answer.status >= HTTPStatus.BAD_REQUEST:
                traces.failed(span, str(answer.status))
        return answer

    async def _exchange(self, method: str, path: str, body: Body, headers: dict[str, str]) -> HttpResponse:
        size = body.size if isinstance(body, Upload) else len(body or b"")
        limit = aiohttp.ClientTimeout(
            total=self._access.timeout_s + size / UPLOAD_BYTES_PER_S,
            sock_connect=min(10.0, self._access.timeout_s),
        )
        streamed = {"Content-Length": str(size)} if isinstance(body, Upload) else {}
        try:
            async with self._session.request(
                method,
                URL(self._origin + path, encoded=True),
                data=body.chunks() if isinstance(body, Upload) else body,
                headers=self._headers | headers | streamed,
                allow_redirects=False,
                timeout=limit,
                ssl=self._ssl,
            ) as response:
                content = await read_body(
                    response, MAX_ANSWER_BYTES, f"the answer of {self._origin} to {method} {path}"
                )
                return HttpResponse(response.status, content, {k.lower(): v for k, v in response.headers.items()})
        except aiohttp.ServerFingerprintMismatch as error:
            raise CertificateChangedError(
                f"{self._origin} shows the certificate {error.got.hex()}, and {error.expected.hex()} is pinned; "
                "nothing was sent; find out who answers there before you record the new one"
            ) from error
        except aiohttp.ClientConnectorCertificateError as error:
            raise RefusedError(
                f"the certificate of {self._origin} is not trusted ({error}); nothing was sent. "
                "Give the BMC a certificate of your CA, or record its SHA-256 fingerprint for this endpoint"
            ) from error
        except TimeoutError as error:
            raise UnreachableError(
                f"{self._origin} gave no answer to {method} {path} within {duration(limit.total or 0)}{LOOK}"
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            raise UnreachableError(
                f"{self._origin} gave no answer to {method} {path}: {f'{type(error).__name__} {error}'.strip()}{LOOK}"
            ) from error


def _trust(access: Access) -> bool | aiohttp.Fingerprint | ssl.SSLContext:
    if not access.fingerprint:
        return not access.insecure if access.ca in ("", SYSTEM) else _authorities(access.ca)
    try:
        return aiohttp.Fingerprint(binascii.unhexlify(access.fingerprint.replace(":", "")))
    except ValueError as error:
        raise RefusedError(
            "the certificate fingerprint is not SHA-256 in hex; write what `openssl x509 -fingerprint -sha256` prints"
        ) from error


@lru_cache(maxsize=64)
def _authorities(path: str) -> ssl.SSLContext:
    """Raises RefusedError."""
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as error:  # ssl.SSLError is one
        raise RefusedError(
            f"the BMCs' authorities cannot be read from {path}: {error.strerror}"
            "; write PEM certificates there that Hostler's user can read"
        ) from error


def _without_secret(binding: str) -> str:
    return binding.rsplit("@", 1)[-1][:256]
