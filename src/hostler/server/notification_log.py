"""Log of notifications, for those who look: the outbox, and what was sent since the process began."""

from collections.abc import Mapping

from msgspec import Struct

from hostler.ports import Outbox


class NotificationLog(Struct, frozen=True):
    """The outbox, and attempts by route since this process began."""

    outbox: Outbox
    sent: Mapping[str, int]
    failed: Mapping[str, int]
