"""The boot listener: plain HTTP for boot loaders and first boots, on an address of its own, apart from the API.

A boot loader speaks no TLS that a site could manage; what is secret here opens one boot, once, within its window. The
application reads requests and sends files; what is answered is the controller's to say (`boot_answers`).
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from socket import socket
from ssl import SSLContext
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote

from hostler.server.boot import boot_wire as wire
from hostler.server.boot.address_turns import AddressTurns
from hostler.server.boot.boot_wire import Answerer, BootAnswer, BootQuestion, FileIdentity, SentFile
from hostler.server.boot.file_ranges import FileCut, cut_of
from hostler.server.boot.medium_template import CHUNK, MediumTemplate
from hostler.server.connection_limits import LATE_READER, ConnectionTable
from hostler.server.guarded_listener import guarded
from hostler.server.http_limits import LimitedProtocol, Listener
from hostler.server.listener_watch import OpenFiles

BODY_MAX = 16 * 1024
QUERY_MAX = 1_024
ASKS = (2_000, 64)
"""Requests that wait for the controller at a time: in all, and of one address."""
FILES = (512, 64)
"""Files that are sent at a time: in all, and to one address; boot loaders that ask for more of them wait."""
FILE_RATE, FILE_RATE_AFTER_S = 32 * 1024, 30.0
"""A file that leaves at fewer bytes a second, after so long, has the connection ended: its turn is another's."""
IPXE = "iPXE"
"""How iPXE begins its User-Agent; UEFI's own client says UefiHttpBoot/1.0."""
STOP_S = 1.0

ROUTES: tuple[tuple[str, str], ...] = (
    ("GET", wire.BY_MAC),
    ("GET", wire.FIRST),
    ("GET", wire.AUTOEXEC),
    ("GET", wire.LOADER),
    ("GET", wire.SCRIPT),
    ("GET", wire.DOCUMENT),
    ("POST", wire.HOME),
    ("POST", wire.ENROL),
    ("GET", wire.IMAGE),
    ("GET", wire.MEDIUM),
)
PARTS = {
    "path": "(?P<name>.+)",
    "medium": "(?P<name>hostler-[^/]+[.]iso)",
    "node": "(?P<node>[^/]+)",
    "secret": "(?P<secret>[^/]+)",
}
_ORIGIN = re.compile(r"[A-Za-z0-9.:\[\]-]{1,255}")

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Which = Literal["boot", "boot-media"]


@asynccontextmanager
async def listening(  # noqa: PLR0913 - a socket with all that belongs to it
    answer: Answerer,
    which: Which,
    sock: socket,
    table: ConnectionTable,
    tls: SSLContext | None = None,
    files: OpenFiles | None = None,
    sending: int = FILES[0],
) -> AsyncIterator[None]:
    """Listen at this socket while the block runs; it is closed in the end. `sending`: files at a time."""
    app = BootApp(answer, which, sending)
    async with guarded(app, {sock: Listener(table)}, tls, files or OpenFiles(), STOP_S):
        yield


def _pattern(template: str) -> re.Pattern[str]:
    """The template, its parts in braces as groups: what is in no other group is its `name`."""
    pieces = re.split(r"\{(\w+)\}", template)
    return re.compile("".join(PARTS.get(p, "(?P<name>[^/]+)") if n % 2 else re.escape(p) for n, p in enumerate(pieces)))


class BootApp:
    """The ASGI application of one listener: all routes, or boot media alone."""

    def __init__(self, answer: Answerer, which: Which, sending: int = FILES[0]) -> None:
        self._answer = answer
        self._routes = tuple(
            (method, template, _pattern(template))
            for method, template in ROUTES
            if which == "boot" or template == wire.MEDIUM
        )
        self._asks = AddressTurns(*ASKS)
        self._files = AddressTurns(sending, FILES[1])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        assert scope["type"] == "http", "it has no lifespan, and speaks nothing else"
        answered, headers = BootAnswer(404, "no such address"), _headers(scope)
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        path, query = scope["raw_path"].decode(), scope["query_string"].decode("latin-1")
        found = [(m, template, match) for m, template, one in self._routes if (match := one.fullmatch(path))]
        connection: LimitedProtocol = scope["state"]["connection"]
        if len(path) + len(query) > QUERY_MAX:
            answered = BootAnswer(414, "too long")
        elif found and found[0][0] != method:
            answered = BootAnswer(405, "not by this method")
        elif found:
            body = await _body(receive)
            if body is None:
                answered = BootAnswer(413, "too large")
            else:
                asked = _asked(scope, headers, found[0][1:], query, body)
                async with self._asks.turn(connection, receive) as has_turn:
                    if not has_turn:
                        return
                    answered = await self._answer(asked)
        if answered.file is None:
            await _send_text(send, answered)
            return
        async with self._files.turn(connection, receive) as has_turn:
            if has_turn:
                await _send_file(scope["method"], headers, connection, send, answered.file)


