"""Columns of bundles of evidence, and of certificates of sanitising."""

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

CERTIFICATES = View(
    "",
    (
        Column("CERTIFICATE", "id"),
        Column("AT", "at", clock),
        Column("DRIVES", "drives"),
        Column("TENANT", "tenant"),
        Column("SHA-256", "digest", wide=True),
    ),
    empty="the node was not sanitised yet",
)
