"""Columns of returns to vendors and of stock."""

from hostler.cli.list_view import Column, View, age, clock
from hostler.client import routes

RMA_CASES = View(
    routes.RMA_CASES,
    (
        Column("RETURN", "id"),
        Column("NODE", "node"),
        Column("KIND", "kind"),
        Column("COMPONENT", "component"),
        Column("SERIAL", "serial"),
        Column("STATE", "state"),
        Column("FOR", "since", age),
        Column("WAITS FOR", "waits_for"),
        Column("DUE", "due", clock),
        Column("OVERDUE", "overdue"),
        Column("VENDOR CASE", "vendor_case"),
        Column("FITTED", "fitted", wide=True),
        Column("REPLACEMENT", "replacement", wide=True),
        Column("MAC", "macs", wide=True),
        Column("PART NUMBER", "part_number", wide=True),
        Column("SLOT", "slot", wide=True),
        Column("SITE", "site", wide=True),
        Column("VENDOR", "vendor", wide=True),
        Column("TICKET", "ticket", wide=True),
        Column("FAULT", "fault", wide=True),
    ),
    empty="no return is open",
    events=("rma_case_",),
)

STOCK = View(
    routes.STOCK,
    (
        Column("SITE", "site"),
        Column("PART NUMBER", "part_number"),
        Column("COUNT", "count"),
        Column("LEAST", "least"),
        Column("LOW", "low"),
    ),
    empty="no stock was counted",
    events=("stock_",),
)
