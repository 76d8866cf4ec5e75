"""uvicorn's HTTP connection within limits: bytes and number of headers, time for head, body and answer, pipelining.

The parser is fed in small pieces and looked at after each, so that it never keeps much more than HEAD_BYTES of a head
that does not end: httptools joins the pieces of an unfinished header anew with each read, which costs the square of it.

Every listener of `serve` speaks through this protocol, the boot network's too (ADR 184): a client that sends or reads
too slowly loses its connection here, and one that does not read gives way to a newcomer where there is no room.
"""

import asyncio
import socket
import sys
from typing import Any

import msgspec
from msgspec import Struct
from uvicorn import Config
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from hostler.server.connection_limits import (
    BAD_REQUEST,
    LATE_READER,
    LATE_REQUEST,
    Connection,
    ConnectionTable,
    address_of,
)
from hostler.server.problems import MEDIA_TYPE, problem_details
from hostler.server.server_settings import Audience
from hostler.server.tokens import Identity

PIECE_BYTES = 16 * 1024
HEAD_BYTES = 64 * 1024
"""Request line and headers together, trailers likewise."""
HEADERS_MAX = 100
PIPELINED_MAX = 16
"""Requests sent ahead on one connection while one is answered."""
HEAD_S = 10.0
"""From the connection, or a request's first byte, to the end of its headers."""
BODY_S = 10.0
"""A body that is not whole by then must have brought BODY_RATE of bytes a second in that time, and so on."""
BODY_RATE = 16 * 1024
WRITE_S = 30.0
"""A client for whose reading bytes wait must have taken WRITE_RATE of bytes a second in that time, and so on."""
WRITE_RATE = 1024
STALLED_S = 5.0
"""A client that has not read for so long gives way to a newer connection where there is no room."""
_ACKED_AT = 120
"""Offset of `tcpi_bytes_acked` in Linux' `struct tcp_info` (linux/tcp.h)."""
IDLE_STRANGER_S = 5
"""Time for which a connection without a recognised sender is kept between requests."""


class Listener(Struct, frozen=True):
    """Connections of one listening socket, and the audience it is for."""

    table: ConnectionTable
    audience: Audience = "everybody"


