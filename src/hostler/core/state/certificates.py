"""Certificates of sanitising that are kept for good, each named by the SHA-256 of its bytes."""

from datetime import datetime

from msgspec import Struct

CERTIFICATES_KEPT = 8
"""Certificates that a node remembers; the journal names all, and none is removed from the disk."""


class KeptCertificate(Struct, frozen=True):
    """A certificate: when it was made, whose data was erased ("" for nobody's), and how many drives were.

    `digest` "" where this controller keeps none.
    """

    at: datetime
    digest: str
    tenant: str = ""
    drives: int = 0
