"""Columns of the lists of `hostler bmc credentials status` and `hostler bmc certificates status`."""

from hostler.cli.list_view import Column, View, age, clock
from hostler.client import routes

BMC_CREDENTIALS = View(
    routes.BMC_CREDENTIALS,
    (
        Column("NODE", "node"),
        Column("KIND", "kind"),
        Column("BMC", "bmc"),
        Column("STATE", "state"),
        Column("AGE", "renewed_at", age),
        Column("DUE", "due_at", clock),
        Column("PENDING", "pending"),
        Column("TRIED", "tried"),
        Column("CERTIFICATE", "certificate", lambda digest, _: str(digest)[:16]),
        Column("SAYS", "says"),
        Column("OF", "tries", wide=True),
        Column("USER", "username", wide=True),
    ),
    name="node",
    empty="no node has a BMC",
)

BMC_CERTIFICATES = View(
    routes.BMC_CERTIFICATES,
    (
        Column("NODE", "node"),
        Column("KIND", "kind"),
        Column("STATE", "state"),
        Column("CERTIFICATE", "certificate", lambda digest, _: str(digest)[:16]),
        Column("EXPIRES", "expires_at", clock),
        Column("AGE", "renewed_at", age),
        Column("DUE", "due_at", clock),
        Column("SAYS", "says"),
        Column("ISSUER", "issuer", wide=True),
        Column("BMC", "bmc", wide=True),
    ),
    name="node",
    empty="no node has a BMC",
)
