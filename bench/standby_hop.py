"""Requests that meet a standby: carried to the active controller, or sent there by a 307; what each way costs.

`python -m bench standby_hop`: two controllers as processes over one PostgreSQL, and beside them a server on another
host name (localhost, where the active is 127.0.0.1) that answers everything with a 307 to the active, as a standby
could. Latencies are of POSTs that change nothing (`dry_run`), in turns. Each client itself shows whether it follows.
"""

import asyncio
import inspect
import json
import os
import shutil
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.error import URLError

import aiohttp
import requests
from aiohttp import web
from playwright.async_api import Error, async_playwright

from bench.console import ARGS
from bench.figures import Figures
from hostler.client import Address, ApiError, Client
from hostler.server import standby_proxy
from tests.end_to_end.processes import run
from tests.end_to_end.standby_world import cluster
from tests.postgres import PostgresServer

ASKED = {"act": {"verb": "hold"}, "target": "rack:far", "reason": "a benchmark", "dry_run": True}
ROUNDS = 300
PATH = "/v1/intents"
IN_A_PAGE = """async ([url, body]) => {
  const headers = {"Content-Type": "application/json"};
  try { return String((await fetch(url, {method: "POST", headers, body})).status) }
  catch (error) { return String(error) }
}"""


async def sent_on(active: str) -> tuple[web.AppRunner, str]:
    """A server that answers 307 to the active's address; "/" is an empty page with a session's cookie."""

    async def answer(request: web.Request) -> web.Response:
        if request.path != "/":
            return web.Response(status=307, headers={"Location": active + request.path_qs})
        page = web.Response(text="<!doctype html>", content_type="text/html")
        page.set_cookie("hostler_session", "hst_x", httponly=True, samesite="Strict")
        return page

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "localhost", 0).start()
    return runner, f"http://localhost:{runner.addresses[0][1]}"


async def timed(ways: dict[str, Callable[[], Awaitable[int]]], figures: Figures) -> None:
    """Ask each way in turn; all connections are kept."""
    took: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way, ask in ways.items():
            began = time.perf_counter()
            status = await ask()
            assert status == 200, (way, status)
            took[way].append(1000 * (time.perf_counter() - began))
    for way, each in took.items():
        figures.add(
            f"a POST {way}, median", statistics.median(each), "ms", f"P95 {sorted(each)[int(0.95 * ROUNDS)]:.1f}"
        )


async def followed(session: aiohttp.ClientSession, url: str, token: str) -> dict[str, str]:
    """Tells what each client makes of a 307 to another host: the status that it ends with, or its error."""
    headers, body = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}, json.dumps(ASKED)
    async with session.post(url, headers=headers, data=body) as answer:
        found = {"aiohttp": str(answer.status)}
    told = (f"-HAuthorization: Bearer {token}", "-HContent-Type: application/json", "-d", body, url)
    for way in ("-L", "--location-trusted"):
        _, found[f"curl {way}"] = await run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-L", way, *told)
    found["requests"] = str(
        (await asyncio.to_thread(requests.post, url, body, headers=headers, timeout=30)).status_code
    )
    asked = urllib.request.Request(url, body.encode(), headers)  # noqa: S310 - our own server
    found["urllib"] = await asyncio.to_thread(_status, lambda: urllib.request.urlopen(asked, timeout=30).status)  # noqa: S310
    at = Address.parse(url.removesuffix(PATH), "")
    found["hostler's own client and command line"] = await asyncio.to_thread(
        _status, lambda: Client((at,), token).post(PATH, ASKED) and 200
    )
    return found


def _status(ask: Callable[[], object]) -> str:
    try:
        return str(ask())
    except (URLError, ApiError) as error:
        return str(error)


async def in_a_browser(page_of: str, ask_at: str) -> str:
    """The status, or the error, of a POST by a page of that server."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGS)
        page = await browser.new_page()
        try:
            await page.goto(page_of)
            return str(await page.evaluate(IN_A_PAGE, [ask_at, json.dumps(ASKED)]))
        except Error as error:
            return error.message
        finally:
            await browser.close()


async def measured(place: str, directory: Path, figures: Figures) -> list[str]:
    """Latencies into the figures; a line for each client."""
    async with cluster(directory, place, lease_s=5.0) as cell, aiohttp.ClientSession() as session:
        active = await cell.active()
        other = next(process for process in cell.processes if process is not active)
        runner, url = await sent_on(active.url)
        headers = {"Authorization": f"Bearer {cell.operator}"}

        async def post(at: str) -> int:
            async with session.post(at + PATH, json=ASKED, headers=headers, allow_redirects=False) as answer:
                await answer.read()
                sent = answer.headers.get("Location", "")
            return await post(sent.removesuffix(PATH)) if answer.status == 307 else answer.status

        ways = {"to the active": active.url, "that the standby carries": other.url, "that a 307 sends on": url}
        await timed({way: lambda at=at: post(at) for way, at in ways.items()}, figures)  # type: ignore[misc]
        found = await followed(session, url + PATH, cell.operator)
        found["a page in Chromium, by its session's cookie"] = await in_a_browser(url, PATH)
        await runner.cleanup()
    return [f"  {client}: {status}" for client, status in found.items()]


def main() -> str:
    """Print the figures, and what each client makes of a 307 to another host."""
    figures = Figures("requests that meet a standby")
    with tempfile.TemporaryDirectory(prefix="hostler-hop-") as name:
        server = PostgresServer(Path(name))
        try:
            with server.database() as place:
                clients = asyncio.run(measured(place, Path(name), figures))
        finally:
            server.close()
    lines = inspect.getsource(standby_proxy).splitlines()
    figures.add("lines of standby_proxy.py", len(lines), "", f"{sum(bool(line.strip()) for line in lines)} not empty")
    head = f"a 307 to another host, asked with the first one's token or cookie (load {os.getloadavg()[0]:.1f}):"
    return "\n".join((str(figures), head, *clients))
