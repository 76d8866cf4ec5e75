"""An agent whose token a real server refuses: it says so once, with what to do, and asks ever more rarely."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hostler.agent import main
from hostler.agent.controller_client import ControllerClient, NoTokenError, RejectedError, UnavailableError
from hostler.agent.machine import EmulatedHostMachine
from hostler.agent.main import AgentSettings, serve
from hostler.agent.refused_token import RefusedToken
from hostler.server.tokens import Grant, Role
from tests.contract.agent_world import DEADLINE_S
from tests.contract.api_world import House, house


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path / "cell") as inside:
        yield inside


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path) -> None:
    (tmp_path / "cell").mkdir()


def write(file: Path, token: str) -> Path:
    file.write_text(f"{token}\n")
    file.chmod(0o600)
    return file


@asynccontextmanager
async def agent(world: House, folder: Path, token: Path) -> AsyncIterator[None]:
    stop = asyncio.Event()
    settings = AgentSettings("n0", world.url, token, folder / "state", kernel_log="")
    task = asyncio.create_task(serve(settings, EmulatedHostMachine("n0"), stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, DEADLINE_S)


def said(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, Any]]:
    """The facts of the agent's lines of this event."""
    found = [one for one in caplog.records if one.name == "hostler.agent" and one.getMessage() == event]
    return [{"level": one.levelname, **one.__dict__["facts"]} for one in found]


async def until(holds: Any) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not holds():  # noqa: ASYNC110 - logs have no event to wait for
            await asyncio.sleep(0.01)


async def test_a_real_server_s_refusal_is_said_once_and_again_when_it_changes(
    world: House, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: each heartbeat says it, at level info; another wrong token is not told of; it never goes on."""
    await world.adopt(2)
    caplog.set_level(logging.INFO, "hostler.agent")
    monkeypatch.setattr(main, "HEARTBEAT_S", 0.02)
    asked: list[str] = []
    client = ControllerClient
    beat = client.heartbeat

    async def counted(self: Any, *given: Any) -> Any:
        asked.append("")
        return await beat(self, *given)

    monkeypatch.setattr(client, "heartbeat", counted)
    file = write(tmp_path / "token", "hst_wrong_0000")
    async with agent(world, tmp_path, file):
        await until(lambda: len(asked) > 4)
        (line,) = said(caplog, "token_refused")
        assert line["level"] == "WARNING"
        assert "the token is unknown, revoked or expired" in line["reason"]
        assert "hostler token create --role agent --name agent-n0 --node n0" in line["instead"]
        assert line["file"] == str(file)
        assert said(caplog, "heartbeat_missed") == []
        write(file, world.tokens.create(Grant("agent-n1", Role.agent, node="n1")))
        await until(lambda: len(said(caplog, "token_refused")) > 1)
        _, other = said(caplog, "token_refused")
        assert "is not the node of this token" in other["reason"]
        write(file, world.tokens.create(Grant("agent-n0", Role.agent, node="n0")))
        await until(lambda: said(caplog, "heartbeat_taken_again"))
        await until(lambda: world.app_state.agents.get("n0"))
    assert len(said(caplog, "token_refused")) == 2


UNKNOWN = RejectedError(401, "the token is unknown, revoked or expired")


def test_refused_heartbeats_grow_rarer_and_others_do_not(tmp_path: Path) -> None:
    """Mutants: the pause grows without end; a server that is away is asked rarely; what changes begins late."""
    token = RefusedToken(write(tmp_path / "token", "x"), "n0", 5.0)
    assert [token.missed(UNKNOWN) for _ in range(6)] == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]
    assert token.missed(RejectedError(403, "another node's")) == 5.0
    assert [token.missed(UnavailableError("away")) for _ in range(4)] == [5.0] * 4
    assert [token.missed(RejectedError(409, "not registered")) for _ in range(4)] == [5.0] * 4
    token.missed(UNKNOWN)
    token.heard()
    assert token.missed(UNKNOWN) == 5.0


def test_each_reason_is_said_once_and_a_missing_token_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "hostler.agent")
    token = RefusedToken(tmp_path / "none", "n0", 5.0)
    for _ in range(3):
        token.missed(NoTokenError("no token: none"))
    for _ in range(3):
        token.missed(UnavailableError("away"))
    token.heard()
    token.heard()
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("WARNING", "token_refused"),
        ("INFO", "heartbeat_missed"),
        ("INFO", "heartbeat_taken_again"),
    ]
    assert caplog.records[-1].__dict__["facts"] == {"missed": 6}


async def test_a_token_that_is_written_meanwhile_is_tried_at_once(tmp_path: Path) -> None:
    """Mutant: the pause is slept to its end."""
    file = write(tmp_path / "token", "x")
    token = RefusedToken(file, "n0", 0.01)
    token.sends()
    resting = asyncio.create_task(token.rest(60.0))
    await asyncio.sleep(0)
    write(file, "another and longer one")
    async with asyncio.timeout(DEADLINE_S):
        await resting
