"""Photos and files of people, each kept once under the SHA-256 of its bytes."""

import os
import re
from hashlib import sha256
from pathlib import Path

from hostler.journal.whole_files import publish, unfinished
from hostler.ports import JournalError

MOST_BYTES = 4 * 1024**3
"""Bytes of all files together: ten years of weekly tests with ten photos of 0.8 MB."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_KINDS = (
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"%PDF-1\.|%PDF-2\."), "application/pdf"),
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def media_type_of(data: bytes) -> str:
    """The kind of file, as its first bytes show it, "" where it is none that is taken; its name tells nothing."""
    for begins, kind in _KINDS:
        if begins.match(data):
            return kind
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return ""
    return "text/plain" if text and not _CONTROL.search(text) else ""


class EvidenceFiles:
    """A folder of files, each named by its digest. Reading and writing block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, data: bytes) -> str:
        """Keep the bytes; their digest. Bytes that are here already are kept once. Raises JournalError."""
        digest = sha256(data).hexdigest()
        path = self._folder / digest
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if path.exists():
                return digest
            kept = sum(file.stat().st_size for file in self._folder.iterdir())
            if kept + len(data) > MOST_BYTES:
                raise JournalError(f"{self._folder} holds {kept:,} bytes, {MOST_BYTES:,} at most: move old files away")
            with os.fdopen(os.open(unfinished(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(data)
            publish(path)
        except OSError as error:
            raise JournalError(f"{self._folder} cannot be written: {error.strerror}") from error
        return digest

    def get(self, digest: str) -> bytes | None:
        """The bytes, None where they are not here. Raises JournalError where they are not what was kept."""
        if not _DIGEST.fullmatch(digest):
            return None
        try:
            data = (self._folder / digest).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise JournalError(
                f"{self._folder} cannot be read: {error.strerror}; let Hostler's user read it"
            ) from error
        if sha256(data).hexdigest() != digest:
            raise JournalError(f"{self._folder / digest} is damaged: its bytes have another digest than its name")
        return data
