"""Targets by the real library apprise, against a server that takes, refuses, redirects or says nothing."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace

from hostler.core.state.notify_routes import Route
from hostler.drivers.notify.apprise_target import AppriseTarget
from hostler.ports import RefusedError, UnreachableError
from tests.contract.test_notify_targets import LOOPBACK, OVER, PAGE, Kept

pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # a plugin's of the library

ROUTE = Route("r", "apprise", secret="folder:x", networks=LOOPBACK, timeout_s=2.0)


class Receiver:
    """A service that apprise posts to; it answers as it is told to."""

    def __init__(self) -> None:
        self.port = 0
        self.asked = 0
        self.taken: list[dict[str, Any]] = []
        self.status = 200
        self.hangs = False

    async def take(self, request: web.Request) -> web.Response:
        self.asked += 1
        if self.hangs:
            await asyncio.sleep(30)
        self.taken.append(await request.json())
        headers = {"Location": f"http://127.0.0.1:{self.port}/elsewhere"} if self.status == 302 else {}
        return web.Response(status=self.status, headers=headers)


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    receiver.port = runner.addresses[0][1]
    try:
        yield receiver
    finally:
        await runner.cleanup()


def target(url: str) -> AppriseTarget:
    return AppriseTarget("c1", Kept({"url": url}))


async def test_it_takes_what_begins_and_what_ends() -> None:
    async with receiving() as receiver:
        for message in (PAGE, OVER):
            await target(f"json://127.0.0.1:{receiver.port}/hook").deliver(message, ROUTE)
        assert [(one["type"], one["title"].partition(": ")[0]) for one in receiver.taken] == [
            ("failure", "[Hostler c1] page"),
            ("success", "[Hostler c1] over"),
        ]
        assert "n1-t7" in receiver.taken[0]["message"]


@pytest.mark.parametrize("status", [302, 400, 401, 429, 500])
async def test_what_is_not_taken_is_sent_again(status: int) -> None:
    async with receiving() as receiver:
        receiver.status = status
        with pytest.raises(UnreachableError, match="json did not take it"):
            await target(f"json://127.0.0.1:{receiver.port}/secret-path").deliver(PAGE, ROUTE)
        assert receiver.asked == 1, "a redirect is not followed, and the outbox alone tries again"


async def test_a_server_that_says_nothing_is_left_when_the_time_is_up() -> None:
    async with receiving() as receiver:
        receiver.hangs = True
        with pytest.raises(UnreachableError, match="did not take it"):  # by the library's own time-outs
            await target(f"json://127.0.0.1:{receiver.port}/x").deliver(PAGE, replace(ROUTE, timeout_s=0.5))
        assert not receiver.taken


@pytest.mark.parametrize(
    ("url", "networks", "error", "says"),
    [
        ("json://127.0.0.1:9/token", (), UnreachableError, "json is sent in plain text; write jsons://"),
        ("jsons://127.0.0.1:9/token", ("10.0.0.0/8",), RefusedError, "private network"),
        ("jsons://localhost:9/token", ("10.0.0.0/8",), RefusedError, "jsons lies in a private network"),
        ("jsons://no-such-host.invalid/token", (), UnreachableError, "jsons: its host has no address"),
        ("carrier-pigeon://coop/token", (), UnreachableError, "no address that apprise knows"),
        ("not an address, token", (), UnreachableError, "no address that apprise knows"),
        ("json://127.0.0.1:9/token json://127.0.0.1:9/other", LOOPBACK, UnreachableError, "did not take it"),
        ("syslog://", (), UnreachableError, "the controller's own machine"),
        ("", (), UnreachableError, "no field url"),
    ],
)
async def test_an_address_that_cannot_be_used(
    url: str, networks: tuple[str, ...], error: type[Exception], says: str
) -> None:
    """No text of an address is told: it is a secret."""
    with pytest.raises(error, match=says) as refused:
        await target(url).deliver(PAGE, replace(ROUTE, networks=networks))
    assert "token" not in str(refused.value)


async def test_without_the_library_a_person_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(UnreachableError, match=r"pip install 'hostler\[apprise\]'"):
        await target("jsons://example.org/x").deliver(PAGE, ROUTE)
