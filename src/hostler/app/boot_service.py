"""The boot service of a controller: its key, its driver around the BMCs', and its listener."""

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hostler.app.controller_process import Gate
from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.drivers.boot.boot_secret_handover import BootSecretHandover
from hostler.ports import OperationDriver
from hostler.runtime.runner import Cell
from hostler.server.boot.boot_requests import BootRequests
from hostler.server.boot.image_catalogue import ImageCatalogue
from hostler.server.boot.listener import boot_listening

KEY, KEY_BYTES = "boot.key", 32


class BootService:
    """Boots of one cell. `key` makes the secrets of all its boots."""

    def __init__(self, data: Path, images: str, gate: Gate) -> None:
        self._folder = Path(images)
        if not self._folder.is_dir():
            what = f"'{images[:200]}' is no folder"
            raise InvalidInputError((Problem("--boot-images", 0, what, "name the folder of the image catalogue"),))
        self._key = boot_key(data)
        self._gate = gate

    def around(self, bmc: OperationDriver) -> BootSecretHandover:
        """The BMC driver with each boot's secret handed over before the machine is powered on."""
        return BootSecretHandover(bmc, self._gate.fleet, self._key)

    @asynccontextmanager
    async def listening(self, cell: Cell, listen: tuple[str, int]) -> AsyncIterator[str]:
        """Listen for machines while the block runs; gives the address. Raises OSError."""
        catalogue = ImageCatalogue(self._folder)
        configuration = cell.view.configuration
        await catalogue.verify(configuration.boot, configuration.sha256)
        requests = BootRequests(cell, catalogue, self._key, self._gate.offered)
        async with boot_listening(requests, *listen) as address:
            yield address


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
