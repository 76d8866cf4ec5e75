"""Families of kernel-log messages: each a table of rows, and one reading for all of them.

A row is what one `printk` of the kernel's or a driver's source can look like over the versions in use. Named groups of
its pattern become facts (a trailing 2 or 3 tells groups of one name apart). Patterns are anchored at the message's
start, so that a quotation inside somebody else's message is nobody's fault report, and every repetition in them is
bounded, so that reading stays linear.
"""

import re
from collections.abc import Callable
from functools import cache

from msgspec import Struct

from hostler.core.diagnose.decoded import Decoded, Fact
from hostler.core.diagnose.line import LINE_LIMIT_CHARS, PCI, LogLine, normal_pci, printable

INTEGERS = frozenset(
    {"cpu", "pid", "port", "link", "duration_s", "width", "width_capable", "status", "switch", "sector", "bank"}
)
"""Facts that are whole numbers in decimal."""

DEVICE = rf"(?P<bdf>{PCI})"
"""A PCI address that becomes the finding's `pci` (and `bdf` where it names the function)."""

Facts = dict[str, Fact]


class MessageRow(Struct, frozen=True):
    """One kind of message. `trigger` must be in the line for `pattern` to be tried at the message's start.

    `severity` and `action` are words for people and tools (`INVESTIGATE` where nothing better is known), `condition`
    is a row of CONDITIONS. `detail` may refine what was read; None from it means that the line is no fault after all.
    """

    event: str
    trigger: str
    pattern: str
    text: str
    severity: str
    condition: str
    action: str = "INVESTIGATE"
    category: str = ""
    kind: str = ""
    ambiguous: str = ""
    facts: Facts = {}
    detail: Callable[[Decoded], Decoded | None] | None = None


class Family(Struct, frozen=True):
    """Rows of one kind. `writer` matches a user-space writer that may stand before the message."""

    kind: str
    category: str
    rows: tuple[MessageRow, ...]
    writer: str = ""


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern as text would have it: digits are ASCII digits."""
    return re.compile(pattern, re.ASCII)


def read_line(family: Family, row: MessageRow, line: LogLine) -> Decoded | None:
    """Read the line by the row; None where it is another kind of line."""
    message = line.message
    if family.writer and (writer := compiled(family.writer).match(message)):
        message = message[writer.end() :]
    if row.trigger not in message or (found := compiled(row.pattern).match(message)) is None:
        return None
    words = {name.rstrip("23"): value.strip() for name, value in found.groupdict().items() if value is not None}
    facts: Facts = dict(row.facts)
    address = words.pop("bdf", "")
    if address.count(".") == 1:
        facts["bdf"] = address.lower()
    facts |= {name: int(value) if name in INTEGERS else printable(value) for name, value in words.items()}
    decoded = Decoded(
        row.kind or family.kind,
        row.condition,
        row.text,
        row.action,
        pci=normal_pci(address) if address else "",
        severity=row.severity,
        category=row.category or family.category,
        line=printable(line.message[:LINE_LIMIT_CHARS]),
        facts=facts,
        event=row.event,
        count=line.count,
        ambiguous=row.ambiguous,
    )
    return row.detail(decoded) if row.detail else decoded
