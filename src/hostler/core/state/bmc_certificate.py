"""Knowledge of a BMC's certificate: the one it shows, the one that was issued to it, and what came of renewals."""

from datetime import datetime

from msgspec import Struct

CERTIFY = "renew_bmc_certificate"
"""The kind of operation, and the name of its recipe and mode."""
CERTIFICATE_FAILED = "bmc.certificate_failed"
"""The condition of a node whose BMC could not be given a certificate."""
CERTIFICATE_EXPIRING = "bmc.certificate_expiring"
"""The condition of a node whose BMC shows a certificate that expires soon, or has expired."""


class ShownCertificate(Struct, frozen=True):
    """A certificate that a BMC shows: SHA-256 in hex, when it expires (None: it does not say), and its issuer."""

    fingerprint: str
    expires_at: datetime | None = None
    issuer: str = ""


class BmcCertificate(Struct, frozen=True):
    """A BMC's certificate. `shown` is the one that it showed last while it was known by it.

    `issued` is the fingerprint of the one that the site's authority gave it last and that was proved at `renewed_at`.
    `asked_at` is since when a renewal is due, None for none, `asked_by` who says so and `why`. `failed_at`, `result`
    and `detail` tell how the last renewal came to nothing, `failures` how many did in a row.
    """

    shown: ShownCertificate | None = None
    issued: str = ""
    renewed_at: datetime | None = None
    asked_at: datetime | None = None
    asked_by: str = ""
    why: str = ""
    failed_at: datetime | None = None
    result: str = ""
    detail: str = ""
    failures: int = 0
