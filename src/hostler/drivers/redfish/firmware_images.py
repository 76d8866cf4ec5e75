"""Firmware images: fetched and held against their SHA-256 before any BMC is told of them."""

import hashlib
import tempfile
from collections.abc import Callable
from typing import BinaryIO, Protocol

import aiohttp

from hostler.ports import RefusedError, UnreachableError
from hostler.runtime.reachable_addresses import connector, site

MAX_IMAGE_BYTES = 512 * 1024 * 1024
_SILENCE_S = 60.0


class FirmwareImages(Protocol):
    """A place of firmware images."""

    async def digest(self, url: str) -> str:
        """SHA-256 of the image in hex. Raises RefusedError where there is none, UnreachableError where none answers."""
        ...

    async def store(self, url: str, into: BinaryIO) -> str:
        """Write the image into the file; its SHA-256 in hex. Raises as `digest` does."""
        ...


class HttpImages:
    """Images behind HTTP URLs; no redirect is followed, and nothing larger than `most` bytes is read."""

    def __init__(self, most: int = MAX_IMAGE_BYTES) -> None:
        self._most = most

    async def digest(self, url: str) -> str:
        """SHA-256 of the image in hex."""
        total = hashlib.sha256()
        await self._each(url, total.update)
        return total.hexdigest()

    async def store(self, url: str, into: BinaryIO) -> str:
        """Write the image into the file; its SHA-256 in hex."""
        total = hashlib.sha256()

        def take(chunk: bytes) -> None:
            total.update(chunk)
            into.write(chunk)

        await self._each(url, take)
        return total.hexdigest()

    async def _each(self, url: str, take: Callable[[bytes], object]) -> None:
        if not url.startswith(("http://", "https://")):
            raise RefusedError(
                f"the image {url!r} is behind no http or https URL: it cannot be verified, nor pushed"
                "; put it on a web server and correct its URL"
            )
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=_SILENCE_S)
        try:
            async with (
                aiohttp.ClientSession(
                    connector=connector(site(url)), timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()
                ) as session,
                session.get(url, allow_redirects=False) as response,
            ):
                if response.status != 200:
                    raise RefusedError(f"the image {url} was answered with {response.status}; correct its URL")
                size = 0
                async for chunk in response.content.iter_chunked(1 << 20):
                    size += len(chunk)
                    if size > self._most:
                        raise RefusedError(
                            f"the image {url} is larger than {self._most >> 20} MiB"
                            "; is this the component's image and not a whole bundle?"
                        )
                    take(chunk)
        except (aiohttp.ClientError, TimeoutError, ConnectionError, ValueError) as error:
            raise UnreachableError(
                f"the image {url} could not be fetched: {type(error).__name__} {error}"
                "; check that this host reaches that server"
            ) from error


async def checked(images: FirmwareImages, url: str, sha256: str) -> None:
    """Raise RefusedError unless the image has this SHA-256; "" verifies nothing."""
    if sha256:
        _same(url, sha256, await images.digest(url))


async def checked_file(images: FirmwareImages, url: str, sha256: str) -> BinaryIO:
    """The image in a file without a name, verified as by `checked`; whoever gets it closes it.

    It lies in the folder for temporary files and is gone once it is closed. Raises RefusedError where there is no room.
    """
    file = tempfile.TemporaryFile()  # noqa: SIM115 - it outlives this function
    try:
        found = await images.store(url, file)
        if sha256:
            _same(url, sha256, found)
    except OSError as error:
        file.close()
        raise RefusedError(
            f"the image {url} cannot be kept until it is pushed: {error.strerror}; free {tempfile.gettempdir()}, or "
            "name a folder with room in TMPDIR"
        ) from error
    except BaseException:
        file.close()
        raise
    return file


def _same(url: str, wanted: str, found: str) -> None:
    if found != wanted.lower():
        raise RefusedError(
            f"the image {url} has SHA-256 {found}, the configuration says {wanted}: it was offered to no BMC; "
            "put the right image there, or correct sha256 and activate the configuration"
        )
