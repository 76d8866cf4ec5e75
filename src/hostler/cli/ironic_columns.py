"""Columns of the list of `hostler ironic status`."""

from hostler.cli.list_view import Column, View, age
from hostler.client import routes

MACHINE_WORK = View(
    routes.MACHINE_WORK,
    (
        Column("NODE", "node"),
        Column("WORK", "kind"),
        Column("STATE", "state"),
        Column("AGE", "asked_at", age),
        Column("BY", "by"),
        Column("SAYS", "says"),
        Column("WHY", "why", wide=True),
        Column("TOLD", "told", lambda told, _: " ".join(f"{k}={v}" for k, v in dict(told).items()), wide=True),
    ),
    name="node",
    empty="no Ironic was asked for any work",
)
