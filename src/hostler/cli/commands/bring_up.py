"""`hostler bring-up`: nodes on their way to production."""

from typing import Annotated

from cyclopts import App, Parameter

from hostler.cli.intent_requests import selection
from hostler.cli.list_commands import show_list
from hostler.cli.options import CONNECT, SHOW_LIST, Connect, ShowList
from hostler.cli.trend_columns import BRING_UP, STAGES

app = App(name="bring-up", help="Nodes on their way to production.")

Selector = Annotated[
    str,
    Parameter(name=("--selector", "-l"), show_default=False, help="`KEY=VALUE,KEY!=VALUE,…`; see `node list --help`."),
]


@app.command(name="list")
def list_(*, selector: Selector = "", show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List each node's stage beside its cohort, when it may arrive, what blocks it, what a person does next."""
    return show_list(connect, BRING_UP, show, selection(selector))


@app.command
def stages(*, selector: Selector = "", show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List the stages by SKU: nodes there now, how many wait, how many of their cohort went on and after how long."""
    return show_list(connect, STAGES, show, selection(selector))
