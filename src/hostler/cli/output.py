"""Prints answers: columns for people, JSON, YAML and bare names for programs. Data goes to stdout, talk to stderr."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from hostler.cli.list_view import View, field

CELL_MAX = 400
"""Characters of one cell of a table; `json` and `yaml` give everything."""

NOTHING = "–"
SQUEEZED = 10
"""To how many characters a column may be cut on a narrow terminal; a pipe gets everything."""

_COLOURS: dict[str, str] = {
    "production": "green",
    "passed": "green",
    "triage": "yellow",
    "zap_fail": "yellow",
    "debug": "yellow",
    "rma": "magenta",
    "retired": "dim",
    "degraded": "yellow",
    "critical": "red",
    "catastrophic": "bold red",
    "failed": "red",
}


def say(text: str) -> None:
    """Talk to the person: on stderr, so that piped data stays data."""
    print(shown(text, breaks=True), file=sys.stderr, flush=True)


def shown(text: str, breaks: bool = False) -> str:
    """The text without control characters: it comes from machines, and a terminal obeys what it is sent."""
    if text.isprintable():
        return text
    from hostler.core.diagnose.line import printable

    return "\n".join(printable(line) for line in text.split("\n")) if breaks else printable(text)


def emit(items: Sequence[dict[str, Any]], view: View, output: str) -> None:
    """Print a list of objects."""
    match output:
        case "json":
            dump_json({"items": list(items)})
        case "yaml":
            dump_yaml({"items": list(items)})
        case "jsonl":
            for item in items:
                print(json_of(item))
        case "csv":
            csv_rows(items, view)
        case "name":
            for item in items:
                print(shown(view.name_of(item)))
        case _:
            table(view.titles(wide=output == "wide"), [row_of(item, view, output) for item in items], empty=view.empty)


def csv_rows(items: Sequence[dict[str, Any]], view: View, *, titles: bool = True) -> None:
    """Print all columns, one object a line, under their titles."""
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    if titles:
        writer.writerow([column.path for column in view.columns])
    for item in items:
        writer.writerow([cell_of(field(item, column.path)) for column in view.columns])
    sys.stdout.flush()


def cell_of(value: Any) -> str:
    """A value that no spreadsheet takes for a formula, and no terminal for a command."""
    words = value if isinstance(value, list) else ["" if value is None else value]
    text = shown(" ".join(str(word) for word in words))
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text


def row_of(item: dict[str, Any], view: View, output: str) -> list[str]:
    """The cells of one object, on one line each."""
    now = datetime.now(UTC)
    cells = (column.read(item, now) for column in view.shown(wide=output == "wide"))
    return [shown(" ".join(cell.split()))[:CELL_MAX] or NOTHING for cell in cells]


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], empty: str = "none") -> None:
    """Columns: coloured and fitted on a terminal, plain and whole anywhere else."""
    if not rows:
        say(empty)
    elif fancy():
        _rich_table(titles, rows)
    else:
        _plain_table(titles, rows)


def fancy() -> bool:
    """Whether stdout is a terminal that wants colour (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def line_of(cells: Sequence[str], widths: Sequence[int]) -> str:
    """The cells as one line of columns."""
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip()


def widths_of(rows: Iterable[Sequence[str]]) -> list[int]:
    """The width each column needs."""
    return [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]


def dump_json(value: Any) -> None:
    """JSON for programs, and for people who read it."""
    print(json_of(value, indent=2))


def json_of(value: Any, indent: int | None = None) -> str:
    r"""JSON, with what a terminal obeys or hides (C1, RTL, zero width) written as `\uXXXX`: the same to a program."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return "".join(c if c.isprintable() or c == "\n" else _escaped(c) for c in text) if _unsafe(text) else text


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _unsafe(text: str) -> bool:
    return not text.replace("\n", "").isprintable()


def dump_yaml(value: Any) -> None:
    """The same as YAML."""
    import yaml

    text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
    print(yaml.safe_dump(value, sort_keys=False) if _unsafe(text) else text, end="")


def _plain_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = widths_of([titles, *rows])
    print(line_of(titles, widths))
    for row in rows:
        print(line_of(row, widths))


def _rich_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    told = [place for place, cells in enumerate(zip(*rows, strict=True)) if place == 0 or set(cells) != {NOTHING}]
    widths = widths_of([titles, *rows])
    drawn = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    for place in told:
        drawn.add_column(titles[place], overflow="ellipsis", no_wrap=True, min_width=min(widths[place], SQUEEZED))
    for row in rows:
        drawn.add_row(*(Text(row[place], style=_COLOURS.get(row[place], "")) for place in told))
    Console(highlight=False).print(drawn)
