"""A full house: agents' posts are told when their turn comes, urgent ones pass, nobody else waits for them."""

from typing import Any
from unittest.mock import AsyncMock, Mock

import aiohttp
import pytest
from litestar import Litestar, post
from litestar.middleware import DefineMiddleware
from litestar.params import JSONBody

from hostler.server import problems
from hostler.server.admission import PATH, Admission, AdmissionFence
from hostler.server.serve import serving
from hostler.server.settings import Settings


@pytest.mark.parametrize(("headers", "status"), [({}, 503), ({"Priority": "u=0"}, 201), ({"Priority": "u=5"}, 503)])
async def test_a_full_house_takes_only_what_is_urgent(headers: dict[str, str], status: int) -> None:
    admission = Admission(at_once=0)

    @post(PATH)
    async def take(data: JSONBody[dict[str, Any]]) -> dict[str, Any]:
        return data

    app = Litestar(
        [take],
        middleware=[DefineMiddleware(AdmissionFence, admission=admission)],
        exception_handlers=problems.HANDLERS,
        openapi_config=None,
    )
    app.state["room"] = Mock(forwarder=AsyncMock())
    async with serving(app, Settings(port=0)) as url, aiohttp.ClientSession() as session:
        for _ in range(3):  # the connection stays usable after a refusal
            async with session.post(url + PATH, json={"a": "b" * 10_000}, headers=headers) as answer:
                assert answer.status == status
                if status == 503:
                    assert 1 <= int(answer.headers["Retry-After"]) <= 2
                    assert "nothing was accepted" in (await answer.json(content_type=None))["what"]
