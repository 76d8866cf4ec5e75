"""Addresses that this process may connect to: the one place through which every outgoing connection goes.

Why at the socket: a name is resolved again between a check and its use, and there are more ways to write 127.0.0.1 than
any check of text knows (127.1, 0x7f.1, circled digits). So the address that a socket is about to connect to is judged,
and nothing is sent to one that is refused. A driver that opens connections by another way fails
`tests/tooling/test_outgoing_connections.py`.
"""

import asyncio
import socket
from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from msgspec import Struct

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
AddressInfo = tuple[Any, ...]
"""One address of a name, as `getaddrinfo` tells it."""

METADATA = frozenset(
    map(
        ip_address,
        (
            "169.254.169.254", "fe80::a9fe:a9fe",  # AWS, Google, Azure, OpenStack, Oracle, DigitalOcean
            "fd00:ec2::254", "169.254.170.2", "169.254.170.23", "fd00:ec2::23",  # AWS: IPv6, ECS, EKS
            "169.254.169.253", "fd00:ec2::253", "169.254.169.123", "fd00:ec2::123",  # AWS: names, time
            "fd20:ce::254",  # Google: IPv6
            "168.63.129.16",  # Azure's WireServer, a public address
            "100.100.100.200",  # Alibaba
            "169.254.0.23", "169.254.10.10",  # Tencent
            "192.0.0.192",  # Oracle Classic
            "169.254.42.42", "fd00:42::42",  # Scaleway
        ),
    )
)  # fmt: skip
"""Addresses under which clouds tell an instance its own credentials. Only a network of that one address names one."""
_EMBEDDING: dict[Network, Callable[[int], int]] = {
    ip_network("64:ff9b::/96"): lambda number: number,  # NAT64, RFC 6052
    ip_network("64:ff9b:1::/48"): lambda number: number,  # NAT64 of a site, RFC 8215; its /96 as most sites have it
    ip_network("2002::/16"): lambda number: number >> 80,  # 6to4, RFC 3056
    ip_network("2001::/32"): lambda number: ~number,  # Teredo, RFC 4380: the client's address, inverted
    ip_network("::/96"): lambda number: number,  # IPv4-compatible, RFC 4291
    ip_network("::ffff:0:0:0/96"): lambda number: number,  # IPv4-translated, RFC 2765
}
"""Networks of IPv6 that lead to an IPv4 address, and where in the address it stands."""
_NOT_PUBLIC = tuple(map(ip_network, ("192.88.99.0/24", "fec0::/10", "3fff::/20", "5f00::/16", "2001::/23")))
"""Networks that some versions of `ipaddress` call global all the same."""
_THIS_NETWORK = ip_network("0.0.0.0/8")


class AddressRefusedError(OSError):
    """The address is none that may be connected to; nothing was sent there."""


class ReachableNetworks(Struct, frozen=True):
    """Addresses that may be connected to: public ones, and those of `networks`.

    `private`: networks of the site too, where a file on this host names who is asked: not this host itself, no link, no
    metadata. `named` are hosts as that file writes them: an address that stands there in full may be connected to.
    """

    networks: tuple[str, ...] = ()
    private: bool = False
    named: frozenset[str] = frozenset()

    def allows(self, address: str) -> bool:
        """Whether this address, in its usual form, may be connected to."""
        try:
            found = ip_address(address.partition("%")[0])
        except ValueError:
            return False
        return self._allows(found.ipv4_mapped or found if isinstance(found, IPv6Address) else found)

    def _allows(self, found: Address) -> bool:
        networks = tuple(_network(one) for one in self.networks)
        within = [one for one in networks if found in one]
        if found in METADATA:
            return any(one.num_addresses == 1 for one in within)
        if (inner := _embedded(found)) is not None:
            return bool(within) and self._allows(inner)
        if within or self._names(found):
            return True
        if self.private and not _is_of_this_host(found):
            return True
        return found.is_global and not found.is_multicast and not any(found in one for one in _NOT_PUBLIC)

    def _names(self, found: Address) -> bool:
        return any(found == _literal(name) or (found.is_loopback and _is_localhost(name)) for name in self.named)


