"""Columns of bundles of evidence."""

from hostler.cli.list_view import Column, View, clock

BUNDLES = View(
    "",
    (
        Column("BUNDLE", "id"),
        Column("AT", "at", clock),
        Column("BYTES", "size"),
        Column("FILES", "files"),
        Column("RETURNS", "cases"),
        Column("TICKETS", "tickets", wide=True),
        Column("NOT IN IT", "missing"),
        Column("SHA-256", "digest", wide=True),
    ),
    empty="no evidence was kept",
)
