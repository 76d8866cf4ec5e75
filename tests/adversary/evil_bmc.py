"""BMCs that mean harm, on loopback: what they answer is one function of the path, bytes that were made beforehand."""

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

from msgspec import Struct

from hostler.drivers.redfish.http_exchange import MAX_ANSWER_BYTES

MEMBERS = 4_096
DEPTH = 200_000
"""Brackets within each other: fewer than an answer may have values, more than any reader follows."""
SYSTEM = "/redfish/v1/Systems/1"
ENTRIES = f"{SYSTEM}/LogServices/SEL/Entries"
DRIP_S = 0.2


class Says(Struct, frozen=True):
    """An answer: its body, where it redirects to, or `drips` for one that comes byte by byte and never ends."""

    body: bytes = b""
    location: str = ""
    drips: bool = False


Manner = Callable[[str], Says]


class EvilBmc(ThreadingHTTPServer):
    """Answers as its `manner` says. `asked` are path and Authorization of each request, `came` counts connections."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, manner: Manner, port: int = 0, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.manner = manner
        self.asked: list[tuple[str, str]] = []
        self.came = 0
        self._context = context
        self._open: set[socket.socket] = set()
        scheme = "https" if context else "http"
        self.origin = f"{scheme}://127.0.0.1:{self.server_port}"

    def get_request(self) -> tuple[socket.socket, Any]:
        one, address = super().get_request()
        one.settimeout(60.0)
        self.came += 1
        if self._context is not None:
            one = self._context.wrap_socket(one, server_side=True, do_handshake_on_connect=False)
        self._open.add(one)
        return one, address

    def handle_error(self, _request: Any, _address: Any) -> None:
        """Ignores clients that hang up."""

    def stop(self) -> None:
        """End, with every connection."""
        self.shutdown()
        self.server_close()
        for one in self._open:
            with suppress(OSError):
                socket.socket.shutdown(one, socket.SHUT_RDWR)  # not TLS's farewell, which waits for the other side


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: EvilBmc

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers.get("Authorization", "")))
        says = self.server.manner(self.path)
        self.send_response(302 if says.location else 200)
        self.send_header("Content-Type", "application/json")
        if says.location:
            self.send_header("Location", says.location)
        self.send_header("Content-Length", "1000000" if says.drips else str(len(says.body)))
        self.end_headers()
        while says.drips:
            self.wfile.write(b" ")
            self.wfile.flush()
            time.sleep(DRIP_S)
        self.wfile.write(says.body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def evil(manner: Manner, port: int = 0, context: ssl.SSLContext | None = None) -> Iterator[EvilBmc]:
    """Server that serves for as long as the block lasts."""
    bmc = EvilBmc(manner, port, context)
    thread = threading.Thread(target=bmc.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield bmc
    finally:
        bmc.stop()
        thread.join(10.0)


def sound(serial: str) -> Manner:
    """A small BMC that behaves."""
    documents: dict[str, Any] = {
        "/redfish/v1": {"Systems": {"@odata.id": "/redfish/v1/Systems"}},
        "/redfish/v1/Systems": {"Members": [{"@odata.id": SYSTEM}]},
        SYSTEM: {
            "Id": "1",
            "SerialNumber": serial,
            "PowerState": "On",
            "Status": {"Health": "OK"},
            "LogServices": {"@odata.id": f"{SYSTEM}/LogServices"},
        },
        f"{SYSTEM}/LogServices": {"Members": [{"@odata.id": f"{SYSTEM}/LogServices/SEL"}]},
        f"{SYSTEM}/LogServices/SEL": {"Id": "SEL", "Name": "SEL", "Entries": {"@odata.id": ENTRIES}},
        ENTRIES: {"Members": []},
    }
    made = {path: Says(json.dumps(document).encode()) for path, document in documents.items()}
    return lambda path: made.get(path.partition("?")[0].rstrip("/"), Says(b"{}"))


def but(manner: Manner, where: str, instead: Callable[[str], Says]) -> Manner:
    """The same, and something else at one path."""
    return lambda path: instead(path) if path.partition("?")[0].rstrip("/") == where else manner(path)


def endless(where: str) -> Callable[[str], Says]:
    """Pages without end of a collection: 4,096 members each, as large as one answer may be."""
    each = MAX_ANSWER_BYTES // MEMBERS - len(where) - 40
    members = ",".join(json.dumps({"@odata.id": f"{where}/{n}", "x": "y" * each}) for n in range(MEMBERS))
    page = f'{{"Members":[{members}],"Members@odata.nextLink":"{where}?page='.encode()
    assert 0.9 * MAX_ANSWER_BYTES < len(page) < MAX_ANSWER_BYTES - 64
    numbers = count(1)
    return lambda _path: Says(page + str(next(numbers)).encode() + b'"}')


def deep() -> Says:
    """An object that is deeper than it is long."""
    return Says(b'{"Id":"1","x":' + b"[" * DEPTH + b"]" * DEPTH + b"}")
