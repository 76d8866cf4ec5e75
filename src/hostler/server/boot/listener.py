"""The boot listener: plain HTTP for boot loaders and first boots, on an address of its own, apart from the API.

A boot loader speaks no TLS that a site could manage; what is secret here opens one boot, once, within its window.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from ssl import SSLContext
from urllib.parse import quote

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from hostler.core.boot import ipxe
from hostler.core.boot.boot_decision import BootRequest
from hostler.logs.structured import logger
from hostler.ports import JournalError
from hostler.runtime.input_queues import BusyError
from hostler.server.boot.boot_requests import AGAIN, NOT_FOUND, OK, BootRequests, Medium, Said, request_of
from hostler.server.boot.medium_template import CHUNK

log = logger()

BODY_MAX = 16 * 1024
QUERY_MAX = 1_024
FILES_AT_ONCE = 512
"""Files that are streamed at a time; boot loaders that ask for more of them wait."""
KEEP_ALIVE_S = 15.0
DATABASE_AGAIN_S = 5.0
"""How long a machine is told to wait where the database of tokens or the journal does not answer."""
IPXE = "iPXE"
"""How iPXE begins its User-Agent; UEFI's own client says UefiHttpBoot/1.0."""
MEDIUM_ROUTE = "/n/{node}/{secret}/{file:hostler-.+\\.iso}"
_TEXT = "text/plain"
_ISO = "application/x-iso9660-image"
_REQUESTS: web.AppKey[BootRequests] = web.AppKey("requests", BootRequests)
_FILES: web.AppKey[asyncio.Semaphore] = web.AppKey("files", asyncio.Semaphore)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def boot_listening(requests: BootRequests, host: str, port: int) -> AsyncIterator[str]:
    """Listen while the block runs; gives the address. Raises OSError where it cannot be had."""
    async with _listening(create_boot_app(requests), host, port) as address:
        yield f"http://{address}"


@asynccontextmanager
async def media_listening(requests: BootRequests, host: str, port: int, tls: SSLContext) -> AsyncIterator[str]:
    """Listen over TLS for BMCs that fetch boot media so, and for nothing else. Raises OSError."""
    async with _listening(create_media_app(requests), host, port, tls) as address:
        yield f"https://{address}"


@asynccontextmanager
async def _listening(app: web.Application, host: str, port: int, tls: SSLContext | None = None) -> AsyncIterator[str]:
    runner = web.AppRunner(app, access_log=None, keepalive_timeout=KEEP_ALIVE_S, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, backlog=1_024, ssl_context=tls).start()
        address = runner.addresses[0]
        yield f"{address[0]}:{address[1]}"
    finally:
        await runner.cleanup()


def create_media_app(requests: BootRequests) -> web.Application:
    """The application that serves boot media alone; nothing is started."""
    app = _application(requests)
    app.router.add_get(MEDIUM_ROUTE, _medium)
    return app


def _application(requests: BootRequests) -> web.Application:
    app = web.Application(client_max_size=BODY_MAX, middlewares=[_answered])
    app[_REQUESTS] = requests
    app[_FILES] = asyncio.Semaphore(FILES_AT_ONCE)
    return app


def create_boot_app(requests: BootRequests) -> web.Application:
    """The application; nothing is started."""
    app = _application(requests)
    app.router.add_get("/ipxe", _by_mac)
    app.router.add_get("/n/{node}/{secret}/boot.efi", _first)
    app.router.add_get("/n/{node}/{secret}/autoexec.ipxe", _autoexec)
    app.router.add_get(MEDIUM_ROUTE, _medium)
    app.router.add_get("/loader/{arch}.efi", _loader)
    app.router.add_get("/n/{node}/{secret}/script", _by_secret)
    app.router.add_get("/n/{node}/{secret}/ci/{document}", _document)
    app.router.add_post("/n/{node}/{secret}/home", _home)
    app.router.add_post("/n/{node}/{secret}/enrol", _enrol)
    app.router.add_get("/images/{path:.+}", _file)
    return app


class _LimitedFile(web.FileResponse):
    """A file that waits until fewer than FILES_AT_ONCE others are streamed."""

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Send the file."""
        assert isinstance(request, web.Request), "handlers get whole requests"
        async with request.app[_FILES]:
            return await super().prepare(request)


@web.middleware
async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse what is too long; say 503 where the controller cannot answer now."""
    if len(request.path_qs) > QUERY_MAX:
        return _response(Said(414, "too long"))
    try:
        return await handler(request)
    except BusyError as busy:
        return _later(busy.retry_after_s)
    except JournalError as error:
        log.warning("boot_request_not_answered", route=_route(request), reason=str(error))
        return _later(DATABASE_AGAIN_S)


def _route(request: web.Request) -> str:
    """The request's route without what stands in it: a boot's secret is part of the address."""
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else ""


def _later(after_s: float) -> web.Response:
    again = _response(Said(AGAIN, "ask again"))
    again.headers["Retry-After"] = str(max(1, round(after_s)))
    return again


