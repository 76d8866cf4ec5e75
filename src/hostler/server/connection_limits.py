"""Counts who is connected: so many connections from an address nobody is known from, so many of each identity.

A connection is a stranger's until a token was recognised on it; from then on it counts as that identity's. Where there
is no room, the connection that has waited longest without a request gives way to the new one: half a request never
keeps anybody out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from ipaddress import IPv6Address, ip_address
from itertools import chain
from typing import Literal, Protocol

from msgspec import Struct

from hostler.server.tokens import Identity, Role

IPV6_PREFIX = 64
"""Bits of an IPv6 address that tell subscribers apart: whoever has one address has the rest of its /64."""
STRANGERS_SHARE = 4
"""One address may have a quarter of all connections before any sender on them is recognised."""
STRANGERS_LEAST = 64
NO_ROOM, LATE_HANDSHAKE, LATE_REQUEST, LATE_READER, BAD_REQUEST = (
    "no_room",
    "late_handshake",
    "late_request",
    "late_reader",
    "bad_request",
)
"""Reasons for which a listener ends connections: they are values of a metric's label."""
ListenerName = Literal["everybody", "people", "agents", "boot", "boot-media"]
"""Listeners of `serve`; each is attacked by `tests/adversary/test_listeners.py`."""
REASONS = (NO_ROOM, LATE_HANDSHAKE, LATE_REQUEST, LATE_READER, BAD_REQUEST)


class ConnectionLimits(Struct, frozen=True):
    """The most connections in all, from one address without a recognised token, of one agent, of one other token."""

    total: int
    strangers: int
    agent: int = 16
    person: int = 128


def limits(total: int) -> ConnectionLimits:
    """The limits that go with so many connections in all."""
    return ConnectionLimits(total, max(STRANGERS_LEAST, total // STRANGERS_SHARE))


class ListenerCounts(Struct, frozen=True):
    """Numbers of one listener: connections open and the most, those that it ended by reason."""

    listener: str
    open: int
    most: int
    ended: dict[str, int]


class Connection(Protocol):
    """One client's connection. `answering`: a request of it is under way, and the client takes the answer."""

    address: str

    @property
    def answering(self) -> bool:
        """Whether a request of this connection is under way, and the client reads what it is sent."""

    def end(self) -> None:
        """Close it now; what it asked for is not answered any more."""
        ...


class AnsweredConnection(Protocol):
    """A connection whose last answer may not have left whole."""

    def watch_rest(self) -> None:
        """Begin to watch its client where bytes still wait for it."""
        ...


_Group = dict[Connection, None]
"""Connections in the order in which they came."""


class ConnectionTable:
    """The open connections of one listener. `ended` counts those that it ended, by reason.

    `unread` are those that were answered since they were looked at last (`watch_unread`).
    """

    def __init__(self, most: ConnectionLimits, listener: ListenerName = "everybody") -> None:
        self.limits = most
        self.listener = listener
        self.ended = Counter(dict.fromkeys(REASONS, 0))
        self.unread: dict[AnsweredConnection, None] = {}
        self._strangers: dict[str, _Group] = {}
        self._owned: dict[str, _Group] = {}
        self._identities: dict[str, Identity] = {}
        self._owner: dict[Connection, str] = {}
        self._count = 0

    @property
    def refused(self) -> int:
        """Connections that were turned away, or gave way to newer ones."""
        return self.ended[NO_ROOM]

    @property
    def strangers(self) -> int:
        """Connections on which nobody was recognised yet."""
        return self._count - len(self._owner)

    @property
    def known(self) -> int:
        """Connections that count as some identity's."""
        return len(self._owner)

    def counts(self) -> ListenerCounts:
        """Numbers for people and for metrics."""
        return ListenerCounts(self.listener, self._count, self.limits.total, dict(self.ended))

    def opened(self, connection: Connection) -> bool:
        """Tell whether there is room for the connection."""
        group = self._strangers.setdefault(connection.address, {})
        group[connection] = None
        self._count += 1
        if len(group) > self.limits.strangers:
            return self._give_way(connection, group)
        if self._count > self.limits.total:
            return self._give_way(connection, max(self._strangers.values(), key=len))
        return True

    def recognised(self, connection: Connection, who: Identity) -> bool:
        """Tell whether the identity may have this connection too."""
        token = who.token
        if self._owner.get(connection) == token:
            return True
        self._forget(connection)
        group = self._owned.setdefault(token, {})
        group[connection] = None
        self._count += 1
        self._owner[connection] = token
        self._identities[token] = who
        most = self.limits.agent if who.role is Role.agent else self.limits.person
        return len(group) <= most or self._give_way(connection, group)

    def closed(self, connection: Connection) -> None:
        """The connection is no more."""
        self._forget(connection)

    def watch_unread(self) -> None:
        """Have connections whose answers have not left watch their clients; this is asked each second."""
        unread, self.unread = self.unread, {}
        for connection in unread:
            connection.watch_rest()

    def identities(self) -> Iterable[Identity]:
        """Identities with open connections."""
        return tuple(self._identities.values())

    def end(self, tokens: Iterable[str]) -> int:
        """Close every connection of these tokens; how many there were."""
        found = [connection for token in tokens for connection in self._owned.get(token, ())]
        for connection in found:
            connection.end()
        return len(found)

    def __iter__(self) -> Iterator[Connection]:
        groups = chain(list(self._strangers.values()), list(self._owned.values()))
        return (connection for group in groups for connection in list(group))

    def _give_way(self, newest: Connection, group: _Group) -> bool:
        """Close the oldest of the group that asks for nothing; where there is none, the newest has no room."""
        self.ended[NO_ROOM] += 1
        for connection in group:
            if connection is not newest and not connection.answering:
                self._forget(connection)
                connection.end()
                return True
        return False

    def _forget(self, connection: Connection) -> None:
        token = self._owner.pop(connection, None)
        key, groups = (connection.address, self._strangers) if token is None else (token, self._owned)
        group = groups.get(key)
        if group is None or connection not in group:
            return
        del group[connection]
        self._count -= 1
        if not group:
            del groups[key]
            self._identities.pop(key, None)


def address_of(host: str) -> str:
    """The part of an IP address that one subscriber has for itself."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(IPv6Address(int(address) >> (128 - IPV6_PREFIX) << (128 - IPV6_PREFIX)))
