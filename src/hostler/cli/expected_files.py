"""Reads inventories of expected nodes, CSV or YAML: each entry with its line, refused whole with all wrong lines."""

import csv
import io
from collections.abc import Iterator
from typing import Any

from hostler.cli.input_files import read_text
from hostler.core.policy.yaml_tree import YamlTree, read
from hostler.core.state.expected import COMPARED, LISTS
from hostler.core.state.input_problems import InvalidInputError, Problem

LINES_MAX = 20_000
FIELD_MAX = 1_000
_NEEDED = ("serial", "macs")


def read_expected_file(file: str) -> list[dict[str, Any]]:
    """The entries of a file, as the API takes them. Raises CommandError, InvalidInputError."""
    text = read_text(file)
    name = file.rpartition("/")[2][:100]
    return _of_yaml(name, text) if file.endswith((".yaml", ".yml")) else _of_csv(name, text)


def _of_csv(name: str, text: str) -> list[dict[str, Any]]:
    """Rows below a header line that names the columns; several names stand in one cell, with spaces between them."""
    rows = _rows(name, text)
    header = next(rows, (1, []))[1]
    problems = [
        Problem(name, 1, f"no column '{column[:60]}' is known", f"name columns {', '.join(COMPARED)}")
        for column in header
        if column not in COMPARED
    ]
    problems += [Problem(name, 1, f"no column '{one}'", "add it") for one in _NEEDED if one not in header]
    if len(set(header)) < len(header):
        problems.append(Problem(name, 1, "a column is named twice", "name each once"))
    if problems:
        raise InvalidInputError(tuple(problems[:50]))
    entries: list[dict[str, Any]] = []
    for line, cells in rows:
        if len(cells) != len(header):
            problems.append(Problem(name, line, f"{len(cells)} fields, the header has {len(header)}", "write them all"))
            continue
        entries.append(_entry(f"{name}:{line}", dict(zip(header, cells, strict=True)), problems, (name, line)))
    if problems:
        raise InvalidInputError(tuple(problems[:50]))
    return entries


def _rows(name: str, text: str) -> Iterator[tuple[int, list[str]]]:
    """Each row that is not empty, stripped, with the line on which it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    before = 0
    try:
        for row in reader:
            line, before = before + 1, reader.line_num
            if line > LINES_MAX:
                raise InvalidInputError((Problem(name, line, f"more than {LINES_MAX} lines", "split it"),))
            if any(cell.strip() for cell in row):
                yield line, [cell.strip() for cell in row]
    except csv.Error as error:
        raise InvalidInputError((Problem(name, before + 1, str(error), "correct the quotes there"),)) from error


def _entry(where: str, cells: dict[str, Any], problems: list[Problem], at: tuple[str, int]) -> dict[str, Any]:
    entry = {key: value for key, value in cells.items() if value not in ("", None)}
    for field in LISTS:
        names = entry.get(field, "")
        if isinstance(names, str) and (names or field in _NEEDED):
            entry[field] = names.replace(";", " ").split()
    unit = entry.get("u", 0)
    if isinstance(unit, str):
        if not unit.isascii() or not unit.isdecimal() or len(unit) > 4:
            problems.append(Problem(*at, f"u {unit[:40]!a} is no number", "write the lowest rack unit"))
            unit = "0"
        entry["u"] = int(unit)
    return {"serial": "", **entry, "where": where}


def _of_yaml(name: str, text: str) -> list[dict[str, Any]]:
    """The list under `nodes`, each entry with its line."""
    found = read(name, text).entries
    if set(found) != {"nodes"} or not isinstance(found["nodes"][1].value, list):
        raise InvalidInputError((Problem(name, 1, "no list under the one key 'nodes'", "write nodes: [{serial: …}]"),))
    problems: list[Problem] = []
    entries = [_yaml_entry(name, one, problems) for one in found["nodes"][1].items]
    if problems:
        raise InvalidInputError(tuple(problems[:50]))
    return entries


def _yaml_entry(name: str, one: YamlTree, problems: list[Problem]) -> dict[str, Any]:
    if not isinstance(one.value, dict):
        problems.append(Problem(name, one.line, "an entry is no mapping", "write {serial: …, macs: […]}"))
        return {}
    for key, (line, tree) in one.entries.items():
        if why := _misfit(key, tree.value):
            problems.append(Problem(name, line, f"{str(key)[:60]}: {why}", f"fields are {', '.join(COMPARED)}"))
    return _entry(f"{name}:{one.line}", one.value, problems, (name, one.line))


def _misfit(key: str, value: Any) -> str:
    """Why the value is none of this field, "" where it is one."""
    if key not in COMPARED:
        return "is no field of an expected node"
    if key == "u":
        return "" if isinstance(value, int) and not isinstance(value, bool) else "is no whole number"
    if key in LISTS:
        fits = isinstance(value, list) and all(isinstance(one, str) and len(one) <= FIELD_MAX for one in value)
        return "" if fits else "is no list of texts; put each name into quotes"
    fits = isinstance(value, str) and len(value) <= FIELD_MAX
    return "" if fits else "is no text; put it into quotes"
