"""Photos and files that people attach to what they work on; the bytes are kept elsewhere, under their SHA-256."""

from datetime import datetime

from msgspec import Struct

FILES_MOST = 20
"""Photos and files of one thing."""

FILE_BYTES_MOST = 8 * 1024 * 1024
"""Bytes of one file: a phone's photo is 2 to 6 MB."""

FILE_TYPES = ("image/jpeg", "image/png", "image/webp", "application/pdf", "text/plain")
"""Kinds of files that are taken, as their first bytes show them."""


class AttachedFile(Struct, frozen=True):
    """A photo or file: what it is called, and the SHA-256 under which its bytes are kept."""

    digest: str
    name: str
    media_type: str
    size: int
    at: datetime
    person: str

    @property
    def told(self) -> str:
        """The file in a sentence."""
        return f"{self.name} ({self.media_type}, {self.size:,} bytes, SHA-256 {self.digest[:12]})"
