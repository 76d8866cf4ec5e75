"""Connections of the library requests, each judged by the address that it has reached before anything is sent."""

import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from hostler.ports import RefusedError
from hostler.runtime.reachable_addresses import ReachableNetworks, refusal, site


def site_requests(url: str) -> requests.Session:
    """A session of a library that talks to the host of this address, which a file on this host names.

    It takes no proxy from the environment and follows nobody.
    """
    session = requests.Session()
    session.trust_env, session.max_redirects = False, 0
    session.mount("https://", _CheckedAdapter(site(url)))
    session.mount("http://", _CheckedAdapter(site(url)))
    return session


class _CheckedAdapter(HTTPAdapter):
    def __init__(self, reach: ReachableNetworks) -> None:
        self._reach = reach
        super().__init__()

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Make the connections, to allowed addresses alone."""
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = checked_pools(self._reach)


def checked_pools(reach: ReachableNetworks) -> dict[str, type[HTTPConnectionPool]]:
    """Connections that nothing is sent over before the address that was reached is known to be allowed."""

    class Plain(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return _opened(self, super()._new_conn, reach)

    class Tls(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return _opened(self, super()._new_conn, reach)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class TlsPool(HTTPSConnectionPool):
        ConnectionCls = Tls

    return {"http": PlainPool, "https": TlsPool}


def _opened(
    connection: HTTPConnection, connect: Callable[[], socket.socket], reach: ReachableNetworks
) -> socket.socket:
    """A connection to the first allowed address that answers; what it has reached is looked at once more."""
    host = connection._dns_host  # noqa: SLF001 - the name that urllib3 resolves; there is no other place for an address
    try:
        found = socket.getaddrinfo(host, connection.port, type=socket.SOCK_STREAM)
    except OSError:
        return _allowed(connect(), reach)  # urllib3 says it in its own words
    addresses = [str(one[4][0]) for one in found if reach.allows(str(one[4][0]))]
    if not addresses:
        raise RefusedError(refusal(host))
    try:
        for address in addresses[:-1]:
            connection._dns_host = address  # noqa: SLF001
            with suppress(NewConnectionError, ConnectTimeoutError):
                return _allowed(connect(), reach)
        connection._dns_host = addresses[-1]  # noqa: SLF001
        return _allowed(connect(), reach)
    finally:
        connection._dns_host = host  # noqa: SLF001


def _allowed(connection: socket.socket, reach: ReachableNetworks) -> socket.socket:
    address = str(connection.getpeername()[0])
    if not reach.allows(address):
        connection.close()
        raise RefusedError(refusal(address))
    return connection
