"""Settings of the server: where it listens, under which names, and the limits nobody else sets."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Literal

from msgspec import Struct

from hostler.core.state.input_problems import InvalidInputError, Problem

_DNS_NAME = re.compile(
    r"(?=.*[A-Za-z])[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
)
Audience = Literal["everybody", "people", "agents"]
"""Audience of a listener: agents have their own routes, everybody else the others."""


class UnsafeListenError(ValueError):
    """The server would listen to the network in plain HTTP; nothing was started."""


def _now() -> datetime:
    return datetime.now(UTC)


class Settings(Struct, frozen=True):
    """Addresses and options of listening.

    Tokens travel with every request, so anything but loopback wants TLS.

    `hosts` are further names under which the server may be called (its DNS name, a proxy's). `clock` stamps
    observations and intents. `peers_ca` vouches for the cell's other controllers instead of the system's authorities.
    `agents`: host and port of a listener for agents alone; the other then answers everybody else.
    `connections_max` 0: as many as the process may have files open, less a reserve.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    agents: tuple[str, int] | None = None
    hosts: tuple[str, ...] = ()
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    insecure_plain_http: bool = False
    peers_ca: Path | None = None
    connections_max: int = 0
    streams_max: int = 256
    stop_s: float = 5.0
    clock: Callable[[], datetime] = _now

    def names(self) -> frozenset[str]:
        """The host names (without port) that a request may be addressed to."""
        told = (self.host, *((self.agents[0],) if self.agents else ()))
        listening = [host for host in told if host not in ("0.0.0.0", "::")]  # noqa: S104 - recognised, not bound
        return frozenset(name.lower() for name in (*listening, *self.hosts, "localhost", "127.0.0.1", "::1"))

    def check(self) -> None:
        """Raises UnsafeListenError for plain HTTP on anything but loopback, unless that was asked for plainly."""
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise UnsafeListenError("TLS needs both a certificate and its key: give --tls-certificate and --tls-key")
        open_hosts = [host for host in (self.host, *(self.agents or ())[:1]) if not is_loopback(host)]
        if self.tls_certificate is not None or self.insecure_plain_http or not open_hosts:
            return
        raise UnsafeListenError(
            f"{open_hosts[0]} is not loopback and there is no TLS: tokens would cross the network readable. "
            "Give --tls-certificate and --tls-key, listen on 127.0.0.1 behind a proxy that ends TLS, "
            "or say --insecure-plain-http"
        )


def host_name(text: str) -> str:
    """A DNS name or address without port, as requests are compared with it. Raises InvalidInputError."""
    try:
        return str(ip_address(text.removeprefix("[").removesuffix("]")))
    except ValueError:
        if len(text) <= 253 and _DNS_NAME.fullmatch(text):
            return text.lower()
    what = f"'{text[:100]}' is no host name"
    instead = "write a DNS name or an IP address alone, without https://, port, path or *"
    raise InvalidInputError((Problem("--host-name", 0, what, instead),))


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
