"""The connections to a fleet's BMCs: kept between looks, as far as memory and open files allow.

A new connection costs this process as much as eight requests, and a slow BMC far more. A kept one costs 51 KiB on the
event loop that `serve` uses (300 on asyncio's own). So ten thousand BMCs keep theirs, which is half a gigabyte; those
beyond, and those whose BMC chokes on connections that stay, give theirs back within seconds.
"""

import resource
import ssl
from types import TracebackType
from typing import Self

import aiohttp

from hostler.runtime.reachable_addresses import NamedHosts, connector

KEPT = 10_240
"""Origins whose connection is kept between looks, where half of the open files that are allowed suffice for it."""
KEPT_S = 75.0
BRIEF_S = 1.0
"""Long enough for the requests of one look."""
AT_ONCE = 512
"""Connections in use at the same time, of each kind."""
PER_BMC = 4


class Connections:
    """Two aiohttp sessions, and which one an origin uses. An async context manager.

    `trust` is the store that certificates are verified against, the system's where there is none.
    """

    def __init__(self, kept: int = KEPT, trust: ssl.SSLContext | None = None) -> None:
        self._limit = min(kept, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        self._trust = trust
        self._lasting: set[str] = set()
        self._hosts = NamedHosts()
        self._sessions: tuple[aiohttp.ClientSession, aiohttp.ClientSession] | None = None

    async def __aenter__(self) -> Self:
        self._sessions = (self._session(KEPT_S), self._session(BRIEF_S))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for session in self._sessions or ():
            await session.close()

    def __call__(self, origin: str, *, keep: bool = True) -> aiohttp.ClientSession:
        """The session for this origin; it stays the same one as long as the origin is not released."""
        assert self._sessions, "enter the connections first"
        self._hosts.add(origin)
        if keep and (origin in self._lasting or len(self._lasting) < self._limit):
            self._lasting.add(origin)
            return self._sessions[0]
        return self._sessions[1]

    def release(self, origin: str) -> None:
        """Release an unused origin: another may keep its connection."""
        self._lasting.discard(origin)

    def _session(self, keepalive_s: float) -> aiohttp.ClientSession:
        connections = connector(
            self._hosts.reach,
            limit=AT_ONCE,
            limit_per_host=PER_BMC,
            keepalive_timeout=keepalive_s,
            ssl=self._trust or True,
        )
        return aiohttp.ClientSession(connector=connections, cookie_jar=aiohttp.DummyCookieJar())
