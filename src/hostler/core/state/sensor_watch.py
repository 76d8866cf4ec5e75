"""Looks at a machine's sensors over a while: whether they stayed in range, and what was out of it.

One look proves little: a reading counts as out of range once two looks in a row show it, and as in range once nothing
has been out of it for the whole time, without a pause in the looking.
"""

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

PAUSE = timedelta(seconds=300)
"""Looks that are further apart begin a new watch: nobody knows what was between them."""


class SensorLook(Struct, frozen=True):
    """One look at the sensors: how many readings, what was out of range (which, and in words), and the supplies.

    `unread` are readings that cannot be believed. `supplies` are those that say they are well, None where none is
    shown; `redundancy` is the BMC's own word for them, "" where it gives none. `gaps`: what could not be read.
    """

    at: datetime
    read: int
    wrong: tuple[tuple[str, str], ...] = ()
    unread: tuple[str, ...] = ()
    supplies: int | None = None
    redundancy: str = ""
    gaps: str = ""


class SensorWatch(Struct, frozen=True):
    """Looks since `began` without a pause, the last of them, and what was out of range in two in a row, at `wrong_at`.

    `clean_since`: since when no reading has been out of range, None where one is.
    """

    began: datetime
    last: SensorLook
    looks: int = 1
    clean_since: datetime | None = None
    wrong: tuple[tuple[str, str], ...] = ()
    wrong_at: datetime | None = None


def watched(watch: SensorWatch | None, look: SensorLook) -> SensorWatch:
    """The watch with one more look."""
    if watch is None or look.at - watch.last.at > PAUSE or look.at < watch.last.at:
        return SensorWatch(look.at, look, clean_since=None if look.wrong else look.at)
    before = {which for which, _ in watch.last.wrong}
    twice = tuple((which, text) for which, text in look.wrong if which in before)
    clean = None if look.wrong else watch.clean_since or look.at
    grown = replace(watch, last=look, looks=watch.looks + 1, clean_since=clean)
    return replace(grown, wrong=twice, wrong_at=look.at) if twice else grown
