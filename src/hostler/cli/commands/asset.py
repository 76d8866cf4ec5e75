"""`hostler asset`: what has a position and is no node: racks, NVLink domains, switch trays, power shelves, switches."""

from typing import Annotated

from cyclopts import App, Parameter

from hostler.cli.command_errors import unusable
from hostler.cli.input_files import entries_of, read_entries, submit
from hostler.cli.list_commands import show_list
from hostler.cli.node_verbs import offer
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Show, ShowOnce, Why
from hostler.cli.table_columns import ASSETS
from hostler.client import routes
from hostler.core.state.verbs.racks import AssetSound, RebindAsset, RenewAssetCertificate, RenewAssetLogin

app = App(name="asset", help="Assets that are not nodes.")


@app.command(name="list")
def list_(
    *,
    rack: Annotated[str, Parameter(show_default=False, help="Of this rack only.")] = "",
    kind: Annotated[str, Parameter(show_default=False, help="Of this kind only: power_shelf, switch_tray …")] = "",
    show: Show = SHOW,
    connect: Connect = CONNECT,
) -> int:
    """List assets."""
    query = {name: value for name, value in (("rack", rack), ("kind", kind)) if value}
    if query and show.watch:
        raise unusable("--watch goes with no filter of assets", "leave out --rack and --kind, or --watch")
    return show_list(connect, ASSETS, show, query)


@app.command
def register(file: str, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Make the assets of a JSON or YAML list known. FILE `-` reads standard input."""
    body = {"assets": read_entries(file, "assets")}
    with entries_of(file, "hostler asset register"):
        return submit(connect.client(), routes.ASSETS, body, why, show.output)


offer(app, AssetSound, RebindAsset, RenewAssetCertificate, RenewAssetLogin)
