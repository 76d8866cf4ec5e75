"""A firmware image of 512 MiB is pushed over real HTTP, read from a file as it is sent; BMCs break off in every way."""

import asyncio
import hashlib
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from msgspec import Struct

from hostler.drivers.redfish.client import RedfishClient
from hostler.drivers.redfish.firmware_images import MAX_IMAGE_BYTES, HttpImages, checked_file
from hostler.drivers.redfish.http_exchange import Access, HttpExchange
from hostler.ports import ConflictError, PortError, RefusedError, UnreachableError

MIB = 1 << 20
LARGE = 512 * MIB
MOST_MB = 24.0
"""Room for a push in memory: the sockets' buffers and a few pieces. The image itself is twenty times that."""


class Taken(Struct):
    """Record of what a BMC was pushed."""

    length: str = ""
    chunked: bool = False
    received: int = 0
    digest: str = ""
    tail: bytes = b""


class PushedTo:
    """Only the part of a BMC that takes a push: it keeps none of it. `how` is what it does with a push."""

    def __init__(self, how: str = "takes", image_bytes: int = LARGE) -> None:
        self.how = how
        self.image_bytes = image_bytes
        self.taken = Taken()
        self.told = asyncio.Event()

    async def service(self, _request: web.Request) -> web.Response:
        return web.json_response({"MultipartHttpPushUri": "/redfish/v1/UpdateService/push"})

    async def root(self, _request: web.Request) -> web.Response:
        places = ("Systems", "UpdateService")
        return web.json_response({one: {"@odata.id": f"/redfish/v1/{one}"} for one in places})

    async def push(self, request: web.Request) -> web.Response:
        self.taken.length = request.headers.get("Content-Length", "")
        self.taken.chunked = "chunked" in request.headers.get("Transfer-Encoding", "")
        match self.how:
            case "refuses before it reads":
                return web.json_response({"error": {"message": "The service is busy."}}, status=503)
            case "refuses the target":
                await self._read(request, request.content_length or 0)
                return web.json_response({"error": {"message": "The target was not found."}}, status=400)
            case "breaks off":
                await self._read(request, 4 * MIB)
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            case "never answers":
                await self._read(request, request.content_length or 0)
                await self.told.wait()
        await self._read(request, request.content_length or 0)
        return web.json_response({"@odata.id": "/redfish/v1/TaskService/Tasks/1"}, status=202)

    async def _read(self, request: web.Request, most: int) -> None:
        digest = hashlib.sha256()
        while self.taken.received < most and (piece := await request.content.readany()):
            self.taken.received += len(piece)
            self.taken.tail = (self.taken.tail + piece)[-200:]
            digest.update(piece)
        self.taken.digest = digest.hexdigest()

    async def image(self, request: web.Request) -> web.StreamResponse:
        """The image as its web server gives it: zeros."""
        answer = web.StreamResponse(headers={"Content-Length": str(self.image_bytes)})
        await answer.prepare(request)
        for _ in range(self.image_bytes // MIB):
            await answer.write(bytes(MIB))
        return answer


@asynccontextmanager
async def serving(bmc: PushedTo, timeout_s: float = 30.0) -> AsyncIterator[tuple[str, RedfishClient]]:
    app = web.Application(client_max_size=2 * LARGE)
    app.router.add_get("/redfish/v1/", bmc.root)
    app.router.add_get("/redfish/v1/UpdateService", bmc.service)
    app.router.add_post("/redfish/v1/UpdateService/push", bmc.push)
    app.router.add_get("/image", bmc.image)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        async with aiohttp.ClientSession() as session:
            yield origin, RedfishClient(HttpExchange(session, origin, Access(timeout_s=timeout_s)), origin)
    finally:
        bmc.told.set()
        await runner.cleanup()


async def pushed(origin: str, client: RedfishClient, sha256: str = "") -> str:
    with await checked_file(HttpImages(), f"{origin}/image", sha256) as image:
        async with client.alone:
            return await client.push_update(["/redfish/v1/UpdateService/FirmwareInventory/BMC"], image, "bmc image.bin")


@pytest.fixture
def on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files; nothing stays in it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield tmp_path
    assert not list(tmp_path.iterdir())


@pytest.mark.nightly("half a gibibyte")
async def test_half_a_gibibyte_is_pushed_in_bounded_memory(on_disk: Path) -> None:
    """Mutants: the image is read whole; the body is sent chunked; the file stays behind."""
    bmc = PushedTo()
    async with serving(bmc) as (origin, client):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert await pushed(origin, client) == "/redfish/v1/TaskService/Tasks/1"
        grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert bmc.taken.received == int(bmc.taken.length) > LARGE
    assert not bmc.taken.chunked
    assert bmc.taken.tail.endswith(b"--\r\n")
    assert grown_mb < MOST_MB, f"{grown_mb:.0f} MB more"


@pytest.mark.parametrize(
    ("how", "error", "says"),
    [
        ("refuses before it reads", UnreachableError, "503"),
        ("refuses the target", RefusedError, "The target was not found"),
        ("breaks off", UnreachableError, "gave no answer to POST"),
        ("never answers", UnreachableError, "gave no answer to POST"),
    ],
)
async def test_a_push_that_fails_says_whether_it_may_have_worked(
    on_disk: Path, monkeypatch: pytest.MonkeyPatch, how: str, error: type[PortError], says: str
) -> None:
    """Mutants: a push that broke off is refused, so nobody looks at the version; the file stays behind."""
    monkeypatch.setattr("hostler.drivers.redfish.http_exchange.UPLOAD_BYTES_PER_S", 32.0 * MIB)
    async with serving(PushedTo(how, 16 * MIB), timeout_s=2.0) as (origin, client):
        with pytest.raises(error, match=says) as raised:
            await pushed(origin, client)
        assert not isinstance(raised.value, ConflictError)


async def test_an_image_that_is_another_is_pushed_to_nobody(on_disk: Path) -> None:
    bmc = PushedTo(image_bytes=2 * MIB)
    async with serving(bmc) as (origin, client):
        with pytest.raises(RefusedError, match="it was offered to no BMC"):
            await pushed(origin, client, "0" * 64)
    assert not bmc.taken.length


@pytest.mark.nightly("an image beyond the limit")
async def test_an_image_beyond_the_limit_is_not_kept(on_disk: Path) -> None:
    """Mutant: a disk is filled by an endless answer."""
    async with serving(PushedTo(image_bytes=MAX_IMAGE_BYTES + 2 * MIB)) as (origin, client):
        with pytest.raises(RefusedError, match="larger than 512 MiB"):
            await pushed(origin, client)


class FullDisk(HttpImages):
    """Images for which there is no room."""

    async def store(self, url: str, into: object) -> str:
        raise OSError(28, "No space left on device")


async def test_without_room_for_the_image_the_refusal_names_the_folder(on_disk: Path) -> None:
    with pytest.raises(RefusedError, match=f"No space left on device; free {on_disk}"):
        await checked_file(FullDisk(), "http://h/image", "")