async def _by_mac(request: web.Request) -> web.StreamResponse:
    """A machine that shows its MAC address alone; without one it is told to show it."""
    again = f"{_base(request)}/ipxe"
    if "mac" not in request.query:
        return _response(Said(OK, ipxe.first_script(again)))
    return _response(await request.app[_REQUESTS].script(_asked(request), "", again))


async def _first(request: web.Request) -> web.StreamResponse:
    """The address that a BMC was given: iPXE gets its first script, UEFI itself the boot loader.

    Neither opens anything yet, so that firmware may ask for it more than once.
    """
    requests = request.app[_REQUESTS]
    from_adapter = request.headers.get("User-Agent", "").startswith(IPXE)
    if from_adapter or requests.boots is None or not requests.boots.loaders:
        return _response(Said(OK, ipxe.first_script(_by_secret_at(request))))
    return _file_of(await requests.loader(_asked(request), request.match_info["secret"]))


async def _autoexec(request: web.Request) -> web.StreamResponse:
    """The first script of an iPXE that knows by which address it was loaded, and looks beside it.

    UEFI has fetched it with its own network, which the loader begins anew: iPXE of 2025 has no address there.
    """
    return _response(Said(OK, ipxe.first_script(_by_secret_at(request), bare=True)))


async def _loader(request: web.Request) -> web.StreamResponse:
    """The boot loader for a machine whose DHCP server names it by its architecture."""
    return _file_of(await request.app[_REQUESTS].loader_of(request.match_info["arch"]))


async def _medium(request: web.Request) -> web.StreamResponse:
    """The boot medium of one boot, in ranges where that is asked for: BMCs read sectors, and read them again."""
    found = await request.app[_REQUESTS].medium(_asked(request), request.match_info["secret"])
    if isinstance(found, Said):
        return _response(found)
    async with request.app[_FILES]:
        return await _stream(request, found)


async def _stream(request: web.Request, medium: Medium) -> web.StreamResponse:
    size = medium.template.size
    try:
        start, stop, _ = request.http_range.indices(size)
    except ValueError:
        start, stop = size, size
    headers = {"Accept-Ranges": "bytes", "Cache-Control": "no-store", "Content-Type": _ISO}
    if size <= start or stop <= start:
        return web.Response(status=416, headers=headers | {"Content-Range": f"bytes */{size}"})
    is_part = "Range" in request.headers
    if is_part:
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    answer = web.StreamResponse(status=206 if is_part else 200, headers=headers)
    answer.content_length = stop - start
    await answer.prepare(request)
    if request.method == "HEAD":
        return answer
    for at in range(start, stop, CHUNK):
        await answer.write(await asyncio.to_thread(medium.template.read, medium.script, at, min(CHUNK, stop - at)))
    return answer


def _file_of(found: Said | Path) -> web.StreamResponse:
    if isinstance(found, Said):
        return _response(found)
    return _LimitedFile(found, headers={"Content-Type": "application/efi"})


async def _by_secret(request: web.Request) -> web.StreamResponse:
    again = _by_secret_at(request)
    return _response(await request.app[_REQUESTS].script(_asked(request), request.match_info["secret"], again))


async def _document(request: web.Request) -> web.StreamResponse:
    found = request.match_info
    return _response(await request.app[_REQUESTS].document(_asked(request), found["secret"], found["document"]))


async def _home(request: web.Request) -> web.StreamResponse:
    return _response(await request.app[_REQUESTS].home(_asked(request), request.match_info["secret"]))


async def _enrol(request: web.Request) -> web.StreamResponse:
    body = await request.read()
    return _response(await request.app[_REQUESTS].enrol(_asked(request), request.match_info["secret"], body))


async def _file(request: web.Request) -> web.StreamResponse:
    """A file of the catalogue, in ranges and conditionally where that is asked for."""
    requests = request.app[_REQUESTS]
    boots, path = requests.boots, request.match_info["path"]
    found = requests.catalogue.file(boots, path) if boots and requests.catalogue.is_public(boots, path) else None
    if found is None:
        return _response(Said(NOT_FOUND, "no verified file of the image catalogue"))
    return _LimitedFile(found)


def _asked(request: web.Request) -> BootRequest:
    query = request.query
    return request_of(
        request.remote or "",
        request.match_info.get("node", ""),
        query.get("mac", ""),
        query.get("serial", ""),
        query.get("arch", ""),
    )


def _by_secret_at(request: web.Request) -> str:
    found = request.match_info
    return f"{_base(request)}/n/{quote(found['node'], safe='')}/{quote(found['secret'], safe='')}/script"


def _base(request: web.Request) -> str:
    boots = request.app[_REQUESTS].boots
    return boots.url if boots is not None else str(request.url.origin())


def _response(said: Said) -> web.Response:
    return web.Response(text=said.text, status=said.status, content_type=_TEXT, headers={"Cache-Control": "no-store"})
