"""A controller as agents see it, which fails on request and keeps everything that arrived.

It keeps what a real controller must: a cursor per spool id, the longest contiguous prefix, and operations that it
repeats until it has heard their outcome.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web

from hostler.agent.controller_client import OperationOrder
from hostler.core.state.model import Observation, Outcome

DEADLINE_S = 60.0
Trouble = Callable[[int], str]


class FakeController:
    """Takes what agents send. `trouble` says, by the number of the call, what goes wrong: "" for nothing."""

    def __init__(self, trouble: Trouble = lambda _call: "") -> None:
        self.trouble = trouble
        self.calls = 0
        self.cursors: dict[str, int] = {}
        self.kept: list[Observation] = []
        self.heartbeats: list[dict[str, object]] = []
        self.orders: list[OperationOrder] = []
        self.outcomes: list[Outcome] = []
        self.poison = ""
        self.changed = asyncio.Event()

    async def observations(self, request: web.Request) -> web.StreamResponse:
        assert request.headers["Authorization"] == "Bearer secret"
        body = msgspec.json.decode(await request.read())
        seen = msgspec.convert(body["observations"], list[Observation])
        self.calls += 1
        kind = self.trouble(self.calls)
        if kind == "busy":
            return web.Response(status=503, headers={"Retry-After": "0"})
        if kind == "cut before":
            return self._cut(request)
        if self.poison and any(self.poison == item.text for item in seen):
            return web.Response(status=400, text="bad observation")
        self._keep(body["spool"], seen)
        if kind == "cut after":
            return self._cut(request)
        return web.json_response({"spool": body["spool"], "acknowledged": self.cursors.get(body["spool"], 0)})

    def _cut(self, request: web.Request) -> web.Response:
        assert request.transport
        request.transport.abort()
        return web.Response()

    def _keep(self, spool: str, seen: list[Observation]) -> None:
        for item in seen:
            if item.sequence == self.cursors.get(spool, 0) + 1:
                self.cursors[spool] = item.sequence
                self.kept.append(item)
        self.changed.set()

    async def heartbeat(self, request: web.Request) -> web.Response:
        self.heartbeats.append(await request.json())
        self.changed.set()
        return web.json_response({})

    async def operations(self, request: web.Request) -> web.Response:
        """Holds the question open until there is an order that was not heard of."""
        while not (waiting := self.waiting()):
            self.changed.clear()
            await self.changed.wait()
        return web.Response(body=msgspec.json.encode({"operations": waiting}), content_type="application/json")

    def waiting(self) -> list[OperationOrder]:
        """The orders whose outcome was not heard."""
        heard = {(outcome.operation, outcome.attempt) for outcome in self.outcomes if outcome.result != "busy"}
        return [order for order in self.orders if (order.operation.id, order.operation.attempt) not in heard]

    async def outcome(self, request: web.Request) -> web.Response:
        body = msgspec.json.decode(await request.read())
        self.outcomes += msgspec.convert(body["outcomes"], list[Outcome])
        self.changed.set()
        return web.json_response({})

    async def until(self, happened: Callable[[], object]) -> None:
        """Wait for something to be true of what arrived."""
        async with asyncio.timeout(DEADLINE_S):
            while not happened():
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def served(fake: FakeController) -> AsyncIterator[str]:
    app = web.Application(client_max_size=8 << 20)
    app.router.add_post("/v1/agent/observations", fake.observations)
    app.router.add_post("/v1/agent/heartbeat", fake.heartbeat)
    app.router.add_get("/v1/agent/operations", fake.operations)
    app.router.add_post("/v1/agent/outcomes", fake.outcome)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
