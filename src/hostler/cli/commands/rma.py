"""`hostler rma`: returns to vendors."""

from typing import Annotated

from cyclopts import App, Parameter

from hostler.cli.list_commands import show_list, show_one
from hostler.cli.node_verbs import offer
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Show, ShowOnce
from hostler.cli.rma_columns import RMA_CASES
from hostler.core.state.verbs.rma_cases import AdvanceRma, CloseRma, EditRma, OpenRma

app = App(name="rma", help="Returns to vendors: what is faulty, what is on its way, what is overdue.")


@app.command(name="list")
def list_(
    *,
    node: Annotated[str, Parameter(help="Of this node only.")] = "",
    overdue: Annotated[bool, Parameter(help="Only those of which a step is overdue.", negative=())] = False,
    show: Show = SHOW,
    connect: Connect = CONNECT,
) -> int:
    """List the open returns."""
    return show_list(connect, RMA_CASES, show, {"node": node, "overdue": overdue})


@app.command
def show(rma: str, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show one return: its steps, its fields, its history."""
    return show_one(connect, RMA_CASES, rma, show.output)


offer(app, OpenRma, AdvanceRma, EditRma, CloseRma)
