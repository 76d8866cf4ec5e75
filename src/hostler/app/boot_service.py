"""The boot service of a controller: its key, its driver around the BMCs', and its listeners' process."""

import os
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from ssl import SSLContext

from hostler.app.boot_process import BootProcess
from hostler.app.controller_process import Gate
from hostler.app.start_settings import ServeSettings
from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.drivers.boot.boot_secret_handover import BootSecretHandover
from hostler.drivers.boot.network_reboot import NetworkReboot
from hostler.logs.structured import logger
from hostler.ports import OperationDriver, PortError, Secrets
from hostler.runtime.runner import Cell
from hostler.server.boot.boot_answers import BootAnswers
from hostler.server.boot.boot_requests import BootRequests
from hostler.server.boot.image_catalogue import ImageCatalogue
from hostler.server.boot.signed_list import SignedListError, Signers, signers_of
from hostler.server.guarded_listener import server_tls
from hostler.server.tokens import TokenStore

log = logger()

KEY, KEY_BYTES = "boot.key", 32
FIELD = "key"
_KEY = re.compile(rf"[0-9a-fA-F]{{{2 * KEY_BYTES}}}")


class BootService:
    """Boots of one cell. `key` makes the secrets of all its boots; `settings` say where images are and who signs."""

    def __init__(self, key: bytes, settings: ServeSettings, gate: Gate) -> None:
        images = settings.boot_images
        self._folder = Path(images)
        if not images or not self._folder.is_dir():
            what = f"'{images[:200]}' is no folder" if images else "no folder is named"
            raise InvalidInputError((Problem("--boot-images", 0, what, "name the folder of the image catalogue"),))
        self._key = key
        self._gate = gate
        self._signers = boot_signers(settings.boot_signers)
        self._media = settings.boot_media
        self._certificate, self._tls_key = settings.tls_cert, settings.tls_key
        if settings.boot_media is not None:
            media_tls(settings)  # the process would fail by it each time

    def around(self, bmc: OperationDriver, rebooter: OperationDriver) -> tuple[OperationDriver, OperationDriver]:
        """The drivers of BMCs and of reboots, with each boot's secret handed over before the machine starts."""
        handover = BootSecretHandover(bmc, self._gate.fleet, self._key)
        return handover, NetworkReboot(rebooter, handover)

    @asynccontextmanager
    async def listening(self, cell: Cell, tokens: TokenStore, listen: tuple[str, int]) -> AsyncIterator[str]:
        """Listen for machines while the block runs; gives the address. Raises OSError."""
        catalogue = ImageCatalogue(self._folder, self._signers)
        configuration = cell.view.configuration
        await catalogue.verify(configuration.boot, configuration.sha256)
        answers = BootAnswers(BootRequests(cell, catalogue, self._key, self._gate.offered, tokens))
        process = BootProcess(answers.answer, self._gate.now, self._certificate, self._tls_key)
        self._gate.boot = process.presence
        async with process.listening(listen, self._media) as address:
            yield address


async def boot_service(settings: ServeSettings, data: Path, secrets: Secrets, gate: Gate) -> BootService | None:
    """The boot service, with the key that the cell's controllers share, or with this one's own.

    Raises InvalidInputError for options that do not go together, or name what cannot be used.
    """
    if settings.boot is None:
        refuse_unheeded(settings)
        return None
    key = await shared_boot_key(settings.boot_key, secrets) if settings.boot_key else boot_key(data)
    if settings.journal and not settings.boot_key:
        log.warning("boot_key_not_shared", instead="name one secret for all controllers of the cell with --boot-key")
    return BootService(key, settings, gate)


def refuse_unheeded(settings: ServeSettings) -> None:
    """Raise InvalidInputError where an option of boots is given and nobody listens for machines that boot."""
    given = {
        "--boot-images": settings.boot_images,
        "--boot-key": settings.boot_key,
        "--boot-signers": settings.boot_signers,
        "--boot-media-listen": settings.boot_media,
    }
    what, instead = "nothing boots without --boot-listen", "give --boot-listen HOST:PORT too"
    if problems := tuple(Problem(option, 0, what, instead) for option, value in given.items() if value):
        raise InvalidInputError(problems)


def media_tls(settings: ServeSettings) -> SSLContext:
    """TLS for BMCs that fetch media so, by the API's certificate. Raises InvalidInputError."""
    try:
        return server_tls(settings.tls_cert, settings.tls_key)
    except OSError as error:
        what = f"no certificate for it: {error.strerror or error}"
        instead = "name one with --tls-cert and --tls-key, under the name that BMCs know"
        raise InvalidInputError((Problem("--boot-media-listen", 0, what, instead),)) from error


def boot_signers(path: str) -> Signers | None:
    """The keys in the file of this path, None for "". Raises InvalidInputError."""
    try:
        return signers_of(Path(path)) if path else None
    except SignedListError as error:
        instead = "name a PEM file of Ed25519 public keys (openssl pkey -pubout)"
        raise InvalidInputError((Problem("--boot-signers", 0, str(error), instead),)) from error


async def shared_boot_key(reference: str, secrets: Secrets) -> bytes:
    """The key that the controllers of a cell share, by its reference: field `key`, 64 hexadecimal digits.

    Raises InvalidInputError, which tells none of it.
    """
    try:
        written = (await secrets.read(reference)).fields.get(FIELD, "")
    except PortError as error:
        raise InvalidInputError((Problem("--boot-key", 0, str(error), "name a secret as in secrets.json"),)) from error
    if not _KEY.fullmatch(written.strip()):
        what = f"secret '{reference[:100]}' has no field '{FIELD}' with {2 * KEY_BYTES} hexadecimal digits"
        raise InvalidInputError((Problem("--boot-key", 0, what, "write what `openssl rand -hex 32` prints"),))
    return bytes.fromhex(written.strip())


def boot_key(data: Path) -> bytes:
    """The key of this data directory, made where there is none. Only its owner may read it."""
    data.mkdir(0o700, parents=True, exist_ok=True)
    path = data / KEY
    try:
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        key = path.read_bytes()
        if len(key) != KEY_BYTES:
            what = f"it holds {len(key)} bytes, not {KEY_BYTES}"
            raise InvalidInputError((Problem(str(path), 0, what, "remove it"),)) from None
        return key
    with os.fdopen(opened, "wb") as file:
        key = secrets.token_bytes(KEY_BYTES)
        file.write(key)
    return key
