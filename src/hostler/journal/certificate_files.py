"""Certificates of sanitising on the disk: a folder for each node, and none is ever removed."""

from hashlib import sha256
from pathlib import Path

from hostler.journal.evidence_files import EvidenceFiles


class CertificateFiles:
    """A folder of folders, one for each node. Reading and writing block; both raise JournalError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, node: str, data: bytes) -> str:
        """Keep a certificate of the node; its digest. The same bytes are kept once."""
        return self._of(node).put(data)

    def get(self, node: str, digest: str) -> bytes | None:
        """The certificate's bytes, None where they are not here."""
        return self._of(node).get(digest)

    def _of(self, node: str) -> EvidenceFiles:
        """The node's own folder, named by a digest: an id is no file's name."""
        return EvidenceFiles(self._folder / sha256(node.encode()).hexdigest()[:32])
