"""A body of an HTTP answer has an end, whatever is sent: its length said or not, packed or not."""

import gzip
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

from hostler.drivers.bounded_body import read_body
from hostler.ports import ExcessError

MOST = 2048
BODIES = {
    "empty": (b"", {}),
    "small": (b"x" * 100, {}),
    "at the bound": (b"x" * MOST, {}),
    "over it": (b"x" * (MOST + 1), {}),
    "packed over it": (gzip.compress(b"x" * 50 * MOST), {"Content-Encoding": "gzip"}),
}


@pytest.fixture
async def origin() -> AsyncIterator[str]:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/endless":
            response = web.StreamResponse()
            await response.prepare(request)
            while True:
                await response.write(b"x" * 65_536)
        body, headers = BODIES[request.query["which"]]
        return web.Response(body=body, headers=headers)

    app = web.Application()
    app.router.add_get("/{any:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    yield f"http://{host}:{port}"
    await runner.cleanup()


@pytest.mark.parametrize(
    ("which", "length"),
    [("empty", 0), ("small", 100), ("at the bound", MOST), ("over it", None), ("packed over it", None)],
)
async def test_a_body_is_whole_or_an_error(origin: str, which: str, length: int | None) -> None:
    """Mutants: what is cut is given as if it were whole; the bound is asked of the packed bytes; `>=` at the bound."""
    async with aiohttp.ClientSession() as session, session.get(f"{origin}/", params={"which": which}) as response:
        if length is None:
            with pytest.raises(ExcessError, match=r"^the answer of b1 is longer than 2 KiB; none of it is used; check"):
                await read_body(response, MOST, "the answer of b1")
        else:
            assert len(await read_body(response, MOST, "the answer of b1")) == length


async def test_a_body_without_end_is_left_at_the_bound(origin: str) -> None:
    """Mutant: the bound is asked once the body has ended."""
    async with aiohttp.ClientSession() as session, session.get(f"{origin}/endless") as response:
        with pytest.raises(ExcessError, match="longer than 1 MiB"):
            await read_body(response, 1 << 20, "the answer of b1")
        assert response.closed
