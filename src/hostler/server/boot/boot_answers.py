"""Answers a request of the boot network, as its listener hands it on: which script, document or file it is given."""

from pathlib import Path
from urllib.parse import quote

from hostler.core.boot import ipxe
from hostler.core.boot.boot_decision import BootRequest
from hostler.logs.structured import logger
from hostler.ports import JournalError
from hostler.runtime.input_queues import BusyError
from hostler.server.boot import boot_wire as wire
from hostler.server.boot.boot_requests import NOT_FOUND, OK, BootRequests, Said, request_of
from hostler.server.boot.boot_wire import Answerer, BootAnswer, BootQuestion, SentFile, ask_again

log = logger()

EFI, BYTES, ISO = "application/efi", "application/octet-stream", "application/x-iso9660-image"


class BootAnswers:
    """Answers of one controller."""

    def __init__(self, requests: BootRequests) -> None:
        self._requests = requests
        self._routes: dict[str, Answerer] = {
            wire.BY_MAC: self._by_mac,
            wire.FIRST: self._first,
            wire.AUTOEXEC: self._autoexec,
            wire.MEDIUM: self._medium,
            wire.LOADER: self._loader,
            wire.SCRIPT: self._by_secret,
            wire.DOCUMENT: self._document,
            wire.HOME: self._home,
            wire.ENROL: self._enrol,
            wire.IMAGE: self._image,
        }

    async def answer(self, asked: BootQuestion) -> BootAnswer:
        """The answer; 503 where the controller cannot answer now."""
        try:
            return await self._routes[asked.route](asked)
        except BusyError as busy:
            return ask_again(busy.retry_after_s)
        except JournalError as error:  # the route alone is told: a boot's secret is part of the address
            log.warning("boot_request_not_answered", route=asked.route, reason=str(error))
            return ask_again()

    async def _by_mac(self, asked: BootQuestion) -> BootAnswer:
        """A machine that shows its MAC address alone; without one it is told to show it."""
        again = f"{self._base(asked)}/ipxe"
        if asked.mac is None:
            return BootAnswer(OK, ipxe.first_script(again))
        return _told(await self._requests.script(_request(asked), "", again))

    async def _first(self, asked: BootQuestion) -> BootAnswer:
        """The address that a BMC was given: iPXE gets its first script, UEFI itself the boot loader.

        Neither opens anything yet, so that firmware may ask for it more than once.
        """
        boots = self._requests.boots
        if asked.by_ipxe or boots is None or not boots.loaders:
            return BootAnswer(OK, ipxe.first_script(self._by_secret_at(asked)))
        return self._file(await self._requests.loader(_request(asked), asked.secret))

    async def _autoexec(self, asked: BootQuestion) -> BootAnswer:
        """The first script of an iPXE that knows by which address it was loaded, and looks beside it.

        UEFI has fetched it with its own network, which the loader begins anew: iPXE of 2025 has no address there.
        """
        return BootAnswer(OK, ipxe.first_script(self._by_secret_at(asked), bare=True))

    async def _loader(self, asked: BootQuestion) -> BootAnswer:
        """The boot loader for a machine whose DHCP server names it by its architecture."""
        return self._file(await self._requests.loader_of(asked.name))

    async def _medium(self, asked: BootQuestion) -> BootAnswer:
        """The boot medium of one boot: BMCs read sectors, and read them again."""
        found = await self._requests.medium(_request(asked), asked.secret)
        if isinstance(found, Said):
            return _told(found)
        laid = found.template
        return BootAnswer(OK, file=SentFile(str(laid.path), ISO, None, laid.size, found.script, laid.places))

    async def _by_secret(self, asked: BootQuestion) -> BootAnswer:
        return _told(await self._requests.script(_request(asked), asked.secret, self._by_secret_at(asked)))

    async def _document(self, asked: BootQuestion) -> BootAnswer:
        return _told(await self._requests.document(_request(asked), asked.secret, asked.name))

    async def _home(self, asked: BootQuestion) -> BootAnswer:
        return _told(await self._requests.home(_request(asked), asked.secret))

    async def _enrol(self, asked: BootQuestion) -> BootAnswer:
        return _told(await self._requests.enrol(_request(asked), asked.secret, asked.body))

    async def _image(self, asked: BootQuestion) -> BootAnswer:
        """A file of the catalogue."""
        boots, catalogue = self._requests.boots, self._requests.catalogue
        found = catalogue.file(boots, asked.name) if boots and catalogue.is_public(boots, asked.name) else None
        return self._file(found or Said(NOT_FOUND, "no verified file of the image catalogue"), BYTES)

    def _file(self, found: Said | Path, media_type: str = EFI) -> BootAnswer:
        if isinstance(found, Said):
            return _told(found)
        identity = self._requests.catalogue.verified(found)
        if identity is None:
            return BootAnswer(NOT_FOUND, "the file has just changed")
        return BootAnswer(OK, file=SentFile(str(found), media_type, identity, identity.size))

    def _by_secret_at(self, asked: BootQuestion) -> str:
        return f"{self._base(asked)}/n/{quote(asked.node, safe='')}/{quote(asked.secret, safe='')}/script"

    def _base(self, asked: BootQuestion) -> str:
        boots = self._requests.boots
        return boots.url if boots is not None else asked.origin


def _request(asked: BootQuestion) -> BootRequest:
    return request_of(asked.address, asked.node, asked.mac or "", asked.serial, asked.arch)


def _told(said: Said) -> BootAnswer:
    return BootAnswer(said.status, said.text)