def site(*urls: str) -> ReachableNetworks:
    """The reach of a driver whose addresses a file on this host names."""
    return ReachableNetworks(private=True, named=frozenset(host for url in urls if (host := _host(url))))


class NamedHosts:
    """Hosts that are named one by one, such as those of BMCs: each that is asked for adds to the reach."""

    def __init__(self) -> None:
        self._named: set[str] = set()

    def add(self, url: str) -> None:
        """Take up the host of an address, where an address in full stands there."""
        host = _host(url)
        if _literal(host) is not None or _is_localhost(host):
            self._named.add(host)

    def reach(self) -> ReachableNetworks:
        """The reach as it is now."""
        return ReachableNetworks(private=True, named=frozenset(self._named))


def connector(reach: ReachableNetworks | Callable[[], ReachableNetworks], **options: Any) -> aiohttp.TCPConnector:
    """Connections of a client session, each judged by the address that its socket connects to."""

    def judged(info: Any) -> socket.socket:
        demand_allowed(str(info[4][0]), reach if isinstance(reach, ReachableNetworks) else reach())
        return socket.socket(family=info[0], type=info[1], proto=info[2])

    return aiohttp.TCPConnector(socket_factory=judged, **options)


def site_session() -> aiohttp.ClientSession:
    """A client session whose callers ask only what files on this host name; no cookie is kept."""
    hosts, trace = NamedHosts(), aiohttp.TraceConfig()

    async def name(_session: object, _context: object, asked: aiohttp.TraceRequestStartParams) -> None:
        hosts.add(str(asked.url))

    trace.on_request_start.append(name)
    return aiohttp.ClientSession(
        connector=connector(hosts.reach), cookie_jar=aiohttp.DummyCookieJar(), trace_configs=[trace]
    )


async def connected(host: str, port: int, reach: ReachableNetworks) -> socket.socket:
    """A socket that is connected to an address of the host that may be reached. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    last: OSError = AddressRefusedError(f"{host} has no address that may be connected to")
    for family, kind, proto, _, address in found:
        if not reach.allows(str(address[0])):
            continue
        one = socket.socket(family, kind, proto)
        one.setblocking(False)
        try:
            await loop.sock_connect(one, address)
        except BaseException as error:
            one.close()
            if not isinstance(error, OSError):
                raise
            last = error
            continue
        return one
    raise last


def demand_allowed(address: str, reach: ReachableNetworks) -> None:
    """Raises AddressRefusedError for an address that may not be connected to."""
    if not reach.allows(address):
        raise AddressRefusedError(refusal(address))


def refusal(named: str) -> str:
    """The sentence about an address or name that is not asked."""
    return f"{named} lies in a private network: name it under networks if that is meant"


@lru_cache(maxsize=1024)
def _network(text: str) -> Network:
    return ip_network(text, strict=False)


def _embedded(found: Address) -> Address | None:
    """The IPv4 address that an IPv6 address leads to; None for one that leads to none."""
    if not isinstance(found, IPv6Address) or found.is_loopback or found.is_unspecified:
        return None
    at = next((where for network, where in _EMBEDDING.items() if found in network), None)
    return IPv4Address(at(int(found)) & 0xFFFFFFFF) if at is not None else None


def _is_of_this_host(found: Address) -> bool:
    """Whether it is this host, its link, or none that a host has."""
    special = found.is_loopback or found.is_link_local or found.is_multicast or found.is_unspecified
    return special or found in _THIS_NETWORK or (isinstance(found, IPv4Address) and found.is_reserved)


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _is_localhost(host: str) -> bool:
    return host == "localhost" or host.endswith(".localhost")


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "") if "//" in url else url
    except ValueError:
        return ""
