"""Connections of a guarded listener: counted from their first moment, ended where they neither send nor read."""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from hostler.server import guarded_listener, http_limits
from hostler.server.boot.address_turns import AddressTurns
from hostler.server.connection_limits import LATE_HANDSHAKE, LATE_READER, NO_ROOM, ConnectionLimits, ConnectionTable
from hostler.server.guarded_listener import bound, guarded
from hostler.server.http_limits import Listener
from hostler.server.listener_watch import OpenFiles, watch_listeners
from hostler.sim.bmc.tls_certificates import self_signed

PATIENCE_S = 30.0
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def large(_scope: Any, _receive: Any, send: Any) -> None:
    """Answers with more than any socket buffers, and with a rest that no transport calls much."""
    body = b"x" * 8_000_000
    length = (b"content-length", str(len(body) + 9).encode())
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    await send({"type": "http.response.body", "body": b"the end.\n"})


async def never_paused(scope: Any, receive: Any, send: Any) -> None:
    """Answers with as much, of which the transport never says that it waits: as a rest of 64 KiB is not."""
    scope["state"]["connection"].transport.set_write_buffer_limits(high=1 << 30)
    await large(scope, receive, send)


@asynccontextmanager
async def served(
    app: Any, tls: ssl.SSLContext | None = None, most: int = 8
) -> AsyncIterator[tuple[int, ConnectionTable]]:
    table = ConnectionTable(ConnectionLimits(most, most // 2))
    one = bound("127.0.0.1", 0)
    port = one.getsockname()[1]
    async with guarded(app, {one: Listener(table)}, tls, OpenFiles()):
        yield port, table


async def until(holds: Any) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - a table has no event
            await asyncio.sleep(0.01)


async def opened(port: int, number: int, sends: bytes = b"") -> list[socket.socket]:
    made = []
    for _ in range(number):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        await asyncio.to_thread(one.connect, ("127.0.0.1", port))
        one.sendall(sends)
        made.append(one)
    return made


async def test_a_tls_connection_counts_from_its_acceptance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: it counts from the end of its handshake; one whose handshake fails is counted for ever."""
    monkeypatch.setattr(guarded_listener, "HANDSHAKE_S", 0.5)
    certificate = self_signed(datetime.now(UTC))
    async with served(large, certificate.server_context()) as (port, table):
        held = await opened(port, 7)
        await until(lambda: table.ended[NO_ROOM] == 3)
        assert table.strangers == 4
        await until(lambda: table.strangers == 0)
        assert table.ended[LATE_HANDSHAKE] >= 4
        trust = certificate.client_context()
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust, server_hostname="bmc.local")
        writer.write(GET)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        assert table.strangers == 1
        while not (await reader.read(1 << 20)).endswith(b"the end.\n"):
            pass
        writer.close()
        await until(lambda: table.strangers == 0)
        for one in held:
            one.close()


@pytest.mark.parametrize("app", [large, never_paused])
@pytest.mark.parametrize("last", [b"", b"Connection: close\r\n"])
async def test_who_reads_nothing_is_ended(monkeypatch: pytest.MonkeyPatch, last: bytes, app: Any) -> None:
    """Mutants: an answer that is whole has no time limit; a connection that is closed waits for its client."""
    monkeypatch.setattr(http_limits, "WRITE_S", 0.3)
    async with served(app) as (port, table):
        held = await opened(port, 1, GET.replace(b"\r\n\r\n", b"\r\n" + last + b"\r\n"))
        await until(lambda: table.strangers == 1)
        await until(lambda: table.strangers == 0)
        assert table.ended[LATE_READER] == 1
        held[0].close()


async def test_who_reads_slowly_and_steadily_is_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: the whole answer has to be read within the limit."""
    monkeypatch.setattr(http_limits, "WRITE_S", 0.3)
    async with served(large) as (port, table):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4_096)
        writer.write(GET)
        for _ in range(40):
            assert await reader.read(150_000)
            await asyncio.sleep(0.03)
        assert table.ended[LATE_READER] == 0
        writer.close()


async def test_who_does_not_read_gives_way_to_a_newcomer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a request that is answered keeps its place, whether its client reads or not."""
    monkeypatch.setattr(http_limits, "STALLED_S", 0.2)
    async with served(large) as (port, table):
        held = await opened(port, 4, GET)
        await until(lambda: table.strangers == 4)
        await until(lambda: all(one.flow.write_paused for one in table))  # type: ignore[attr-defined]
        await asyncio.sleep(0.3)
        (newest,) = await opened(port, 1, GET)
        assert (await asyncio.to_thread(newest.recv, 12)) == b"HTTP/1.1 200"
        assert table.ended[NO_ROOM] == 1
        for one in (*held, newest):
            one.close()


class OneConnection:
    def __init__(self, address: str) -> None:
        self.address = address
        self.queues = False
        self.going = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self.going.wait()
        return {"type": "http.disconnect"}


async def test_turns_are_shared_by_addresses_and_no_place_is_kept_for_who_has_gone() -> None:
    """Mutants: one address takes every turn; who has gone is waited for; a turn is lost with who went."""
    turns = AddressTurns(most=3, of_address=2)
    having: list[OneConnection] = []
    over = asyncio.Event()

    async def take(one: OneConnection) -> bool:
        async with turns.turn(one, one.receive) as has_turn:
            if has_turn:
                having.append(one)
                await over.wait()
            return has_turn

    many = [OneConnection("a") for _ in range(4)]
    tasks = [asyncio.create_task(take(one)) for one in many]
    await until(lambda: len(having) == 2 and sum(one.queues for one in many) == 2)
    other = OneConnection("b")
    tasks.append(asyncio.create_task(take(other)))
    await until(lambda: other in having)
    many[2].going.set()
    assert await tasks[2] is False
    over.set()
    assert [await task for task in tasks] == [True, True, False, True, True]
    assert not turns.addresses


async def test_a_process_without_files_says_so_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Mutants: nobody looks; each look is a line."""

    class Full(OpenFiles):
        def look(self) -> bool:
            self.exhausted += 1
            return False

    files, table = Full(), ConnectionTable(ConnectionLimits(2, 1), "boot")
    watching = asyncio.create_task(watch_listeners([table], files, 0.01))
    table.ended[NO_ROOM] = 3
    await until(lambda: files.exhausted >= 5)
    watching.cancel()
    said = [record.getMessage() for record in caplog.records if record.name.startswith("hostler")]
    assert [sum(word in line for line in said) for word in ("open_files_exhausted", "connections_refused")] == [1, 1]


def test_a_look_at_files_tells_none_from_some(monkeypatch: pytest.MonkeyPatch) -> None:
    files = OpenFiles()
    assert files.look()

    def none_left(*_: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "open", none_left)
    assert (files.look(), files.exhausted) == (False, 1)
