"""`hostler bring-up`: nodes on their way to production."""

from cyclopts import App

from hostler.cli.list_commands import show_list
from hostler.cli.options import CONNECT, SHOW_LIST, Connect, Selector, ShowList
from hostler.cli.trend_columns import BRING_UP, STAGES

app = App(name="bring-up", help="Nodes on their way to production.")


@app.command(name="list")
def list_(*, selector: Selector = "", show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List each node's stage beside its cohort, when it may arrive, what blocks it, what a person does next."""
    return show_list(connect, BRING_UP, show, {"selector": selector})


@app.command
def stages(*, selector: Selector = "", show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List the stages by SKU: nodes there now, how many wait, how many of their cohort went on and after how long."""
    return show_list(connect, STAGES, show, {"selector": selector})
