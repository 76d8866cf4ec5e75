"""Writes a list to a file as it comes, page by page: nothing of it is held in memory."""

import csv
from collections.abc import Iterable
from typing import Any, Literal, TextIO

from hostler.cli.list_view import View, field
from hostler.cli.output import cell_of, json_of


def write_list(items: Iterable[dict[str, Any]], view: View, form: Literal["csv", "jsonl"], out: TextIO) -> int:
    """Write all columns as CSV, or all fields as JSON, one object a line; how many there were."""
    writer = csv.writer(out, lineterminator="\n")
    if form == "csv":
        writer.writerow([column.path for column in view.columns])
    number = 0
    for item in items:
        number += 1
        if form == "csv":
            writer.writerow([cell_of(field(item, column.path)) for column in view.columns])
        else:
            out.write(f"{json_of(item)}\n")
    return number
