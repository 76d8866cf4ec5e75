"""Bundles of evidence, each kept under the SHA-256 of its bytes until its time is over or newer ones need its room."""

import os
import threading
from pathlib import Path

from hostler.journal.evidence_files import EvidenceFiles
from hostler.ports import JournalError

KEPT_S = 180 * 86_400.0
"""Seconds for which a bundle is kept: a return takes 45 days, and a vendor asks again."""
MOST_BYTES = 2 * 1024**3
"""Bytes of all bundles together; where a new one needs more, the oldest go first."""


class BundleFiles:
    """A folder of bundles. Reading and writing block, from several threads at once; both raise JournalError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = EvidenceFiles(folder)
        self._alone = threading.Lock()

    def put(self, data: bytes, now_s: float) -> str:
        """Keep the bytes at this moment (s since 1970); their digest. What has had its time is removed."""
        if len(data) > MOST_BYTES:
            raise JournalError(f"a bundle has {len(data):,} bytes, {MOST_BYTES:,} at most are kept")
        try:
            with self._alone:
                self._make_room(len(data), now_s)
                digest = self._files.put(data)
                os.utime(self._folder / digest, (now_s, now_s))
        except OSError as error:
            raise JournalError(f"{self._folder} cannot be tidied: {error.strerror}") from error
        return digest

    def get(self, digest: str) -> bytes | None:
        """The bytes, None where they are not here, or not any more."""
        return self._files.get(digest)

    def _make_room(self, size: int, now_s: float) -> None:
        if not self._folder.exists():
            return
        kept = sorted((file.stat().st_mtime, file.stat().st_size, file) for file in self._folder.iterdir())
        total = sum(one[1] for one in kept)
        for at, length, file in kept:
            if at + KEPT_S >= now_s and total + size <= MOST_BYTES:
                return
            file.unlink(missing_ok=True)
            total -= length
