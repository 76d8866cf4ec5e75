"""`hostler stock`: spares by site."""

from typing import Annotated

from cyclopts import App, Parameter

from hostler.cli.list_commands import show_list
from hostler.cli.node_verbs import offer
from hostler.cli.options import CONNECT, SHOW, Connect, Show
from hostler.cli.rma_columns import STOCK
from hostler.core.state.verbs.rma_cases import CountStock

app = App(name="stock", help="Spares on the shelf, by site and part number.")


@app.command(name="list")
def list_(
    *,
    site: Annotated[str, Parameter(help="Of this site only.")] = "",
    low: Annotated[bool, Parameter(help="Only those of which there are too few.", negative=())] = False,
    show: Show = SHOW,
    connect: Connect = CONNECT,
) -> int:
    """List the spares on the shelf."""
    return show_list(connect, STOCK, show, {"site": site, "low": low})


offer(app, CountStock)
