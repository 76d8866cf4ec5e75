"""The outer form of kernel-log lines: what may stand before a message, and PCI addresses in it."""

import re

LINE_LIMIT_CHARS = 1_024
"""How much of a line is kept as evidence."""

PCI = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?"
"""A PCI address as drivers print it: domain optional (up to eight digits), function optional."""

_PREFIX_LIMIT_CHARS = 256
_PREFIX = re.compile(
    r"""\s*(?:(?:
        <\d{1,3}>                                       # syslog priority
      | \d{1,6},\d{1,20},\d{1,20},[^;\s]{0,80};           # a record of /dev/kmsg
      | \[[^\[\]]{0,48}\]                                # dmesg's time, the caller
      | kern\s*:\s*\w{1,10}\s*:                          # dmesg --decode
      | \d{4}-\d\d-\d\d[T ][\d:.,]{5,20}(?:Z|[+-]\d\d:?\d\d)?
      | [A-Z][a-z]{2}\s{1,2}\d{1,2}\s\d\d:\d\d:\d\d       # syslog's time
      | (?:[\w.-]{1,64}\s{1,4})?kernel(?:\[\d+\])?:       # host and writer in the journal
    )\s{0,32}){0,8}""",
    re.VERBOSE,
)


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
