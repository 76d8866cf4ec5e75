"""Reads forwarding tables of a subnet's switches: what `dump_fts` (infiniband-diags) prints, and opensm's dump file.

A block a switch: a head with its GUID, a row for each LID with the out port, and the count of rows. A block whose count
does not fit was cut off, and its switch has no table; what contradicts itself makes the page one without tables. A page
is read as it comes, in as much memory as its tables take: 4,096 hosts print a gigabyte, of which 90 MB are tables.
"""

import re
from array import array
from sys import byteorder

from msgspec import Struct, field

from hostler.core.fabric.discovery import LID_MOST, NO_PORT, Forwarding
from hostler.drivers.infiniband.page_text import MOST_BYTES, plain

MOST_SWITCHES = 8192
_HEAD = re.compile(r"Unicast lids \[[0-9a-fx]+-[0-9a-fx]+\] of switch [^'\"(]*?guid 0x([0-9a-f]{16}) \(.*\):\s*")
_ROW = re.compile(r"0x([0-9a-f]{4}) (\d{3})(?: .*)?")
_PORT = re.compile(r" (?:: \(|# )(?:Channel Adapter|Router) portguid 0x([0-9a-f]{16}): ")
_END = re.compile(r"(\d{1,6}) (?:valid )?lids dumped\s*")
_RUN = re.compile(rb"(?m)^(?:0x[0-9a-f]{4} (?:[01]\d\d|2[0-4]\d|25[0-5]) \n)+")
"""Rows as `dump_fts --no_dests` prints them, nine in ten of all that is read: 12 bytes each, read by columns."""
_ROW_BYTES = 12
MOST_LINE = 4096
TOO_LONG = f"a line of more than {MOST_LINE:,} characters is nothing that dump_fts prints"
_TITLES = frozenset({"", "Lid  Out   Destination", "Port     Info"})


class _Page(Struct):
    tables: dict[str, bytes] = field(default_factory=dict)
    lids: dict[str, int] = field(default_factory=dict)
    switch: str = ""
    rows: dict[int, int] = field(default_factory=dict)
    size: int = 0
    line: int = 0
    missing: list[str] = field(default_factory=list)


class _ContradictionError(ValueError):
    """A page of which nothing is believed."""


def parse(text: str) -> Forwarding:
    """The tables on this page. Never raises: what is missing, or why nothing is believed, stands in `partial`."""
    if len(text) > MOST_BYTES:
        return Forwarding(partial=f"{len(text):,} characters of forwarding tables; at most {MOST_BYTES:,} are read")
    reader = TableReader()
    reader.feed(text.encode(errors="replace"))
    return reader.read()


class TableReader:
    """Reads a page piece by piece. Never raises: after a contradiction the rest is passed over."""

    def __init__(self) -> None:
        self._page = _Page()
        self._rest = b""
        self._wrong = ""

    def feed(self, piece: bytes) -> None:
        """Take the next piece, which may end anywhere."""
        if self._wrong:
            return
        whole, newline, rest = (self._rest + piece).rpartition(b"\n")
        self._rest = rest
        try:
            if newline:
                _lines(self._page, whole + newline)
        except _ContradictionError as error:
            self._wrong, self._rest = f"forwarding tables, line {self._page.line:,}: {error}", b""
        if len(self._rest) > MOST_LINE:
            self._wrong, self._rest = f"forwarding tables, line {self._page.line + 1:,}: {TOO_LONG}", b""

    def read(self) -> Forwarding:
        """The tables of all pieces."""
        if self._rest:
            self.feed(b"\n")
        page = self._page
        if self._wrong:
            return Forwarding(partial=self._wrong)
        _cut_off(page)
        if not page.tables and not page.missing:
            return Forwarding(partial="no forwarding table on the page")
        missing = page.missing
        few = f"{len(missing)} switches have no whole forwarding table, {missing[0]} first" if missing else ""
        return Forwarding(page.tables, page.lids, few)