class LimitedProtocol(HttpToolsProtocol):
    """One connection. `address` is who it counts for until a token was recognised on it.

    `queues`: its request waits for its turn among others, so that it gives way to a newer connection where there is no
    room. `handshake` is what the connection counted as until its TLS handshake was over.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        listener: Listener,
        handshake: Connection | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state)
        self.queues = False
        self._handshake = handshake
        self.table = listener.table
        self.audience = listener.audience
        self.address = ""
        self._idle_s = self.timeout_keep_alive
        self.timeout_keep_alive = min(self._idle_s, IDLE_STRANGER_S)
        self._answered: RequestResponseCycle | None = None
        self._in_head = False
        self._whole = False
        self._head_bytes = 0
        self._body_bytes = 0
        self._unread_bytes = 0
        self._receiving: asyncio.TimerHandle | None = None
        self._sending: asyncio.TimerHandle | None = None
        self._had_read: int | None = None
        self._stalled_since = 0.0

    # --- who it is

    @property
    def answering(self) -> bool:
        """Tell whether a complete request is under way, and its client reads."""
        answered = self._answered
        if answered is None or answered.more_body or answered.response_complete or self.queues:
            return False
        return not self._stalled_since or self.loop.time() - self._stalled_since < STALLED_S

    @property
    def gone(self) -> bool:
        """Whether nobody reads an answer on it any more."""
        return self.transport.is_closing()

    def recognised(self, who: Identity) -> bool:
        """Count it as this identity's; whether there is room for it."""
        self.timeout_keep_alive = self._idle_s
        return self.table.recognised(self, who)

    def end(self) -> None:
        """Close it now; what it asked for is not answered any more."""
        self._tell_gone()
        self.transport.abort()

    # --- what comes

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register the connection; where its address has too many, refuse it."""
        super().connection_made(transport)
        self.address = address_of(self.client[0] if self.client else "")
        if self._handshake is not None:
            self.table.closed(self._handshake)
            self._handshake = None
        if self.table.opened(self):
            self._receiving = self.loop.call_later(HEAD_S, self._late, self._body_bytes)
        else:
            self._refuse(503, "busy", "too many connections are open", "close some, or try again later")

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the tables and stop its timers."""
        self.table.closed(self)
        self.table.unread.pop(self, None)
        self._tell_gone()
        self._stop_receiving()
        if self._sending is not None:
            self._sending.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the bytes piece by piece."""
        if len(data) <= PIECE_BYTES:
            self._take(data)
        else:
            for start in range(0, len(data), PIECE_BYTES):
                if self.transport.is_closing():
                    return
                self._take(data[start : start + PIECE_BYTES])
        if self.transport.is_closing():
            return
        if self._whole and not self.cycle.response_complete:
            self._stop_receiving()
        elif self._receiving is None:
            self._receiving = self.loop.call_later(HEAD_S if self._in_head else BODY_S, self._late, self._body_bytes)

    def _take(self, piece: bytes) -> None:
        before = self._body_bytes
        super().data_received(piece)
        if self._in_head:
            self._head_bytes += len(piece)
        elif self._body_bytes == before and not self._whole:
            self._unread_bytes += len(piece)  # framing, or trailers
        headers = self.headers or ()
        if self._head_bytes + self._unread_bytes > HEAD_BYTES or len(headers) > HEADERS_MAX:
            self._refuse_head()
        elif len(self.pipeline) > PIPELINED_MAX:
            self.table.ended[BAD_REQUEST] += 1
            self._refuse(
                503, "busy", f"more than {PIPELINED_MAX} requests were sent ahead of their answers", "wait for answers"
            )

    def on_message_begin(self) -> None:
        """Begin counting a new request's head and body."""
        super().on_message_begin()
        self.scope["state"]["connection"] = self
        self._in_head, self._whole = True, False
        self._head_bytes = self._unread_bytes = self._body_bytes = 0

    def on_headers_complete(self) -> None:
        """Refuse a head with too many headers; the time limit for the head ends."""
        self._in_head = False
        self._head_bytes = 0
        self._stop_receiving()
        if len(self.headers) > HEADERS_MAX:
            self._refuse_head()
            raise _RefusedError
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def on_body(self, body: bytes) -> None:
        """Count the body's bytes."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that the request is whole."""
        self._whole = True
        super().on_message_complete()

    # --- time

    def pause_writing(self) -> None:
        """Start the time limit within which the client has to read."""
        super().pause_writing()
        self._stalled_since = self.loop.time()
        if self._sending is None:
            self._watch_reader(self._acknowledged())

    def resume_writing(self) -> None:
        """The client has read most of what waited for it."""
        super().resume_writing()
        self._stalled_since = 0.0
        self._had_read = None

    def on_response_complete(self) -> None:
        """Have the client watched that does not read the answer's rest: it may be too little for the transport to say.

        Most answers have left within the second in which they are looked at again: a timer for each costs too much.
        """
        super().on_response_complete()
        self.table.unread[self] = None

    def watch_rest(self) -> None:
        """Begin to watch the client where bytes of its last answer still wait."""
        if self._sending is None and self.transport.get_write_buffer_size():
            self._watch_reader(self._acknowledged())

    def _watch_reader(self, had_read: int) -> None:
        """Look after WRITE_S how much the client has read beyond `had_read`."""
        self._had_read = had_read
        self._sending = self.loop.call_later(WRITE_S, self._look_at_reader)

    def _look_at_reader(self) -> None:
        """End the connection where bytes wait for a client that reads too little: closing it would wait for them."""
        self._sending = None
        if not self.transport.get_write_buffer_size():
            return
        has_read = self._acknowledged()
        if self._had_read is not None and has_read - self._had_read < WRITE_S * WRITE_RATE:
            self.table.ended[LATE_READER] += 1
            self.end()
        else:
            self._watch_reader(has_read)

    def _acknowledged(self) -> int:
        """Bytes that the client's system has taken: ours may hold megabytes that nobody has read."""
        try:
            told = self.transport.get_extra_info("socket").getsockopt(
                socket.IPPROTO_TCP, socket.TCP_INFO, _ACKED_AT + 8
            )
        except OSError:  # it has just been closed
            return 0
        return int.from_bytes(told[_ACKED_AT:], sys.byteorder)

    def _late(self, had: int) -> None:
        """The time for a head or a stretch of a body is over."""
        self._receiving = None
        if self.transport is None or self.transport.is_closing():
            return
        slow = self._body_bytes - had < BODY_S * BODY_RATE
        if not self._in_head and self.cycle is not None and (self.flow.read_paused or not slow):
            self._receiving = self.loop.call_later(BODY_S, self._late, self._body_bytes)
            return
        body = self.cycle is not None and not self._in_head and not self._whole
        what = "the request's body" if body else "the request's headers"
        self.table.ended[LATE_REQUEST] += 1
        self._refuse(408, "too_slow", f"{what} did not come in time", "send it again at once")

    def _stop_receiving(self) -> None:
        if self._receiving is not None:
            self._receiving.cancel()
            self._receiving = None

    # --- saying no

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP with a problem document, and close."""
        self.table.ended[BAD_REQUEST] += 1
        self._refuse(400, "malformed", msg, "send HTTP/1.1")

    def _refuse_head(self) -> None:
        self.table.ended[BAD_REQUEST] += 1
        what = f"more than {HEAD_BYTES} bytes or {HEADERS_MAX} fields of headers"
        self._refuse(431, "too_large", what, "send fewer and shorter ones")

    def _refuse(self, status: int, error: str, what: str, instead: str) -> None:
        """Answer with a problem where nothing is being answered, and close."""
        if self.transport.is_closing():
            return
        answered = self._answered
        if answered is None or answered.response_complete or not answered.response_started:
            body = msgspec.json.encode(problem_details(status, error, what, instead))
            head = f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self.transport.write(STATUS_LINE[status] + head.encode() + body)
        self._tell_gone()
        self.transport.close()
        self.table.unread[self] = None

    def _tell_gone(self) -> None:
        """Have the request that is answered, and the ones sent ahead, learn that nobody waits for them.

        uvicorn tells only the newest, so that a stream before it would go on for ever.
        """
        waiting = [cycle for cycle, _ in self.pipeline]
        self.pipeline.clear()
        for cycle in (self._answered, *waiting):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()


class _RefusedError(Exception):
    """The parser is to stop: the request was refused."""
