"""Reads kernel-log text: a row's trigger first, then its pattern, and at last whole reports.

A new kind of line is a new row of a family's table. Text may hold several lines; anything may be in it, and nothing
raises. Only lines with a trigger are looked at, so that ordinary lines cost a few searches for literals.
"""

from msgspec import Struct

from hostler.core.diagnose import sxid, xid
from hostler.core.diagnose.decoded import Decoded
from hostler.core.diagnose.families.accelerator import DRIVER, FABRIC_MANAGER, NEURON
from hostler.core.diagnose.families.hardware import HARDWARE
from hostler.core.diagnose.families.host import HOST
from hostler.core.diagnose.families.network import ADAPTER, LINK, NFS, PEERMEM
from hostler.core.diagnose.families.pcie import PCIE
from hostler.core.diagnose.families.storage import STORAGE
from hostler.core.diagnose.family import Family, MessageRow, read_line
from hostler.core.diagnose.line import LogLine, line_at, lines_with, printable
from hostler.core.diagnose.line_filter import passes
from hostler.core.diagnose.reports import join

TEXT_LIMIT_CHARS = 65_536
"""Longer text is read up to here; `judge` says so where it happens."""

SHORT_CHARS = 4_096
"""Up to here one look at all words is cheaper than a search for each trigger."""

FAMILIES = (DRIVER, PEERMEM, ADAPTER, HOST, STORAGE, PCIE, HARDWARE, NFS, FABRIC_MANAGER, LINK, NEURON)
"""In the order in which they are tried: the first row that reads a line has it."""

_REPORT_STARTS = ("NVRM: Xid (", "nvidia-nvswitch")


class _Tried(Struct, frozen=True):
    order: int
    family: Family
    row: MessageRow


def _by_trigger() -> tuple[tuple[str, tuple[_Tried, ...]], ...]:
    table: dict[str, tuple[_Tried, ...]] = {}
    rows = [(family, row) for family in FAMILIES for row in family.rows]
    for order, (family, row) in enumerate(rows):
        table[row.trigger] = (*table.get(row.trigger, ()), _Tried(order, family, row))
    return tuple(table.items())


TRIGGERS = _by_trigger()


def decode(text: str) -> tuple[Decoded, ...]:
    """The faults that `text` reports, in the order of its lines; () for ordinary lines.

    Repeated lines give repeated values, lines of one report give one; folding them further is the caller's affair.
    """
    if is_ordinary(text):
        return ()
    text = text[:TEXT_LIMIT_CHARS]
    found: list[tuple[int, Decoded]] = []
    if "NVRM:" in text:
        found += xid.read(text)
    if "SXid" in text:
        found += sxid.read(text)
    found += _read_rows(text)
    if not found:
        return ()
    found.sort(key=_offset)
    return join(text, found)


def is_ordinary(text: str) -> bool:
    """Whether it certainly reports nothing, in whole or in part; told by its words, and never of a long text."""
    return len(text) <= SHORT_CHARS and not passes(text.encode("utf-8", "replace"))


def malformed(text: str, decoded: tuple[Decoded, ...]) -> str:
    """The first line of a kernel's own text that starts like an Xid or SXid and cannot be read as one, else "".

    `decoded` is what `decode` has found in the text: a line that is all of it is not decoded twice.
    """
    text = text[:TEXT_LIMIT_CHARS]
    if "Xid (" not in text:
        return ""
    for at in lines_with(text, "Xid ("):
        line = line_at(text, at)
        if line.message.startswith(_REPORT_STARTS) and not (decoded if line.message == text else decode(line.message)):
            return printable(line.message)
    return ""


def _read_rows(text: str) -> list[tuple[int, Decoded]]:
    """Read the lines that hold a trigger by the families' rows."""
    lines: dict[int, LogLine] = {}
    tried: dict[int, list[_Tried]] = {}
    for trigger, rows in TRIGGERS:
        if trigger in text:
            for at in lines_with(text, trigger):
                start = text.rfind("\n", 0, at) + 1
                if start not in lines:
                    lines[start] = line_at(text, at)
                tried.setdefault(start, []).extend(rows)
    found: list[tuple[int, Decoded]] = []
    for start, row_list in tried.items():
        row_list.sort(key=_order)
        decoded = (one for row in row_list if (one := read_line(row.family, row.row, lines[start])) is not None)
        if (first := next(decoded, None)) is not None:
            found.append((start, first))
    return found


def _order(tried: _Tried) -> int:
    return tried.order


def _offset(pair: tuple[int, Decoded]) -> int:
    return pair[0]
