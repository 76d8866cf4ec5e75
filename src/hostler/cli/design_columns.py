"""Columns of the tables that show a network's designs."""

from hostler.cli.list_view import Column, View, age

DESIGN_VERSIONS = View(
    "",
    (
        Column("DESIGN", "digest", lambda digest, _: digest[:12]),
        Column("AGE", "at", age),
        Column("BY", "person"),
        Column("IN FORCE", "in_force", lambda value, _: "yes" if value else ""),
        Column("WHY", "reason"),
        Column("READ HERE", "text", lambda value, _: "yes" if value else "no", wide=True),
    ),
    name="digest",
)

DESIGN_CHANGES = View(
    "",
    (
        Column("CHANGE", "change"),
        Column("A", "a"),
        Column("Z", "z"),
        Column("BEFORE", "before"),
        Column("RATE", "rate"),
    ),
    name="a",
    empty="both designs are the same",
)
