"""Agents on a listener of their own: each answers whom it is for, and one that is full leaves the other alone."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from hostler.server.server_settings import Settings, UnsafeListenError
from hostler.server.standby_proxy import MARK
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import Client, House, house
from tests.end_to_end.processes import free_port

BEAT = {"node": "n0", "boot_id": "first-n0"}


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
async def world(tmp_path: Path, port: int) -> AsyncIterator[House]:
    async with house(tmp_path, agents_at=("127.0.0.1", port)) as inside:
        await inside.adopt(1)
        yield inside


def beside(world: House, port: int, grant: Grant) -> Client:
    return Client(f"http://127.0.0.1:{port}", world.session, world.tokens.create(grant))


async def test_each_listener_answers_whom_it_is_for(world: House, port: int) -> None:
    """Mutants: the listener for agents answers everybody; a probe of it is refused."""
    agent = world.agent("n0")
    assert (await agent.post("/v1/agent/heartbeat", BEAT))[0] == 204
    assert (await agent.call("GET", "/healthz"))[0] == 200
    status, answer = await beside(world, port, Grant("ann", Role.operator)).call("GET", "/v1/nodes")
    assert (status, answer["detail"]) == (421, "this address is for agents alone")
    here = world.client(Grant("agent-n0", Role.agent, node="n0"))
    status, answer = await here.post("/v1/agent/heartbeat", BEAT)
    assert (status, answer["instead"]) == (421, "call the one for agents (--agent-listen)")
    assert (await here.post("/v1/agent/heartbeat", BEAT, headers={MARK: "b"}))[0] == 204, "as a standby carries it"


async def test_agents_that_take_all_their_places_leave_people_theirs(tmp_path: Path, port: int) -> None:
    """Mutant: both listeners count in one table."""
    async with house(tmp_path, agents_at=("127.0.0.1", port), connections_max=400) as world:
        halves = [await asyncio.to_thread(socket.create_connection, ("127.0.0.1", port)) for _ in range(300)]
        assert (await world.operator.get("/v1/status"))["ok"]
        text = await world.operator.get("/metrics")
        assert "hostler_connections_max 400.0" in text
        assert 'hostler_connections{known="yes"} 1.0' in text
        refused = next(line for line in text.splitlines() if line.startswith("hostler_connections_refused_total"))
        assert float(refused.split()[1]) > 100, "a quarter of 300 from one address"
        for half in halves:
            with suppress(OSError):
                half.close()


def test_a_listener_for_agents_wants_tls_as_the_other_does() -> None:
    """Mutant: only the first address is looked at."""
    with pytest.raises(UnsafeListenError, match=r"10\.0\.0\.1 is not loopback"):
        Settings(agents=("10.0.0.1", 8441)).check()
    assert "10.0.0.1" in Settings(agents=("10.0.0.1", 8441)).names()
