"""Files of the image catalogue: their checksums are verified before anything is served, and again when one changes."""

import asyncio
import hashlib
from collections.abc import Iterable
from pathlib import Path

from hostler.core.state.boot import BootConfiguration, BootImage
from hostler.logs.structured import logger
from hostler.server.boot.boot_wire import FileIdentity
from hostler.server.boot.signed_list import LIST, SIGNATURE, SignedListError, Signers

log = logger()

CHUNK = 1024 * 1024


class ImageCatalogue:
    """The folder of images. A file is served by a configuration that names it, with the checksum that it has.

    With `signers` it has to stand with that checksum on the folder's list that one of them has signed, too.
    """

    def __init__(self, folder: Path, signers: Signers | None = None) -> None:
        self._folder = folder
        self._signers = signers
        self._list: tuple[FileIdentity | None, FileIdentity | None] | None = None
        self._signed: dict[str, str] = {}
        self._unsigned = ""
        self._sums: dict[str, tuple[FileIdentity, str]] = {}
        self._wrong: dict[str, str] = {}
        self._checked = ""
        self._hashing = asyncio.Lock()

    async def verify(self, boots: BootConfiguration | None, digest: str) -> dict[str, str]:
        """Why each image that cannot be served cannot be, by its name. Hashes in a thread what it has not seen yet."""
        if boots is None:
            return {}
        wanted = _wanted(boots)
        async with self._hashing:
            renewed = self._signers is not None and await asyncio.to_thread(self._read_list, self._signers)
            if (
                renewed
                or digest != self._checked
                or self._wrong
                or any(self._seen(path) != self._known(path) for path in wanted)
            ):
                self._wrong = await asyncio.to_thread(self._compare, wanted)
                self._checked = digest
                for path, why in self._wrong.items():
                    log.error("boot_file_refused", path=path, reason=why)
        agent = (boots.agent.package,) if boots.agent is not None else ()
        problems = {name: self._problem((*image.files, *agent)) for name, image in boots.images.items()}
        return {name: why for name, why in problems.items() if why}

    def file(self, boots: BootConfiguration, path: str) -> Path | None:
        """The verified file, None for one that no image has, or that has changed since it was verified."""
        wanted = _wanted(boots).get(path)
        known = self._sums.get(path)
        if wanted is None or known is None or known[1] != wanted or known[0] != self._seen(path):
            return None
        return self._folder / path if self._is_signed(path, wanted) else None

    def verified(self, whole: Path) -> FileIdentity | None:
        """The contents of a file of this folder as they were verified, by which its reader knows them again."""
        known = self._sums.get(str(whole.relative_to(self._folder)))
        return known[0] if known else None

    def is_public(self, boots: BootConfiguration, path: str) -> bool:
        """Whether everybody on the boot network may have the file: a medium is read by its boot alone."""
        return boots.media is None or path not in {one.file for one in boots.media.files.values()}

    def _read_list(self, signers: Signers) -> bool:
        """Read the signed list where it is another one than before; says whether it is."""
        seen = (self._seen(LIST), self._seen(SIGNATURE))
        if seen == self._list:
            return False
        self._list, self._signed, self._unsigned = seen, {}, ""
        try:
            self._signed = signers.read(self._folder)
        except SignedListError as error:
            self._unsigned = str(error)
        if self._unsigned:
            log.error("boot_list_refused", reason=self._unsigned)
        return True

    def _is_signed(self, path: str, digest: str) -> bool:
        return self._signers is None or self._signed.get(path) == digest

    def _problem(self, files: Iterable[str]) -> str:
        return next((f"{path}: {self._wrong[path]}" for path in files if path in self._wrong), "")

    def _compare(self, wanted: dict[str, str]) -> dict[str, str]:
        return {path: why for path, digest in wanted.items() if (why := self._differs(path, digest))}

    def _differs(self, path: str, digest: str) -> str:
        seen = self._seen(path)
        if seen is None:
            return "is not in the image folder"
        if self._known(path) != seen:
            try:
                self._sums[path] = (seen, _sha256(self._folder / path))
            except OSError as error:
                return f"cannot be read: {error.strerror}"
        if self._sums[path][1] != digest:
            return "is not what its sha256 says"
        return "" if self._is_signed(path, digest) else self._unsigned or f"is not on the signed {LIST} with its sha256"

    def _known(self, path: str) -> FileIdentity | None:
        found = self._sums.get(path)
        return found[0] if found else None

    def _seen(self, path: str) -> FileIdentity | None:
        """The file as it lies there; None for none, for a link that leads out of the folder, and for no plain file."""
        try:
            whole = (self._folder / path).resolve(strict=True)
            stat = whole.stat()
        except (OSError, RuntimeError):
            return None
        if not whole.is_file() or not whole.is_relative_to(self._folder.resolve()):
            return None
        return FileIdentity(stat.st_ino, stat.st_size, stat.st_ctime_ns)


def _wanted(boots: BootConfiguration) -> dict[str, str]:
    """The checksum of each file of the catalogue, boot loaders, boot media and the agent's package among them."""
    images: Iterable[BootImage] = boots.images.values()
    loaders = {loader.file: loader.sha256 for loader in boots.loaders.values()}
    agent = {boots.agent.package: boots.agent.sha256} if boots.agent is not None else {}
    media = {one.file: one.sha256 for one in boots.media.files.values()} if boots.media is not None else {}
    return {path: image.sha256[path] for image in images for path in image.files} | loaders | agent | media


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
