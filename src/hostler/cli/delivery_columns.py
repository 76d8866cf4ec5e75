"""Columns of what was told, or is to be told, to people elsewhere."""

from hostler.cli.list_view import Column, View, age, clock
from hostler.client import routes

DELIVERIES = View(
    routes.NOTIFICATIONS_DELIVERIES,
    (
        Column("NUMBER", "number"),
        Column("ROUTE", "message.route"),
        Column("STATE", "state"),
        Column("ACTION", "message.action"),
        Column("QUEUED", "queued", age),
        Column("TRIES", "attempts"),
        Column("SUMMARY", "message.summary"),
        Column("WHY", "why"),
        Column("KEY", "message.key", wide=True),
        Column("ID", "message.id", wide=True),
        Column("DUE", "due", clock, wide=True),
        Column("ENDED", "ended", clock, wide=True),
    ),
    name="number",
)
