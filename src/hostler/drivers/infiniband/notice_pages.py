"""Reads the traps in a subnet manager's log, and UFM's events, as notices, each by what tells it from all others.

Of a log whatever is no trap is passed over. UFM's page: UFM Enterprise REST API Guide, "Events REST API"; it is a list
of such events, or refused whole by ValueError.
"""

import re
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from hostler.core.state.subnets import NoticeOrigin, SubnetNotice
from hostler.drivers.infiniband.page_text import plain

EVENTS = "/ufmRest/app/events"
MOST_EVENTS = 100_000
MOST_BYTES = 64 * 2**20
"""100,000 events are some 35 MB."""

_STAMP = r"(?P<at>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{6}) \[[0-9A-F]{1,16}\] 0x[0-9a-f]{2} -> "
_TRAP = re.compile(
    _STAMP + r"log_trap_info: Received Generic Notice type:\d{1,3} num:(?P<number>\d{1,5}) \((?P<said>.{1,200})\) "
    r"Producer:\d{1,3} \((?P<by>[^()]{1,40})\) from LID:(?P<lid>\d{1,5})(?: Port (?P<port>\d{1,3}))? TID:0x[0-9a-f]+"
)
_SERVICE = re.compile(
    _STAMP + r'log_notice: Reporting Informational Notice "(?P<said>GID (?P<way>in|out of) service)", '
    r"GID:(?P<gid>[0-9a-f:]{2,45})"
)


def of_log(lines: Iterable[str]) -> dict[str, SubnetNotice]:
    """Traps that opensm wrote down (`log_trap_info`, `log_notice`), by their lines, in their order."""
    return {line: notice for line in lines if (notice := _of_line(line)) is not None}


def _of_line(line: str) -> SubnetNotice | None:
    if (trap := _TRAP.fullmatch(line)) is not None:
        port = f" port {trap['port']}" if trap["port"] else ""
        about = f"{trap['by']}, LID {trap['lid']}{port}"
        return SubnetNotice(NoticeOrigin.manager, int(trap["number"]), plain(trap["said"]), plain(about), trap["at"])
    if (told := _SERVICE.fullmatch(line)) is not None:
        number = 64 if told["way"] == "in" else 65
        return SubnetNotice(NoticeOrigin.manager, number, told["said"], told["gid"], told["at"])
    return None


class _Event(Struct, frozen=True):
    """An event. Newer versions have the number in `event_type`, and what it is about in `type`."""

    id: int
    type: str
    name: str
    event_type: str | None = None
    object_name: str = ""
    timestamp: str = ""


def of_ufm(page: bytes) -> dict[str, SubnetNotice]:
    """Events that UFM lists, by their ids, in its order. Raises ValueError for a page that is no list of them."""
    try:
        events = msgspec.json.decode(page, type=tuple[_Event, ...])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        begins = plain(page[:80].decode(errors="replace"))
        raise ValueError(f"UFM's {EVENTS} is no list of events ({error}): {begins!r}") from error
    if len(events) > MOST_EVENTS:
        raise ValueError(f"UFM lists {len(events):,} events; at most {MOST_EVENTS:,} are read; have it keep fewer")
    return {str(event.id): _of_event(event) for event in events}


def _of_event(event: _Event) -> SubnetNotice:
    number = event.event_type if event.event_type is not None else event.type
    if not (number.isascii() and number.isdecimal() and len(number) <= 6):
        raise ValueError(f"UFM's event {event.id} has no number as its type: {plain(number)!r}")
    return SubnetNotice(
        NoticeOrigin.ufm, int(number), plain(event.name), plain(event.object_name), plain(event.timestamp)
    )
