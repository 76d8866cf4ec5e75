"""A multipart push of firmware (Redfish `MultipartHttpPushUri`, DSP0266), read from a file as it is sent."""

import asyncio
import os
import re
import secrets
from collections.abc import AsyncIterator
from typing import BinaryIO

import msgspec

_NOT_A_FILE_NAME = re.compile(r"[^A-Za-z0-9._-]")
CHUNK_BYTES = 1 << 18


class Upload:
    """A body of a known size, of which no more than CHUNK_BYTES are in memory at a time.

    It is never sent chunked: some BMCs take no such body. `file` is the image's, open for reading.
    """

    def __init__(self, head: bytes, file: BinaryIO, size: int, tail: bytes) -> None:
        self._head = head
        self._file = file
        self._tail = tail
        self.size = len(head) + size + len(tail)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The whole body from its beginning, read in a thread."""
        await asyncio.to_thread(self._file.seek, 0)
        yield self._head
        while piece := await asyncio.to_thread(self._file.read, CHUNK_BYTES):
            yield piece
        yield self._tail

    def whole(self) -> bytes:
        """The whole body at once, for a transport that has no stream."""
        self._file.seek(0)
        return self._head + self._file.read() + self._tail


def update_body(targets: list[str], image: BinaryIO, name: str) -> tuple[Upload, str]:
    """The body and its boundary: a part of JSON parameters, then the file."""
    size = image.seek(0, os.SEEK_END)
    boundary = f"hostler-{secrets.token_hex(16)}"
    parameters = msgspec.json.encode({"Targets": targets})
    file_name = _NOT_A_FILE_NAME.sub("_", name)[:100] or "image.bin"
    head = (
        f"--{boundary}\r\n"
        'Content-Disposition: form-data; name="UpdateParameters"\r\n'
        "Content-Type: application/json\r\n\r\n"
    ).encode()
    file_head = (
        f"\r\n--{boundary}\r\n"
        f'Content-Disposition: form-data; name="UpdateFile"; filename="{file_name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode()
    return Upload(head + parameters + file_head, image, size, f"\r\n--{boundary}--\r\n".encode()), boundary
