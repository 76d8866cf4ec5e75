"""One request to a target: to an address that is allowed, bounded in time and size, never sent on elsewhere.

No error tells a URL beyond its host, as those of chats are secrets themselves.
"""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from msgspec import Struct
from yarl import URL

from hostler.core.state.durations import duration
from hostler.drivers.bounded_body import read_body
from hostler.ports import BusyTargetError, RefusedError, UnreachableError
from hostler.runtime.reachable_addresses import AddressInfo, AddressRefusedError, ReachableNetworks, connector, refusal

MAX_ANSWER_BYTES = 64 * 1024
CONNECT_S = 5.0
_REFUSED = frozenset({400, 404, 405, 406, 409, 410, 411, 413, 414, 415, 422})
"""The message itself will not be taken; every other failure may be mended by a person or by time."""


class Letter(Struct, frozen=True):
    """One request. `url` may be a secret."""

    url: str
    body: bytes
    headers: dict[str, str]
    method: str = "POST"

    def __repr__(self) -> str:
        return f"Letter({host_of(self.url)})"


class HttpAnswer(Struct, frozen=True):
    """A whole answer; header names are in lower case."""

    status: int
    body: bytes
    headers: dict[str, str]


class NetworkLimits(Struct, frozen=True):
    """Networks beyond the public ones that may be reached, authorities beside the system's, the time and the size."""

    networks: tuple[str, ...] = ()
    ca: str = ""
    timeout_s: float = 10.0
    most_bytes: int = MAX_ANSWER_BYTES


async def post(letter: Letter, reach: NetworkLimits) -> HttpAnswer:
    """Send once. Raises UnreachableError (it may have been taken) and RefusedError (no such address may be asked)."""
    host = host_of(letter.url)
    check_literal(host, reach.networks)
    timeout = aiohttp.ClientTimeout(total=reach.timeout_s, sock_connect=CONNECT_S)
    connections = connector(
        ReachableNetworks(reach.networks),
        resolver=CheckedResolver(reach.networks),
        ssl=trust(reach.ca),
        limit=1,
        force_close=True,
    )
    jar = aiohttp.DummyCookieJar()
    try:
        async with (
            aiohttp.ClientSession(connector=connections, cookie_jar=jar, trust_env=False) as session,
            session.request(
                letter.method,
                URL(letter.url, encoded=letter.method == "GET"),
                data=letter.body or None,
                headers=letter.headers,
                allow_redirects=False,
                timeout=timeout,
            ) as answer,
        ):
            body = await read_body(answer, reach.most_bytes, f"the answer of {host}")
            return HttpAnswer(answer.status, body, {name.lower(): value for name, value in answer.headers.items()})
    except TimeoutError as error:
        raise UnreachableError(
            f"{host} gave no whole answer within {duration(reach.timeout_s)}; it is tried again"
        ) from error
    except aiohttp.ClientConnectorCertificateError as error:
        raise UnreachableError(
            f"{host} shows a certificate that is not its own or not trusted"
            "; name its authority with the route, or correct the host's name"
        ) from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        told = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else None
        if isinstance(told, AddressRefusedError):
            raise _refusal(host) from None
        why = str(told) if isinstance(error, aiohttp.ClientConnectorDNSError) else type(error).__name__
        raise UnreachableError(
            f"{host} cannot be reached: {why[:200]}; check the address and the firewall between"
        ) from None


def demand_taken(reply: HttpAnswer, host: str) -> None:
    """Raises what the status means, nothing for a success."""
    if 200 <= reply.status < 300:
        return
    if 300 <= reply.status < 400:
        raise UnreachableError(
            f"{host} sends elsewhere ({reply.status}), which is not followed: name the right address"
        )
    if reply.status in (429, 503):
        raise BusyTargetError(f"{host} takes no more now ({reply.status}); it is tried again", retry_after_s(reply))
    if reply.status in (401, 403, 407):
        raise UnreachableError(f"{host} denies it ({reply.status}): correct the key or password in the route's secret")
    if reply.status in _REFUSED:
        raise RefusedError(
            f"{host} refuses the message ({reply.status}){said(reply)}; correct the route's address and fields"
        )
    raise UnreachableError(f"{host} answered {reply.status}{said(reply)}; it is tried again")


def retry_after_s(reply: HttpAnswer) -> float:
    """Seconds of the Retry-After header: a number, or a date by the sender's own clock; 0 where there is none."""
    text = reply.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return float(text)
    try:
        until, now = parsedate_to_datetime(text), parsedate_to_datetime(reply.headers.get("date", ""))
        return max(0.0, (until - now).total_seconds())
    except (TypeError, ValueError):
        return 0.0


def said(reply: HttpAnswer) -> str:
    """The beginning of the answer, printable."""
    text = "".join(c if c.isprintable() else " " for c in reply.body[:200].decode(errors="replace")).strip()
    return f": {text}" if text else ""


def host_of(url: str) -> str:
    """The host of an address, for messages."""
    try:
        return urlsplit(url).hostname or "?"
    except ValueError:
        return "?"


class CheckedResolver(AbstractResolver):
    """Resolves names to addresses that are allowed, and to no others: what is checked is what is connected to."""

    def __init__(self, networks: Sequence[str]) -> None:
        self._networks = networks

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Allowed addresses of the name. Raises OSError where there are none."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        try:
            allowed = allowed_addresses(host, found, self._networks)
        except RefusedError as error:
            raise OSError(str(error)) from error  # the client's word for a name without an address
        return [_resolved(host, port, one) for one in allowed]

    async def close(self) -> None:
        """Do nothing, as no connection is held."""


def _resolved(host: str, port: int, found: AddressInfo) -> ResolveResult:
    return ResolveResult(
        hostname=host,
        host=str(found[4][0]),
        port=port,
        family=found[0],
        proto=found[2],
        flags=socket.AI_NUMERICHOST,
    )


def check_literal(host: str, networks: Sequence[str]) -> None:
    """Raises RefusedError for an address, written as such, that is not allowed."""
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return
    check_address(host, host, networks)


def check_address(named: str, address: str, networks: Sequence[str]) -> None:
    """Raises RefusedError, with the name that a person knows it by, for an address that is not allowed."""
    if not is_allowed(address, networks):
        raise _refusal(named)


def allowed_addresses(named: str, found: Sequence[AddressInfo], networks: Sequence[str]) -> list[AddressInfo]:
    """Keep the allowed ones of a name's addresses. Raises RefusedError where none is."""
    allowed = [one for one in found if is_allowed(str(one[4][0]), networks)]
    if not allowed:
        raise _refusal(named)
    return allowed


def _refusal(named: str) -> RefusedError:
    return RefusedError(refusal(named))


def is_allowed(address: str, networks: Sequence[str]) -> bool:
    """Whether the address is public, or in one of the networks that are named."""
    return ReachableNetworks(tuple(networks)).allows(address)


@lru_cache(maxsize=64)
def trust(ca: str) -> ssl.SSLContext:
    """The system's authorities, and those of the PEM file `ca`. Raises UnreachableError where it cannot be read."""
    context = ssl.create_default_context()
    if ca:
        try:
            context.load_verify_locations(cafile=ca)
        except OSError as error:  # ssl.SSLError is one
            raise UnreachableError(
                f"authorities cannot be read from {ca}: {error.strerror or 'no PEM file'}; write PEM certificates there"
            ) from error
    return context
