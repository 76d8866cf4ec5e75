"""Tells which notices of a subnet are new since the look before, wherever and however often they are shown."""

from collections.abc import Mapping
from itertools import islice

from hostler.core.state.subnets import SubnetNotice
from hostler.ports import HeardNotices

MOST_KNOWN = 100_000
"""Notices of one place that are remembered; beyond it those of its last page alone."""
MOST_NEW = 1_000
"""Notices of one look that are told: the last ones."""
MOST_PLACES = 1_024


class NoticeListener:
    """Remembers what each place has shown. Volatile; of a place's first page nothing is new."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], dict[str, None]] = {}

    def new(self, fabric: str, place: str, page: Mapping[str, SubnetNotice]) -> HeardNotices:
        """Notices of this page that no page of the place has shown; a rotated log shows none twice."""
        key = (fabric, place)
        known = self._known.pop(key, None)
        fresh = [] if known is None else [notice for name, notice in page.items() if name not in known]
        both = dict.fromkeys((*(known or ()), *page))
        self._known[key] = both if len(both) <= MOST_KNOWN else dict.fromkeys(page)
        for old in list(islice(self._known, max(0, len(self._known) - MOST_PLACES))):
            del self._known[old]
        return HeardNotices(tuple(fresh[-MOST_NEW:]))
