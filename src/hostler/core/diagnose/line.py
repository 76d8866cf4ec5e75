"""The outer form of kernel-log lines: what may stand before a message, and PCI addresses in it."""

import re
from collections.abc import Iterator

from msgspec import Struct

LINE_LIMIT_CHARS = 1_024
"""How much of a line is kept as evidence."""

READ_LIMIT_CHARS = 4_096
"""How much of a line is read; the kernel's own limit is about 1,000."""

PCI = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?"
"""A PCI address as drivers print it: domain optional (up to eight digits), function optional."""

_PREFIX_LIMIT_CHARS = 256
_PREFIX = re.compile(
    r"""\s{0,64}(?:(?:
        <\d{1,3}>                                       # syslog priority
      | \d{1,6},\d{1,20},\d{1,20},[^;\s]{0,80};           # a record of /dev/kmsg
      | \[[^\[\]\n]{0,48}\]                              # dmesg's time, the caller, a level
      | kern\s*:\s*\w{1,10}\s*:                          # dmesg --decode
      | (?:[A-Z][a-z]{2}\ )?\d{4}-\d\d-\d\d[T ][\d:.,]{5,20}(?:Z|[+-]\d\d:?\d\d|\ [A-Z]{3,5}(?=\ ))?
      | [A-Z][a-z]{2}\s{1,2}\d{1,2}\s\d\d:\d\d:\d\d(?:\.\d{1,9})?  # syslog's time
      | \d{9,12}\.\d{1,9}                                  # the journal's time since 1970
      | 1\s(?=\d{4}-)                                    # the version of RFC 5424, then its writer
      | [\w.-]{1,64}\skernel\s(?:-|\d{1,10})\s-\s(?:-|\[[^\[\]\n]{0,80}\])
      | (?:[\w.-]{1,64}\s{1,4})?kernel(?:\[\d{1,10}\])?:  # host and writer in the journal
      | (?:[\w.-]{1,64}\s{1,4}kernel:\s)?message\ repeated\ \d{1,9}\ times:\ \[
    )[^\S\n]{0,32}){0,10}""",
    re.VERBOSE | re.ASCII,
)
_REPEATED = re.compile(r"message repeated (\d{1,9}) times: \[", re.ASCII)


class LogLine(Struct, frozen=True, gc=False):
    """One line of a text: where it starts there, its message without what loggers put before it, how often it came."""

    offset: int
    message: str
    count: int = 1


def line_at(text: str, position: int) -> LogLine:
    """The line of `text` that holds `position`, read up to READ_LIMIT_CHARS."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    end = min(len(text) if end < 0 else end, start + READ_LIMIT_CHARS)
    prefix = _PREFIX.match(text, start, min(end, start + _PREFIX_LIMIT_CHARS))
    begin = prefix.end() if prefix else start
    message = text[begin:end].rstrip("\r \t")
    count = repeats(text, start, begin)
    return LogLine(start, message.removesuffix("]").rstrip() if count > 1 else message, count)


def lines_with(text: str, trigger: str) -> Iterator[int]:
    """A position in each line of `text` that holds `trigger`."""
    at = text.find(trigger)
    while at >= 0:
        yield at
        end = text.find("\n", at)
        at = text.find(trigger, end) if end >= 0 else -1


def opens_line(text: str, start: int) -> bool:
    """Whether a message at `start` is what the kernel wrote, not a quotation inside somebody else's message.

    Before it may stand only what loggers put there: priority, time, host, "kernel:".
    """
    line_start = text.rfind("\n", 0, start) + 1
    if line_start == start:
        return True
    if start - line_start > _PREFIX_LIMIT_CHARS:
        return False
    return _PREFIX.fullmatch(text, line_start, start) is not None


def repeats(text: str, line_start: int, message_start: int) -> int:
    """How often a logger says that the message came: the N of `message repeated N times: [`, else 1."""
    if message_start - line_start < len("message repeated 1 times: ["):
        return 1
    found = _REPEATED.search(text, line_start, min(message_start, line_start + _PREFIX_LIMIT_CHARS))
    return max(1, int(found[1])) if found else 1


def normal_pci(address: str) -> str:
    """The address as domain:bus:device, lower case: "00000000:3B:00.0" and "3b:00" are "0000:3b:00"."""
    if len(address) == len("0000:3b:00"):
        return address.lower()
    parts = address.partition(".")[0].lower().split(":")
    domain = parts[-3] if len(parts) == 3 else "0"
    return f"{int(domain, 16):04x}:{parts[-2]}:{parts[-1]}"


def printable(text: str) -> str:
    r"""The text with control characters and broken encoding written out (`\x1b`): safe to store and show."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
