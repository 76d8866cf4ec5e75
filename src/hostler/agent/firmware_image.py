"""Fetches a firmware image for this machine's parts: bounded in size and time, and held against its SHA-256."""

import asyncio
import contextlib
import hashlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import aiohttp
from msgspec import Struct

from hostler.agent.host_commands import ActFailedError, NotPossibleError

MAX_IMAGE_BYTES = 512 * 1024 * 1024
_SHA256 = re.compile(r"[0-9a-f]{64}")


class ImageLimits(Struct, frozen=True):
    """Bytes of an image, seconds until it is here, and seconds of silence after which its server is given up."""

    bytes: int = MAX_IMAGE_BYTES
    total_s: float = 1200.0
    silence_s: float = 60.0


@contextlib.contextmanager
def fetched(url: str, sha256: str, folder: Path, limits: ImageLimits) -> Iterator[Path]:
    """The image in a file of `folder`, which is emptied before and after; nobody else can read it.

    Raises ActFailedError where it is another image, or none; NotPossibleError where it cannot be fetched now.
    """
    wanted = sha256.lower()
    if not _SHA256.fullmatch(wanted) or not url.startswith(("http://", "https://")):
        raise NotPossibleError("an image has an http or https URL and a SHA-256 of 64 hex digits; nothing was written")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(mode=0o700, parents=True)
        path = folder / "image"
        with path.open("xb") as file:
            found = asyncio.run(_stored(url, file, limits))
        if found != wanted:
            raise ActFailedError(
                f"the image {url} has SHA-256 {found}, the configuration says {wanted}: nothing was written; put the "
                "right image there, or correct sha256 and activate the configuration"
            )
        yield path
    except OSError as error:
        raise NotPossibleError(
            f"the image cannot be kept in {folder}: {error.strerror}; nothing was written"
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _stored(url: str, file: BinaryIO, limits: ImageLimits) -> str:
    """Write the image into the file; its SHA-256 in hex. No redirect is followed."""
    total, size = hashlib.sha256(), 0
    timeout = aiohttp.ClientTimeout(total=limits.total_s, sock_connect=10.0, sock_read=limits.silence_s)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as session,
            session.get(url, allow_redirects=False) as response,
        ):
            if response.status != 200:
                raise NotPossibleError(f"the image {url} was answered with {response.status}; nothing was written")
            async for chunk in response.content.iter_chunked(1 << 20):
                size += len(chunk)
                if size > limits.bytes:
                    raise ActFailedError(f"the image {url} has more than {limits.bytes} bytes; nothing was written")
                total.update(chunk)
                file.write(chunk)
    except (aiohttp.ClientError, TimeoutError, ConnectionError, ValueError) as error:
        raise NotPossibleError(
            f"the image {url} could not be fetched: {type(error).__name__} {error}; nothing was written; check that "
            "this node reaches that server"
        ) from error
    return total.hexdigest()
