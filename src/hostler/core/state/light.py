"""The locate light that a person has asked for on a node: for whom, until when, and what its BMC shows of it."""

from datetime import datetime, timedelta

from msgspec import Struct

ON, OFF = "locate_on", "locate_off"
"""Kinds of the operations, which also run as steps of plans."""
TRIES_MOST = 8
PAUSES_S = (5.0, 15.0, 60.0, 300.0)
"""Pause after a try that came to nothing, the first in a row, the second …; the last one for all that follow."""


class Light(Struct, frozen=True):
    """A locate light. It is to be lit (`wanted`) until then, and while `ticket` is open where one is named.

    `lit`: the BMC has shown it lit. `failures` tries in a row came to nothing, the last at `failed_at`, as `result` and
    `detail` tell.
    """

    by: str
    asked_at: datetime
    until: datetime
    ticket: str = ""
    wanted: bool = True
    lit: bool = False
    failures: int = 0
    failed_at: datetime | None = None
    result: str = ""
    detail: str = ""

    @property
    def given_up(self) -> bool:
        """Whether nothing more is tried before a person asks again: the BMC refused, or failed too often."""
        return self.failures >= TRIES_MOST or self.result == "refused"

    @property
    def again_at(self) -> datetime | None:
        """When the next try may begin after one that came to nothing, None for at once."""
        if self.failed_at is None:
            return None
        return self.failed_at + timedelta(seconds=PAUSES_S[min(self.failures, len(PAUSES_S)) - 1])

    @property
    def state(self) -> str:
        """The light in a word or two, as people read it."""
        if self.failures:
            return f"{'lighting' if self.wanted else 'putting it out'} {self.result or 'failed'}: {self.detail}"
        return ("lit" if self.lit else "is being lit") if self.wanted else "is being put out"
