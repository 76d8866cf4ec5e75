"""Nouns of a node's sanitising between tenants: what was erased and how it was read back."""

from msgspec import Struct

from hostler.core.state.model import Verdict

REPORT = "report"
"""The fact of an outcome that carries the agent's report as JSON."""


class DriveErased(Struct, frozen=True):
    """A drive that was to be erased.

    `method`: how (`nvme sanitize, block erase`, `zeros written`). `level` is NIST SP 800-88r1's word for that, clear or
    purge. `samples` are blocks that held bytes before and were read back, `old` those that still held them.
    """

    slot: str
    serial: str
    model: str
    bytes: int
    method: str
    level: str
    verdict: Verdict
    samples: int = 0
    old: int = 0
    detail: str = ""


class TpmCleared(Struct, frozen=True):
    """A TPM that was to be cleared; `before` and `after` name its storage root key, which a clear changes."""

    verdict: Verdict
    detail: str
    before: str = ""
    after: str = ""


class ErasureReport(Struct, frozen=True):
    """An agent's word of what it erased; `tpm` None where none was to be cleared."""

    drives: tuple[DriveErased, ...] = ()
    tpm: TpmCleared | None = None


def worst(verdicts: tuple[Verdict, ...]) -> Verdict:
    """Failed where one is, else passed where all are; nothing at all is passed."""
    if Verdict.failed in verdicts:
        return Verdict.failed
    return Verdict.passed if all(one is Verdict.passed for one in verdicts) else Verdict.inconclusive
