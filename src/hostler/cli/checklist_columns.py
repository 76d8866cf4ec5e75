"""Columns of a node's checklist."""

from datetime import datetime
from typing import Any

from hostler.cli.list_view import Column, View, clock


def _files(value: Any, _now: datetime) -> str:
    return ", ".join(str(one["name"]) for one in value or ())


def _digests(value: Any, _now: datetime) -> str:
    return ", ".join(str(one["digest"]) for one in value or ())


CHECKLIST = View(
    "",
    (
        Column("NO", "number"),
        Column("ITEM", "item"),
        Column("TICKED", "ticked"),
        Column("BY", "person"),
        Column("AT", "at", clock),
        Column("NOTE", "note"),
        Column("FILES", "files", _files),
        Column("SHA-256", "files", _digests, wide=True),
    ),
    name="number",
    empty="its SKU and site name no items; one person's word certifies it",
)
