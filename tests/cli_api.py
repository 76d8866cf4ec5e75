"""A small API on a real socket that says what a test tells it to, and remembers what it was asked."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from hostler.cli.exit_codes import ExitCode
from hostler.cli.main import COMMANDS, build, run


@dataclass
class Asked:
    """One request as it came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


Answer = Callable[[Asked], web.Response]


@dataclass
class FakeApi:
    """Answers by "METHOD /path"; the last answer of a list is given again and again."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    answers: dict[str, list[Answer]] = field(default_factory=dict)

    def says(self, route: str, body: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        """From the next request on (after what was said before) the route answers this."""
        self.does(route, lambda _: web.json_response(body, status=status, headers=headers))

    def does(self, route: str, answer: Answer) -> None:
        self.answers.setdefault(route, []).append(answer)

    def streams(self, *events: dict[str, Any]) -> None:
        """The next event stream gives these events and ends."""
        lines = ["retry: 0", ": from 0", ""]
        for event in events:
            lines += [f"id: {event['seq']}", "event: record", f"data: {json.dumps(event)}", ""]
        text = "\n".join(lines) + "\n"
        self.does("GET /v1/events", lambda _: web.Response(text=text, content_type="text/event-stream"))

    def posted(self) -> list[Any]:
        return [asked.body for asked in self.asked if asked.method == "POST"]

    async def handle(self, request: web.Request) -> web.Response:
        text = await request.text()
        asked = Asked(
            request.method, request.path, dict(request.query), dict(request.headers), json.loads(text) if text else None
        )
        self.asked.append(asked)
        known = self.answers.get(f"{request.method} {request.path}")
        if not known:
            problem = {"error": "unknown", "detail": f"no {request.path}", "instead": "look at the list"}
            return web.json_response(problem, status=404)
        return (known.pop(0) if len(known) > 1 else known[0])(asked)


@contextmanager
def serving() -> Iterator[FakeApi]:
    """The API on a free port of this machine."""
    api, loop, ready, stop = FakeApi(), asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def serve() -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", api.handle)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        api.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        ready.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(10), "the fake API has started"
        yield api
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def hostler(*arguments: str) -> ExitCode:
    """Run a command line in this process; its output is for pytest's capsys."""
    return run(lambda: build()(list(arguments)))


def page(*items: dict[str, Any], cursor: str = "", **more: Any) -> dict[str, Any]:
    return {"items": list(items), "cursor": cursor, **more}


def words() -> Iterator[tuple[str, ...]]:
    """Every command of the tree."""
    app = build()
    for name, *_ in COMMANDS:
        yield (name,)
        yield from ((name, sub) for sub in app[name] if not sub.startswith("-"))
