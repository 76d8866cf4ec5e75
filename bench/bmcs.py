"""Ten thousand emulated BMCs over TLS in one process: what each would answer is rendered once, so serving costs little.

One listening socket serves them all: each has a loopback address of its own and is known by the one that was called.
The documents are those of the emulated BMC (`hostler.sim.bmc`), in a few renderings with other readings; only the
serial number is put in for each BMC.
"""

import asyncio
import contextlib
import multiprocessing
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from typing import cast

import msgspec
import uvloop

from hostler.sim.bmc.emulated_machine import Delays, Machine, gpu_server
from hostler.sim.bmc.redfish_service import Service, ServiceRequest
from hostler.sim.bmc.resource_parts import Document
from hostler.sim.bmc.tls_certificates import Certificate

PORT = 18443
HANGING_EVERY = 100
"""One BMC of so many accepts the connection and then says nothing."""
RENDERINGS = 8
_SERIAL = "SN-TEMPLATE"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nOData-Version: 4.0\r\nContent-Length: %d\r\n\r\n%b"
_MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


def host_of(number: int) -> str:
    """A loopback address of its own for each BMC, so that each is a host of its own to the pool."""
    return f"127.{1 + number // 62500}.{number // 250 % 250}.{1 + number % 250}"


def number_of(host: str) -> int:
    """The number of the BMC at a loopback address."""
    _, high, middle, low = (int(part) for part in host.split("."))
    return (high - 1) * 62500 + middle * 250 + low - 1


def machine(serial: str = _SERIAL, warmer_c: float = 0.0) -> Machine:
    """A server with eight GPUs; all of its temperatures are so much higher."""
    made = Machine("node", gpu_server(serial), Delays())
    made.start_powered()
    for name in made.sensors:
        if name.endswith("_c"):
            made.sensors[name] += warmer_c
    return made


class _Documents:
    """Path with query → body, for each rendering; rendered when first asked for."""

    def __init__(self) -> None:
        self._services = [Service([machine(warmer_c=number / 10)]) for number in range(RENDERINGS)]
        self._bodies: dict[tuple[int, str], bytes] = {}

    def body(self, path: str, rendering: int) -> bytes:
        """Returns a BMC's answer to a GET, b"" where it has no such thing."""
        key = (rendering, path)
        if key not in self._bodies:
            bare, _, query = path.partition("?")
            reply = self._services[rendering].handle(ServiceRequest("GET", bare, query), datetime.now(UTC))
            found: Document | None = reply.body if reply.status == 200 else None
            self._bodies[key] = msgspec.json.encode(found) if found is not None else b""
        return self._bodies[key]


class _Speaker(asyncio.Protocol):
    """One connection to one BMC. Requests are small and come one after the other."""

    looks = 0

    def __init__(self, documents: _Documents) -> None:
        self._documents = documents
        self._received = b""
        self._serial = b""
        self._hangs = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name
        number = number_of(transport.get_extra_info("sockname")[0])
        self._hangs = number % HANGING_EVERY == HANGING_EVERY - 1
        self._serial = b"SN%d" % number

    def data_received(self, data: bytes) -> None:
        assert self._transport
        self._received += data
        while not self._hangs and b"\r\n\r\n" in self._received:
            head, _, self._received = self._received.partition(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            if "/Systems/" in path:
                _Speaker.looks += 1
            body = self._documents.body(path, _Speaker.looks % RENDERINGS)
            body = body.replace(_SERIAL.encode(), self._serial)
            self._transport.write(_HEAD % (len(body), body) if body else _MISSING)


async def _serve(certificate: Certificate, told: Connection) -> None:
    documents = _Documents()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, _context: None)  # a look that was given up ends within a handshake
    context = certificate.server_context()
    context.num_tickets = 1
    server = await loop.create_server(
        lambda: _Speaker(documents),
        "0.0.0.0",  # noqa: S104 - all addresses of loopback
        PORT,
        ssl=context,
        backlog=4096,
    )
    async with server:
        told.send("ready")
        while await asyncio.to_thread(told.recv) != "end":
            told.send(time.process_time())


def _emulate(certificate: Certificate, told: Connection) -> None:
    uvloop.run(_serve(certificate, told))


@contextlib.contextmanager
def emulated(certificate: Certificate) -> Iterator[Connection]:
    """The process that serves the BMCs. What is sent to it but "end" is answered with the CPU seconds it has used."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_emulate, args=(certificate, there))
    process.start()
    try:
        here.recv()
        yield here
        here.send("end")
    finally:
        process.terminate()
        process.join()
