"""The boot medium that a virtual drive of a node's BMC may hold: of which boot, who reads it, how ejecting it went."""

from datetime import datetime, timedelta

from msgspec import Struct

from hostler.core.state.growing_pause import growing_s

EJECT = "eject_boot_medium"
"""The kind of operation that takes it out."""
TRIES_MOST = 8
FIRST_S, MOST_S = 15.0, 1_800.0
LOOK_S = 6 * 3_600.0
"""Pause before each further try once it was given up: whether the medium is still there is all that it may show."""
EJECT_FAILED = "bmc.eject_failed"
"""The condition of a node whose BMC keeps a boot medium that is not to be in its drive any more."""


class BootMedium(Struct, frozen=True):
    """A medium with the secret of the boot that `plan` powers on: from `at` on it may be in a drive.

    `images` begins the addresses of all media of the node. `address` is from where it was read first, "" for not yet.
    `failures` tries in a row to eject it came to nothing, the last at `failed_at`, as `result` and `detail` tell.
    """

    plan: str
    images: str
    at: datetime
    address: str = ""
    failures: int = 0
    failed_at: datetime | None = None
    result: str = ""
    detail: str = ""

    @property
    def given_up(self) -> bool:
        """Whether a person is told: it stays until they eject it, or the next boot puts another into its place."""
        return self.failures >= TRIES_MOST

    @property
    def again_at(self) -> datetime | None:
        """When the next try may begin after one that came to nothing, None for at once."""
        if self.failed_at is None:
            return None
        pause_s = LOOK_S if self.given_up else growing_s(FIRST_S, self.failures - 1, MOST_S)
        return self.failed_at + timedelta(seconds=pause_s)
