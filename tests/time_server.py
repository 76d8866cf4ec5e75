"""A time server for guests: this machine's clock over NTP (RFC 5905), as a site's own servers give it to its nodes."""

import asyncio
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

FROM_1900_S = 2_208_988_800
"""NTP counts seconds from 1900, Unix from 1970."""
HEAD = struct.Struct("!BBBbII4s")
"""Leap, version and mode; stratum; poll; precision; delay and dispersion at the root; whose clock it is."""
SERVER, CLIENT, STRATUM, PRECISION = 4, 3, 1, -20
PACKET = 48
CHRONY = """## template:jinja
{% for server in servers %}server {{ server }} port PORT iburst minpoll 2 maxpoll 4
{% endfor %}driftfile /var/lib/chrony/chrony.drift
makestep 1 -1
rtcsync
"""
"""As Debian's own, with a port of its own. Without `rtcsync` the kernel goes on saying that its clock is not set."""


def chrony(address: str, port: int) -> dict[str, object]:
    """Returns cloud-init's section `ntp` by which a guest's chrony takes its time from a server."""
    return {"ntp_client": "chrony", "servers": [address], "config": {"template": CHRONY.replace("PORT", str(port))}}


def answer(asked: bytes, now: float) -> bytes:
    """Returns what a server says to a client that asks now (seconds since 1970); empty where that is no question."""
    if len(asked) < PACKET or asked[0] & 7 != CLIENT:
        return b""
    version = asked[0] >> 3 & 7
    moment = struct.pack("!Q", int((now + FROM_1900_S) * 2**32) % 2**64)
    head = HEAD.pack(version << 3 | SERVER, STRATUM, asked[2], PRECISION, 0, 1, b"TEST")
    return head + moment + asked[40:48] + moment + moment


class _Clock(asyncio.DatagramProtocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if said := answer(data, time.time()):
            self.transport.sendto(said, addr)


@asynccontextmanager
async def time_server() -> AsyncIterator[int]:
    """Port of a server on this machine's loopback address, for as long as it is asked."""
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(_Clock, local_addr=("127.0.0.1", 0))
    try:
        yield transport.get_extra_info("sockname")[1]
    finally:
        transport.close()
