"""Knowledge of a BMC's own password: its age, what was asked for, how the last renewal failed; never itself."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

RENEW = "renew_bmc_login"
"""The kind of operation, and the name of its recipe and mode."""
RETIRE = "retire"
"""The name of the plan by which a BMC loses it before its node is retired."""
LOGIN_FAILED = "bmc.login_failed"
"""The condition of a node whose BMC's password could not be renewed."""
FAILURES_MOST = 3
"""So many renewals in a row that came to nothing, and no more is tried; one that was refused is enough."""


class BmcLogin(Struct, frozen=True):
    """A BMC's login. `renewed_at`: when a new password was last proved, None: never.

    `asked_at` is since when a renewal is due, None for none, `asked_by` who says so and `why`; `anew`: that person says
    that wrong passwords count from none again. `pending`: a password was made and may be set. `tried` of `tries` wrong
    passwords were shown since one was right. `failed_at`, `result` and `detail` tell how the last renewal came to
    nothing, `failures` how many did in a row.
    """

    renewed_at: datetime | None = None
    username: str = ""
    asked_at: datetime | None = None
    asked_by: str = ""
    why: str = ""
    anew: bool = False
    pending: bool = False
    tried: int = 0
    tries: int = 0
    failed_at: datetime | None = None
    result: str = ""
    detail: str = ""
    failures: int = 0

    @property
    def ours(self) -> bool:
        """Whether the BMC has, or may have, a password that was made here."""
        return self.renewed_at is not None or self.pending


def gives_up(login: BmcLogin | None) -> bool:
    """Whether no more is tried until a person says so."""
    return login is not None and (login.result == "refused" or login.failures >= FAILURES_MOST)


def asked(login: BmcLogin | None, at: datetime, by: str, why: str, *, anew: bool) -> BmcLogin:
    """The login once a renewal of it is due: what failed before counts no more."""
    known = login or BmcLogin()
    due = replace(known, asked_at=at, asked_by=by, why=why, anew=anew or known.anew)
    return replace(due, failed_at=None, result="", detail="", failures=0)


def after_renewal(
    login: BmcLogin | None, at: datetime, result: str, detail: str, facts: Mapping[str, object]
) -> BmcLogin:
    """The login after a renewal: proved, or how it came to nothing."""
    known = login or BmcLogin()
    if "tries" in facts:
        tried, tries = (int(str(facts.get(name) or 0)) for name in ("tried", "tries"))
        username = str(facts.get("username", ""))[:256]
        known = replace(known, username=username, pending=bool(facts.get("pending")), tried=tried, tries=tries)
    if result != "done":
        return replace(known, failed_at=at, result=result, detail=detail, failures=known.failures + 1)
    done = replace(known, renewed_at=at, asked_at=None, asked_by="", why="", anew=False)
    return replace(done, failed_at=None, result="", detail="", failures=0)
