"""The point-to-point list of a fabric as CSV: read whole or refused whole, each problem with its line.

One line is one cable. Columns, in any order: `a_node`, `a_port`, `z_node`, `z_port`; where known `a_rack`, `a_u`,
`a_model`, `a_guid` and the same of `z`, and `rate` ("4xNDR"). A port of digits, also with a slash, is a switch's.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from hostler.core.fabric.design import Cable, Design, Device, DeviceKind, Port, ends
from hostler.core.fabric.rates import LANE_GBPS, Rate, rate_of
from hostler.core.state.fabrics import Model
from hostler.core.state.input_problems import InvalidInputError, Problem

MOST_BYTES = 64 * 2**20
"""100,000 cables with every column take 15 MB."""

MOST_PROBLEMS = 50
"""So many are told; a list in the wrong shape has one in each line."""

NEEDED = ("a_node", "a_port", "z_node", "z_port")
KNOWN = (*NEEDED, "a_rack", "a_u", "a_model", "a_guid", "z_rack", "z_u", "z_model", "z_guid", "rate")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}")
_PORT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-/]{0,31}")
_SWITCH_PORT = re.compile(r"\d+(/\d+)*")
_PLACE = re.compile(r"[\w .\-/]{0,64}")
_GUID = re.compile(r"(?:0x)?([0-9a-fA-F]{16})")


class _Lines(list[str]):
    """Lines as a csv.writer gives them."""

    write = list[str].append


class _Seen(Struct):
    """A device as its lines have told it so far, and on which line it was told first."""

    kind: DeviceKind
    line: int
    said: dict[str, str] = field(default_factory=dict)
    guids: dict[str, str] = field(default_factory=dict)


class _Reader:
    def __init__(self, where: str, models: Mapping[str, Model]) -> None:
        self._where = where
        self._models = models
        self._devices: dict[str, _Seen] = {}
        self._taken: dict[Port, int] = {}
        self._owner: dict[str, Port] = {}
        self.cables: list[Cable] = []
        self.problems: list[Problem] = []

    def refuse(self, line: int, what: str, instead: str) -> None:
        self.problems.append(Problem(self._where, line, what, instead))

    def take(self, line: int, row: Mapping[str, str]) -> None:
        """One cable, or why it is none."""
        before = len(self.problems)
        a, z = self._end(line, row, "a"), self._end(line, row, "z")
        rate = self._rate(line, row.get("rate", ""))
        if len(self.problems) > before:
            return
        if a == z:
            self.refuse(line, f"a cable from {a} to itself", "name the port at its other end")
            return
        for port in (a, z):
            if (first := self._taken.setdefault(port, line)) != line:
                self.refuse(line, f"port {port} is in the cable of line {first} too", "a port takes one cable")
        self.cables.append(Cable(*ends(a, z), rate, line))

    def devices(self) -> dict[str, Device]:
        return {
            name: Device(
                name,
                seen.kind,
                seen.said.get("rack", ""),
                seen.said.get("u", ""),
                seen.said.get("model", ""),
                tuple(sorted(seen.guids.items())),
            )
            for name, seen in self._devices.items()
        }

    def _end(self, line: int, row: Mapping[str, str], side: str) -> Port:
        name, label = row.get(f"{side}_node", ""), row.get(f"{side}_port", "")
        if not _NAME.fullmatch(name):
            self.refuse(line, f"{side}_node {name[:80]!r}", "up to 64 letters, digits, dots, dashes and underscores")
        if not _PORT.fullmatch(label):
            self.refuse(line, f"{side}_port {label[:80]!r}", 'a port as "mlx5_0", "5" or "1/3"')
        model = self._models.get(row.get(f"{side}_model", ""))
        port = Port(name, model.port(label) if model else label)
        if port.port in ("0", "-1"):
            self.refuse(line, f"{port}", "port 0 is a switch's own processor and takes no cable; ports count from 1")
        self._describe(line, port, {key: row.get(f"{side}_{key}", "") for key in ("rack", "u", "model")})
        if guid := row.get(f"{side}_guid", ""):
            self._identify(line, port, guid)
        return port

    def _describe(self, line: int, port: Port, said: Mapping[str, str]) -> None:
        kind = DeviceKind.switch if _SWITCH_PORT.fullmatch(port.port) else DeviceKind.host
        seen = self._devices.setdefault(port.device, _Seen(kind, line))
        if seen.kind is not kind:
            other = f"line {seen.line} has it as a {seen.kind}"
            self.refuse(line, f"{port} is a port of a {kind}, and {other}", "name each device's ports in one manner")
        for key, value in said.items():
            if not _PLACE.fullmatch(value):
                self.refuse(line, f"{key} {value[:80]!r} of {port.device}", "up to 64 letters, digits and blanks")
            elif value and (first := seen.said.setdefault(key, value)) != value:
                self.refuse(line, f"{key} of {port.device} is {value!r} here and {first!r} before", "keep one of them")

    def _identify(self, line: int, port: Port, text: str) -> None:
        written = _GUID.fullmatch(text)
        if written is None:
            self.refuse(line, f"GUID {text[:40]!r} of {port.device}", "write 16 hexadecimal digits")
            return
        guid = written[1].lower()
        switch = self._devices[port.device].kind is DeviceKind.switch
        owner = Port(port.device, "") if switch else port
        if (first := self._owner.setdefault(guid, owner)) != owner:
            self.refuse(line, f"GUID {guid} of {owner} is that of {first} too", "a GUID belongs to one device")
        guids = self._devices[port.device].guids
        if (known := guids.setdefault(owner.port, guid)) != guid:
            self.refuse(line, f"GUID of {owner} is {guid} here and {known} before", "keep one of them")

    def _rate(self, line: int, text: str) -> Rate | None:
        if not text:
            return None
        if (rate := rate_of(text)) is None:
            self.refuse(line, f"rate {text[:40]!r}", f'write "4xNDR"; speeds are {", ".join(LANE_GBPS)}')
        return rate


def parse_csv(data: bytes, where: str, models: Mapping[str, Model] | None = None) -> Design:
    """The design in these bytes, which are called `where`. Raises InvalidInputError with each line that is wrong."""
    return of_rows(_rows(text_of(data, where), where), where, models)


def of_rows(
    rows: Iterable[tuple[int, Mapping[str, str]]],
    where: str,
    models: Mapping[str, Model] | None = None,
    problems: Iterable[Problem] = (),
) -> Design:
    """The design of these lines, each with its number, by canonical columns; `problems` were found before.

    Raises InvalidInputError where anything is wrong.
    """
    reader = _Reader(where, models or {})
    for line, row in rows:
        reader.take(line, row)
    reader.problems.extend(problems)
    if reader.problems:
        raise InvalidInputError(_bounded(reader.problems, where))
    return Design(reader.devices(), tuple(reader.cables), dict(models or {}))


def render_csv(design: Design) -> str:
    """The same design as CSV, cables in the order of their ports: what `parse_csv` reads back."""
    lines = _Lines()
    writer = csv.DictWriter(lines, KNOWN, lineterminator="\n")
    writer.writeheader()
    for cable in sorted(design.cables, key=lambda c: (c.a, c.z)):
        row = {"rate": str(cable.rate) if cable.rate else ""}
        for side, port in (("a", cable.a), ("z", cable.z)):
            device = design.devices[port.device]
            guids = dict(device.guids)
            guid = guids.get("") if device.kind is DeviceKind.switch else guids.get(port.port)
            row |= {
                f"{side}_node": port.device,
                f"{side}_port": port.port,
                f"{side}_rack": device.rack,
                f"{side}_u": device.unit,
                f"{side}_model": device.model,
                f"{side}_guid": guid or "",
            }
        writer.writerow(row)
    return "".join(lines)


def text_of(data: bytes, where: str) -> str:
    """The text of a file. Raises InvalidInputError for one that is too large, or in another encoding than UTF-8."""
    if len(data) > MOST_BYTES:
        raise refused(where, 0, f"{len(data):,} bytes", f"at most {MOST_BYTES:,} are read; split the fabric")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise refused(where, 1, "UTF-16, as Excel saves Unicode text", 'save as "CSV UTF-8"')
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise refused(where, line, "bytes that are not UTF-8", 'save as "CSV UTF-8"') from None
    if "\0" in text:
        raise refused(where, text[: text.index("\0")].count("\n") + 1, "a zero byte", "give a text file")
    return text


def cells_of(text: str, where: str) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line that has any, with its number. Raises InvalidInputError where it is no CSV."""
    reader = csv.reader((f"{line}\n" for line in text.split("\n")), strict=True)
    try:
        for cells in reader:
            values = [cell.strip() for cell in cells]
            if any(values):
                yield reader.line_num, values
    except csv.Error as error:
        raise refused(where, reader.line_num, f"no CSV: {error}", "close each quotation mark") from None


