"""The server runs inside the caller's loop, stops when it is told, and answers small questions without delay."""

import asyncio
import socket
from pathlib import Path

import aiohttp
import pytest

from hostler.journal.memory import MemoryJournal
from hostler.runtime.runner import Cell
from hostler.server.agent_mailbox import AgentMailboxes
from hostler.server.app import create_app
from hostler.server.server_settings import Settings, UnsafeListenError
from hostler.server.tokens import Grant, Role, TokenStore
from hostler.server.uvicorn_server import serving


async def test_it_stops_with_streams_and_polls_open(tmp_path: Path) -> None:
    """Mutant: do not close the streams; the server then waits for them until its grace is over."""
    tokens = TokenStore(tmp_path / "t.sqlite")
    cell = Cell(MemoryJournal(), {})
    await cell.start()
    settings = Settings(port=0, stop_s=300.0)
    token = tokens.create(Grant("ada", Role.operator))
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session:
        async with asyncio.timeout(60):
            async with serving(create_app(cell, tokens, AgentMailboxes(lambda: 0), settings), settings) as url:
                answer = await session.get(f"{url}/v1/events")
                assert (await answer.content.readline()).startswith(b"retry")
            assert b"data" not in await answer.read()
    await cell.stop()
    tokens.close()


async def test_small_answers_are_not_held_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a listener without its protocol; asyncio leaves Nagle's delay on, and every answer takes 40 ms."""
    made: list[socket.socket] = []
    real = socket.socket.listen

    def noted(self: socket.socket, backlog: int = 0) -> None:
        made.append(self)
        real(self, backlog)

    monkeypatch.setattr(socket.socket, "listen", noted)
    tokens = TokenStore(tmp_path / "t.sqlite")
    settings = Settings(port=0)
    cell = Cell(MemoryJournal(), {})
    await cell.start()
    async with serving(create_app(cell, tokens, AgentMailboxes(lambda: 0), settings), settings):
        assert made
        assert {one.proto for one in made} == {socket.IPPROTO_TCP}
    await cell.stop()
    tokens.close()


async def test_it_does_not_start_where_it_would_be_unsafe_or_the_port_is_taken(tmp_path: Path) -> None:
    tokens = TokenStore(tmp_path / "t.sqlite")
    app = create_app(Cell(MemoryJournal(), {}), tokens, AgentMailboxes(lambda: 0), Settings())
    with pytest.raises(UnsafeListenError):
        async with serving(app, Settings(host="0.0.0.0", port=0)):
            pass
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        async with serving(app, Settings(port=taken.getsockname()[1])):
            pass
    tokens.close()
