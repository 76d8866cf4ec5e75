"""Reads CSV documents of NVIDIA's UFM Telemetry: counters, state and module temperature of the ports of a network.

Columns: UFM Enterprise User Manual, "Low-Frequency (Secondary) Telemetry Fields" and "High-Frequency (Primary)
Telemetry Fields", as `/csv/xcset/low_freq_debug` and `/csv/cset/converted_enterprise` have them. A document is read
whole or refused.
"""

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping

from hostler.core.fabric.discovery import FoundPort
from hostler.core.state.links import PortReading
from hostler.drivers.infiniband.page_text import MOST_BYTES, plain

MOST_ROWS, MOST_COLUMNS = 400_000, 1_000
MOST_COUNT = 2**63 - 1
GUID, PORT = ("Node_GUID", "node_guid"), ("Port_Number", "port_num")
DOWNED = ("LinkDownedCounterExtended", "Link_Down")
SYMBOLS = ("SymbolErrorCounterExtended", "Symbol_Errors", "phy_symbol_errors")
HEAT = ("Module_Temperature", "CableInfo.Temperature")
STATE = ("phy_state",)
SERIAL = ("Cable_SN",)

_UP = frozenset({"5", "linkup", "link up"})
_DOWN = frozenset({"1", "2", "3", "4", "6", "sleep", "polling", "disabled", "training", "linkerrorrecovery"})
"""Physical states by the numbers of the InfiniBand Architecture Specification's PortPhysicalState: 5 is LinkUp."""
_NOTHING = frozenset({"", "n/a", "na", "none", "nan"})
_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})")
_NUMBER = re.compile(r"-?\d{1,19}(?:\.\d{1,9})?")
_WORD = re.compile(r"[A-Za-z0-9._\-]{3,40}")


def parse(page: bytes) -> dict[FoundPort, PortReading]:
    """The readings of the document. Raises ValueError with the line and what is wrong; then nothing of it counts."""
    if len(page) > MOST_BYTES:
        raise ValueError(f"{len(page):,} bytes; at most {MOST_BYTES:,} are read")
    rows = csv.reader(io.StringIO(page.decode("utf-8-sig"), newline=""), strict=True)
    ports: dict[FoundPort, PortReading] = {}
    try:
        for line, fields in _rows(rows):
            port = FoundPort(_guid(fields, line), _number(fields, line))
            if port.number == 0:
                continue  # a switch's own processor, where no cable is
            if port in ports:
                raise ValueError(f"line {line}: port {port.number} of {port.guid} is told twice")
            ports[port] = _reading(fields, line)
    except csv.Error as error:
        raise ValueError(f"line {rows.line_num}: {error}") from error
    return ports


def _rows(rows: "Iterator[list[str]]") -> Iterator[tuple[int, Mapping[str, str]]]:
    """Lines with their fields by column. Raises ValueError for columns that are missing, double or too many."""
    names: list[str] = []
    for line, row in enumerate(rows, start=1):
        if not row or row == ["# EOF"]:
            continue
        if line > MOST_ROWS:
            raise ValueError(f"more than {MOST_ROWS:,} lines")
        if not names:
            names = _columns(row, line)
        elif len(row) != len(names):
            raise ValueError(f"line {line}: {len(row)} fields under {len(names)} columns: the page was cut off")
        else:
            yield line, dict(zip(names, row, strict=True))
    if not names:
        raise ValueError("the document is empty")


def _columns(row: list[str], line: int) -> list[str]:
    names = [name.strip() for name in row]
    wanted = (GUID, PORT)
    missing = [some[0] for some in wanted if not any(name in names for name in some)]
    if missing or len(names) > MOST_COLUMNS:
        raise ValueError(f"line {line}: no column {missing[0]}" if missing else f"more than {MOST_COLUMNS:,} columns")
    known = [name for name in names if any(name in some for some in (*wanted, DOWNED, SYMBOLS, HEAT, STATE, SERIAL))]
    if len(known) != len(set(known)):
        raise ValueError(f"line {line}: a column is there twice")
    return names


def _reading(fields: Mapping[str, str], line: int) -> PortReading:
    heat = _value(fields, HEAT, line)
    serial = _text(fields, SERIAL)
    return PortReading(
        link_downed=_count(fields, DOWNED, line),
        symbol_errors=_count(fields, SYMBOLS, line),
        state=_state(_text(fields, STATE)),
        temperature_c=heat if heat is not None and -60.0 < heat < 200.0 and heat != 0 else None,
        module=serial if _WORD.fullmatch(serial) else "",
    )


def _text(fields: Mapping[str, str], names: tuple[str, ...]) -> str:
    """The field's words; "" where it has none, or only says that it has none."""
    for name in names:
        if (text := fields.get(name, "").strip()).lower() not in _NOTHING:
            return text
    return ""


def _value(fields: Mapping[str, str], names: tuple[str, ...], line: int) -> float | None:
    text = _text(fields, names)
    if not text:
        return None
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise ValueError(f"line {line}: {plain(text)!r} is no number")
    return float(text)


def _count(fields: Mapping[str, str], names: tuple[str, ...], line: int) -> int | None:
    text = _text(fields, names)
    if not text:
        return None
    whole = text.removesuffix(".0")
    if not (whole.isascii() and whole.isdecimal()) or len(whole) > 19 or int(whole) > MOST_COUNT:
        raise ValueError(f"line {line}: {plain(text)!r} is no count")
    return int(whole)


def _guid(fields: Mapping[str, str], line: int) -> str:
    text = _text(fields, GUID)
    found = _HEX.fullmatch(text)
    if found is None:
        raise ValueError(f"line {line}: {plain(text)!r} is no GUID")
    return f"{int(found[1], 16):016x}"


def _number(fields: Mapping[str, str], line: int) -> int:
    text = _text(fields, PORT)
    if not (text.isascii() and text.isdecimal()) or len(text) > 3 or int(text) > 254:
        raise ValueError(f"line {line}: {plain(text)!r} is no port")
    return int(text)


def _state(text: str) -> str:
    word = text.lower()
    return "active" if word in _UP else "down" if word in _DOWN else ""