def _rows(text: str, where: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Each line that says something, with its number. Lines that begin with # are remarks."""
    header: list[str] = []
    for line, values in cells_of(text, where):
        if values[0].startswith("#"):
            continue
        if not header:
            header = [value.lower() for value in values]
            _check_columns(header, where, line)
        else:
            check_width(values, header, where, line)
            yield line, dict(zip(header, values, strict=True))
    if not header:
        _check_columns(header, where)


def check_width(values: list[str], header: list[str], where: str, line: int) -> None:
    """Raises InvalidInputError where a line has more or fewer cells than the header."""
    if len(values) != len(header):
        what = f"{len(values)} columns where the first line has {len(header)}"
        raise refused(where, line, what, "give each column a place, empty or not")


def _check_columns(header: list[str], where: str, line: int = 1) -> None:
    if len(header) == 1 and ";" in header[0]:
        raise refused(where, line, "columns separated by semicolons", 'separate them by commas ("CSV UTF-8")')
    if missing := [name for name in NEEDED if name not in header]:
        raise refused(where, line, f"no column {', '.join(missing)}", f"the columns are {', '.join(KNOWN)}")
    if strange := [name for name in header if name not in KNOWN]:
        raise refused(where, line, f"columns {', '.join(strange)[:200]!r}", f"the columns are {', '.join(KNOWN)}")
    if len(set(header)) < len(header):
        raise refused(where, line, "a column twice", "keep one of each")


def refused(where: str, line: int, what: str, instead: str) -> InvalidInputError:
    """The error for a file that cannot be read further."""
    return InvalidInputError((Problem(where, line, what, instead),))


def _bounded(problems: list[Problem], where: str) -> tuple[Problem, ...]:
    if (more := len(problems) - MOST_PROBLEMS) <= 0:
        return tuple(problems)
    return (*problems[:MOST_PROBLEMS], Problem(where, 0, f"and {more} more", "correct these first"))
