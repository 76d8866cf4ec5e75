"""`hostler provider`: who owns machines of the cell, and whether they answer."""

from cyclopts import App

from hostler.cli.list_commands import show_list
from hostler.cli.list_view import Column, View, age
from hostler.cli.options import CONNECT, SHOW_LIST, Connect, ShowList
from hostler.client import routes

PROVIDERS = View(
    routes.PROVIDERS,
    (
        Column("PROVIDER", "provider"),
        Column("HOST", "host"),
        Column("NODES", "nodes"),
        Column("NOTICES", "notices"),
        Column("ASKED", "looked_at", age),
        Column("SAYS", "says"),
    ),
    name="provider",
    empty="no provider is named in provider.json",
)

app = App(name="provider", help="Providers that own machines: a cloud, a colocation's remote hands.")


@app.command(name="list")
def list_providers(*, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List providers: their nodes, whether they answer, and the maintenance that they told of."""
    return show_list(connect, PROVIDERS, show)