def _lines(page: _Page, text: bytes) -> None:
    """Read whole lines: runs of plain rows by columns, all others one by one."""
    at = 0
    for run in _RUN.finditer(text):
        _one_by_one(page, text[at : run.start()])
        if not (page.switch and _columns(page, run[0])):
            _one_by_one(page, run[0])
        at = run.end()
    _one_by_one(page, text[at:])


def _one_by_one(page: _Page, text: bytes) -> None:
    for line in text.decode("latin-1").split("\n")[:-1]:
        page.line += 1
        if len(line) > MOST_LINE:
            raise _ContradictionError(TOO_LONG)
        _read(page, line)


def _columns(page: _Page, rows: bytes) -> bool:
    """Take rows of 12 bytes at once; False, and nothing taken, where one is no row of this table."""
    count = len(rows) // _ROW_BYTES
    digits = bytearray(4 * count)
    for place in range(4):
        digits[place::4] = rows[2 + place :: _ROW_BYTES]
    lids = array("H", bytes.fromhex(digits.decode()))
    if byteorder == "little":
        lids.byteswap()
    hundreds, tens, ones = (rows[7 + place :: _ROW_BYTES].translate(_VALUE) for place in range(3))
    number = sum(int.from_bytes(column) * weight for column, weight in ((hundreds, 100), (tens, 10), (ones, 1)))
    ports = number.to_bytes(count)  # no port is above 255, so nothing is carried from one byte to the next
    fresh = dict(zip(lids, ports, strict=True))
    if len(fresh) < count or max(lids) > LID_MOST or not page.rows.keys().isdisjoint(fresh):
        return False
    page.rows.update(fresh)
    page.line += count
    return True


_VALUE = bytes(value - 48 if 48 <= value < 58 else 0 for value in range(256))


def _read(page: _Page, line: str) -> None:
    if line.startswith("0x"):
        _row(page, line)
    elif line.startswith("Unicast"):
        _head(page, line)
    elif (end := _END.fullmatch(line)) is not None:
        _end(page, int(end[1]))
    elif line.strip() not in _TITLES:
        raise _ContradictionError(f"{plain(line)!r} is nothing that dump_fts prints")


def _head(page: _Page, line: str) -> None:
    head = _HEAD.fullmatch(line)
    if head is None:
        raise _ContradictionError(f"{plain(line)!r} is no switch")
    _cut_off(page)
    if head[1] in page.tables or head[1] in page.missing:
        raise _ContradictionError(f"switch {head[1]} is told twice")
    if len(page.tables) >= MOST_SWITCHES:
        raise _ContradictionError(f"more than {MOST_SWITCHES:,} switches")
    page.switch, page.rows = head[1], {}


def _row(page: _Page, line: str) -> None:
    row = _ROW.fullmatch(line)
    if row is None or not page.switch:
        raise _ContradictionError(f"{plain(line)!r} is no row of a table")
    lid, port = int(row[1], 16), int(row[2])
    if lid > LID_MOST or port > NO_PORT or lid in page.rows:
        raise _ContradictionError(f"{plain(line)!r} is no row of this table")
    page.rows[lid] = port
    if port != NO_PORT and (told := _PORT.match(line, 10)) is not None:
        page.lids[told[1]] = min(lid, page.lids.get(told[1], lid))


def _end(page: _Page, count: int) -> None:
    """The table is whole where so many rows were read; entries that are no way count as none."""
    ways = {lid: port for lid, port in page.rows.items() if port != NO_PORT}
    if not page.switch or count not in (len(page.rows), len(ways)):
        raise _ContradictionError(
            f"{count} rows are told of switch {page.switch or 'nobody'}, {len(page.rows)} stand there"
        )
    table = bytearray([NO_PORT]) * (max(ways, default=0) + 1)
    for lid, port in ways.items():
        table[lid] = port
    page.size += len(table)
    if page.size > MOST_BYTES:
        raise _ContradictionError(f"tables of more than {MOST_BYTES >> 20} MiB")
    page.tables[page.switch], page.switch = bytes(table), ""


def _cut_off(page: _Page) -> None:
    """The block that has no end is no table."""
    if page.switch:
        page.missing.append(page.switch)
    page.switch = ""
