"""Certificate of a node's sanitising as it is written to the disk: whose it was, what was erased, what was compared."""

from datetime import datetime

from msgspec import Struct

from hostler.core.state.erasure import DriveErased, TpmCleared
from hostler.core.state.model import Verdict

SCHEMA = 1
"""Version of `SanitiseCertificate` that is written."""


class BmcCompared(Struct, frozen=True):
    """One aspect that was compared over a BMC: accounts, firmware or uefi; of DPUs dpu_accounts and dpu_system.

    `never_verified`: it was not asked for, or nobody can look at it.
    """

    aspect: str
    verdict: Verdict
    detail: str


class SanitiseCertificate(Struct, frozen=True):
    """Proof that a node was sanitised. `tenant` is whose it was, "" where it came from a burn-in."""

    schema: int
    node: str
    serial: str
    sku: str
    tenant: str
    operation: str
    began: datetime
    ended: datetime
    boot_id: str
    drives: tuple[DriveErased, ...]
    tpm: TpmCleared | None
    compared: tuple[BmcCompared, ...]
