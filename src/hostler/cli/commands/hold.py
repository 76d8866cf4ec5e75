"""`hostler hold`: leave this alone, recorded, with an owner and an end."""

from cyclopts import App

from hostler.cli.list_commands import show_list
from hostler.cli.node_verbs import offer
from hostler.cli.options import CONNECT, SHOW, Connect, Show
from hostler.cli.table_columns import HOLDS
from hostler.core.state.verbs.holds import PlaceHold, ReleaseHold

app = App(name="hold", help="Holds: leave this alone.")


@app.command(name="list")
def list_(*, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """List holds, cordons of people and physical work."""
    return show_list(connect, HOLDS, show)


offer(app, PlaceHold, ReleaseHold)
