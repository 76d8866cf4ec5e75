"""Designs in the field's own lists: the point-to-point sheet of NVIDIA's Cable Validation Tool, and UFM's NDT file.

Both are read whole or refused whole, each problem with its line, into the same design as the canonical list. Hosts get
the model `HOST` and switches `SWITCH`, so that a models file says how their ports are named. Formats: NVIDIA UFM Cable
Validation Tool, "P2P File"; NVIDIA UFM Enterprise, "NDT Plugin".
"""

import re
from collections.abc import Iterator, Mapping

from hostler.core.fabric.design import Design
from hostler.core.fabric.design_csv import cells_of, check_width, of_rows, refused, text_of
from hostler.core.state.fabrics import Model
from hostler.core.state.input_problems import Problem

HOST, SWITCH = "host", "switch"
"""The names of models under which a models file describes the ports of imported hosts and switches."""

NDT_COLUMNS = ("startdevice", "startport", "enddevice", "endport", "linktype")
_NDT_SWITCH = re.compile(r".+IB\d+", re.IGNORECASE)
_NDT_PORT = re.compile(r"(?:Port )?(\d+(?:/\d+)?)", re.IGNORECASE)
_BLADE = re.compile(r"Blade \d+_Port \d+/\d+", re.IGNORECASE)
_HOST_PORT = re.compile(r"[a-zA-Z][\w.\-]{0,31}")

_P2P = {
    "node": ("node name", "node", "name"),
    "port": ("port", "hca/port"),
    "rack": ("rack",),
    "u": ("u", "ru"),
    "type": ("type",),
}
"""Canonical name → how a sheet's columns are called, without the "A-" or "Z-" before them."""
_ADAPTERS = 64
"""Numbers of host ports that are taken for adapters: 1 is mlx5_0."""

Row = tuple[int, dict[str, str]]


def parse_p2p(data: bytes, where: str, models: Mapping[str, Model] | None = None) -> Design:
    """The design of a point-to-point sheet, saved as CSV. Raises InvalidInputError.

    Columns `A-Rack`, `A-U`, `A-Node Name`, `A-Type`, `A-Port` and the same of Z; or Rack, U, Name, HCA/Port twice, of
    which the first side are hosts. A host's port n is the adapter mlx5_(n-1), where its model says nothing else.
    """
    known = {HOST: Model({str(n + 1): f"mlx5_{n}" for n in range(_ADAPTERS)}), **(models or {})}
    problems: list[Problem] = []
    rows = list(_p2p_rows(text_of(data, where), where, known, problems))
    return of_rows(rows, where, known, problems)


def _p2p_rows(text: str, where: str, models: Mapping[str, Model], problems: list[Problem]) -> Iterator[Row]:
    header: list[str] = []
    columns: dict[str, int] = {}
    for line, values in cells_of(text, where):
        if not header:
            header, columns = values, _p2p_columns(values, where, line)
            continue
        check_width(values, header, where, line)
        row = {name: values[place] for name, place in columns.items()}
        kinds = row.pop("a_type", "host").lower(), row.pop("z_type", "switch").lower()
        for side, kind in zip("az", kinds, strict=True):
            if kind not in (HOST, SWITCH):
                problems.append(Problem(where, line, f"{side}_type {kind[:40]!r}", "write Host or Switch"))
            row[f"{side}_model"] = kind
            _unlabelled(row, side, models, problems, (where, line))
        yield line, row


def _p2p_columns(values: list[str], where: str, line: int) -> dict[str, int]:
    """Canonical column → its place. The first side's columns stand before the second's where none says whose it is."""
    if len(values) == 1 and ";" in values[0]:
        raise refused(where, line, "columns separated by semicolons", 'separate them by commas ("CSV UTF-8")')
    found: dict[str, int] = {}
    for place, title in enumerate(values):
        side, dash, rest = title.lower().partition("-")
        name = rest if dash and side in ("a", "z") else title.lower()
        kind = next((kind for kind, words in _P2P.items() if name.strip() in words), "")
        if not kind:
            continue
        for one in (side,) if dash and side in ("a", "z") else ("a", "z"):
            if f"{one}_{kind}" not in found:
                found[f"{one}_{kind}"] = place
                break
        else:
            raise refused(where, line, f"column {title[:40]!r} twice", "keep one for each side")
    needed = [f"{side}_{kind}" for side in "az" for kind in ("node", "port")]
    if missing := [name for name in needed if name not in found]:
        raise refused(where, line, f"no column for {', '.join(missing)}", "A-Node Name, A-Port, Z-Node Name, Z-Port")
    return found


def _unlabelled(
    row: dict[str, str], side: str, models: Mapping[str, Model], problems: list[Problem], at: tuple[str, int]
) -> None:
    """Refuse a panel label of a switch whose model does not say how many ports lie behind one."""
    port, model = row[f"{side}_port"], models.get(row[f"{side}_model"])
    if row[f"{side}_model"] == SWITCH and "/" in port and (model is None or model.per_cage < 2):
        problems.append(
            Problem(*at, f"{side}_port {port[:40]!r}", f"say how ports are labelled: {SWITCH}: per_cage: 2")
        )


def parse_ndt(data: bytes, where: str, models: Mapping[str, Model] | None = None) -> Design:
    """The design of an NDT file. Raises InvalidInputError.

    Columns StartDevice, StartPort, EndDevice, EndPort, LinkType, in any order, with or without blanks in them; only
    links of type Data are taken. A switch's name ends in "IB" and a number, its ports are "Port 21"; a host's ports
    have the names of its interfaces (ibp12s0f0), which the model `HOST` makes adapters of.
    """
    problems: list[Problem] = []
    rows = list(_ndt_rows(text_of(data, where), where, problems))
    return of_rows(rows, where, models, problems)


def _ndt_rows(text: str, where: str, problems: list[Problem]) -> Iterator[Row]:
    header: list[str] = []
    for line, values in cells_of(text, where):
        if not header:
            header = [re.sub(r"[\s#_]", "", value).lower() for value in values]
            if missing := [name for name in NDT_COLUMNS if name not in header]:
                what = f"no column {', '.join(missing)}"
                raise refused(where, line, what, "#StartDevice,StartPort,EndDevice,EndPort,LinkType")
            continue
        check_width(values, header, where, line)
        told = dict(zip(header, values, strict=True))
        if told["linktype"].lower() != "data":
            continue
        ends = (("a", told["startdevice"], told["startport"]), ("z", told["enddevice"], told["endport"]))
        row: dict[str, str] = {}
        for side, device, port in ends:
            is_switch = bool(_NDT_SWITCH.fullmatch(device))
            row |= {f"{side}_node": device, f"{side}_model": SWITCH if is_switch else HOST}
            row[f"{side}_port"] = _ndt_port(port, problems, (where, line), is_switch=is_switch)
        yield line, row


def _ndt_port(port: str, problems: list[Problem], at: tuple[str, int], *, is_switch: bool) -> str:
    if _BLADE.fullmatch(port):
        problems.append(
            Problem(*at, f"port {port[:40]!r} is of a director switch", "write a row for each of its single switches")
        )
        return "1"
    written = _NDT_PORT.fullmatch(port) if is_switch else _HOST_PORT.fullmatch(port)
    if written is None:
        what = "Port 21" if is_switch else "ibp12s0f0"
        problems.append(Problem(*at, f"port {port[:40]!r}", f'write it as "{what}"'))
        return "1" if is_switch else "unread"
    return written[1] if is_switch else written[0]
