"""A list's view: its columns, how a value is told in a cell, which columns and which order somebody asks for."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import quote

from hostler.cli.command_errors import unusable

MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
FEW = 4


@dataclass(frozen=True)
class Column:
    """One column: a title and the field it shows ("position.rack"), told by `tell`. `wide` ones are for `-o wide`."""

    title: str
    path: str
    tell: Callable[[Any, datetime], str] | None = None
    wide: bool = False

    def read(self, item: dict[str, Any], now: datetime) -> str:
        """The column's text for one object, "" where the field is not there."""
        value = field(item, self.path)
        if value is None or value == "":
            return ""
        return self.tell(value, now) if self.tell else text_of(value)


@dataclass(frozen=True)
class View:
    """A kind of object: where the API lists it, its columns, and the field that names it for `-o name`.

    `events` are the beginnings of the event names after which a watched list is asked for again.
    """

    path: str
    columns: tuple[Column, ...]
    name: str = "id"
    empty: str = "none"
    events: tuple[str, ...] = ()

    def one(self, name: str, also: str = "") -> str:
        """The path of one of them, or of something below it. Raises CommandError on an empty name."""
        if not name.strip():
            raise unusable("an empty name names nothing", "give the name of one; the noun's `list` shows them")
        return f"{self.path}/{quote(name, safe='')}{also}"

    def name_of(self, item: dict[str, Any]) -> str:
        """The item's name for `-o name`."""
        return text_of(field(item, self.name))

    def shown(self, wide: bool) -> tuple[Column, ...]:
        """The columns of the narrow or the wide table."""
        return tuple(column for column in self.columns if wide or not column.wide)

    def titles(self, wide: bool) -> list[str]:
        """Headings of those columns."""
        return [column.title for column in self.shown(wide)]


def with_columns(view: View, named: str) -> View:
    """The view with these columns or fields alone. Raises CommandError on an empty name."""
    names = [name.strip() for name in named.split(",")]
    if not all(names):
        raise unusable(f"--columns '{named}'", f"write names with commas between: {_known(view)}")
    return replace(view, columns=tuple(_column(view, name) for name in names))


def sort_by(items: Sequence[dict[str, Any]], view: View, named: str) -> list[dict[str, Any]]:
    """The objects by a column or field, numbers within text as numbers; those without it come last.

    Raises CommandError where none of them has it.
    """
    name, _, way = named.partition(":")
    path = _column(view, name.strip()).path
    having = [item for item in items if field(item, path) not in (None, "")]
    if way not in ("", "asc", "desc") or (items and not having):
        raise unusable(f"--sort-by '{named}'", f"name a column or a field of `-o json`, then `:desc`: {_known(view)}")
    rest = [item for item in items if field(item, path) in (None, "")]
    return [*sorted(having, key=lambda item: _natural(field(item, path)), reverse=way == "desc"), *rest]


def _column(view: View, name: str) -> Column:
    """The column of that title, or one of the field of that name."""
    known = (column for column in view.columns if name.lower() in (column.title.lower(), column.path))
    found = next(known, None)
    return replace(found, wide=False) if found else Column(name.upper(), name)


def _known(view: View) -> str:
    return ", ".join(column.title.lower() for column in view.columns)


def _natural(value: Any) -> tuple[tuple[bool, float, str], ...]:
    """A key under which r2 comes before r10, and numbers before words."""
    if isinstance(value, bool | int | float):
        return ((False, float(value), ""),)
    pieces = re.split(r"(\d+)", text_of(value).lower())
    return tuple(
        (not piece.isdecimal(), float(piece) if piece.isdecimal() else 0.0, piece) for piece in pieces if piece
    )


def field(item: Any, path: str) -> Any:
    """The value at a dotted path, None where any step is missing."""
    for step in path.split("."):
        if not isinstance(item, dict):
            return None
        item = item.get(step)
    return item


def text_of(value: Any) -> str:
    """A value in one cell."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(text_of(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}={text_of(item)}" for key, item in value.items())
    return "" if value is None else str(value)


def age(value: Any, now: datetime) -> str:
    """How long ago a moment was ("in 2h" for one to come)."""
    moment = parsed(value)
    if moment is None:
        return str(value)
    seconds = (now - moment).total_seconds()
    return span(seconds) if seconds >= 0 else f"in {span(-seconds)}"


def span(seconds: float) -> str:
    """A duration in its one or two greatest units."""
    whole = int(seconds)
    if whole < MINUTE_S:
        return f"{whole}s"
    if whole < HOUR_S:
        return f"{whole // MINUTE_S}m"
    if whole < DAY_S:
        return f"{whole // HOUR_S}h{whole % HOUR_S // MINUTE_S:02}m"
    return f"{whole // DAY_S}d{whole % DAY_S // HOUR_S}h"


def parsed(value: Any) -> datetime | None:
    """The moment that an API's text stands for, None for anything else."""
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def clock(value: Any, _now: datetime) -> str:
    """A moment to the second, in UTC."""
    moment = parsed(value)
    return f"{moment:%Y-%m-%d %H:%M:%SZ}" if moment else str(value)


def answers(value: Any, now: datetime) -> str:
    """The tenants' answers to a window: who acknowledged it, and who asks for which other time."""
    rows = value if isinstance(value, list) else ()
    return "; ".join(
        f"{row['tenant']} asks for {clock(row['rather'], now)}"
        if row.get("rather")
        else f"{row['tenant']} acknowledged"
        for row in rows
    )


def severity(value: Any, _now: datetime) -> str:
    """A severity's word; "" for the -1 of a node that has no condition."""
    words = ("info", "warning", "degraded", "critical", "catastrophic")
    return words[value] if isinstance(value, int) and 0 <= value < len(words) else ""


def steps(value: Any, _now: datetime) -> str:
    """A plan's steps in one line."""
    return " → ".join(step["act"]["kind"] for step in value)


def count(value: Any, _now: datetime) -> str:
    """How many there are."""
    return str(len(value)) if value else ""


def last_text(value: Any, _now: datetime) -> str:
    """The latest of some evidence, in its own words."""
    return str(value[-1].get("text", "")) if value else ""
