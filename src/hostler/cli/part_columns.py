"""Columns of parts, of the nodes that one has been in, and of the returns that name it."""

from hostler.cli.list_view import Column, View, age, clock
from hostler.client import routes

PARTS = View(
    routes.PARTS,
    (
        Column("SERIAL", "serial"),
        Column("KIND", "kind"),
        Column("MODEL", "model"),
        Column("NODE", "node"),
        Column("SLOT", "slot"),
        Column("FIRMWARE", "firmware"),
        Column("SINCE", "since", age),
    ),
    name="serial",
    empty="no part matches",
    events=("part_", "inventory_"),
)

PLACES = View(
    "",
    (
        Column("NODE", "node"),
        Column("SLOT", "slot"),
        Column("SINCE", "since", clock),
        Column("UNTIL", "until", clock),
        Column("NOW", "here"),
    ),
    name="node",
    empty="no node is recorded",
)

PART_CASES = View(
    "",
    (
        Column("RETURN", "id"),
        Column("IT IS", "part_is"),
        Column("NODE", "node"),
        Column("STATE", "state"),
        Column("RESULT", "result"),
        Column("OPENED", "opened", clock),
        Column("CLOSED", "closed", clock),
        Column("FAULT", "fault"),
        Column("VENDOR", "vendor"),
        Column("VENDOR CASE", "vendor_case"),
        Column("RETURNED", "serial", wide=True),
        Column("FITTED", "fitted", wide=True),
    ),
    empty="no return names it",
)
