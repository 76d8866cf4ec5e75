"""Columns of racks."""

from hostler.cli.list_view import Column, View, age, clock
from hostler.client import routes

RACKS = View(
    routes.RACKS,
    (
        Column("RACK", "rack"),
        Column("STATE", "state"),
        Column("BUNDLE", "bundle"),
        Column("STEP", "step"),
        Column("DONE", "done"),
        Column("STEPS", "steps"),
        Column("FOR", "since", age),
        Column("WAITS FOR", "waits_for"),
        Column("CERTIFIED BY", "certified_by"),
        Column("CERTIFIED AT", "certified_at", clock),
        Column("WHY", "why"),
        Column("CERTIFICATE", "digest", wide=True),
        Column("SKU", "sku", wide=True),
    ),
    name="rack",
    empty="no rack has been brought up as one",
    events=("rack_", "asset_"),
)
