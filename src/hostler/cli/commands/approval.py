"""`hostler approval`: what would disturb more than one person may decide, and waits for a second one."""

from cyclopts import App

from hostler.cli.intent_requests import IntentRequest
from hostler.cli.list_commands import ask_one, show_list, show_one
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Show, ShowOnce, Why
from hostler.cli.table_columns import APPROVALS

app = App(name="approval", help="Approvals: what waits for a second person.")


@app.command(name="list")
def list_(*, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """List what waits for a second person: who asked for what, how many nodes, until when."""
    return show_list(connect, APPROVALS, show)


@app.command(name="show")
def show_(approval: str, *, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show one of them with the nodes it would disturb."""
    return show_one(connect, APPROVALS, approval, show.output)


@app.command
def approve(approval: str, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Say yes to what somebody else asked for; it is decided anew on the fleet as it is now."""
    return ask_one(connect, why, show.output, IntentRequest("approve-request", approval))


@app.command
def deny(approval: str, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Say no to what somebody else asked for."""
    return ask_one(connect, why, show.output, IntentRequest("deny-request", approval))


@app.command
def withdraw(approval: str, *, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Take back what you asked for."""
    return ask_one(connect, why, show.output, IntentRequest("withdraw-request", approval))
