"""A full house: agents' posts are told when their turn comes, urgent ones pass, nobody else waits for them."""

from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import aiohttp
import pytest
from litestar import Litestar, post
from litestar.middleware import DefineMiddleware
from litestar.params import JSONBody

from hostler.server import problems
from hostler.server.load_shedding import PATH, Admission, AdmissionFence
from hostler.server.server_settings import Settings
from hostler.server.tokens import Grant, Role, TokenStore
from hostler.server.uvicorn_server import serving
from tests.contract.api_world import House, house


@pytest.mark.parametrize(("headers", "status"), [({}, 503), ({"Priority": "u=0"}, 201), ({"Priority": "u=5"}, 503)])
async def test_a_full_house_takes_only_what_is_urgent(tmp_path: Path, headers: dict[str, str], status: int) -> None:
    admission = Admission(at_once=0)

    @post(PATH)
    async def take(data: JSONBody[dict[str, Any]]) -> dict[str, Any]:
        return data

    app = Litestar(
        [take],
        middleware=[DefineMiddleware(AdmissionFence)],
        exception_handlers=problems.HANDLERS,
        openapi_config=None,
    )
    tokens = TokenStore(tmp_path / "tokens.sqlite")
    app.state["app_state"] = Mock(forwarder=AsyncMock(), connections=[], tokens=tokens, admission=admission)
    sent = {"Authorization": f"Bearer {tokens.create(Grant('a', Role.agent, node='n0'))}", **headers}
    async with serving(app, Settings(port=0)) as url, aiohttp.ClientSession() as session:
        for _ in range(3):  # the connection stays usable after a refusal
            async with session.post(url + PATH, json={"a": "b" * 10_000}, headers=sent) as answer:
                assert answer.status == status
                if status == 503:
                    assert 1 <= int(answer.headers["Retry-After"]) <= 2
                    assert "nothing was accepted" in (await answer.json(content_type=None))["detail"]
    tokens.close()


async def test_a_node_whose_posts_are_refused_while_it_is_heard_is_shown_until_one_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: nobody notes what is refused; a heartbeat alone ends it; the condition stays when a post was taken."""
    monkeypatch.setattr("hostler.server.refused_agents.REFUSED_S", 0.0)
    async with house(tmp_path) as world:
        await world.adopt(2)
        agent = world.agent("n0")
        beat = {"node": "n0", "boot_id": "first-n0"}
        wrong = {"node": "n0", "spool": "s1", "boot_id": "first-n0", "observations": [{"node": "n1"}]}
        assert (await agent.post("/v1/agent/heartbeat", beat))[0] == 204
        assert shown(world) == []
        assert (await agent.post(PATH, wrong))[0] == 422
        assert (await agent.post("/v1/agent/heartbeat", beat))[0] == 204
        await world.until(lambda: shown(world) == ["agent.refused"])
        assert (await agent.post("/v1/agent/heartbeat", beat))[0] == 204
        (row,) = (await world.operator.get("/v1/nodes?condition=agent.refused"))["items"]
        assert (row["id"], row["healthy"]) == ("n0", False)
        await world.report("n0", kind="kernel_log", text="systemd: Started.")
        await world.until(lambda: shown(world) == [])


def shown(world: House) -> list[str]:
    return [c.type for c in world.cell.view.nodes["n0"].conditions]
