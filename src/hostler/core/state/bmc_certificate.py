"""Knowledge of a BMC's certificate: the one it shows, the one that was issued to it, and what came of renewals."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

CERTIFY = "renew_bmc_certificate"
"""The kind of operation, and the name of its recipe and mode."""
CERTIFICATE_FAILED = "bmc.certificate_failed"
"""The condition of a node whose BMC could not be given a certificate."""
FAILURES_MOST = 3
"""So many renewals in a row that came to nothing, and no more is tried until a person says so."""
SITES_OWN = "it is the site's own to renew: bmc.json knows this BMC by `ca` or `fingerprint`, and none is recorded"
"""The sentence about a BMC that is known by no certificate of Hostler's."""
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


def gives_up(known: BmcCertificate | None) -> bool:
    """Whether no more is tried until a person says so."""
    return known is not None and (known.result == "refused" or known.failures >= FAILURES_MOST)


def after_renewal(
    known: BmcCertificate, at: datetime, result: str, detail: str, facts: Mapping[str, object]
) -> BmcCertificate:
    """The certificate after a renewal: proved, or how it came to nothing."""
    if result != "done":
        return replace(known, failed_at=at, result=result, detail=detail, failures=known.failures + 1)
    told = {name: str(facts.get(name) or "") for name in ("certificate", "expires_at", "issuer")}
    ends = datetime.fromisoformat(told["expires_at"]) if told["expires_at"] else None
    shown = ShownCertificate(told["certificate"], ends, told["issuer"])
    done = replace(known, shown=shown, issued=shown.fingerprint, renewed_at=at, asked_at=None, asked_by="", why="")
    return replace(done, failed_at=None, result="", detail="", failures=0)
