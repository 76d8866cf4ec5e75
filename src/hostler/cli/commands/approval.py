"""`hostler approval`: what would disturb more than one person may decide, and waits for a second one."""

from cyclopts import App

from hostler.cli.list_commands import show_list, show_one
from hostler.cli.node_verbs import offer
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Show, ShowOnce
from hostler.cli.table_columns import APPROVALS
from hostler.core.state.verbs.approvals import ApproveRequest, DenyRequest, WithdrawRequest

app = App(name="approval", help="Approvals: what waits for a second person.")


@app.command(name="list")
def list_(*, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """List what waits for a second person: who asked for what, how many nodes, until when."""
    return show_list(connect, APPROVALS, show)


@app.command(name="show")
def show_(approval: str, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show one of them with the nodes it would disturb."""
    return show_one(connect, APPROVALS, approval, show.output)


offer(app, ApproveRequest, DenyRequest, WithdrawRequest)
