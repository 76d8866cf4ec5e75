"""The Redfish driver in virtual time: the very same code over the emulated service, with no socket between."""

import hashlib
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from typing import Any, BinaryIO, TypeVar

import msgspec

from hostler.core.state.model import Node, Observation, Operation, Outcome
from hostler.drivers.redfish.bmc_reader import RedfishReader
from hostler.drivers.redfish.client import RedfishClient
from hostler.drivers.redfish.http_exchange import Body, Exchange, HttpResponse
from hostler.drivers.redfish.multipart import Upload
from hostler.drivers.redfish.operation_driver import RedfishDriver
from hostler.ports import RefusedError, UnreachableError
from hostler.sim.bmc.emulated_machine import make_image
from hostler.sim.bmc.redfish_service import Service, ServiceRequest, ServiceResponse

TIMEOUT_S = 30.0
_T = TypeVar("_T")
Images = Callable[[str], bytes | None]


class RedfishTwin:
    """`perform`, `observe` and `look` as the driver has them, but at once and at a given moment.

    `services` maps origin ("https://10.0.0.1") → service; changing it swaps BMCs. `images` gives the file behind
    an image's URL, None where there is none. Raises PortError as the driver does.
    """

    def __init__(self, services: Mapping[str, Service], images: Images) -> None:
        self._services = services
        self._images = images
        self._now = datetime.min.replace(tzinfo=UTC)
        self._clients: dict[str, RedfishClient] = {}
        self._hand = RedfishDriver(lambda origin, _: self._client(origin), lambda: self._now, NamedImages(images))
        self._reader = RedfishReader(lambda origin, _: self._client(origin))
        self.kinds = self._hand.kinds

    def perform(self, operation: Operation, node: Node, now: datetime) -> Outcome:
        """Perform the operation at this moment."""
        self._now = now
        return at_once(self._hand.perform(operation, node))

    def observe(self, operation: Operation, node: Node, now: datetime) -> Outcome:
        """Look at this moment whether the operation has happened."""
        self._now = now
        return at_once(self._hand.observe(operation, node))

    def look(self, node: Node, now: datetime) -> tuple[str, Observation]:
        """Power, and the readings."""
        self._now = now
        reader = at_once(self._reader.look(node))
        return reader.power, at_once(reader.sensors())

    def take_stock(self, node: Node, now: datetime) -> Observation:
        """The parts and readings of hardware, not numbered yet."""
        self._now = now
        return at_once(at_once(self._reader.look(node)).inventory())

    def _client(self, origin: str) -> RedfishClient:
        if origin not in self._clients:
            self._clients[origin] = RedfishClient(self._exchange_with(origin), origin)
        return self._clients[origin]

    def _exchange_with(self, origin: str) -> Exchange:
        async def exchange(method: str, path: str, body: Body, headers: dict[str, str]) -> HttpResponse:
            service = self._services.get(origin)
            if service is None:
                raise UnreachableError(f"{origin} is not on the network")
            bare, _, query = path.partition("?")
            reply = service.handle(ServiceRequest(method, bare, query, in_memory(body), headers), self._now)
            self._fetch(reply)
            if reply.dropped or reply.latency_s >= TIMEOUT_S:
                raise UnreachableError(f"{origin} gave no answer to {method} {bare}")
            return HttpResponse(
                reply.status,
                msgspec.json.encode(reply.body) if reply.body is not None else b"",
                _lower(reply),
            )

        return exchange

    def _fetch(self, reply: ServiceResponse) -> None:
        if reply.fetch:
            reply.fetch.machine.image_arrived(reply.fetch.task, self._images(reply.fetch.image), self._now)


class NamedImages:
    """The files behind images' URLs, at once."""

    def __init__(self, images: Images) -> None:
        self._images = images

    async def digest(self, url: str) -> str:
        """SHA-256 of the file in hex."""
        return hashlib.sha256(self._read(url)).hexdigest()

    async def store(self, url: str, into: BinaryIO) -> str:
        """Write the file; its SHA-256 in hex. Raises RefusedError where there is none."""
        into.write(self._read(url))
        return await self.digest(url)

    def _read(self, url: str) -> bytes:
        body = self._images(url)
        if body is None:
            raise RefusedError(f"the image {url} was answered with 404; correct its URL")
        return body


def in_memory(body: Body) -> bytes:
    """A body as a service without a socket takes it."""
    return body.whole() if isinstance(body, Upload) else body or b""


def images_by_name(url: str) -> bytes | None:
    """Images whose URL ends in "/COMPONENT/VERSION" and which hold just that."""
    parts = url.rsplit("/", 2)
    return make_image(parts[1], parts[2]) if len(parts) == 3 else None


def at_once(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine that never waits for anything to its end: a driver in virtual time."""
    try:
        work.send(None)
    except StopIteration as finished:
        value: _T = finished.value
        return value
    work.close()
    raise AssertionError("a driver waited for something in virtual time")


def _lower(reply: ServiceResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in reply.headers.items()}
