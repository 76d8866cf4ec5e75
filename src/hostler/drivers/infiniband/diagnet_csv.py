"""Reads `ibdiagnet2.db_csv`, the database that NVIDIA's `ibdiagnet` writes, as a `Discovery`.

Sections stand between START_NAME and END_NAME, each with a header line. NODES tells devices, LINKS joins ports, PORTS
tells width and speed. Values: InfiniBand Architecture Specification, PortInfo; speeds as ibutils names them.
"""

import csv
from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from hostler.core.fabric.discovery import Discovery, FoundDevice, FoundLink, FoundPort
from hostler.core.fabric.rates import Rate
from hostler.drivers.infiniband.page_text import MOST_BYTES, plain

WIDTHS = {1: 1, 2: 4, 4: 8, 8: 12, 16: 2}
SPEEDS = {
    1: "SDR",
    2: "DDR",
    4: "QDR",
    256: "FDR",
    512: "EDR",
    1024: "HDR",
    2048: "NDR",
    4096: "XDR",
    65536: "FDR10",
}
_SWITCH = 2
_WANTED: dict[str, tuple[str, ...]] = {
    "NODES": ("NodeDesc", "NodeType", "NodeGUID"),
    "PORTS": ("NodeGuid", "PortNum", "LinkWidthActv", "LinkSpeedActv"),
    "LINKS": ("NodeGuid1", "PortNum1", "NodeGuid2", "PortNum2"),
}


class _Database(Struct):
    devices: dict[str, FoundDevice] = field(default_factory=dict)
    rates: dict[FoundPort, Rate | None] = field(default_factory=dict)
    links: dict[FoundPort, FoundPort] = field(default_factory=dict)
    wrong: str = ""

    def doubt(self, line: int, what: str) -> None:
        """The first reason why the file may not be all of it."""
        self.wrong = self.wrong or f"line {line}: {what}"


def parse(text: str) -> Discovery:
    """The devices and links of this file. Never raises: what does not fit makes it partial, with the line."""
    if len(text) > MOST_BYTES:
        return Discovery(
            {}, (), f"{len(text):,} characters; at most {MOST_BYTES:,} are read; look from a smaller subnet"
        )
    database = _Database()
    seen = set()
    for section, line, row in _rows(database, text):
        seen.add(section)
        try:
            _take(database, section, line, row)
        except (KeyError, ValueError, IndexError):
            database.doubt(line, f"a line of {section} that cannot be read")
    for section in ("NODES", "LINKS"):
        if section not in seen:
            database.doubt(0, f"no section {section}")
    links = tuple(_joined(database))
    return Discovery(database.devices, links, database.wrong)


def _rows(database: _Database, text: str) -> Iterator[tuple[str, int, Mapping[str, str]]]:
    """Each line of the sections that are read, by the names of its columns."""
    section, header = "", None
    number = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("START_"):
            section, header = line.removeprefix("START_").strip(), None
        elif line.startswith("END_"):
            if line.removeprefix("END_").strip() != section:
                database.doubt(number, f"{plain(line)!r} ends no section")
            section = ""
        elif section in _WANTED and line.strip():
            cells = next(csv.reader([line]), [])
            if header is None:
                header = [cell.strip() for cell in cells]
                if missing := [name for name in _WANTED[section] if name not in header]:
                    database.doubt(number, f"section {section} has no column {', '.join(missing)}")
                continue
            if len(cells) != len(header):
                database.doubt(number, f"{len(cells)} columns where section {section} has {len(header)}")
                continue
            yield section, number, dict(zip(header, cells, strict=True))
    if section:
        database.doubt(number, f"section {section} has no end: the file was cut off")


def _take(database: _Database, section: str, line: int, row: Mapping[str, str]) -> None:
    match section:
        case "NODES":
            guid = _guid(row["NodeGUID"])
            device = FoundDevice(guid, int(row["NodeType"]) == _SWITCH, plain(row["NodeDesc"].strip()))
            if database.devices.setdefault(guid, device) != device:
                database.doubt(line, f"GUID {guid} is told twice")
        case "PORTS":
            width, speed = WIDTHS.get(int(row["LinkWidthActv"], 0)), SPEEDS.get(int(row["LinkSpeedActv"], 0))
            at = FoundPort(_guid(row["NodeGuid"]), int(row["PortNum"]))
            database.rates[at] = Rate(width, speed) if width and speed else None
        case "LINKS":
            a = FoundPort(_guid(row["NodeGuid1"]), int(row["PortNum1"]))
            z = FoundPort(_guid(row["NodeGuid2"]), int(row["PortNum2"]))
            for here, there in ((a, z), (z, a)):
                if database.links.setdefault(here, there) != there:
                    database.doubt(line, f"port {here.number} of {here.guid} is told with two neighbours")


def _joined(database: _Database) -> Iterator[FoundLink]:
    for a, z in database.links.items():
        if a > z or 0 in (a.number, z.number):
            continue
        if unknown := [port.guid for port in (a, z) if port.guid not in database.devices]:
            database.doubt(0, f"a link of {unknown[0]}, which no line of NODES tells")
            continue
        yield FoundLink(a, z, database.rates.get(a))


def _guid(text: str) -> str:
    value = int(text.strip(), 16)
    if not 0 < value < 2**64:
        raise ValueError(text[:40])
    return f"{value:016x}"
