"""Knowledge of a BMC's own password: its age, what was asked for, how the last renewal failed; never itself."""

from datetime import datetime

from msgspec import Struct

RENEW = "renew_bmc_login"
"""The kind of operation, and the name of its recipe and mode."""
RETIRE = "retire"
"""The name of the plan by which a BMC loses it before its node is retired."""
LOGIN_FAILED = "bmc.login_failed"
"""The condition of a node whose BMC's password could not be renewed."""


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