def _headers(scope: Scope) -> dict[str, str]:
    """Names in small letters; the first of a name counts."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}


async def _body(receive: Receive) -> bytes | None:
    """The body of a request; None where it is too long."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > BODY_MAX:
            return None
        if not message.get("more_body"):
            return bytes(body)


def _asked(
    scope: Scope, headers: Mapping[str, str], found: tuple[str, re.Match[str]], query: str, body: bytes
) -> BootQuestion:
    template, match = found
    named = {key: unquote(value) for key, value in match.groupdict().items()}
    shown = dict(reversed(parse_qsl(query, keep_blank_values=True)))
    host = headers.get("host", "")
    here = scope["server"] or ("", 0)
    called = host if _ORIGIN.fullmatch(host) else f"{here[0]}:{here[1]}"
    return BootQuestion(
        template,
        scope["client"][0] if scope["client"] else "",
        f"{scope['scheme']}://{called}",
        **named,
        mac=shown.get("mac"),
        serial=shown.get("serial", ""),
        arch=shown.get("arch", ""),
        by_ipxe=headers.get("user-agent", "").startswith(IPXE),
        body=body,
    )


async def _send_text(send: Send, answered: BootAnswer) -> None:
    text = answered.text.encode()
    headers = {"content-type": "text/plain; charset=utf-8", "cache-control": "no-store"}
    if answered.again_s:
        headers["retry-after"] = str(max(1, round(answered.again_s)))
    await _begin(send, answered.status, len(text), headers)
    await send({"type": "http.response.body", "body": text})


async def _begin(send: Send, status: int, length: int | None, headers: Mapping[str, str]) -> None:
    told = {**headers, **({"content-length": str(length)} if length is not None else {})}
    lines = [(name.encode(), value.encode()) for name, value in told.items()]
    await send({"type": "http.response.start", "status": status, "headers": lines})


async def _send_file(
    method: str, headers: Mapping[str, str], connection: LimitedProtocol, send: Send, file: SentFile
) -> None:
    """Send it, whole or the range that was asked for, while its machine reads it fast enough."""
    opened = await asyncio.to_thread(_open, file)
    if opened is None:
        await _send_text(send, BootAnswer(404, "the file has just changed"))
        return
    try:
        tag = f'"{file.identity.changed_ns:x}-{file.size:x}"' if file.identity is not None else ""
        cut = cut_of(headers, file.size, tag)
        told = {"accept-ranges": "bytes", "content-type": file.media_type}
        told |= {"etag": tag} if tag else {"cache-control": "no-store"}
        if cut.status in (206, 416):
            of = f"{cut.start}-{cut.stop - 1}" if cut.status == 206 else "*"
            told["content-range"] = f"bytes {of}/{file.size}"
        await _begin(send, cut.status, cut.stop - cut.start if cut.status != 304 else None, told)
        if method != "HEAD" and cut.stop > cut.start:
            await _send_bytes(opened, cut, connection, send, file)
        else:
            await send({"type": "http.response.body", "body": b""})
    finally:
        os.close(opened)


async def _send_bytes(opened: int, cut: FileCut, connection: LimitedProtocol, send: Send, file: SentFile) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    laid = MediumTemplate(Path(file.path), file.size, file.places)
    for at in range(cut.start, cut.stop, CHUNK):
        piece = await asyncio.to_thread(os.pread, opened, min(CHUNK, cut.stop - at), at)
        if file.identity is None:
            piece = laid.laid_over(file.script, at, piece)
        await send({"type": "http.response.body", "body": piece, "more_body": at + CHUNK < cut.stop})
        took_s, sent = loop.time() - began, at + CHUNK - cut.start
        if connection.gone:
            return
        if took_s > FILE_RATE_AFTER_S and sent < took_s * FILE_RATE:
            connection.table.ended[LATE_READER] += 1
            connection.end()
            return


def _open(file: SentFile) -> int | None:
    """The file, open for reading; None where it is another than was verified."""
    try:
        opened = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    seen = os.fstat(opened)
    if file.identity in (None, FileIdentity(seen.st_ino, seen.st_size, seen.st_ctime_ns)) and seen.st_size == file.size:
        return opened
    os.close(opened)
    return None
