"""Columns of goldens."""

from hostler.cli.list_view import Column, View, age
from hostler.client import routes

GOLDENS = View(
    routes.GOLDENS,
    (
        Column("GOLDEN", "id"),
        Column("CHECK", "check"),
        Column("STATE", "state"),
        Column("PEERS", "peers"),
        Column("DIFFERS", "disputed_by"),
        Column("FOR", "learned", age),
        Column("STACK", "stack"),
        Column("DIGEST", "digest", wide=True),
    ),
    empty="no check has told bits yet",
    events=("bits_", "golden_", "witness_"),
)
