"""Evidence of a node's faults that is kept: bundles, each named by the SHA-256 of its bytes."""

from datetime import datetime

from msgspec import Struct

COLLECT = "collect_evidence"
"""The kind of operation that collects evidence, and keeps it where it is told to."""
BUNDLES_KEPT = 8
"""Bundles that a node remembers; the journal names all."""


class KeptBundle(Struct, frozen=True):
    """A bundle: when it was kept, its size in bytes, how many files it has, and what is not in it, and why.

    `digest` "" where none could be kept. `tickets` and `cases` are those that were open about the node then.
    """

    at: datetime
    digest: str = ""
    size: int = 0
    files: int = 0
    missing: tuple[str, ...] = ()
    tickets: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
